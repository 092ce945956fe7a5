"""Processes that change one record at once, or while its log is renamed, lose nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from commonplace.cli import main
from commonplace.log.append import Appender
from commonplace.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TIMES = 15
# One process for many changes, so that two of them are in the middle of one at the same time.
PROGRAM = """
import sys
from commonplace.cli import main
command, ident, name, times = sys.argv[1:]
sys.stdin.readline()
for number in range(int(times)):
    words = {
        "tag": ["tag", ident, f"+{name}{number}"],
        "edit": ["edit", ident, "--tags", f"+{name}{number}"],
        "log": ["log", "--id", ident, "--merge", "--tags", f"+{name}{number}"],
    }[command]
    assert main(words) == 0
"""


@pytest.mark.parametrize("command", ["tag", "edit", "log"])
def test_the_tags_that_processes_add_at_once_are_all_there(own_home: Path, command: str) -> None:
    with Memory.open(own_home) as memory:
        ident = memory.log(event_type="error", lesson="the emulator must run first").id
    names = ("AA", "BB")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, command, ident, name, str(TIMES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    errors = [process.communicate(timeout=120)[1] for process in processes]

    assert [process.returncode for process in processes] == [0, 0], errors
    with Memory.open(own_home) as memory:
        assert set(memory.get(ident).tags) == {f"{one}{at}" for one in names for at in range(TIMES)}


def test_an_edit_in_the_editor_keeps_tags_that_were_added_meanwhile(
    own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(own_home) as memory:
        ident = memory.log(event_type="error", lesson="a", tags=["npm", "ci"]).id
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import pathlib, subprocess, sys\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "path.write_text(path.read_text().replace('npm, ci', 'npm, slow'))\n"
        "command = [sys.executable, '-m', 'commonplace', 'tag', sys.argv[2], '+meanwhile']\n"
        "subprocess.run(command, check=True)\n"
    )
    # The editor gets the file as its last argument.
    wrapper = tmp_path / "wrapper.py"
    wrapper.write_text(
        "import subprocess, sys\n"
        f"words = [sys.executable, {str(editor)!r}, sys.argv[1], {ident!r}]\n"
        "sys.exit(subprocess.run(words).returncode)\n"
    )
    monkeypatch.setenv("VISUAL", f'"{sys.executable}" "{wrapper}"')

    assert main(["edit", ident, "--editor"]) == 0
    with Memory.open(own_home) as memory:
        assert set(memory.get(ident).tags) == {"npm", "slow", "meanwhile"}


CHANGES: dict[str, Callable[[Memory, str], object]] = {
    "edit": lambda memory, ident: memory.edit(ident, lesson="the port is 9090"),
    "forget": lambda memory, ident: memory.forget(ident),
    "feedback": lambda memory, ident: memory.feedback(ident, "worked"),
}


@pytest.mark.skipif(os.name == "nt", reason="the log is locked by another function there")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("new", ["shop", "a-name-before-it"])
def test_a_rename_just_before_a_change_takes_the_lock_costs_nothing(
    own_home: Path, commonplace: Any, monkeypatch: pytest.MonkeyPatch, change: str, new: str
) -> None:
    with Memory.open(own_home) as memory:
        lesson = {"event_type": "error", "lesson": "the port is 8080"}
        ident = memory.log(repo="demo", **lesson).id
        memory.close()
        real = Appender._locked_descriptor

        def rename_first(appender: Appender) -> int:
            monkeypatch.setattr(Appender, "_locked_descriptor", real)
            assert commonplace("repos", "rename", "demo", new).returncode == 0
            return real(appender)

        monkeypatch.setattr(Appender, "_locked_descriptor", rename_first)
        CHANGES[change](memory, ident)
        assert [path.stem for path in (own_home / "log").glob("*.jsonl")] == [new]
        lines = (own_home / "log" / f"{new}.jsonl").read_text().splitlines()
        assert [json.loads(line)["repo"] for line in lines] == [new, new]
        if change == "edit":
            assert memory.get(ident).fields["lesson"] == "the port is 9090"
        else:
            assert bool(list(memory.records(kind="lesson"))) is (change == "feedback")
