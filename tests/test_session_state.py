"""The state of a session: what is read back, and both sides of every bound."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.sessions import episode, ingest, spool, state
from commonplace.sessions.events import AT_MAX, Event, is_time
from test_sessions import LEARNED, Agent, kinds, spooled

if TYPE_CHECKING:
    from commonplace.memory import Memory
    from commonplace.where.home import Home

DAY_S = 86_400.0
DRAFT: dict[str, Any] = {
    "session": "s-1",
    "repo": "project",
    "name": "claude-code",
    "root": "",
    "worktree": False,
    "started": 1000.0,
    "last": 1010.0,
    "goal": "make it work",
    "checked": "",
    "done": 1,
    "written": 0,
    "actions": [{"t": 0, "action": "run", "target": "make", "result": "fail"}],
    "errors": [{"type": "make", "message": "boom"}],
    "files": ["a.py"],
    "changed": [],
    "open": [{"intent": "make", "tried": ["make"], "error": "boom", "attempts": 1, "edits": []}],
    "seen": {"=k": [1000.0, "claude-code"]},
    "shown": ["les-1"],
}


@pytest.fixture
def home(memory: Memory) -> Home:
    memory.home.path.mkdir(exist_ok=True)
    return memory.home


@pytest.fixture
def agent(memory: Memory, tmp_path: Path) -> Agent:
    (tmp_path / "project").mkdir()
    return Agent(memory, tmp_path / "project")


def write_draft(home: Home, raw: str | bytes, session: str = "s-1") -> Path:
    path = state.load(home, session).path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw.encode() if isinstance(raw, str) else raw)
    return path


def event(key: str = "~k", at: float = 1000.0, agent: str = "claude-code") -> Event:
    return Event(agent=agent, kind="tool", session="s-1", at=at, key=key)


# --- A damaged draft ------------------------------------------------------------------------------


def test_a_draft_is_read_back_as_it_was_written(home: Home) -> None:
    write_draft(home, json.dumps(DRAFT))

    assert state.load(home, "s-1").fields == DRAFT


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("started", 10**13),
        ("started", -1),
        ("started", float("nan")),
        ("started", float("inf")),
        ("started", True),
        ("started", "yesterday"),
        ("last", 10**13),
        ("last", None),
        ("done", -1),
        ("done", 1.5),
        ("done", 10**30),
        ("written", "1"),
        ("session", 3),
        ("worktree", "no"),
        ("seen", {"=k": ["then", "claude-code"]}),
        ("seen", {"=k": [1000.0]}),
        ("seen", {"=k": [1000.0, 3]}),
        ("seen", []),
        ("shown", [1]),
        ("actions", [1]),
        ("errors", [{"message": "boom"}]),
        ("open", [{"intent": "make"}]),
        ("open", [{**DRAFT["open"][0], "attempts": "two"}]),
        ("open", [{**DRAFT["open"][0], "edits": None}]),
    ],
)
def test_a_damaged_field_drops_the_draft(name: str, value: Any, home: Home) -> None:
    write_draft(home, json.dumps({**DRAFT, name: value}))

    assert state.load(home, "s-1").fields == {"session": "s-1"}
    assert state.load_all(home) == []


@pytest.mark.parametrize("name", ["session", "repo", "name", "started", "last"])
def test_a_draft_that_cannot_become_an_episode_is_dropped(name: str, home: Home) -> None:
    write_draft(home, json.dumps({key: value for key, value in DRAFT.items() if key != name}))

    assert state.load(home, "s-1").fields == {"session": "s-1"}


@pytest.mark.parametrize("started", [10**13, -(10**13), 10**30])
def test_a_start_time_without_a_date_does_not_stop_the_drain(
    started: int, agent: Agent, memory: Memory, home: Home
) -> None:
    write_draft(home, json.dumps({**DRAFT, "started": started, "last": 1.0}), "s-old")
    write_draft(home, json.dumps({**DRAFT, "started": started}), "s-1")
    spooled(memory, agent, ["said after the damage"])
    agent.tell("Stop")
    Agent(memory, agent.cwd, session="s-2").tell("SessionStart", source="startup")

    assert not ingest.has_events(home)
    assert [lesson["lesson"] for lesson in kinds(memory, "lesson")] == ["said after the damage"]
    assert [one["task_id"] for one in kinds(memory, "episode")] == ["s-1"]


@pytest.mark.parametrize("what", ["folder", "fifo", "kept"])
def test_what_cannot_be_an_event_or_be_removed_does_not_keep_the_drain_busy(
    what: str, agent: Agent, memory: Memory, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    spooled(memory, agent, ["said before", "said after"])
    odd = home.spool_folder / "00000000000000000001-1-odd.json"
    if what == "folder":
        odd.mkdir()
    elif what == "fifo":
        os.mkfifo(odd)
        os.close(os.open(odd, os.O_RDWR))
    else:
        monkeypatch.setattr(spool, "remove", lambda _folder, _name: False)
    rounds = iter(range(20))
    read: list[str] = []
    read_event = spool.read

    def counted(folder: Path, name: str) -> Any:
        read.append(name)
        return None if name == odd.name else read_event(folder, name)

    monkeypatch.setattr(spool, "read", counted)
    ingest.drain(memory, is_over=lambda: next(rounds, None) is None)

    assert len(read) == 2
    assert len(kinds(memory, "lesson")) == 2


def test_a_pipe_in_the_place_of_a_draft_is_not_waited_for(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = state.load(home, "s-1").path
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    read: list[Path] = []

    def counted(one: Path) -> bytes:
        read.append(one)
        return b"{}"

    monkeypatch.setattr(Path, "read_bytes", counted)

    assert state.load(home, "s-1").fields == {"session": "s-1"}
    assert read == []


@pytest.mark.parametrize("error", [OverflowError, KeyError("repo"), TypeError, ValueError])
def test_an_episode_that_cannot_be_made_does_not_stop_the_drain(
    error: Exception, agent: Agent, memory: Memory, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_session: object) -> None:
        raise error

    monkeypatch.setattr(episode, "to_record", fail)
    agent.run("make")
    agent.tell("SessionEnd", reason="other")
    agent.run(LEARNED.format("said after the damage"))

    assert not ingest.has_events(home)
    assert len(kinds(memory, "lesson")) == 1
    assert state.load(home, "s-1").fields.get("written", 0) == 0, "it is still a draft"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*DRAFT, *DRAFT["open"][0], "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from(list(DRAFT)), JSON, max_size=3),
    st.sets(st.sampled_from(list(DRAFT)), max_size=4),
)
def test_no_draft_stops_the_drain(agent: Agent, damage: dict[str, Any], removed: set[str]) -> None:
    home = agent.memory.home
    draft = {name: value for name, value in {**DRAFT, **damage}.items() if name not in removed}
    write_draft(home, json.dumps(draft), "s-1")
    write_draft(home, json.dumps(draft), "s-old")
    agent.run("make", error="error: boom")
    agent.edit("x.py")
    agent.run("make -j2")
    agent.tell("Stop")
    agent.tell("SessionStart", source="resume")

    assert not ingest.has_events(home)


# --- Both sides of every bound --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "accepted"),
    [
        (0, True),
        (1_790_000_000.5, True),
        (AT_MAX, True),
        (AT_MAX + 1, False),
        (-0.001, False),
        (float("nan"), False),
        (float("inf"), False),
        (True, False),
        ("0", False),
        (None, False),
    ],
)
def test_a_time_has_a_date(value: object, accepted: bool) -> None:
    assert is_time(value) is accepted
    if accepted:
        assert isinstance(value, int | float)
        assert ingest.to_datetime(value).timestamp() == int(value)


@pytest.mark.parametrize(
    ("key", "later_s", "same"),
    [
        ("~k", 0.0, True),
        ("~k", state.SAME_EVENT_S_MAX, True),
        ("~k", -state.SAME_EVENT_S_MAX, True),
        ("~k", state.SAME_EVENT_S_MAX + 0.01, False),
        ("=k", state.SAME_EVENT_S_MAX + 0.01, True),
        ("=k", 30 * DAY_S, True),
    ],
)
def test_an_event_is_the_same_by_its_id_or_for_ten_seconds(
    key: str, later_s: float, same: bool, home: Home
) -> None:
    session = state.load(home, "s-1")
    assert not session.has_seen(event(key))
    session.mark_seen(event(key))

    assert session.has_seen(event(key, at=1000.0 + later_s)) is same


@pytest.mark.parametrize(
    ("agent", "later_s", "answered"),
    [
        ("cursor", 0.0, True),
        ("cursor", state.SAME_EVENT_S_MAX, True),
        ("cursor", state.SAME_EVENT_S_MAX + 0.01, False),
        ("claude-code", 0.0, False),
    ],
)
def test_one_of_two_hooks_answers(agent: str, later_s: float, answered: bool, home: Home) -> None:
    session = state.load(home, "s-1")
    session.mark_seen(event())

    other = event(at=1000.0 + later_s, agent=agent)
    assert session.is_answered_by_other_hook(other) is answered


def test_the_newest_events_are_remembered(home: Home) -> None:
    session = state.load(home, "s-1")
    for number in range(state.SEEN_MAX):
        session.mark_seen(event(f"={number}"))
    assert session.has_seen(event("=0"))
    session.mark_seen(event("=one more"))

    assert not session.has_seen(event("=0"))
    assert session.has_seen(event("=1"))
    assert session.has_seen(event("=one more"))


def test_the_newest_memories_shown_are_remembered(home: Home) -> None:
    session = state.load(home, "s-1")
    session.mark_shown([f"les-{number}" for number in range(state.SHOWN_MAX)])
    session.mark_shown(["les-0"])
    assert len(session.shown_ids()) == state.SHOWN_MAX
    session.mark_shown(["les-new"])

    assert "les-0" not in session.shown_ids()
    assert {"les-1", "les-new"} <= session.shown_ids()


@pytest.mark.parametrize(("age_s", "kept"), [(14 * DAY_S, True), (14 * DAY_S + 1, False)])
def test_a_session_is_kept_for_fourteen_days(age_s: float, kept: bool, home: Home) -> None:
    path = write_draft(home, json.dumps(DRAFT))
    now = 1_790_000_000.0
    os.utime(path, (now - age_s, now - age_s))

    state.prune(home, now)

    assert path.exists() is kept


@pytest.mark.parametrize("surplus", [0, 1])
def test_the_latest_two_hundred_sessions_are_kept(surplus: int, home: Home) -> None:
    now = 1_790_000_000.0
    paths = []
    for number in range(state.SESSIONS_MAX + surplus):
        paths.append(write_draft(home, "{}", f"s-{number}"))
        os.utime(paths[-1], (now - number, now - number))

    state.prune(home, now)

    assert [path.exists() for path in paths] == [True] * 200 + [False] * surplus


@pytest.mark.parametrize(("more", "read"), [(0, True), (1, False)])
def test_a_file_of_half_a_megabyte_is_read(more: int, read: bool, home: Home) -> None:
    raw = json.dumps(DRAFT).encode()
    write_draft(home, raw + b" " * (state.FILE_BYTES_MAX - len(raw) + more))

    assert (state.load(home, "s-1").fields == DRAFT) is read


@pytest.mark.parametrize(("idle_s", "closed"), [(ingest.IDLE_S, False), (ingest.IDLE_S + 1, True)])
def test_a_session_is_closed_when_it_was_idle_for_half_an_hour(
    idle_s: float,
    closed: bool,
    agent: Agent,
    memory: Memory,
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1_790_000_000.0
    draft = {**DRAFT, "session": "s-old", "last": now - idle_s}
    os.utime(write_draft(home, json.dumps(draft), "s-old"), (now - idle_s,) * 2)
    monkeypatch.setattr("commonplace.sessions.ingest.time.time", lambda: now)

    agent.tell("SessionStart", source="startup")

    assert [one["task_id"] for one in kinds(memory, "episode")] == (["s-old"] if closed else [])
