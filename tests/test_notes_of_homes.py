"""The notes of an agent in several homes: what it is given at start is what it lists, reads and edits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from commonplace.errors import NoteNotFound, NoteRefused
from commonplace.foreign import UNTRUSTED
from commonplace.memory import Memory
from commonplace.sessions import answer_from_files
from commonplace.sessions.payload import read_event
from commonplace.where import trust
from conftest import git

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from subprocess import CompletedProcess


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with a home in which another hand wrote notes."""
    folder = tmp_path / "clone"
    notes = folder / ".commonplace" / "agents" / "reviewer"
    notes.mkdir(parents=True)
    git("init", "-q", cwd=folder)
    (folder / ".commonplace" / "log").mkdir()
    (notes / "CONTEXT.md").write_text("# from the clone\n")
    (notes / "plan.md").write_text("the plan of the clone\n")
    return folder


@pytest.fixture
def memory(clone: Path, own_home: Path) -> Iterator[Memory]:
    own = own_home / "agents" / "reviewer"
    own.mkdir(parents=True)
    (own / "CONTEXT.md").write_text("from the user\n")
    (own / "todo.md").write_text("a list of the user\n")
    with Memory.open(cwd=clone, agent_id="reviewer") as opened:
        yield opened


def test_what_the_preamble_loads_is_what_is_listed_read_and_edited(memory: Memory) -> None:
    notes = memory.visible_notes()
    assert "from the user" in memory.preamble()

    assert notes.read_with_hash("CONTEXT.md").text == "from the user\n"
    notes.replace("CONTEXT.md", "the user", "its agent")
    notes.insert("CONTEXT.md", 1, "a second line\n")
    assert "from its agent\n> a second line" in memory.preamble()
    notes.write("CONTEXT.md", "written anew\n")
    assert "written anew" in memory.preamble()
    assert "clone" not in memory.preamble().partition("Workspace")[0]


def test_a_trusted_home_comes_first(memory: Memory) -> None:
    trust.trust(memory.home)

    assert memory.visible_notes().read_with_hash("CONTEXT.md").text == "# from the clone\n"
    assert "# from the clone" in memory.preamble()
    assert [note.trusted for note in memory.visible_notes().list()] == [True, True, True]
    memory.visible_notes().write("new.md", "x")
    assert memory.notes().has("new.md")


def test_notes_of_a_clone_are_seen_with_a_mark_and_new_ones_are_not_written_there(
    memory: Memory, own_home: Path
) -> None:
    notes = memory.visible_notes()

    listed = {note.path: note.trusted for note in notes.list()}
    assert listed == {"CONTEXT.md": True, "plan.md": False, "todo.md": True}
    read = notes.read_with_hash("plan.md")
    assert (read.text, read.note.trusted) == ("the plan of the clone\n", False)
    notes.write("plan.md", "my own plan", read.note.hash_start)
    assert notes.read_with_hash("plan.md").text == "my own plan"
    assert (own_home / "agents" / "reviewer" / "plan.md").is_file()
    assert memory.notes().read("plan.md") == "the plan of the clone\n"
    with pytest.raises(NoteNotFound):
        notes.read_with_hash("nothing.md")
    with pytest.raises(NoteNotFound):
        notes.list("nothing")


def test_the_command_marks_them_too(
    memory: Memory, clone: Path, commonplace: Callable[..., CompletedProcess[str]]
) -> None:
    listed = commonplace("notes", "list", "--agent", "reviewer", cwd=clone).stdout

    assert f"plan.md  ({UNTRUSTED})" in listed
    assert "todo.md\n" in listed
    done = commonplace("notes", "read", "plan.md", "--agent", "reviewer", cwd=clone)
    assert done.stdout == "the plan of the clone\n"
    assert UNTRUSTED in done.stderr


@pytest.mark.parametrize("line", ["a line of the context", "x" * 1200])
def test_a_context_that_is_too_long_ends_with_how_to_read_the_rest(
    tmp_path: Path, own_home: Path, line: str
) -> None:
    with Memory.open(cwd=tmp_path, agent_id="claude-code") as memory:
        lines = [f"{number} {line}" for number in range(1, 200)]
        memory.notes().write("CONTEXT.md", "\n" + "\n".join(lines) + "\n")
        raw = {"session_id": "s", "cwd": str(tmp_path), "hook_event_name": "SessionStart"}
        event = read_event(
            "claude-code", json.dumps(raw).encode(), at=1e9, cwd=str(tmp_path), environment=()
        )
        assert event is not None
        text = json.loads(answer_from_files(memory, event))["hookSpecificOutput"][
            "additionalContext"
        ]

        first = int(text.rpartition("--lines ")[2].split()[0])
        rest = memory.visible_notes().read_with_hash("CONTEXT.md", (first, -1)).text

    assert "commonplace notes read CONTEXT.md --agent claude-code --lines" in text
    shown = text.partition("\n> …")[0]
    assert rest.startswith(f"{first - 1} ")
    assert f"> {first - 2} " in shown or first == 2


def test_a_note_of_a_clone_is_not_edited_there(memory: Memory, clone: Path) -> None:
    note = clone / ".commonplace" / "agents" / "reviewer" / "plan.md"
    before = note.read_text()
    notes = memory.visible_notes()

    with pytest.raises(NoteRefused, match="not trusted"):
        notes.replace("plan.md", "the clone", "mine")
    with pytest.raises(NoteRefused, match="not trusted"):
        notes.insert("plan.md", 0, "mine")

    assert note.read_text() == before
    trust.trust(memory.home)
    memory.visible_notes().replace("plan.md", "the clone", "ours")
    assert "ours" in note.read_text()
