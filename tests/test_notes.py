"""Notes: exact edits, confined paths, whole writes, and nobody else's folder."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mcp.client import Client

from commonplace.errors import NoteChanged, NoteExists, NoteNotFound, NoteRefused
from commonplace.foreign import render
from commonplace.memory import Memory
from commonplace.notes import DEPTH_MAX, NOTE_BYTES_MAX, NOTES_MAX, Notes
from commonplace.server.build import build_server
from commonplace.where import homes
from commonplace.where.home import Home
from conftest import SLOW_LAW

if TYPE_CHECKING:
    from collections.abc import Callable

ATTACKS = [
    "", " ", ".", "..", "../x.md", "a/../x.md", "a/../../x.md", "/etc/passwd", "//x.md", "/x.md", "./x.md", "a//b.md",
    "a/./b.md", "~/x.md", "~root/x.md", "..\\x.md", "a\\b.md", "C:\\x.md", "C:/x.md", "c:x.md", "\\\\server\\share", "x.md:stream",
    "%2e%2e/x.md", "%2e%2e%2fx.md", "..%2fx.md", "a%00.md", "x\x00.md", "x\n.md", "x\x1b.md", "NUL", "nul.md", "con.txt", "a/AUX.md",
    "COM1", "lpt9.md", ".hidden", "a/.git/config", "x.md.", "x.md ", " x.md", "a/b/c/d/e/f/g/h/i.md", "x" * 300, "-rf", "a*b.md",
    "a?.md", 'a".md', "a<b>.md", "a|b.md",
]  # fmt: skip


@pytest.mark.parametrize("path", ATTACKS)
def test_no_path_leads_out_of_the_folder(own_home: Path, tmp_path: Path, path: str) -> None:
    notes = Notes(Home(own_home), "researcher")
    notes.write("CONTEXT.md", "mine")
    before = sorted(str(found) for found in tmp_path.rglob("*"))

    calls: list[Callable[[], Any]] = [
        lambda: notes.write(path, "x"),
        lambda: notes.read(path),
        lambda: notes.insert(path, 0, "x"),
        lambda: notes.replace(path, "mine", "x"),
        lambda: notes.delete(path),
        lambda: notes.rename(path, "y.md"),
        lambda: notes.rename("CONTEXT.md", path),
    ]
    calls += (
        [lambda: notes.list(path), lambda: notes.entries(path)] if path else []
    )  # An empty one is the folder.
    for call in calls:
        with pytest.raises((NoteRefused, NoteNotFound)):
            call()

    assert sorted(str(found) for found in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("agent", ["../other", "a/b", "..", "", "nul", "a\\b"])
def test_no_agent_name_leads_to_another_folder(own_home: Path, agent: str) -> None:
    with pytest.raises(NoteRefused):
        Notes(Home(own_home), agent)


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_a_link_is_never_followed(own_home: Path, tmp_path: Path) -> None:
    notes = Notes(Home(own_home), "researcher")
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
    notes = Notes(Home(own_home), "researcher")
    notes.write("CONTEXT.md", "mine")

    with pytest.raises(NoteRefused, match="case"):
        notes.write("context.md", "other")


def test_agents_do_not_see_one_another(own_home: Path) -> None:
    Notes(Home(own_home), "researcher").write("plan.md", "mine")

    analyst = Notes(Home(own_home), "analyst")
    assert analyst.list() == []
    with pytest.raises(NoteNotFound):
        analyst.read("plan.md")


def test_a_text_that_occurs_twice_is_refused_with_its_lines(own_home: Path) -> None:
    notes = Notes(Home(own_home), "researcher")
    notes.write("CONTEXT.md", "line one\nline two\nline one\n")

    with pytest.raises(NoteRefused, match="2 times, in lines 1, 3"):
        notes.replace("CONTEXT.md", "line one", "x")
    with pytest.raises(NoteRefused, match="match exactly"):
        notes.replace("CONTEXT.md", "line three", "x")
    notes.replace("CONTEXT.md", "line two", "line 2")
    notes.insert("CONTEXT.md", 0, "title\n")
    assert notes.read("CONTEXT.md") == "title\nline one\nline 2\nline one\n"
    assert notes.read("CONTEXT.md", (2, 3)) == "line one\nline 2\n"
    assert notes.read("CONTEXT.md", (4, -1)) == "line one\n"


@pytest.mark.parametrize(
    ("text", "old"), [("\n" * 5000, "\n"), ("a" * 5000, "a"), ("a" * 5000, "a" * 2500)]
)
def test_of_a_text_that_occurs_very_often_only_the_first_matches_are_sought(
    own_home: Path, text: str, old: str
) -> None:
    notes = Notes(Home(own_home), "researcher")
    notes.write("a.md", text)

    with pytest.raises(NoteRefused, match="more than 20 times, in lines 1,") as refused:
        notes.replace("a.md", old, "x")
    assert len(refused.value.lines or ()) == 21


@pytest.mark.parametrize("view", [(0, 1), (2, 1), (1, 9), (-1, -1)])
def test_a_range_outside_the_note_is_refused(own_home: Path, view: tuple[int, int]) -> None:
    notes = Notes(Home(own_home), "researcher")
    notes.write("a.md", "one\ntwo\n")

    with pytest.raises(NoteRefused, match="2 lines"):
        notes.read("a.md", view)


def test_an_update_that_would_be_lost_is_refused(own_home: Path) -> None:
    notes = Notes(Home(own_home), "researcher")
    first = notes.write("a.md", "one", if_sha256="").note
    notes.write("a.md", "two", if_sha256=first.sha256)

    with pytest.raises(NoteChanged):
        notes.write("a.md", "three", if_sha256=first.sha256)
    with pytest.raises(NoteChanged):
        notes.write("a.md", "three", if_sha256="")
    assert notes.read("a.md") == "two"


def test_the_start_of_a_hash_suffices_to_insist_on_it_and_a_few_letters_do_not(
    own_home: Path,
) -> None:
    notes = Notes(Home(own_home), "researcher")
    notes.write("a.md", "one\ntwo\n")
    read = notes.read_with_hash("a.md", (2, 2))

    assert (read.text, read.note) == ("two\n", notes.list()[0])
    for too_little in (read.note.sha256[:11], read.note.sha256[-12:]):
        with pytest.raises(NoteChanged):
            notes.write("a.md", "three", if_sha256=too_little)
    notes.write("a.md", "three", if_sha256=read.note.hash_start)
    with pytest.raises(NoteChanged):
        notes.write("a.md", "four", if_sha256=read.note.hash_start)


def test_what_was_put_there_by_hand_and_no_agent_could_take_in_is_refused(own_home: Path) -> None:
    notes = Notes(Home(own_home), "researcher")
    notes.write("a.md", "one")
    (notes.folder / "huge.md").write_bytes(b"x" * (NOTE_BYTES_MAX + 1))

    for call in (lambda: notes.read("huge.md"), lambda: notes.replace("huge.md", "x", "y")):
        with pytest.raises(NoteRefused, match="262,145 bytes"):
            call()
    notes.write("huge.md", "small again")
    assert notes.read("huge.md") == "small again"


def test_a_note_is_no_folder_to_list(own_home: Path) -> None:
    notes = Notes(Home(own_home), "researcher")
    notes.write("a.md", "one")

    with pytest.raises(NoteRefused, match="not a folder"):
        notes.list("a.md")


def test_what_is_too_large_or_no_text_is_refused_and_costs_nothing(own_home: Path) -> None:
    notes = Notes(Home(own_home), "researcher")
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
    Notes(Home(own_home), "researcher").write("deep/er/c.md", "mine")

    modes = {found.name: found.stat().st_mode & 0o777 for found in (own_home, *own_home.rglob("*"))}
    assert {mode for name, mode in modes.items() if "." in name and name != ".state"} == {0o600}
    assert {modes[name] for name in ("home", ".state", "agents", "researcher", "deep", "er")} == {
        0o700
    }


def test_secrets_do_not_reach_a_note(own_home: Path) -> None:
    secret = "ghp_" + "Ab12" * 9

    written = Notes(Home(own_home), "researcher").write(
        "a.md", f"use {secret}\n<private>diary</private>"
    )

    assert written.redacted
    assert secret not in (own_home / "agents" / "researcher" / "a.md").read_text()
    assert "diary" not in (own_home / "agents" / "researcher" / "a.md").read_text()


def test_a_new_name_with_a_secret_is_refused_and_an_old_one_can_be_moved(own_home: Path) -> None:
    secret = "ghp_" + "Ab12" * 9
    notes = Notes(Home(own_home), "researcher")
    notes.write("a.md", "text")
    calls: list[Callable[[], object]] = [
        lambda: notes.write(f"{secret}.md", "text"),
        lambda: notes.write(f"{secret}/a.md", "text"),
        lambda: notes.insert(f"{secret}.md", 0, "text"),
        lambda: notes.rename("a.md", f"{secret}.md"),
        lambda: Notes(Home(own_home), secret).write("a.md", "text"),
    ]

    for call in calls:
        with pytest.raises((NoteRefused, NoteNotFound)) as refused:
            call()
        if isinstance(refused.value, NoteRefused):
            assert "has a secret in its name (github-token)" in str(refused.value)
            assert secret not in str(refused.value)
    assert not [found for found in own_home.rglob("*") if secret in str(found)]

    (notes.folder / f"{secret}.md").write_text("old")
    notes.write(f"{secret}.md", "new")
    notes.rename(f"{secret}.md", "b.md")
    assert notes.read("b.md") == "new"


# --- Against a plain model ----------------------------------------------------------------------------------------

Step = tuple[str, str, str, str]
PATHS = ["a.md", "b.md", "deep", "deep/c.md", "deep/er", "deep/er/d.md"]
NAMES = st.sampled_from(PATHS)
WORDS = st.text("xyz\n", max_size=6)
FIVE = [
    st.tuples(st.just("write"), NAMES, WORDS, WORDS),
    st.tuples(st.just("replace"), NAMES, WORDS, WORDS),
    st.tuples(st.just("insert"), NAMES, st.integers(-1, 5).map(str), WORDS),
    st.tuples(st.just("read"), NAMES, WORDS, WORDS),
    st.tuples(st.just("list"), st.sampled_from(["", *PATHS]), WORDS, WORDS),
]
MORE = [
    st.tuples(st.just("delete"), NAMES, WORDS, WORDS),
    st.tuples(st.just("rename"), NAMES, NAMES, WORDS),
]


class Model:
    """What the operations should do, on a plain dictionary of files and a set of folders."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.folders: set[str] = set()

    def step(self, step: Step) -> Any:
        """The answer, or `None` for a refusal."""
        action, path, one, other = step
        return getattr(self, action)(path, one, other)

    def write(self, path: str, text: str, _other: str = "") -> str | None:
        if path in self.folders or self._through_a_file(path):
            return None
        self.folders |= set(above(path))
        self.files[path] = text
        return sha256(text.encode()).hexdigest()

    def read(self, path: str, *_: str) -> str | None:
        return self.files.get(path)

    def replace(self, path: str, old: str, new: str) -> str | None:
        text = self.files.get(path, "")
        count = sum(text.startswith(old, at) for at in range(len(text))) if old else 0
        return self.write(path, text.replace(old, new, 1)) if count == 1 else None

    def insert(self, path: str, line: str, text: str) -> str | None:
        if path not in self.files:
            return None
        parts = self.files[path].split("\n")
        lines = [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
        if not 0 <= int(line) <= len(lines):
            return None
        before, after = "".join(lines[: int(line)]), "".join(lines[int(line) :])
        before += "\n" if before and not before.endswith("\n") else ""
        return self.write(
            path, before + text + ("\n" if after and not text.endswith("\n") else "") + after
        )

    def list(self, path: str, *_: str) -> Any:
        if path and path not in self.folders:
            return None
        return sorted(name for name in self.files if not path or name.startswith(f"{path}/"))

    def delete(self, path: str, *_: str) -> str | None:
        if path not in self.files and path not in self.folders:
            return None
        self.files = {name: text for name, text in self.files.items() if not within(name, path)}
        self.folders = {name for name in self.folders if not within(name, path)}
        return "done"

    def rename(self, path: str, new: str, *_: str) -> str | None:
        there = {*self.files, *self.folders}
        if path not in there or new in there or within(new, path) or self._through_a_file(new):
            return None
        self.folders |= set(above(new))
        self.files = {moved(name, path, new): text for name, text in self.files.items()}
        self.folders = {moved(name, path, new) for name in self.folders}
        return "done"

    def _through_a_file(self, path: str) -> bool:
        return any(folder in self.files for folder in above(path))


def above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def within(name: str, path: str) -> bool:
    return name == path or name.startswith(f"{path}/")


def moved(name: str, path: str, new: str) -> str:
    return new + name.removeprefix(path) if within(name, path) else name


def real_step(notes: Notes, step: Step) -> Any:
    action, path, one, other = step
    calls: dict[str, Callable[[], Any]] = {
        "write": lambda: notes.write(path, one).note.sha256,
        "replace": lambda: notes.replace(path, one, other).note.sha256,
        "insert": lambda: notes.insert(path, int(one), other).note.sha256,
        "read": lambda: notes.read(path),
        "list": lambda: [note.path for note in notes.list(path)],
        "delete": lambda: notes.delete(path),
        "rename": lambda: notes.rename(path, one),
    }
    try:
        answer = calls[action]()
    except (NoteRefused, NoteNotFound, NoteExists):
        return None
    return "done" if answer is None else answer


@given(st.lists(st.one_of(*FIVE, *MORE), max_size=14))
@example([("write", "deep/c.md", "x", ""), ("rename", "deep", "deep/er", "")])
@example([("write", "deep/c.md", "x", ""), ("rename", "deep/c.md", "deep", "")])
def test_any_sequence_of_edits_does_what_it_would_to_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step]
) -> None:
    notes = Notes(Home(tmp_path_factory.mktemp("any") / "home"), "researcher")
    model = Model()

    for step in steps:
        assert real_step(notes, step) == model.step(step), step
    listed = {entry.path: entry.is_folder for entry in notes.entries(depth=9)}
    assert listed == {**dict.fromkeys(model.files, False), **dict.fromkeys(model.folders, True)}


