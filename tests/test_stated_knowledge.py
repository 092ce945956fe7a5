"""What agents state with a prefix: its kind, its key, where it is shown, found, exported and counted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import inbox
from commonplace.exchange.exporter import export_layout
from commonplace.exchange.importer import import_files
from commonplace.log.rotate import rotate
from commonplace.memory import Memory
from commonplace.records import check_id, keyed_id, make_key
from commonplace.sessions import answer_from_files, start, suggest
from commonplace.sessions.failures import track
from commonplace.sessions.payload import read_event
from commonplace.sessions.state import State
from conftest import git
from test_sessions import Agent

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess


@pytest.fixture
def agent(memory: Memory, tmp_path: Path) -> Agent:
    (tmp_path / "project").mkdir()
    return Agent(memory, tmp_path / "project")


def records(memory: Memory) -> list[dict[str, Any]]:
    return [record.fields for record in memory.records() if record.kind != "episode"]


# --- Kinds ----------------------------------------------------------------------------------------


def test_a_prefix_decides_what_a_statement_becomes(agent: Agent, memory: Memory) -> None:
    agent.run(
        'bd comment BD-1 "LEARNED: the emulator must run\n\nDECISION: use SQLite for the queue"'
    )
    agent.run('bd comment BD-2 "FACT: the API allows 10 requests a second\n  429 comes after that"')
    agent.run('bd comment BD-3 "GOTCHA: the cache is per branch"')

    learned, decision, fact, gotcha = records(memory)

    assert (learned["kind"], learned["event_type"]) == ("lesson", "learned")
    assert (decision["kind"], decision["event_type"]) == ("lesson", "decision")
    assert decision["tags"][0] == "decision"
    assert (fact["kind"], fact["label"]) == ("fact", "the API allows 10 requests a second")
    assert fact["payload"] == "  429 comes after that"
    assert fact["meta"]["bead"] == "BD-2"
    assert (gotcha["kind"], gotcha["event_type"]) == ("lesson", "learned")
    (hit,) = memory.recall("which database for the queue", types=["decision"]).hits
    assert hit.id == decision["id"]


def test_a_stated_pattern_waits_in_the_inbox(
    agent: Agent, memory: Memory, commonplace: Callable[..., CompletedProcess[str]]
) -> None:
    for session in ("s-1", "s-2"):
        agent.session = session
        agent.run('bd comment BD-1 "PATTERN: retry with a backoff when the API answers 429"')

    assert records(memory) == []
    (one,) = inbox.candidates(memory.home)
    assert (one.kind, one.seen, one.text) == (
        "pattern",
        2,
        "retry with a backoff when the API answers 429",
    )
    listed = commonplace("inbox").stdout
    assert "pattern: retry with a backoff" in listed
    assert "worked" not in listed
    assert "pattern" in commonplace("inbox", "show", one.id).stdout
    accepted = json.loads(commonplace("inbox", "accept", one.id, "--json").stdout)
    assert (accepted["kind"], accepted["pattern"]) == ("pattern", one.text)
    assert inbox.candidates(memory.home) == []


def test_a_decision_can_be_logged_and_imported_again(
    memory: Memory, tmp_path: Path, commonplace: Callable[..., CompletedProcess[str]]
) -> None:
    assert commonplace("log", "--type", "decision", "--lesson", "we use SQLite").returncode == 0
    for layout in ("beads", "agent-knowledge", "loki"):
        export_layout(memory, layout, tmp_path / layout)
        with Memory.open(tmp_path / f"{layout}-home") as second:
            import_files(second, tmp_path / layout)
            (record,) = second.records()
            assert record.fields["event_type"] == "decision"


# --- Keys -----------------------------------------------------------------------------------------

SAME = "the same sixty characters begin both of these two lessons, whatever"


def test_of_two_entries_with_one_key_the_latest_applies_everywhere(
    agent: Agent, memory: Memory, tmp_path: Path
) -> None:
    agent.run(f'bd comment BD-1 "LEARNED: {SAME} the old end"')
    agent.run(f'bd comment BD-2 "LEARNED: {SAME} the new end"')

    (record,) = records(memory)
    assert record["lesson"] == f"{SAME} the new end"
    assert record["id"].startswith(record["meta"]["key"])
    assert memory.get(record["meta"]["key"]).id == record["id"]
    (hit,) = memory.recall("same sixty characters of two lessons").hits
    assert "new end" in hit.text
    assert [one.id for one in memory.recent(5, kinds=["lesson"], all_repos=True)] == [record["id"]]
    assert memory.stats()["kinds"]["lesson"] == 1
    export_layout(memory, "beads", tmp_path / "out")
    (line,) = (tmp_path / "out" / ".beads" / "memory" / "knowledge.jsonl").read_text().splitlines()
    assert json.loads(line)["content"].endswith("the new end")
    assert len([one for one in memory.history(record["id"]) if one.kind == "lesson"]) == 2


def test_an_entry_that_beads_wrote_and_a_hook_captured_is_one(
    agent: Agent, memory: Memory, tmp_path: Path
) -> None:
    agent.run('bd comment BD-1 "LEARNED: close the popup before the window"')
    (own,) = records(memory)
    entry = {
        "key": own["meta"]["key"], "type": "learned", "content": "close the popup before the window",
        "source": "supervisor", "tags": ["learned"], "ts": 1706360000, "bead": "BD-1",
    }  # fmt: skip
    (tmp_path / "knowledge.jsonl").write_text(json.dumps(entry) + "\n")

    report = import_files(memory, tmp_path / "knowledge.jsonl", repo=own["repo"])

    assert (report.kept, len(records(memory))) == (1, 1)


def test_two_repositories_may_state_the_same(memory: Memory, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        git("init", "-q", cwd=tmp_path / name)
        Agent(memory, tmp_path / name, session=name).run('echo "LEARNED: run make first"')

    assert len(records(memory)) == 2


@given(st.text(max_size=60), st.text(), st.text(min_size=1))
def test_a_key_comes_from_the_beginning_and_makes_an_id(begin: str, end: str, repo: str) -> None:
    key = make_key("learned", begin)

    check_id(keyed_id(key, repo))
    assert make_key("learned", begin.ljust(60) + end) == make_key("learned", begin.ljust(60))
    # Spaces of any sort are one space, and none at the ends.
    if not " ".join(begin.split()).isascii():
        assert key != make_key("learned", begin.encode("ascii", "ignore").decode())


# --- The start of a session -----------------------------------------------------------------------


def shown_at_start(memory: Memory, cwd: Path) -> tuple[str, str]:
    """What a session starts with, from the index and from the files alone."""
    raw = {"session_id": "s-9", "cwd": str(cwd), "hook_event_name": "SessionStart"}
    event = read_event(
        "claude-code",
        json.dumps({**raw, "source": "startup"}).encode(),
        at=1_800_000_000.0,
        cwd=str(cwd),
        environment=(),
    )
    assert event is not None
    memory = memory.beside(cwd=cwd)
    session = State(memory.home.sessions_folder / "x.json", {"session": "s-9"})
    by_index = start.compose(event, suggest.for_start(memory, event, session))
    by_files = json.loads(answer_from_files(memory, event))["hookSpecificOutput"]
    return by_index, by_files["additionalContext"]


def test_many_entries_of_one_key_take_one_line(memory: Memory, tmp_path: Path) -> None:
    repo = memory.beside(cwd=tmp_path).repository.name
    others = [f"another lesson, number {number}, about something else" for number in range(3)]
    memory.append([
        {"kind": "lesson", "event_type": "learned", "lesson": text, "repo": repo}
        for text in [*others, *(f"{SAME} {number}" for number in range(60))]
    ])  # fmt: skip

    for text in shown_at_start(memory, tmp_path):
        assert text.count("[LEARN]") == 4, text
        assert "Recent Knowledge (4 entries)" in text
        assert f"{SAME} 59" in text


def test_nodes_are_shown_at_a_start_by_their_type_and_in_words(
    memory: Memory, tmp_path: Path
) -> None:
    repo = memory.beside(cwd=tmp_path).repository.name
    memory.upsert_nodes(
        [
            {
                "id": "fact.std",
                "type": "fact",
                "label": "Standard",
                "payload": {"year": [20, "c"]},
                "repo": repo,
            },
            {
                "id": "pattern.retry",
                "type": "pattern",
                "label": "Retry with backoff",
                "payload": {"definition": "Retry idempotent calls", "steps": ["a", "b"]},
                "repo": repo,
            },
        ]
    )

    for text in shown_at_start(memory, tmp_path):
        assert "[FACT] Standard: year: 20; c (" in text
        assert "[PATTERN] Retry with backoff: Retry idempotent calls (" in text


def test_the_inbox_is_announced_where_its_candidates_come_from(
    agent: Agent, memory: Memory, tmp_path: Path
) -> None:
    agent.run('bd comment BD-1 "PATTERN: retry with a backoff"')

    for text in shown_at_start(memory, agent.cwd):
        assert "Inbox: 1 candidate waits" in text
        assert "retry with a backoff" not in text
    (tmp_path / "elsewhere").mkdir()
    raw = {"session_id": "s-9", "cwd": str(tmp_path / "elsewhere")}
    assert Agent(memory, tmp_path / "elsewhere").tell("SessionStart", **raw) == ""


def test_doctor_announces_the_inbox(
    agent: Agent, commonplace: Callable[..., CompletedProcess[str]]
) -> None:
    assert "inbox" not in commonplace("doctor").stdout
    agent.run('bd comment BD-1 "PATTERN: retry with a backoff"')

    assert "inbox  1 candidate to accept or drop" in commonplace("doctor").stdout
    assert json.loads(commonplace("doctor", "--json").stdout)["inbox"] == 1


# --- Finding, exporting and counting --------------------------------------------------------------


def test_a_bead_finds_what_it_has_taught(agent: Agent, memory: Memory) -> None:
    agent.run('bd comment BD-042 "LEARNED: close the popup before the window"')
    agent.run('bd comment BD-043 "LEARNED: start the emulator before the tests"')

    assert "popup" in memory.recall("BD-042").hits[0].text


def test_what_is_in_the_archive_is_exported_as_an_archive_and_counted_on_demand(
    memory: Memory, tmp_path: Path, commonplace: Callable[..., CompletedProcess[str]]
) -> None:
    for number in range(4):
        memory.log(repo="app", event_type="learned", lesson=f"lesson number {number}")
    folder = tmp_path / "out" / ".beads" / "memory"
    export_layout(memory, "beads", tmp_path / "out")
    assert not (folder / "knowledge.archive.jsonl").exists()
    rotate(memory.home, "app", lines_max=3, move=2)

    export_layout(memory, "beads", tmp_path / "out")

    def exported(name: str) -> list[str]:
        return [
            json.loads(line)["content"][-1] for line in (folder / name).read_text().splitlines()
        ]

    assert exported("knowledge.jsonl") == ["2", "3"]
    assert exported("knowledge.archive.jsonl") == ["0", "1"]
    arguments = ("recall", "--stats", "--repo", "app")
    assert "2 records, 2 more in the archive" in commonplace(*arguments).stdout
    assert "4 records, 2 of them in the archive" in commonplace(*arguments, "--all").stdout
    with Memory.open(tmp_path / "second") as second:
        import_files(second, tmp_path / "out")
        assert len(records(second)) == 4
    # Logged again, the first one is current and leaves the archive.
    memory.log(repo="app", event_type="learned", lesson="lesson number 0", tags=["again"])
    export_layout(memory, "beads", tmp_path / "out")
    assert exported("knowledge.archive.jsonl") == ["1"]


# --- Installing what was missing ------------------------------------------------------------------


def run_all(cwd: Path, *calls: tuple[str, str]) -> list[Any]:
    """The solved failures after each call: a command, and its error if it fails."""
    session, found = State(cwd / "x.json", {"session": "s-1"}), []
    for number, (command, error) in enumerate(calls):
        fields = {
            "session_id": "s-1",
            "cwd": str(cwd),
            "hook_event_name": "PostToolUseFailure" if error else "PostToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_use_id": f"t-{number}",
            **(
                {"error": f"Exit code 1\n{error}"} if error else {"tool_response": {"stdout": "ok"}}
            ),
        }
        event = read_event(
            "claude-code", json.dumps(fields).encode(), at=1e9, cwd=str(cwd), environment=()
        )
        assert event is not None
        found.append(track(session, event))
    return found


MISSING = "ModuleNotFoundError: No module named 'httpx'"


@pytest.mark.parametrize(
    "install",
    [
        "pip install httpx",
        "python -m pip install httpx",
        "uv add httpx",
        "sudo apt-get install -y libpq-dev",
        "npm install",
        "npx playwright install chromium",
        "brew install libpq",
        "cargo add serde",
        "go get example.org/x",
        "rustup target add wasm32-unknown-unknown",
        "sudo pacman -S libpq",
    ],
)
def test_the_same_command_works_after_something_was_installed(tmp_path: Path, install: str) -> None:
    *_before, solved = run_all(
        tmp_path, ("make report", MISSING), (install, ""), ("make report", "")
    )

    assert solved.worked == f"{install} && make report"
    assert (solved.tried, solved.attempts, solved.error) == (["make report"], 2, MISSING)


def test_nothing_is_solved_by_what_did_not_help(tmp_path: Path) -> None:
    fails, works = ("make report", MISSING), ("make report", "")

    assert run_all(tmp_path, fails, works)[-1] is None
    assert run_all(tmp_path, fails, ("ls -la", ""), works)[-1] is None
    assert run_all(tmp_path, fails, ("pip install a", "no such package"), works)[-1] is None
    two = run_all(tmp_path, fails, ("pip install a", ""), fails, ("pip install b", ""), works)[-1]
    assert two.worked == "pip install b && make report"


def test_tags_and_beads_are_searched_and_not_shown(agent: Agent, memory: Memory) -> None:
    agent.run('bd comment BD-003 "FACT: the staging database lives on db7"')
    agent.run('bd comment BD-004 "LEARNED: first line of it\n\nsecond paragraph of BD"')

    for question in ("where is the staging database", "BD-003"):
        hit = memory.recall(question, all_repos=True).hits[0]
        assert "lives on db7 (from the repository project) [" in hit.text
    hit = memory.recall("BD-004", all_repos=True).hits[0]
    assert "BD-004" not in hit.text
