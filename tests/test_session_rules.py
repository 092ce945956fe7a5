"""Rules of sessions: which failures are kept, what an outcome is, what is shown and when."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commonplace import inbox
from commonplace.compose import tokens
from commonplace.files.lock import hold, try_hold
from commonplace.inbox import SolvedFailure
from commonplace.records import make
from commonplace.rules import Tally
from commonplace.sessions import (
    answer,
    answer_from_files,
    failures,
    ingest,
    start,
    state,
)
from commonplace.sessions.events import Event
from commonplace.sessions.payload import read_event
from commonplace.sessions.replies import context_reply
from test_sessions import LEARNED, Agent, kinds, spooled

if TYPE_CHECKING:
    from commonplace.memory import Memory
    from commonplace.records import Record

SOLVED = SolvedFailure(
    intent="npm install",
    error="npm ERR! code EACCES",
    tried=["npm install"],
    worked="npm ci",
    attempts=2,
    edits=[],
    at=1_790_000_000.0,
    agent="claude-code",
    repo="shop",
    session="s-1",
)


@pytest.fixture
def agent(memory: Memory, tmp_path: Path) -> Agent:
    (tmp_path / "project").mkdir()
    return Agent(memory, tmp_path / "project")


@pytest.fixture
def codex(memory: Memory, tmp_path: Path) -> Agent:
    (tmp_path / "project").mkdir()
    return Agent(memory, tmp_path / "project", dialect="codex")


def patch(agent: Agent, *lines: str, response: str = "Success.") -> None:
    """An edit as Codex makes it: the patch is the tool's `command`."""
    agent.calls += 1
    text = "\n".join(["*** Begin Patch", "*** Update File: src/ci.sh", "@@", *lines])
    agent.tell(
        "PostToolUse",
        tool_name="apply_patch",
        tool_input={"command": f"{text}\n*** End Patch"},
        tool_response=response,
        tool_use_id=f"t-{agent.calls}",
    )


def open_failures(memory: Memory) -> list[str]:
    session = state.load(memory.home, "s-1")
    return [failure["intent"] for failure in session.fields.get("open", [])]


def end(agent: Agent) -> dict[str, Any]:
    agent.tell("SessionEnd", reason="other")
    (episode,) = kinds(agent.memory, "episode")
    return episode


# --- Failures -------------------------------------------------------------------------------------


def test_an_edit_is_not_kept_as_a_command_of_a_failure(codex: Agent, memory: Memory) -> None:
    patch(codex, " npm install", response="error: the patch does not apply")
    assert open_failures(memory) == []

    codex.run("npm install", tool_response="npm ERR! code EACCES")
    patch(codex, " npm install --force")
    assert open_failures(memory) == ["npm install"], (
        "a patch that mentions a command solves nothing"
    )

    codex.run("npm ci", tool_response="added 3 packages")
    (one,) = inbox.candidates(memory.home)
    assert one.tried == ["npm install"]
    assert one.edits == ["src/ci.sh"]
    assert one.attempts == 2


def test_an_edit_is_no_check_and_states_no_lesson(codex: Agent, memory: Memory) -> None:
    patch(codex, " make test", ' echo "LEARNED: this is only a line of a script"')

    episode = end(codex)
    assert episode["outcome"] == "unknown"
    assert episode["action_log"] == [{"t": 0, "action": "edit_file", "target": "src/ci.sh"}]
    assert kinds(memory, "lesson") == []


def test_the_newest_twenty_open_failures_are_kept(agent: Agent, memory: Memory) -> None:
    assert failures.OPEN_MAX == 20
    for number in range(20):
        agent.run(f"tool{number} go", error="boom")
    assert open_failures(memory) == [f"tool{number} go" for number in range(20)]

    agent.run("tool20 go", error="boom")
    assert open_failures(memory) == [f"tool{number} go" for number in range(1, 21)]

    agent.run("tool0 go --now")
    agent.run("tool20 go --now")
    assert [one.intent for one in inbox.candidates(memory.home)] == ["tool20 go"]