async def tool_step(client: Client, step: Step) -> Any:
    action, path, one, other = step
    more: dict[str, dict[str, Any]] = {
        "write": {"content": one},
        "replace": {"old": one, "new": other},
        "insert": {"line": int(one) if action == "insert" else 0, "text": other},
    }
    said = await client.call_tool(f"memory_{action}", {"path": path, **more.get(action, {})})
    if said.is_error:
        return None
    answer = said.structured_content or {}
    if action == "list":
        return [note["path"] for note in answer["notes"]]
    return answer["text" if action == "read" else "sha256"]


@given(st.lists(st.one_of(*FIVE), min_size=1, max_size=12))
@SLOW_LAW
def test_any_sequence_of_the_five_tools_does_the_same(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step]
) -> None:
    home, model = tmp_path_factory.mktemp("tools") / "home", Model()

    async def talk(memory: Memory) -> list[Any]:
        async with Client(build_server(lambda _scope="read": memory, ["notes"])) as client:
            return [await tool_step(client, step) for step in steps]

    with Memory.open(home, agent_id="me") as memory:
        answers = asyncio.run(talk(memory))
    assert answers == [model.step(step) for step in steps]


# --- Racing -------------------------------------------------------------------------------------------------------


def test_two_processes_that_edit_one_note_lose_nothing(own_home: Path) -> None:
    notes = Notes(Home(own_home), "researcher")
    notes.write("a.md", "".join(f"[{who}{number}]\n" for who in "ab" for number in range(30)))
    code = """
import sys
from pathlib import Path
from commonplace.notes import Notes
from commonplace.where.home import Home
notes = Notes(Home(Path(sys.argv[1])), "researcher")
for number in range(30):
    notes.replace("a.md", f"[{sys.argv[2]}{number}]", f"({sys.argv[2]}{number})")
"""
    running = [subprocess.Popen([sys.executable, "-c", code, str(own_home), who]) for who in "ab"]

    assert [process.wait(timeout=60) for process in running] == [0, 0]
    assert "[" not in notes.read("a.md")


