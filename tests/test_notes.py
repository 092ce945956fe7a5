"""Notes: exact edits, confined paths, whole writes, and nobody else's folder."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commonplace.errors import CommonplaceError, NoteChanged, NoteNotFound, NoteRefused
from commonplace.memory import Memory
from commonplace.notes import NOTE_BYTES_MAX, Notes

ATTACKS = [
    "", " ", ".", "..", "../x.md", "a/../x.md", "a/../../x.md", "/etc/passwd", "//x.md", "/x.md", "./x.md", "a//b.md",
    "a/./b.md", "~/x.md", "~root/x.md", "..\\x.md", "a\\b.md", "C:\\x.md", "C:/x.md", "c:x.md", "\\\\server\\share", "x.md:stream",
    "%2e%2e/x.md", "%2e%2e%2fx.md", "..%2fx.md", "a%00.md", "x\x00.md", "x\n.md", "x\x1b.md", "NUL", "nul.md", "con.txt", "a/AUX.md",
    "COM1", "lpt9.md", ".hidden", "a/.git/config", "x.md.", "x.md ", " x.md", "a/b/c/d/e/f/g/h/i.md", "x" * 300, "-rf", "a*b.md",
    "a?.md", 'a".md', "a<b>.md", "a|b.md",
]  # fmt: skip


@pytest.mark.parametrize("path", ATTACKS)
def test_no_path_leads_out_of_the_folder(own_home: Path, tmp_path: Path, path: str) -> None:
    notes = Notes(own_home, "researcher")
    notes.write("CONTEXT.md", "mine")
    before = sorted(str(found) for found in tmp_path.rglob("*"))

    for call in (lambda: notes.write(path, "x"), lambda: notes.read(path), lambda: notes.insert(path, 0, "x")):
        with pytest.raises((NoteRefused, NoteNotFound)):
            call()

    assert sorted(str(found) for found in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("agent", ["../other", "a/b", "..", "", "nul", "a\\b"])
def test_no_agent_name_leads_to_another_folder(own_home: Path, agent: str) -> None:
    with pytest.raises(NoteRefused):
        Notes(own_home, agent)


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_a_link_is_never_followed(own_home: Path, tmp_path: Path) -> None:
    notes = Notes(own_home, "researcher")
    notes.write("CONTEXT.md", "mine")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "x.md").write_text("theirs")
    (notes.folder / "link.md").symlink_to(tmp_path / "secret" / "x.md")
    (notes.folder / "folder").symlink_to(tmp_path / "secret")

    for path in ("link.md", "folder/x.md"):
        for call in (lambda path=path: notes.read(path), lambda path=path: notes.write(path, "x")):
            with pytest.raises(NoteRefused, match="link"):
                call()
    assert [note.path for note in notes.list()] == ["CONTEXT.md"]
    assert (tmp_path / "secret" / "x.md").read_text() == "theirs"


def test_names_that_differ_in_case_alone_are_one_file_too_many(own_home: Path) -> None:
    notes = Notes(own_home, "researcher")
    notes.write("CONTEXT.md", "mine")

    with pytest.raises(NoteRefused, match="case"):
        notes.write("context.md", "other")


def test_agents_do_not_see_one_another(own_home: Path) -> None:
    Notes(own_home, "researcher").write("plan.md", "mine")

    analyst = Notes(own_home, "analyst")
    assert analyst.list() == []
    with pytest.raises(NoteNotFound):
        analyst.read("plan.md")


def test_a_text_that_occurs_twice_is_refused_with_its_lines(own_home: Path) -> None:
    notes = Notes(own_home, "researcher")
    notes.write("CONTEXT.md", "line one\nline two\nline one\n")

    with pytest.raises(NoteRefused, match="2 times, in lines 1, 3"):
        notes.replace("CONTEXT.md", "line one", "x")
    with pytest.raises(NoteRefused, match="to the letter"):
        notes.replace("CONTEXT.md", "line three", "x")
    notes.replace("CONTEXT.md", "line two", "line 2")
    notes.insert("CONTEXT.md", 0, "title\n")
    assert notes.read("CONTEXT.md") == "title\nline one\nline 2\nline one\n"
    assert notes.read("CONTEXT.md", (2, 3)) == "line one\nline 2\n"
    assert notes.read("CONTEXT.md", (4, -1)) == "line one\n"


@pytest.mark.parametrize("view", [(0, 1), (2, 1), (1, 9), (-1, -1)])
def test_a_range_outside_the_note_is_refused(own_home: Path, view: tuple[int, int]) -> None:
    notes = Notes(own_home, "researcher")
    notes.write("a.md", "one\ntwo\n")

    with pytest.raises(NoteRefused, match="2 lines"):
        notes.read("a.md", view)


def test_an_update_that_would_be_lost_is_refused(own_home: Path) -> None:
    notes = Notes(own_home, "researcher")
    first = notes.write("a.md", "one", if_sha256="").note
    notes.write("a.md", "two", if_sha256=first.sha256)

    with pytest.raises(NoteChanged):
        notes.write("a.md", "three", if_sha256=first.sha256)
    with pytest.raises(NoteChanged):
        notes.write("a.md", "three", if_sha256="")
    assert notes.read("a.md") == "two"


def test_what_is_too_large_or_no_text_is_refused_and_costs_nothing(own_home: Path) -> None:
    notes = Notes(own_home, "researcher")
    notes.write("a.md", "one")

    for content in ("x" * (NOTE_BYTES_MAX + 1), "nul \x00", "lone \ud800"):
        with pytest.raises(NoteRefused):
            notes.write("a.md", content)
    assert notes.read("a.md") == "one"
    (notes.folder / "binary.md").write_bytes(b"\xff\xfe")
    with pytest.raises(NoteRefused, match="UTF-8"):
        notes.read("binary.md")


@pytest.mark.skipif(os.name != "posix", reason="Windows has other permissions")
def test_every_folder_and_file_is_its_owners_alone(own_home: Path) -> None:
    Notes(own_home, "researcher").write("deep/er/c.md", "mine")

    modes = {found.name: found.stat().st_mode & 0o777 for found in (own_home, *own_home.rglob("*"))}
    assert {mode for name, mode in modes.items() if "." in name and name != ".state"} == {0o600}
    assert {modes[name] for name in ("home", ".state", "agents", "researcher", "deep", "er")} == {0o700}


def test_secrets_do_not_reach_a_note(own_home: Path) -> None:
    secret = "ghp_" + "Ab12" * 9

    written = Notes(own_home, "researcher").write("a.md", f"use {secret}\n<private>diary</private>")

    assert written.redacted
    assert secret not in (own_home / "agents" / "researcher" / "a.md").read_text()
    assert "diary" not in (own_home / "agents" / "researcher" / "a.md").read_text()


NAMES = st.sampled_from(["a.md", "b.md", "deep/c.md"])
WORDS = st.text("xyz\n", max_size=6)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES, WORDS, WORDS),
        st.tuples(st.just("replace"), NAMES, WORDS, WORDS),
        st.tuples(st.just("insert"), NAMES, st.integers(-1, 5).map(str), WORDS),
        st.tuples(st.just("read"), NAMES, WORDS, WORDS),
        st.tuples(st.just("list"), NAMES, WORDS, WORDS),
    ),
    max_size=12,
)


def model_step(files: dict[str, str], step: tuple[str, str, str, str]) -> Any:
    """What the five tools should do, on a plain dictionary. `None` stands for a refusal."""
    action, path, one, other = step
    if action == "write":
        files[path] = one
    elif action == "list":
        return sorted(files)
    elif path not in files:
        return None
    elif action == "read":
        return files[path]
    elif action == "replace":
        count = sum(files[path].startswith(one, at) for at in range(len(files[path]))) if one else 0
        if count != 1:
            return None
        files[path] = files[path].replace(one, other, 1)
    else:
        parts = files[path].split("\n")
        lines = [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
        at = int(one)
        if not 0 <= at <= len(lines):
            return None
        before = "".join(lines[:at])
        before += "\n" if before and not before.endswith("\n") else ""
        after = "".join(lines[at:])
        files[path] = before + other + ("\n" if after and not other.endswith("\n") else "") + after
    return sha256(files[path].encode()).hexdigest()


def real_step(notes: Notes, step: tuple[str, str, str, str]) -> Any:
    action, path, one, other = step
    try:
        if action == "write":
            return notes.write(path, one).note.sha256
        if action == "replace":
            return notes.replace(path, one, other).note.sha256
        if action == "insert":
            return notes.insert(path, int(one), other).note.sha256
        return notes.read(path) if action == "read" else sorted(note.path for note in notes.list())
    except CommonplaceError:
        return None


@given(STEPS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_sequence_of_edits_does_what_it_would_to_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str, str]]
) -> None:
    notes = Notes(tmp_path_factory.mktemp("any") / "home", "researcher")
    files: dict[str, str] = {}

    for step in steps:
        assert real_step(notes, step) == model_step(files, step), step


def test_two_processes_that_edit_one_note_lose_nothing(own_home: Path) -> None:
    notes = Notes(own_home, "researcher")
    notes.write("a.md", "".join(f"[{who}{number}]\n" for who in "ab" for number in range(30)))
    code = """