@pytest.mark.parametrize("fields", [{"is_interrupt": True}, {"isInterrupt": True}])
def test_an_interrupted_command_is_not_a_failure(
    fields: dict[str, Any], agent: Agent, memory: Memory
) -> None:
    agent.run("make", error="The user doesn't want to proceed", **fields)
    assert open_failures(memory) == []
    agent.run("make -j2")
    agent.run("make -B", error="The user doesn't want to proceed", **fields)

    assert inbox.candidates(memory.home) == []
    episode = end(agent)
    assert [action.get("result") for action in episode["action_log"]] == [None, "pass", None]
    assert episode["errors_encountered"] == []
    assert episode["outcome"] == "success"


def test_a_command_that_succeeded_but_was_interrupted_solves_nothing(
    agent: Agent, memory: Memory
) -> None:
    agent.run("make", error="boom")
    agent.run("make -j2", tool_response={"stdout": "", "stderr": "", "interrupted": True})

    assert open_failures(memory) == ["make"]
    assert inbox.candidates(memory.home) == []


def test_a_denied_command_is_not_a_failure(memory: Memory, tmp_path: Path) -> None:
    copilot = Agent(memory, tmp_path, dialect="copilot")
    denied = {"result_type": "denied", "text_result_for_llm": "error: the user rejected it"}
    copilot.run("make", tool_result=denied, tool_response=None)

    assert open_failures(memory) == []


def test_a_failure_delivered_twice_counts_once(agent: Agent, memory: Memory) -> None:
    for _ in range(3):
        agent.calls = 0
        agent.run("make", error="boom")  # The same id of the call each time.
    raw = agent.raw("PostToolUseFailure", tool_name="Bash", tool_input={"command": "make x"})
    for _ in range(3):
        answer(memory, "claude-code", raw, cwd=str(agent.cwd))  # No id, but the same content.
    agent.calls = 10
    agent.run("make -j2")
    agent.run("make x -j2")

    assert {one.intent: one.attempts for one in inbox.candidates(memory.home)} == {
        "make": 2,
        "make x": 2,
    }
    assert len(end(agent)["action_log"]) == 4


def test_an_event_without_an_id_is_the_same_for_ten_seconds(agent: Agent, memory: Memory) -> None:
    session = state.load(memory.home, "s-1")
    raw = agent.raw("PostToolUse", tool_name="Read", tool_input={"file_path": "a.py"})
    done = []
    for at in (1000.0, 1005.0, 1011.0):
        event = read_event("claude-code", raw, at=at, cwd=str(agent.cwd))
        assert event is not None
        ingest.apply(memory, session, event)
        done.append(session.fields["done"])

    assert done == [1, 1, 2]


# --- Outcomes -------------------------------------------------------------------------------------


def test_an_edit_after_a_green_check_makes_the_outcome_unknown(agent: Agent) -> None:
    agent.run("pytest -q")
    agent.edit("a.py")

    assert end(agent)["outcome"] == "unknown"


def test_a_check_after_the_edit_makes_it_known_again(agent: Agent) -> None:
    agent.run("pytest -q")
    agent.edit("a.py")
    agent.run("pytest -q tests")

    assert end(agent)["outcome"] == "success"


def test_reading_a_file_after_a_green_check_changes_nothing(agent: Agent) -> None:
    agent.run("pytest -q")
    agent.tell("PostToolUse", tool_name="Read", tool_input={"file_path": "a.py"})

    assert end(agent)["outcome"] == "success"


def test_an_edit_after_a_red_check_leaves_it_red(agent: Agent) -> None:
    agent.run("pytest -q", error="1 failed")
    agent.edit("a.py")

    assert end(agent)["outcome"] == "failure"


# --- The inbox ------------------------------------------------------------------------------------


def test_the_same_session_is_counted_once(memory: Memory) -> None:
    inbox.add_solved(memory.home, SOLVED)
    inbox.add_solved(memory.home, SOLVED._replace(at=SOLVED.at + 60))
    assert [one.seen for one in inbox.candidates(memory.home)] == [1]

    inbox.add_solved(memory.home, SOLVED._replace(session="s-2"))
    assert [one.seen for one in inbox.candidates(memory.home)] == [2]


def test_an_edited_candidate_keeps_its_lesson_when_it_is_seen_again(memory: Memory) -> None:
    inbox.add_solved(memory.home, SOLVED)
    inbox.edit(memory, "npm", lesson="own node_modules before npm ci")
    inbox.add_solved(memory.home, SOLVED._replace(session="s-2"))

    (one,) = inbox.candidates(memory.home)
    assert one.text == "own node_modules before npm ci"
    assert one.seen == 2