def test_two_agents_that_race_over_notes_of_one_name_keep_their_own(own_home: Path) -> None:
    code = """
import sys
from pathlib import Path
from commonplace.notes import Notes
from commonplace.where.home import Home
notes = Notes(Home(Path(sys.argv[1])), sys.argv[2])
notes.write("a.md", "count 0")
for number in range(40):
    notes.replace("a.md", f"count {number}", f"count {number + 1}")
"""
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(own_home), who]) for who in ("one", "two")
    ]

    assert [process.wait(timeout=60) for process in running] == [0, 0]
    assert [Notes(Home(own_home), who).read("a.md") for who in ("one", "two")] == [
        "count 40",
        "count 40",
    ]


def test_of_two_that_insist_on_one_hash_the_second_is_told(own_home: Path) -> None:
    """What two processes do that read, think and write back: each increment counts, none is lost."""
    Notes(Home(own_home), "me").write("a.md", "0")
    code = """
import sys
from hashlib import sha256
from pathlib import Path
from commonplace.errors import NoteChanged
from commonplace.notes import Notes
from commonplace.where.home import Home
notes = Notes(Home(Path(sys.argv[1])), "me")
done = 0
while done < 25:
    text = notes.read("a.md")
    try:
        notes.write("a.md", str(int(text) + 1), if_sha256=sha256(text.encode()).hexdigest())
    except NoteChanged:
        continue
    done += 1
"""
    running = [subprocess.Popen([sys.executable, "-c", code, str(own_home)]) for _ in range(2)]

    assert [process.wait(timeout=60) for process in running] == [0, 0]
    assert Notes(Home(own_home), "me").read("a.md") == "50"


