"""Handoffs and ledgers: what an agent leaves for another, or for itself, arrives once."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import sessions
from commonplace.errors import HandoffClosed, NothingTrusted, RecordInvalid, UsageError
from commonplace.memory import Memory
from commonplace.records import Handoff, make
from commonplace.server.build import build_server
from commonplace.sessions import start
from commonplace.sessions.payload import read_event
from conftest import SLOW_LAW, git, make_repository

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]

SEED_LEDGER = {
    "agent_id": "eng-001-backend", "last_checkpoint": "2026-01-06T10:00:00Z", "tasks_completed": 12, "current_task": "task-042",
    "state": {"files_modified": ["src/routes/todos.ts"], "uncommitted_changes": True, "last_git_commit": "abc123"},
    "context": {"tech_stack": ["express", "typescript", "sqlite"], "patterns_learned": ["sem-001"], "current_goal": "Implement CRUD for todos"},
}  # fmt: skip


def episode(memory: Memory, number: int, **more: Any) -> str:
    fields: dict[str, Any] = {
        "kind": "episode", "id": f"ep-{number}", "task_id": f"task-{number}", "agent_id": "eng", "outcome": "success", "duration_seconds": 60,
        "context": {"goal": f"goal {number}"}, **more,
    }  # fmt: skip
    return memory.log(**fields).id


# --- Handoffs -------------------------------------------------------------------------------------


def test_a_handoff_has_the_fields_of_the_protocol(memory: Memory) -> None:
    pattern = memory.log(kind="pattern", pattern="handlers need return types")
    made = memory.create_handoff(
        "qa", "Implemented it", from_agent="eng", artifacts=["a.ts"], git_state="commit abc123",
        needs_testing=["contract tests"], known_issues=["slow"], patterns=[pattern.id[:12]],
    )  # fmt: skip

    (one,) = memory.handoffs("qa")
    assert one == {
        "id": made.id, "from_agent": "eng", "to_agent": "qa", "timestamp": made.timestamp, "status": "open", "repo": made.repo,
        "context": {"what_was_done": "Implemented it", "artifacts": ["a.ts"], "git_state": "commit abc123", "needs_testing": ["contract tests"],
                    "known_issues": ["slow"], "relevant_patterns": [pattern.id]},
    }  # fmt: skip


@pytest.mark.parametrize(("to", "done"), [("", "x"), (" ", "x"), ("qa", ""), ("qa", " \n")])
def test_an_empty_handoff_is_refused(memory: Memory, to: str, done: str) -> None:
    with pytest.raises(RecordInvalid, match="empty"):
        memory.create_handoff(to, done)
    assert list(memory.records()) == []


operations = st.lists(
    st.tuples(st.sampled_from(["create", "accept"]), st.integers(0, 3), st.sampled_from(["qa", "ops", "QA"])),
    max_size=8,
)  # fmt: skip


@given(operations)
@SLOW_LAW
def test_each_handoff_is_accepted_once_by_whom_it_is_for(
    tmp_path_factory: pytest.TempPathFactory, done: list[tuple[str, int, str]]
) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with Memory.open(tmp_path_factory.mktemp("law"), clock=lambda: now) as memory:
        made: list[str] = []
        by: dict[str, str] = {}
        for number, (what, which, agent) in enumerate(done):
            now += timedelta(seconds=1)
            if what == "create":
                made.append(memory.create_handoff(["qa", "any"][which % 2], f"part {number}").id)
            elif made:
                ident = made[which % len(made)]
                is_for = memory.get(ident).fields["to_agent"] in (agent.lower(), "any")
                if ident in by or not is_for:
                    with pytest.raises((HandoffClosed, UsageError)):
                        memory.accept_handoff(ident, agent)
                else:
                    memory.accept_handoff(ident, agent)
                    by[ident] = agent
        listed = {one["id"]: one for one in memory.handoffs(closed=True)}

        assert listed.keys() == set(made)
        assert {k: v["accepted_by"] for k, v in listed.items() if v["status"] == "accepted"} == by
        assert [one["id"] for one in memory.handoffs()] == [
            i for i in reversed(made) if i not in by
        ]
        for ident in made:  # Nothing is lost: the first version stays in the history.
            assert len(memory.history(ident)) == 1 + (ident in by)


RACER = """
import sys
from commonplace.cli import main
sys.stdin.readline()
sys.exit(main(["handoff", "accept", sys.argv[1], "--agent", sys.argv[2]]))
"""


def test_of_agents_that_accept_at_once_one_wins(memory: Memory) -> None:
    ident = memory.create_handoff("any", "the whole of it", from_agent="eng").id
    names = ["a", "b", "c", "d"]
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, ident, name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for name in names
    ]  # fmt: skip
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    printed = [racer.communicate(timeout=120) for racer in racers]

    (winner,) = [name for name, racer in zip(names, racers, strict=True) if racer.returncode == 0]
    assert sorted(racer.returncode for racer in racers) == [0, 48, 48, 48]
    for (_out, error), name in zip(printed, names, strict=True):
        assert name == winner or f"was accepted by `{winner}`" in error
    assert len(memory.history(ident)) == 2


def test_feedback_still_closes_a_handoff(memory: Memory) -> None:
    ident = memory.create_handoff("qa", "x", from_agent="eng").id
    memory.feedback(ident, "worked")

    assert memory.handoffs() == []
    assert memory.handoffs(closed=True)[0]["status"] == "closed"
    with pytest.raises(HandoffClosed):
        memory.accept_handoff(ident, "qa")


def test_only_a_handoff_can_be_accepted(memory: Memory, commonplace: Run) -> None:
    lesson = memory.log(lesson="x")
    done = commonplace("handoff", "accept", lesson.id, "--agent", "qa")

    assert done.returncode == 4
    assert "no handoff" in done.stderr


def test_the_commands_as_a_user_types_them(commonplace: Run, tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "shop")
    (repo / "todos.ts").write_text("x")
    made = commonplace(
        "handoff", "create", "--from", "eng", "--to", "qa", "--done", "POST /api/todos", "--artifact", "todos.ts",
        "--needs-testing", "unit", "--needs-testing", "contract", cwd=repo,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    ident = made.stdout.strip()
    (one,) = json.loads(commonplace("handoff", "list", "--to", "qa", "--json", cwd=repo).stdout)
    assert one["context"]["needs_testing"] == ["unit", "contract"]
    commit = git("rev-parse", "HEAD", cwd=repo).stdout[:12]
    assert one["context"]["git_state"] == f"commit {commit}, 1 uncommitted file"
    assert (
        json.loads(commonplace("handoff", "list", "--to", "ops", "--json", cwd=repo).stdout) == []
    )
    assert "POST /api/todos" in commonplace("handoff", "list", cwd=repo).stdout
    other = make_repository(tmp_path / "other")
    assert commonplace("handoff", "list", cwd=other).stdout == ""
    assert ident in commonplace("handoff", "list", "--all-repos", cwd=other).stdout
    wrong = commonplace("handoff", "accept", ident[:14], "--agent", "ops", cwd=repo)
    assert (wrong.returncode, "is for `qa`" in wrong.stderr) == (2, True)
    assert (
        commonplace("handoff", "accept", ident[:14], COMMONPLACE_AGENT="qa", cwd=repo).returncode
        == 0
    )
    assert commonplace("handoff", "list", cwd=repo).stdout == ""
    assert "accepted by qa" in commonplace("handoff", "list", "--all", cwd=repo).stdout
    for words in (["create", "--to", "qa"], ["create", "--done", "x"], ["accept"]):
        assert commonplace("handoff", *words, cwd=repo).returncode == 2


# --- At the start of a session --------------------------------------------------------------------


def session_start(memory: Memory, folder: Path, session: str) -> list[str]:
    """What a start shows: from the index, and from the files alone."""
    raw = json.dumps({"session_id": session, "hook_event_name": "SessionStart", "source": "startup", "cwd": str(folder)}).encode()  # fmt: skip
    event = read_event("claude-code", raw, at=datetime.now(UTC).timestamp(), cwd=str(folder))
    assert event is not None
    shown = sessions.answer(memory, "claude-code", raw, cwd=str(folder))
    there = memory.beside(cwd=folder)
    files = start.compose(event, start.read_files(there, event))
    return [json.loads(shown)["hookSpecificOutput"]["additionalContext"] if shown else "", files]


def test_a_start_offers_the_handoff_until_it_is_accepted(memory: Memory, tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "shop")
    there = memory.beside(cwd=repo)
    mine = there.create_handoff("claude-code", "the parser is done", from_agent="eng").id
    there.create_handoff("codex", "not for Claude", from_agent="eng")

    for text in session_start(memory, repo, "s-1"):
        assert "the parser is done" in text
        assert f"commonplace handoff accept {mine} --agent claude-code" in text
        assert "feedback" not in text
        assert "not for Claude" not in text
    there.accept_handoff(mine, "claude-code")
    for text in session_start(memory, repo, "s-2"):
        assert "the parser is done" not in text
    # Many that are closed do not hide one that is open.
    for number in range(8):
        there.accept_handoff(there.create_handoff("any", f"n {number}", from_agent="e").id, "x")
    there.log(kind="handoff", from_agent="eng", to_agent="claude-code", context={"todo": "older"},
              timestamp=datetime.now(UTC) - timedelta(days=2))  # fmt: skip
    for text in session_start(memory, repo, "s-3"):
        assert "todo: older" in text


def test_a_start_tells_an_agent_what_it_was_doing(memory: Memory, tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "shop")
    (repo / "a.ts").write_text("x")
    there = memory.beside(cwd=repo)
    there.checkpoint("claude-code", task="task-042", goal="CRUD for todos")
    there.checkpoint("codex", goal="not Claude's")

    for text in session_start(memory, repo, "s-1"):
        for word in ("task: task-042", "goal: CRUD for todos", "uncommitted then: a.ts"):
            assert f"> {word}" in text
        assert "not Claude's" not in text


@pytest.mark.parametrize(("days", "shown"), [(6, True), (8, False)])
def test_an_old_checkpoint_is_not_shown(
    memory: Memory, tmp_path: Path, days: int, shown: bool
) -> None:
    repo = make_repository(tmp_path / "shop")
    then = datetime.now(UTC) - timedelta(days=days)
    memory.beside(cwd=repo).log(
        kind="ledger", agent_id="claude-code", timestamp=then, context={"current_goal": "the goal"}
    )

    assert [("the goal" in text) for text in session_start(memory, repo, "s-1")] == [shown] * 2


# --- Ledgers --------------------------------------------------------------------------------------


def test_a_checkpoint_has_the_fields_of_the_seed_and_what_git_says(
    commonplace: Run, tmp_path: Path
) -> None:
    repo = make_repository(tmp_path / "shop")
    (repo / "src").mkdir()
    (repo / "src" / "old.ts").write_text("x")
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "x", cwd=repo)
    git("mv", "src/old.ts", "src/new name.ts", cwd=repo)
    (repo / "new.ts").write_text("x")
    words = ["--agent", "eng", "--task", "task-042", "--goal", "CRUD", "--tech", "express,ts"]
    made = json.loads(commonplace("ledger", "checkpoint", *words, "--json", cwd=repo).stdout)

    assert {name: made[name] for name in SEED_LEDGER if name != "last_checkpoint"} == {
        "agent_id": "eng", "tasks_completed": 0, "current_task": "task-042",
        "state": {"files_modified": ["src/new name.ts", "new.ts"], "uncommitted_changes": True,
                  "last_git_commit": git("rev-parse", "HEAD", cwd=repo).stdout.strip()},
        "context": {"tech_stack": ["express", "ts"], "patterns_learned": [], "current_goal": "CRUD"},
    }  # fmt: skip
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "y", cwd=repo)
    shown = commonplace("ledger", "resume", "--agent", "eng", cwd=repo).stdout
    assert "Uncommitted then: src/new name.ts, new.ts" in shown
    assert "Uncommitted now: nothing" in shown
    assert "Goal: CRUD" in shown
    (listed,) = json.loads(commonplace("ledger", "list", "--json", cwd=repo).stdout)
    assert listed == json.loads(
        commonplace("ledger", "show", "--agent", "eng", "--json", cwd=repo).stdout
    )
    assert commonplace("ledger", "show", "--agent", "nobody", cwd=repo).returncode == 4
    nothing = json.loads(
        commonplace("ledger", "resume", "--agent", "nobody", "--json", cwd=repo).stdout
    )
    assert nothing["ledger"] is None


def test_outside_a_repository_there_is_no_state(memory: Memory) -> None:
    assert memory.checkpoint("eng", goal="x").fields["state"] == {}
    assert "unknown" in memory.resume("eng").text


def test_tasks_are_counted_and_what_was_learned_is_added() -> None:
    now = datetime(2026, 1, 6, 10, tzinfo=UTC)
    with Memory.open(clock=lambda: now) as memory:
        memory.log(kind="ledger", timestamp="2026-01-06T10:00:00Z", **SEED_LEDGER)
        memory.log(kind="ledger", agent_id="other", tasks_completed=40)
        for number, more in enumerate(
            [{}, {"outcome": "failure"}, {"agent_id": "other"}, {"task_id": "task-0"}]
        ):
            now += timedelta(minutes=5)
            episode(memory, number, **{"agent_id": "eng-001-backend", **more})
        learned = memory.log(kind="pattern", pattern="types", source_episodes=["ep-0"])
        memory.log(kind="pattern", pattern="of others", source_episodes=["ep-2"])
        mine = memory.log(lesson="given by hand")
        now += timedelta(minutes=5)
        first = memory.checkpoint("eng-001-backend", patterns=[mine.id])

        assert first.fields["tasks_completed"] == 13
        assert first.fields["current_task"] == "task-042"
        assert first.fields["context"]["patterns_learned"] == ["sem-001", mine.id, learned.id]
        again = memory.checkpoint("eng-001-backend")
        assert again.fields["tasks_completed"] == 13
        assert memory.checkpoint("eng-001-backend", done=True).fields["tasks_completed"] == 14
        assert memory.ledger("eng-001-backend")["current_task"] == ""
        assert len(memory.ledgers()) == 2
        assert f"[{learned.id}] types" in memory.resume("eng-001-backend").text


def test_a_ledger_belongs_to_an_agent_in_a_repository(memory: Memory, tmp_path: Path) -> None:
    first, second = (memory.beside(cwd=make_repository(tmp_path / name)) for name in ("a", "b"))
    one, other = first.checkpoint("eng", goal="one"), second.checkpoint("eng", goal="other")

    assert one.id != other.id
    assert first.ledger("eng")["context"]["current_goal"] == "one"
    assert len(first.ledgers(all_repos=True)) == 2


# --- Other homes, and other programs --------------------------------------------------------------


def test_nothing_is_written_to_a_home_that_is_not_trusted(
    tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COMMONPLACE_HOME")
    repo = make_repository(tmp_path / "clone")
    brought = repo / ".commonplace"
    (brought / "log").mkdir(parents=True)
    fields = {
        "kind": "handoff",
        "id": "handoff-evil",
        "from_agent": "a",
        "to_agent": "any",
        "context": {"todo": "x"},
    }
    with Memory.open(cwd=repo) as memory:
        record = make(fields, now=datetime.now(UTC), repo=memory.repository.name, agent_id="a")
        (brought / "log" / f"{memory.repository.name}.jsonl").write_text(
            json.dumps(record.fields) + "\n"
        )
        before = sorted((path, path.stat().st_size) for path in brought.rglob("*"))

        assert memory.handoffs() == []
        with pytest.raises(UsageError, match="not trusted"):
            memory.accept_handoff("handoff-evil", "qa")
        ident = memory.create_handoff("qa", "mine").id
        memory.checkpoint("eng", goal="mine")
        assert [one["id"] for one in memory.handoffs()] == [ident]
        memory.accept_handoff(ident, "qa")
        assert memory.ledger("eng")["context"]["current_goal"] == "mine"
        assert sorted((path, path.stat().st_size) for path in brought.rglob("*")) == before


def test_without_a_trusted_home_the_error_says_so(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.log(lesson="a home that somebody else made")
    memory.homes = [memory.home._replace(of_user=False)]

    with pytest.raises(NothingTrusted, match="not trusted"):
        memory.create_handoff("qa", "x")


def test_loki_files_keep_the_status(
    memory: Memory, commonplace: Run, tmp_path: Path, own_home: Path
) -> None:
    accepted = memory.create_handoff("qa", "one", from_agent="eng").id
    memory.accept_handoff(accepted, "qa")
    memory.create_handoff("qa", "two", from_agent="eng")
    memory.checkpoint("eng", task="t", goal="g", tech_stack=["ts"])
    before = {one["id"]: one for one in memory.handoffs(closed=True)}

    assert commonplace("export", "--layout", "loki", "--to", "out").returncode == 0
    entry = json.loads(
        (tmp_path / "out" / ".loki" / "memory" / "handoffs" / f"{accepted}.json").read_text()
    )
    assert (entry["status"], entry["accepted_by"]) == ("accepted", "qa")
    done = commonplace("import", "out", "--home", "again")
    assert done.returncode == 0, done.stderr

    with Memory.open(tmp_path / "again") as other:
        after = {one["id"]: one for one in other.handoffs(closed=True, all_repos=True)}
        assert {k: (v["status"], v["context"]) for k, v in after.items()} == {
            k: (v["status"], v["context"]) for k, v in before.items()
        }
        (ledger,) = other.ledgers(all_repos=True)
        assert {name: ledger[name] for name in SEED_LEDGER} == {
            name: memory.ledger("eng")[name] for name in SEED_LEDGER
        }


# --- Tools ----------------------------------------------------------------------------------------


def call(memory: Memory, name: str, **arguments: Any) -> Any:
    server = build_server(lambda _scope="read": memory, ["episodes"])
    return asyncio.run(server.call_tool(name, arguments))


def test_the_tools_do_what_the_commands_do(memory: Memory) -> None:
    eng, qa = memory.beside(agent_id="eng"), memory.beside(agent_id="qa")
    made = call(
        eng, "handoff", action="create", to="qa", done="the parser", needs_testing=["all of it"]
    )
    ident = made.structured_content["handoffs"][0]["id"]

    assert "the parser" in call(qa, "handoff").content[0].text
    assert call(eng, "handoff").content[0].text == "No open handoffs to you."
    assert "accepted by qa" in call(qa, "handoff", action="accept", id=ident).content[0].text
    assert call(qa, "handoff").structured_content["handoffs"] == []
    kept = call(eng, "checkpoint", goal="the lexer", task="t-1").structured_content
    assert kept["ledger"]["context"]["current_goal"] == "the lexer"
    assert "Goal: the lexer" in call(eng, "checkpoint", resume=True).content[0].text
    assert memory.ledger("eng")["current_task"] == "t-1"
    for arguments in (
        {"action": "accept"},
        {"action": "create", "to": "qa"},
        {"action": "accept", "id": ident},
    ):
        with pytest.raises(Exception, match=r"needed|accepted by"):
            call(qa, "handoff", **arguments)


def test_a_handoff_of_any_shape_has_a_status() -> None:
    for context in ({}, {"status": 3}, {"status": ["x"]}):
        fields = {"kind": "handoff", "from_agent": "a", "to_agent": "b", "context": context}
        record = make(fields, now=datetime.now(UTC), repo="r", agent_id="a")
        assert isinstance(record, Handoff)
        assert record.status == ""


def test_a_ledger_is_told_in_a_sentence_and_a_goal_ends_with_its_task(memory: Memory) -> None:
    memory.checkpoint("eng", task="t-7", goal="rewrite the zanzibar lexer")
    (hit,) = memory.recall("zanzibar lexer", kinds=["ledger"], cutoff=False).hits
    assert "Ledger of eng: t-7: rewrite the zanzibar lexer." in hit.text
    assert "T00:" not in hit.text

    memory.checkpoint("eng", done=True)
    assert memory.ledger("eng")["context"]["current_goal"] == ""
    assert memory.ledger("eng")["current_task"] == ""