@pytest.mark.parametrize("field", ["lesson", "error", "worked"])
def test_an_edit_in_the_inbox_is_redacted(field: str, memory: Memory) -> None:
    secret = "ghp_" + "aB3dE6gH9" * 4
    inbox.add_solved(memory.home, SOLVED)
    text: dict[str, Any] = {field: f"use the token {secret}"}
    one = inbox.edit(memory, "npm", **text)

    files = b"".join(path.read_bytes() for path in memory.home.inbox_folder.iterdir())
    assert secret not in json.dumps(one._asdict())
    assert secret.encode() not in files
    assert getattr(one, field).startswith("use the token ")


# --- Draining -------------------------------------------------------------------------------------


def test_the_spool_is_drained_under_its_lock(
    agent: Agent, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    spooled(memory, agent, ["said once"])
    was_free = []

    def apply(*arguments: Any) -> None:
        with try_hold(memory.home.spool_lock) as is_free:
            was_free.append(is_free)
        original(*arguments)

    original = ingest.apply
    monkeypatch.setattr(ingest, "apply", apply)
    with hold(memory.home.spool_lock):
        assert ingest.drain(memory) == 0
        assert ingest.drain(memory, wait_s_max=0.01) == 0
    assert ingest.drain(memory) == 1

    assert was_free == [False]
    with try_hold(memory.home.spool_lock) as is_free:
        assert is_free, "and the lock is released"


def test_a_session_is_answered_but_not_written_without_the_lock(
    agent: Agent, memory: Memory
) -> None:
    agent.run(LEARNED.format("something worth showing"))
    with hold(memory.home.spool_lock):
        shown = agent.tell("SessionStart", source="startup")

    assert "something worth showing" in shown
    assert state.load(memory.home, "s-1").shown_ids() == frozenset()


# --- Handoffs -------------------------------------------------------------------------------------


def handoff(age: timedelta, **fields: Any) -> dict[str, Any]:
    given = {"kind": "handoff", "from_agent": "eng-001", "to_agent": "claude-code"}
    when = datetime.now(UTC) - age
    return {**given, "context": {"todo": "tests"}, "timestamp": when, "repo": "project", **fields}


def starts(agent: Agent) -> list[str]:
    """What a start shows: from the index, and from the files alone."""
    shown = [Agent(agent.memory, agent.cwd, session="s-index").tell("SessionStart")]
    raw = Agent(agent.memory, agent.cwd, session="s-files").raw("SessionStart")
    event = read_event("claude-code", raw, at=datetime.now(UTC).timestamp(), cwd=str(agent.cwd))
    assert event is not None
    return [*shown, answer_from_files(agent.memory, event)]


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"age": timedelta(days=13, hours=23)}, True),
        ({"age": timedelta(days=14, hours=1)}, False),
        ({"from_agent": "claude-code"}, False),
        ({"to_agent": "codex"}, False),
        ({"to_agent": "any"}, True),
        ({"to_agent": "*"}, True),
        ({"to_agent": "Claude-Code"}, True),
        ({"status": "closed"}, False),
        ({"status": "open"}, True),
        ({"context": {"todo": "tests", "status": "Done"}}, False),
    ],
)
def test_a_handoff_is_shown_while_it_is_open(
    fields: dict[str, Any], shown: bool, agent: Agent, memory: Memory
) -> None:
    given = handoff(**{"age": timedelta(hours=1), **fields})
    given["timestamp"] = given["timestamp"].replace(microsecond=0)
    memory.log(**given)

    assert [("todo: tests" in text) for text in starts(agent)] == [shown, shown]


@pytest.mark.parametrize(("more_s", "is_open"), [(0, True), (1, False)])
def test_a_handoff_is_open_for_exactly_fourteen_days(more_s: int, is_open: bool) -> None:
    now = datetime(2026, 11, 15, 12, tzinfo=UTC)
    given = handoff(timedelta(), timestamp=now - start.HANDOFF_AGE_MAX - timedelta(seconds=more_s))
    record = make(given, now=now, repo="project", agent_id="eng-001")
    event = Event("claude-code", "start", "s", now.timestamp(), name="claude-code")

    assert timedelta(days=14) == start.HANDOFF_AGE_MAX
    assert start.is_open_handoff(record, Tally(), event) is is_open
    assert not start.is_open_handoff(record, Tally(worked=1), event)