def test_of_two_that_rename_to_one_name_one_is_told(own_home: Path) -> None:
    code = """
import sys
from pathlib import Path
from commonplace.errors import NoteExists
from commonplace.where.home import Home
from commonplace.notes import Notes
from commonplace.where.home import Home
notes, me = Notes(Home(Path(sys.argv[1])), "me"), sys.argv[2]
for number in range(30):
    notes.write(f"{me}.md", me)
    try:
        notes.rename(f"{me}.md", f"taken/{number}.md")
        print(number)
    except NoteExists:
        pass
"""
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(own_home), who], stdout=subprocess.PIPE)
        for who in "ab"
    ]
    said = [process.communicate(timeout=60)[0].split() for process in running]

    assert sorted(int(number) for numbers in said for number in numbers) == list(range(30))
    notes = Notes(Home(own_home), "me")
    owners = {note.path: notes.read(note.path) for note in notes.list("taken")}
    assert {f"taken/{int(number)}.md" for number in said[0]} == {
        path for path, who in owners.items() if who == "a"
    }


# --- Limits and names ---------------------------------------------------------------------------------------------


def test_one_note_too_many_is_refused(own_home: Path) -> None:
    notes = Notes(Home(own_home), "me")
    notes.write("0.md", "x")
    for number in range(1, NOTES_MAX):
        (notes.folder / f"{number}.md").write_text("x")

    with pytest.raises(NoteRefused, match=f"the {NOTES_MAX} notes"):
        notes.write("more.md", "x")
    notes.write("0.md", "what is there may still change")


