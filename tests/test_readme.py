"""The README followed literally: every command in its order, in an empty HOME with a clean environment."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import textwrap
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tools.e2e.scratch import Scratch

from conftest import ROOT

README = (ROOT / "README.md").read_text("utf-8")
POSIX_ONLY = pytest.mark.skipif(os.name == "nt", reason="the README's commands are for a shell")


class Command(NamedTuple):
    """A command of the README, and the output that it shows; `None` if it shows none."""

    line: str
    output: str | None


def blocks() -> Iterator[tuple[str, str]]:
    """The language and the text of each block of code, in order."""
    pattern = r"^```(\w*)\n(.*?)^```|((?:^(?: {4}[^\n]*)?\n)*^ {4}[^\n]*\n)"
    for language, fenced, indented in re.findall(pattern, README, re.MULTILINE | re.DOTALL):
        yield language or "sh", fenced or textwrap.dedent(indented)


def commands(block: str) -> list[Command]:
    """The commands of a block: after `$`, with their output; without any `$`, every line."""
    joined = re.sub(r" *\\\n\s*", " ", block.strip("\n"))
    if not re.search(r"^\$ ", joined, re.MULTILINE):
        return [Command(line.partition("  #")[0].strip(), None) for line in joined.splitlines()]
    found = []
    for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        found.append(Command(line, output))
    return found


def plain(text: str) -> str:
    """*text* without dates and the hashes of ids, which depend on the day and the machine."""
    text = re.sub(r"-[0-9a-f]{14}\b", "-HASH", text)
    text = re.sub(r"\d{4}-\d\d-\d\d", "DATE", text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Scratch]:
    """A HOME with nothing in it but the folder of one agent, and our programs on the PATH."""
    scratch = Scratch(tmp_path / "machine", Path("/nowhere"), {"SHELL": "/bin/bash"})
    shutil.rmtree(scratch.repository)
    scratch.repository.mkdir()
    (scratch.home / ".claude").mkdir()
    try:
        yield scratch
    finally:
        scratch.run("commonplace", "serve", "--stop")
        scratch.wait_for_processes()


def run(machine: Scratch, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command as at a terminal, with `y` as the answer to every question."""
    import pty

    ours, theirs = pty.openpty()
    os.write(ours, b"y\n" * 3)
    try:
        return subprocess.run(
            arguments,
            stdin=theirs,
            capture_output=True,
            text=True,
            cwd=machine.repository,
            env={**machine.environment, "USER": "me"},
            timeout=120,
            check=False,
        )
    finally:
        os.close(theirs)
        os.close(ours)


@POSIX_ONLY
def test_every_command_of_the_readme_runs_and_prints_what_it_shows(machine: Scratch) -> None:
    followed = []
    for language, block in blocks():
        if language == "python":
            done = run(machine, [str(machine.bin / "python"), "-c", block])
            followed.append("python")
            assert done.returncode == 0, done.stderr
            assert "always verify ownership before npm operations" in done.stdout
            continue
        for command in commands(block):
            program, _, rest = command.line.partition(" ")
            followed.append(program)
            # `make` works on this checkout, and one of its rules runs these tests: here it must do
            # that the rule is there.
            line = f"make -n -C {shlex.quote(str(ROOT))} {rest}" if program == "make" else ""
            done = run(machine, ["/bin/sh", "-c", line or command.line])
            assert done.returncode == 0, f"{command.line}\n{done.stdout}\n{done.stderr}"
            assert "Traceback" not in done.stderr
            if command.output is not None:
                assert plain(done.stdout) == plain(command.output), command.line

    assert followed.count("commonplace") >= 4
    assert {"make", "python"} <= set(followed)
    settings = (machine.home / ".claude" / "settings.json").read_text()
    assert "commonplace-hook" in settings
    assert run(machine, ["commonplace", "setup", "--undo", "--yes"]).returncode == 0
    assert not (machine.home / ".claude" / "settings.json").exists()


@POSIX_ONLY
def test_every_command_that_the_readme_names_in_passing_is_one(machine: Scratch) -> None:
    text = re.sub(r"^```.*?^```", "", README, flags=re.MULTILINE | re.DOTALL)
    named = dict.fromkeys(re.findall(r"`(commonplace [a-z-][^`]*)`", text))
    assert len(named) >= 4

    for line in named:
        words = shlex.split(line)
        arguments = words if words[1].startswith("--") else [*words[:2], "--help"]
        done = run(machine, arguments)
        assert done.returncode == 0, f"{line}\n{done.stderr}"


@POSIX_ONLY
def test_the_demo_runs_on_a_new_machine(machine: Scratch) -> None:
    """`make demo` without the part that installs: the script that it runs."""
    assert "make demo" in README
    assert "scripts/demo.py" in run(machine, ["make", "-n", "-C", str(ROOT), "demo"]).stdout

    done = run(machine, [str(machine.bin / "python"), str(ROOT / "scripts" / "demo.py")])

    assert done.returncode == 0, done.stderr
    assert "always verify ownership before npm operations" in done.stdout


@POSIX_ONLY
@pytest.mark.slow
def test_an_installation_from_a_clone_has_the_programs(tmp_path: Path) -> None:
    """What `pipx install .` does in a clone; skipped where no package index can be reached."""
    assert "`pipx install .`" in README
    clone = tmp_path / "clone"
    left_out = (".git", ".venv", ".tools", ".*_cache", "__pycache__", "tests", ".hypothesis")
    shutil.copytree(ROOT, clone, ignore=shutil.ignore_patterns(*left_out))
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"

    def call(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            arguments,
            cwd=clone,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    # What it depends on is installed for these tests already; only our own files are in question.
    done = call(programs / "python", "-m", "pip", "install", "--quiet", "--no-deps", ".")
    if done.returncode and re.search(r"(?i)connection|no matching distribution|retry", done.stderr):
        pytest.skip(f"no package index: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr
    paths = {"PYTHONPATH": sysconfig.get_path("purelib"), "HOME": str(tmp_path)}
    for program in ("commonplace", "commonplace-hook"):
        done = call(programs / program, "--help", **paths)
        assert done.returncode == 0, done.stderr
    done = call(
        programs / "commonplace", "log", "--type", "learned", "--lesson", "it works", **paths
    )
    assert done.returncode == 0, done.stderr
    assert "it works" in call(programs / "commonplace", "recall", "it works", **paths).stdout