# --- The bounds of a start ------------------------------------------------------------------------

NOW = datetime(2026, 11, 15, tzinfo=UTC)
START = Event("claude-code", "start", "s", 0.0, called="SessionStart", name="claude-code")


def lesson(text: str) -> Record:
    given = {"event_type": "learned", "lesson": text}
    return make(given, now=NOW, repo="project", agent_id="a")


def composed(**fields: Any) -> str:
    return start.compose(START, start.StartContext(**fields))


@pytest.mark.parametrize(("more", "is_cut"), [(0, False), (1, True)])
def test_an_entry_has_420_characters(more: int, is_cut: bool) -> None:
    text = "w" * (start.ENTRY_CHARS_MAX + more)
    shown = composed(recent=[lesson(text)], total="1")

    assert start.ENTRY_CHARS_MAX == 420
    assert (text not in shown) is is_cut
    assert ("…" in shown) is is_cut
    assert "w" * 400 in shown


@pytest.mark.parametrize(("more", "is_cut"), [(0, False), (1, True)])
@pytest.mark.parametrize(
    ("field", "chars_max"), [("context", start.CONTEXT_CHARS_MAX), ("relevant", 3000)]
)
def test_context_has_3000_characters(field: str, chars_max: int, more: int, is_cut: bool) -> None:
    text = "c" * (chars_max + more)
    shown = composed(**{field: text, "where": "branch x"})

    assert chars_max == 3000
    assert (text not in shown) is is_cut
    assert ("…" in shown) is is_cut
    assert "c" * 2900 in shown


@pytest.mark.parametrize(("more", "is_cut"), [(0, False), (1, True)])
def test_a_handoff_has_1600_characters(more: int, is_cut: bool) -> None:
    text = "h" * (start.HANDOFF_CHARS_MAX - len("todo: ") + more)
    record = make(handoff(timedelta(), context={"todo": text}), now=NOW, repo="r", agent_id="a")
    shown = composed(handoff=record)

    assert start.HANDOFF_CHARS_MAX == 1600
    assert (f"todo: {text}" not in shown) is is_cut
    assert ("…" in shown) is is_cut


@pytest.mark.parametrize("count", [5, 6])
def test_the_five_latest_entries_are_shown(count: int, agent: Agent) -> None:
    for number in range(count):
        agent.run(LEARNED.format(f"fact number {number} of the day"))

    for shown in starts(agent):
        assert shown.count("[LEARN]") == start.RECENT_MAX == 5
        assert f"({count} entries)" in shown


@pytest.mark.parametrize(("bound", "measure"), [("CHARS_MAX", len), ("TOKENS_MAX", tokens.count)])
def test_what_fits_exactly_is_not_made_smaller(
    bound: str, measure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"context": "word " * 300, "recent": [lesson("fact " * 60)], "total": "1"}
    whole = composed(**fields)
    size = measure(context_reply(START, whole))

    monkeypatch.setattr(start, bound, size)
    assert composed(**fields) == whole
    monkeypatch.setattr(start, bound, size - 1)
    smaller = composed(**fields)
    assert measure(context_reply(START, smaller)) < size
    assert 0 < len(smaller) < len(whole)


def test_the_bounds_of_a_start_are_8000_characters_and_2000_tokens() -> None:
    assert (start.CHARS_MAX, start.TOKENS_MAX) == (8000, 2000)


@pytest.mark.parametrize(("less", "total"), [(0, "(3 entries)"), (1, "(over 2 entries)")])
def test_of_a_long_log_the_end_is_read(
    less: int, total: str, agent: Agent, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        agent.run(LEARNED.format(f"fact number {number} of the day"))
    (path,) = memory.home.log_folder.glob("*.jsonl")
    monkeypatch.setattr(start, "TAIL_BYTES_MAX", path.stat().st_size - less)

    shown = starts(agent)[1]

    assert total in shown
    assert ("fact number 0" in shown) is (less == 0)
    assert "fact number 2" in shown