def test_a_name_in_another_composition_is_the_same_note(own_home: Path) -> None:
    notes = Notes(Home(own_home), "me")
    notes.write("caf\u00e9.md", "one")
    notes.write("cafe\u0301.md", "two")

    assert [note.path for note in notes.list()] == ["caf\u00e9.md"]
    assert notes.read("caf\u00e9.md") == "two"


def test_a_folder_is_not_moved_so_deep_that_its_notes_are_out_of_reach(own_home: Path) -> None:
    notes = Notes(Home(own_home), "me")
    deep = "/".join("abcdefgh"[: DEPTH_MAX - 1])
    notes.write(f"{deep}/x.md", "x")

    with pytest.raises(NoteRefused, match="deep"):
        notes.rename("a", "y/a")
    notes.rename("a", "z")
    assert notes.read(f"z{deep[1:]}/x.md") == "x"


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_a_folder_that_is_a_link_to_another_agents_is_not_ones_own(own_home: Path) -> None:
    Notes(Home(own_home), "researcher").write("plan.md", "theirs")
    (own_home / "agents" / "analyst").symlink_to(own_home / "agents" / "researcher")
    notes = Notes(Home(own_home), "analyst")

    for call in (
        notes.list,
        notes.entries,
        lambda: notes.read("plan.md"),
        lambda: notes.write("plan.md", "x"),
    ):
        with pytest.raises(NoteRefused, match="another agent's"):
            call()


def test_the_preamble_has_the_order_of_the_seed(tmp_path: Path) -> None:
    with Memory.open(
        tmp_path / "h", agent_id="me", clock=lambda: datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
    ) as memory:
        assert "Persistent memory" not in memory.preamble(workspace="/w")
        memory.notes().write("IDENTITY.md", "I am the researcher.")
        memory.notes().write("CONTEXT.md", "- tests run with make")
        text = memory.preamble(workspace="/w")

    order = [
        text.index(part)
        for part in (
            "I am the researcher",
            "- tests run",
            "Current date and time: 2026-01-31",
            "Workspace: /w",
        )
    ]
    assert order == sorted(order)