import sys
from pathlib import Path
from commonplace.notes import Notes
notes = Notes(Path(sys.argv[1]), "researcher")
for number in range(30):
    notes.replace("a.md", f"[{sys.argv[2]}{number}]", f"({sys.argv[2]}{number})")
"""
    running = [subprocess.Popen([sys.executable, "-c", code, str(own_home), who]) for who in "ab"]

    assert [process.wait(timeout=60) for process in running] == [0, 0]
    assert "[" not in notes.read("a.md")


def test_the_preamble_has_the_order_of_the_seed(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "h", agent_id="me", clock=lambda: datetime(2026, 1, 31, 9, 30, tzinfo=UTC)) as memory:
        assert "Persistent memory" not in memory.preamble(workspace="/w")
        memory.notes().write("IDENTITY.md", "I am the researcher.")
        memory.notes().write("CONTEXT.md", "- tests run with make")
        text = memory.preamble(workspace="/w")

    order = [
        text.index(part)
        for part in ("I am the researcher", "- tests run", "Current date and time: 2026-01-31", "Workspace: /w")
    ]
    assert order == sorted(order)


def test_the_commands_edit_notes(commonplace: Any, own_home: Path) -> None:
    assert commonplace("notes", "write", "CONTEXT.md", "-", "--agent", "me", stdin="one\ntwo\n").returncode == 0
    assert commonplace("notes", "replace", "CONTEXT.md", "two", "2", "--agent", "me").returncode == 0
    assert commonplace("notes", "insert", "CONTEXT.md", "0", "zero", "--agent", "me").returncode == 0
    assert commonplace("notes", "read", "CONTEXT.md", "--agent", "me").stdout == "zero\none\n2\n"
    assert "CONTEXT.md" in commonplace("notes", "list", "--agent", "me").stdout
    assert commonplace("notes", "read", "../x", "--agent", "me").returncode == 14
    assert commonplace("notes", "read", "x.md", "--agent", "me").returncode == 15
    assert commonplace("notes", "write", "CONTEXT.md", "x", "--if-sha256", "0", "--agent", "me").returncode == 16
    assert "zero" in commonplace("preamble", "--agent", "me").stdout
