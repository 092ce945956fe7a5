"""Shell completion: what a shell is answered, and what is written where for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commonplace.cli import completion, main
from commonplace.cli.commands import COMMANDS
from commonplace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="descriptor 8 is passed as POSIX does")


def completions(line: str, shell: str = "bash") -> list[str]:
    """What the program answers to argcomplete's script, which reads descriptor 8."""
    code = f"exec {sys.executable} -m commonplace 8>&1 9>/dev/null 1>/dev/null 2>&1"
    environment = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_SHELL": shell,
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    done = subprocess.run(
        ["sh", "-c", code], env={**os.environ, **environment}, capture_output=True, check=False
    )
    assert done.returncode == 0
    return done.stdout.decode().split("\n")


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("commonplace ", list(COMMANDS)),
        ("commonplace re", ["recall", "resolve", "repos"]),
        ("cpb re", ["recall", "resolve", "repos"]),
        ("commonplace --v", ["--version"]),
        ("commonplace notes ", ["list", "read", "write", "replace", "insert"]),
        ("commonplace notes read --li", ["--lines"]),
        ("commonplace recall x --to", ["--tokens"]),
        ("commonplace recall --type ", ["error", "success", "pattern", "learned", "decision"]),
        ("commonplace recall --type=l", ["--type=learned"]),
        ("commonplace log --type p", ["pattern"]),
        ("commonplace feedback les-a w", ["worked", "wrong"]),
        ("commonplace token add x --scopes r", ["read"]),
        ("commonplace setup co", ["codex", "copilot"]),
        ("commonplace export --layout l", ["loki"]),
        ("commonplace import --from b", ["beads", "basic-memory"]),
        ("commonplace show ", [""]),
    ],
)
def test_commands_flags_and_values_are_completed(line: str, answer: list[str]) -> None:
    assert completions(line) == answer


def test_zsh_is_told_what_each_command_does() -> None:
    assert completions("commonplace whe", "zsh") == [f"where:{COMMANDS['where'].help}"]


def run_in(shell: str, code: str) -> list[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [shell, "-c", code],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split("\n")


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_with_the_script() -> None:
    script = completion._script("bash")
    ask = 'COMP_LINE="commonplace rec"; COMP_POINT=15; COMP_TYPE=9; _python_argcomplete commonplace'

    answer = run_in("bash", f'{script}\n{ask}; echo "${{COMPREPLY[@]}}"; complete -p cpb')

    assert answer[0].strip() == "recall"
    assert "_python_argcomplete" in answer[1]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_with_what_was_installed() -> None:
    main(["--install-completion", "fish"])

    assert run_in("fish", 'complete -C "cpb rec"') == [f"recall\t{COMMANDS['recall'].help}", ""]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_loads_what_was_installed() -> None:
    main(["--install-completion", "zsh"])

    answer = run_in("zsh", "source ~/.zshrc; echo $_comps[commonplace] $_comps[cpb]")

    assert answer == ["_commonplace _commonplace", ""]


@pytest.mark.parametrize(
    ("shell", "script", "start"),
    [
        ("bash", ".bash_completions/commonplace.sh", ".bashrc"),
        ("zsh", ".zfunc/_commonplace", ".zshrc"),
        ("fish", ".config/fish/completions/commonplace.fish", ""),
    ],
)
def test_installing_writes_a_script_and_one_line_however_often(
    shell: str, script: str, start: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if start:
        (tmp_path / start).write_text("alias ll='ls -l'")
    for _ in range(2):
        assert main(["--install-completion", shell]) == 0

    assert "argcomplete" in (tmp_path / script).read_text().lower()
    assert f"{shell} completion installed in {tmp_path / script}\n" in capsys.readouterr().out
    if start:
        first, added = (tmp_path / start).read_text().splitlines()
        assert first == "alias ll='ls -l'"
        assert script.split("/", maxsplit=1)[0] in added


def test_powershell_gets_it_in_its_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = tmp_path / "bin" / "pwsh"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\necho {tmp_path}/profile/profile.ps1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}{os.environ['PATH']}")

    for _ in range(2):
        assert main(["--install-completion", "pwsh"]) == 0

    profile = (tmp_path / "profile" / "profile.ps1").read_text()
    assert profile.count("Register-ArgumentCompleter -Native -CommandName commonplace") == 1
    assert profile.count("Register-ArgumentCompleter -Native -CommandName cpb") == 1
    monkeypatch.setenv("PATH", "")
    assert main(["--install-completion", "powershell"]) == 2
    assert "--show-completion" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell", "pwsh"])
def test_the_script_can_be_shown(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--show-completion", shell]) == 0

    shown = capsys.readouterr().out
    assert "commonplace" in shown
    assert "cpb" in shown


def test_the_current_shell_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    command = f"{sys.executable} -m commonplace --show-completion; :"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "complete -o nospace" in done.stdout

    monkeypatch.setattr("commonplace.cli.completion.PARENTS_MAX", 0)
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert completion._choose_shell("") == "fish"
    for unknown in ("/bin/tcsh", ""):
        monkeypatch.setenv("SHELL", unknown)
        with pytest.raises(UsageError) as raised:
            completion._choose_shell("")
        assert raised.value.hint == "name one of bash, zsh, fish, powershell, pwsh"


def test_a_start_file_that_cannot_be_written_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".bashrc").mkdir()

    assert main(["--install-completion", "bash"]) == 2
    assert f"`{tmp_path}/.bashrc` cannot be written" in capsys.readouterr().err