def test_what_is_read_at_the_start_comes_from_the_nearest_home_that_has_it(tmp_path: Path) -> None:
    project, user = tmp_path / "p" / ".commonplace", tmp_path / "user"
    environment = {"COMMONPLACE_HOME": str(user), "HOME": str(tmp_path)}
    homes.make(homes.at(project, environment))
    Notes(Home(user), "me").write("IDENTITY.md", "I am the researcher.")
    Notes(Home(user), "me").write("CONTEXT.md", "everywhere: be brief")
    Notes(Home(user), "other").write("CONTEXT.md", "not mine")

    with Memory.open(cwd=project.parent, environment=environment, agent_id="me") as memory:
        assert memory.read_at_start() == "everywhere: be brief"
        memory.notes().write("CONTEXT.md", "here: run make")
        said = memory.preamble()

    assert "I am the researcher." in said
    assert "here: run make" in said
    assert "everywhere" not in said


def test_counts_tell_nothing_of_notes(own_home: Path) -> None:
    Notes(Home(own_home), "researcher").write("CONTEXT.md", "a kettle")
    skill = own_home / "skills" / "brew" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: brew\ndescription: how to brew\n---\nBoil.\n")

    with Memory.open(own_home, agent_id="analyst") as memory:
        memory.log(event_type="error", lesson="the kettle boils over", repo="shop")
        found = memory.stats()

    assert (found["records"], found["skills"], found["repos"]) == (1, 1, {"shop": 1})
    assert found["kinds"] == {"lesson": 1}


def test_a_title_is_not_cut_out_of_a_word(own_home: Path) -> None:
    with Memory.open(own_home, agent_id="me", settings={"embedder.kind": "none"}) as memory:
        memory.notes().write("k.md", "kettle boils over")
        memory.notes().write("pump.md", "pump: prime it first")
        said = memory.recall("kettle pump", kinds=["note"], cutoff=False).text

    assert "k: kettle boils over" in said
    assert "pump: prime it first" in said


def test_the_commands_edit_notes(commonplace: Any, own_home: Path) -> None:
    assert (
        commonplace(
            "notes", "write", "CONTEXT.md", "-", "--agent", "me", stdin="one\ntwo\n"
        ).returncode
        == 0
    )
    assert (
        commonplace("notes", "replace", "CONTEXT.md", "two", "2", "--agent", "me").returncode == 0
    )
    assert (
        commonplace("notes", "insert", "CONTEXT.md", "0", "zero", "--agent", "me").returncode == 0
    )
    assert commonplace("notes", "read", "CONTEXT.md", "--agent", "me").stdout == "zero\none\n2\n"
    assert "CONTEXT.md" in commonplace("notes", "list", "--agent", "me").stdout
    assert commonplace("notes", "read", "../x", "--agent", "me").returncode == 14
    assert commonplace("notes", "read", "x.md", "--agent", "me").returncode == 15
    assert (
        commonplace(
            "notes", "write", "CONTEXT.md", "x", "--if-sha256", "0", "--agent", "me"
        ).returncode
        == 16
    )
    assert "zero" in commonplace("preamble", "--agent", "me").stdout
    read = json.loads(commonplace("notes", "read", "CONTEXT.md", "--agent", "me", "--json").stdout)
    assert read["text"] == "zero\none\n2\n"
    again = commonplace(
        "notes", "write", "CONTEXT.md", "x", "--if-sha256", read["sha256"][:12], "--agent", "me"
    )
    assert again.returncode == 0


def test_a_note_is_written_without_hidden_characters(memory: Memory) -> None:
    written = memory.notes("me").write("x.md", "a\u200b\U000e0041b \x1b[1mc")

    assert memory.notes("me").read("x.md") == "ab c"
    assert written.redacted == ["control-character"]


def test_a_text_is_replaced_as_it_was_shown_with_tags_in_prose_and_in_code(memory: Memory) -> None:
    notes = memory.notes("a")
    notes.write("page.md", "Use the <system> tag:\n\n```xml\n<item id='1'/>\n```\n")
    shown = render(notes.read("page.md"))
    assert "‹system" in shown
    assert "<item" in shown

    notes.replace("page.md", shown[shown.index("‹") : shown.index("/>")], "<other")

    assert notes.read("page.md") == "Use the <other/>\n```\n"
