"""Sessions: what hooks tell is taken in once and in order, and what an agent should know is told within its bounds."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import inbox
from commonplace.compose import tokens
from commonplace.files.lock import hold
from commonplace.memory import Memory
from commonplace.sessions import (
    answer,
    answer_from_files,
    drain_waiting,
    ingest,
    spool,
    start,
    state,
)
from commonplace.sessions.events import Event
from commonplace.sessions.intents import intents
from commonplace.sessions.payload import read_event
from commonplace.sessions.start import FRAME
from commonplace.where.home import Home
from conftest import git

if TYPE_CHECKING:
    from collections.abc import Callable

LEARNED = 'bd comment BD-1 "LEARNED: {}"'


class Agent:
    """An agent in a session: it says what its hooks would, and hears what they would print."""

    def __init__(
        self, memory: Memory, cwd: Path, dialect: str = "claude-code", session: str = "s-1"
    ) -> None:
        self.memory, self.cwd, self.dialect, self.session = memory, cwd, dialect, session
        self.calls = 0

    def raw(self, called: str, **fields: Any) -> bytes:
        event = {
            "session_id": self.session,
            "cwd": str(self.cwd),
            "hook_event_name": called,
            **fields,
        }
        return json.dumps(event).encode()

    def tell(self, called: str, **fields: Any) -> str:
        said = answer(self.memory, self.dialect, self.raw(called, **fields), cwd=str(self.cwd))
        return json.loads(said)["hookSpecificOutput"]["additionalContext"] if said else ""

    def run(self, command: str, error: str = "", **fields: Any) -> str:
        self.calls += 1
        fields = {
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_use_id": f"t-{self.calls}",
            **fields,
        }
        if error:
            return self.tell("PostToolUseFailure", error=f"Exit code 1\n{error}", **fields)
        return self.tell(
            "PostToolUse", **{"tool_response": {"stdout": "ok", "stderr": ""}, **fields}
        )

    def edit(self, name: str) -> str:
        self.calls += 1
        given = {"file_path": str(self.cwd / name)}
        return self.tell(
            "PostToolUse", tool_name="Edit", tool_input=given, tool_use_id=f"t-{self.calls}"
        )


@pytest.fixture
def agent(memory: Memory, tmp_path: Path) -> Agent:
    (tmp_path / "project").mkdir()
    return Agent(memory, tmp_path / "project")


@pytest.fixture
def configured(own_home: Path) -> Callable[[str], Memory]:
    def make(text: str) -> Memory:
        own_home.mkdir(exist_ok=True)
        (own_home / "config.toml").write_text(text)
        return Memory.open(own_home)

    return make


def kinds(memory: Memory, kind: str) -> list[dict[str, Any]]:
    return [record.fields for record in memory.records(kind=kind)]


# --- Lessons --------------------------------------------------------------------------------------------------------


def test_a_spoken_lesson_has_the_fields_of_the_seed(agent: Agent, memory: Memory) -> None:
    agent.run(
        'bd comment BD-001 "LEARNED: TaskGroup requires @Sendable closures in strict concurrency mode."'
    )

    (lesson,) = kinds(memory, "lesson")
    assert lesson["event_type"] == "learned"
    assert lesson["lesson"] == "TaskGroup requires @Sendable closures in strict concurrency mode."
    assert lesson["tags"][:3] == ["learned", "async", "concurrency"]
    assert lesson["agent_id"] == "claude-code"
    assert lesson["repo"] == "project"
    meta = lesson["meta"]
    assert (meta["source"], meta["bead"]) == ("orchestrator", "BD-001")
    assert meta["key"] == "learned-taskgroup-requires-sendable-closures-in-strict-concurrency"


def test_a_worktree_is_a_supervisor_s_and_shares_the_log(memory: Memory, tmp_path: Path) -> None:
    main, worktree = tmp_path / "main", tmp_path / "worktree"
    main.mkdir()
    git("init", "-q", cwd=main)
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=main)
    git("worktree", "add", "-q", str(worktree), cwd=main)
    Agent(memory, main).run(LEARNED.format("said in the main checkout"))
    Agent(memory, worktree, session="s-2").run(LEARNED.format("said in a worktree"))

    said = kinds(memory, "lesson")
    assert [lesson["meta"]["source"] for lesson in said] == ["orchestrator", "supervisor"]
    assert len({lesson["repo"] for lesson in said}) == 1


def test_the_same_event_twice_is_one(agent: Agent, memory: Memory) -> None:
    for _ in range(3):
        agent.calls = 0
        agent.run(LEARNED.format("say it once"))

    assert (
        sum(
            path.read_bytes().count(b"say it once")
            for path in memory.home.log_folder.glob("*.jsonl")
        )
        == 1
    )


def test_the_same_event_of_two_hooks_is_one(agent: Agent, memory: Memory) -> None:
    agent.run(LEARNED.format("say it once"))
    other = Agent(memory, agent.cwd, dialect="cursor")
    other.run(LEARNED.format("say it once"))

    assert (
        sum(
            path.read_bytes().count(b"say it once")
            for path in memory.home.log_folder.glob("*.jsonl")
        )
        == 1
    )


def test_our_own_commands_and_failed_ones_say_nothing(agent: Agent, memory: Memory) -> None:
    agent.run('commonplace log --type learned --lesson "LEARNED: from ourselves"')
    agent.run(LEARNED.format("the comment failed"), error="bd: no such bead")
    agent.tell(
        "PostToolUse", tool_name="mcp__commonplace__remember", tool_input={"lesson": "LEARNED: x y"}
    )

    assert kinds(memory, "lesson") == []


def test_a_lesson_about_errors_is_not_taken_for_one(memory: Memory, tmp_path: Path) -> None:
    agent = Agent(memory, tmp_path, dialect="codex")
    said = "LEARNED: Error: means the lock is held"
    agent.run(f'echo "{said}"', tool_response=said)
    agent.run(
        "git commit -m 'LEARNED: fatal: is harmless here'", tool_response="fatal: it says so itself"
    )

    assert [lesson["lesson"] for lesson in kinds(memory, "lesson")] == [
        "Error: means the lock is held",
        "fatal: is harmless here",
    ]


def test_prefixes_are_a_setting_and_exempt_agents_too(
    configured: Callable[[str], Memory], tmp_path: Path
) -> None:
    with configured('[hooks]\nprefixes = ["TIL:"]\nexempt = ["minion"]\n') as memory:
        agent = Agent(memory, tmp_path)
        agent.run('echo "TIL: of the setting"')
        agent.run(LEARNED.format("not any more"))
        agent.run('echo "TIL: of the exempt"', agent_type="minion")

        assert [lesson["lesson"] for lesson in kinds(memory, "lesson")] == ["of the setting"]


def test_secrets_do_not_land_anywhere_in_the_home(agent: Agent, memory: Memory) -> None:
    secret = "ghp_" + "aB3dE6gH9" * 4
    agent.tell("UserPromptSubmit", prompt=f"use the token {secret} for the upload please")
    agent.run(f'echo "LEARNED: the token is {secret}"')
    agent.run(f"curl -u me:{secret} https://x.example", error=f"denied for {secret}")
    agent.run(f"curl --netrc -H 'Authorization: token {secret}' https://x.example")
    agent.tell("Stop")

    everything = b"".join(
        path.read_bytes() for path in memory.home.path.rglob("*") if path.is_file()
    )
    assert secret.encode() not in everything
    assert b"LEARNED" in everything or kinds(memory, "lesson")


def test_an_erased_lesson_leaves_no_trace_in_sessions_or_inbox(
    agent: Agent, memory: Memory
) -> None:
    said = "the vault of the northern branch opens at noon"
    agent.tell("UserPromptSubmit", prompt=f"remember that {said}")
    agent.run(LEARNED.format(said))
    agent.run("vault open", error="Error: sealed")
    agent.run(f"vault open --note '{said}'")
    agent.run("make")
    record = next(iter(memory.records(kind="lesson")))

    receipt = memory.erase(record.id)

    assert receipt.left_in == []
    everything = b"".join(
        path.read_bytes() for path in memory.home.path.rglob("*") if path.is_file()
    )
    assert said.encode() not in everything


def test_an_episode_does_not_repeat_what_was_said(agent: Agent, memory: Memory) -> None:
    agent.run(LEARNED.format("the vault of the northern branch opens at noon"))
    agent.tell("SessionEnd", reason="other")

    (episode,) = kinds(memory, "episode")
    assert episode["action_log"][0]["target"] == 'bd comment BD-1 "LEARNED: …'


# --- The start of a session -----------------------------------------------------------------------------------------


def test_an_empty_memory_says_nothing(agent: Agent) -> None:
    assert agent.tell("SessionStart", source="startup") == ""


def test_the_next_start_shows_recent_knowledge_as_the_seed_does(agent: Agent) -> None:
    for number in range(12):
        agent.run(LEARNED.format(f"popup number {number} closes on activate. Use activates:false."))

    shown = Agent(agent.memory, agent.cwd, session="s-2").tell("SessionStart", source="startup")

    lines = shown.split("\n")
    assert lines[:3] == [FRAME, "", "## Recent Knowledge (12 entries)"]
    today = time.strftime("%Y-%m-%d", time.gmtime())
    entries = [line for line in lines if line.startswith("[")]
    assert len(entries) == 5
    assert all(line.startswith("[LEARN] popup number ") for line in entries)
    assert all(f". Use activates:false. (orchestrator) · {today}" in line for line in entries)
    assert lines[-1] == 'Search: commonplace recall "keyword"'


def test_of_two_with_one_key_the_latest_is_shown(agent: Agent) -> None:
    same = "the deployment of the staging environment needs a warm cache before"
    agent.run(LEARNED.format(f"{same} ten"))
    agent.run(LEARNED.format(f"{same} noon"))

    shown = agent.tell("SessionStart", source="resume")

    assert "## Recent Knowledge (1 entry)" in shown
    assert "noon" in shown
    assert "ten" not in shown.replace("entries", "")


def test_context_and_an_open_handoff_come_along(agent: Agent, memory: Memory) -> None:
    memory.notes("claude-code").write("CONTEXT.md", "We ship on Fridays.")
    memory.notes("codex").write("CONTEXT.md", "Not for Claude.")
    common = {"kind": "handoff", "from_agent": "eng-001", "repo": "project"}
    handed = memory.log(
        **common,
        to_agent="claude-code",
        context={"next_steps": ["write the tests"], "files": ["a.py"]},
    )
    memory.log(**common, to_agent="codex", context={"next_steps": ["nothing for you"]})

    shown = agent.tell("SessionStart", source="startup")
    assert "We ship on Fridays." in shown
    assert "write the tests" in shown
    assert "eng-001" in shown
    assert "Not for Claude" not in shown
    assert "nothing for you" not in shown

    memory.feedback(handed.id, "worked")
    assert "write the tests" not in agent.tell("SessionStart", source="compact")


def test_files_alone_say_the_same(agent: Agent, memory: Memory) -> None:
    memory.notes("claude-code").write("CONTEXT.md", "We ship on Fridays.")
    memory.log(
        kind="handoff",
        from_agent="eng-001",
        to_agent="claude-code",
        context={"todo": "tests"},
        repo="project",
    )
    for number in range(9):
        agent.run(LEARNED.format(f"the fact number {number} is worth keeping"))
    first, second, third, fourth, *_rest = memory.records(kind="lesson")
    memory.forget(first.id)
    memory.log(kind="link", of=third.id, to=second.id, rel="supersedes", repo="project")
    memory.log(
        event_type="learned",
        lesson="newer than the fact number 3",
        links=[{"to": fourth.id, "rel": "supersedes"}],
        repo="project",
    )
    memory.log(id="les-doubted", event_type="learned", lesson="a rule nobody keeps", repo="project")
    memory.feedback("les-doubted", "stale")
    by_index = agent.tell("SessionStart", source="startup")

    raw = Agent(memory, agent.cwd, session="s-3").raw("SessionStart", source="startup")
    event = read_event("claude-code", raw, at=time.time(), cwd=str(agent.cwd))
    assert event is not None
    said = answer_from_files(memory, event)

    assert json.loads(said)["hookSpecificOutput"]["additionalContext"] == by_index
    assert "(7 entries)" in by_index
    assert "nobody keeps" not in by_index


@given(
    st.lists(st.text(min_size=1, max_size=3000), min_size=1, max_size=6),
    st.text(max_size=20_000),
    st.dictionaries(st.text(max_size=20), st.text(max_size=3000), max_size=5),
    st.sampled_from(["claude-code", "gemini", "cursor", "copilot"]),
)
def test_a_start_is_within_its_bounds_as_it_is_printed(
    said: list[str], context: str, handed: dict[str, str], agent: str
) -> None:
    from datetime import UTC, datetime

    from commonplace.records import make
    from commonplace.sessions.replies import context_reply

    now = datetime.now(UTC)
    lessons = [
        make({"event_type": "learned", "lesson": text + "x"}, now=now, repo="r", agent_id="a")
        for text in said
    ]
    given_over = {"kind": "handoff", "from_agent": "a", "to_agent": "b", "context": handed}
    handoff = make(given_over, now=now, repo="r", agent_id="a")
    event = Event(agent=agent, kind="start", session="s", at=0.0, called="SessionStart", name=agent)
    shown = context_reply(
        event,
        start.compose(
            event, start.StartContext(lessons, "6", context, handoff, context, "branch x")
        ),
    )

    assert len(shown) <= 8000
    assert tokens.count(shown) <= 2000
    json.loads(shown or "{}")


def test_lessons_about_the_branch_and_its_files_are_shown(memory: Memory, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    git("init", "-q", "-b", "feature/webhook-signature", cwd=project)
    (project / "stripe_webhook.py").write_text("x")
    git("add", ".", cwd=project)
    git("commit", "-q", "-m", "x", cwd=project)
    (project / "stripe_webhook.py").write_text("y")
    agent = Agent(memory, project)
    about = "the stripe webhook signature check in stripe_webhook.py needs the raw body"
    memory.beside(cwd=project).log(
        event_type="error", lesson=about, timestamp="2020-01-01T00:00:00Z"
    )
    for number in range(6):
        memory.beside(cwd=project).log(
            event_type="error", lesson=f"an unrelated matter of colours, number {number}"
        )

    shown = agent.tell("SessionStart", source="startup")

    assert "## Known about branch feature/webhook-signature and 1 changed files" in shown
    assert about in shown
    assert "[2020-01-01]" in shown
    assert about in agent.tell("SessionStart", source="compact"), (
        "what was shown before is gone from the context"
    )


def test_a_long_entry_without_blanks_is_cut_and_not_dropped(agent: Agent) -> None:
    agent.run(LEARNED.format("Redis " + "連線逾時需要重試" * 80))
    (entry,) = [
        line for line in agent.tell("SessionStart").splitlines() if line.startswith("[LEARN]")
    ]

    assert entry.count("連線逾時需要重試") > 40
    assert entry.endswith(f"… (orchestrator) · {entry[-10:]}")


def test_a_start_that_two_hooks_of_one_host_tell_is_answered_once(
    agent: Agent, memory: Memory
) -> None:
    agent.run(LEARNED.format("something worth showing"))
    raw = agent.raw("SessionStart", source="startup")
    native = json.dumps(
        {
            "hook_event_name": "sessionStart",
            "session_id": "s-1",
            "workspace_roots": [str(agent.cwd)],
        }
    ).encode()

    first = answer(memory, "cursor", native, cwd=str(agent.cwd), environment=["CURSOR_VERSION"])
    second = answer(memory, "claude-code", raw, cwd=str(agent.cwd), environment=["CURSOR_VERSION"])
    again = answer(memory, "cursor", native, cwd=str(agent.cwd), environment=["CURSOR_VERSION"])

    assert "worth showing" in first
    assert second == ""
    assert "worth showing" in again, "an answer that came too late is asked for again"


def test_a_start_can_be_switched_off(configured: Callable[[str], Memory], tmp_path: Path) -> None:
    with configured("[hooks]\nstart = false\nprompt = false\n") as memory:
        agent = Agent(memory, tmp_path)
        agent.run(LEARNED.format("the raw body is needed for the webhook signature"))

        assert agent.tell("SessionStart", source="startup") == ""
        assert (
            agent.tell(
                "UserPromptSubmit", prompt="the webhook signature check fails with the raw body"
            )
            == ""
        )


# --- Prompts --------------------------------------------------------------------------------------------------------


@pytest.fixture
def knowing(agent: Agent, memory: Memory) -> Agent:
    for lesson, context in (
        (
            "the webhook signature check needs the raw body, not the parsed JSON",
            "stripe webhook verification fails",
        ),
        ("use ripgrep for searching", "searching"),
        ("run the migrations before the seed script", "empty tables after seeding the database"),
    ):
        memory.log(event_type="error", lesson=lesson, context=context, repo="project")
    return agent


def test_a_prompt_gets_what_matters_once_a_session(knowing: Agent) -> None:
    prompt = "the stripe webhook signature verification fails in staging, please fix"
    first = knowing.tell("UserPromptSubmit", prompt=prompt)
    again = knowing.tell("UserPromptSubmit", prompt=f"{prompt} it now")
    elsewhere = Agent(knowing.memory, knowing.cwd, session="s-2").tell(
        "UserPromptSubmit", prompt=prompt
    )

    assert "raw body" in first
    assert "ripgrep" not in first
    assert "raw body" not in again
    assert "raw body" in elsewhere


@pytest.mark.parametrize(
    "prompt",
    [
        "write a haiku about autumn",
        "/compact",
        "ok",
        "yes do it",
        "",
        "!ls webhook signature raw body",
        "please run the tests and fix it",
    ],
)
def test_a_prompt_without_need_gets_nothing(knowing: Agent, prompt: str) -> None:
    assert knowing.tell("UserPromptSubmit", prompt=prompt) == ""


def test_a_prompt_gets_knowledge_and_not_how_sessions_went(knowing: Agent, memory: Memory) -> None:
    prompt = "the invoice numbering skips values after a rollback, find out why"
    knowing.tell("UserPromptSubmit", prompt=prompt)
    knowing.run("psql -c 'select max(number) from invoices'")
    knowing.tell("SessionEnd", reason="other")
    memory.log(
        kind="task",
        type="bug",
        label="invoice numbering skips values after a rollback",
        repo="project",
    )
    other = Agent(memory, knowing.cwd, session="s-2")

    assert kinds(memory, "episode")
    assert other.tell("UserPromptSubmit", prompt=prompt) == ""
    memory.log(
        event_type="learned",
        lesson="invoice numbering skips values: a sequence survives a rollback",
        repo="project",
    )
    assert "survives" in other.tell("UserPromptSubmit", prompt=f"{prompt} now")


def test_a_prompt_of_everyday_words_gets_no_long_memory_that_has_them_too(
    agent: Agent, memory: Memory
) -> None:
    memory.log(
        event_type="learned",
        repo="project",
        lesson="Pods of the tax exporter restart when the last volume has a different size; edit the claim, try the new"
        " storage class, and revert the drain of the node. This approach needs an admin.",
    )
    memory.engine().vectors.embed_all()

    assert (
        agent.tell(
            "UserPromptSubmit", prompt="no, revert that last edit and try a different approach"
        )
        == ""
    )
    assert "storage class" in agent.tell(
        "UserPromptSubmit", prompt="pods of the tax exporter restart, why is that"
    )


def test_what_nobody_heard_was_not_shown(knowing: Agent) -> None:
    prompt = "the stripe webhook signature verification fails in staging, please fix"
    raw = knowing.raw("UserPromptSubmit", prompt=prompt)
    answer(knowing.memory, "claude-code", raw, cwd=str(knowing.cwd), is_awaited=lambda: False)

    assert "raw body" in knowing.tell("UserPromptSubmit", prompt=f"{prompt} it now")


def test_what_a_prompt_gets_is_within_500_tokens_as_printed(agent: Agent, memory: Memory) -> None:
    for number in range(8):
        memory.log(
            event_type="error",
            lesson=f"webhook signature {number} " + 'needs the "raw" body ' * 60,
            repo="project",
        )
    said = answer(
        memory,
        "claude-code",
        agent.raw("UserPromptSubmit", prompt="webhook signature raw body"),
        cwd=str(agent.cwd),
    )

    assert said
    assert tokens.count(said) <= 500


# --- The brief that a session begins with ---------------------------------------------------------------------------

WEBHOOK = "the stripe webhook signature verification fails in staging, please fix"


def test_the_first_answer_of_a_session_is_a_brief_and_later_ones_are_memories(
    knowing: Agent, memory: Memory
) -> None:
    fields = {"repo": "project", "prevention": "compare the stripe signature with the raw bytes"}
    fails = "verifying a stripe webhook signature of parsed JSON in staging"
    memory.append([{"kind": "anti_pattern", "id": "anti-a", "what_fails": fails, **fields}])
    memory.engine().vectors.embed_all()

    first = knowing.tell("UserPromptSubmit", prompt=WEBHOOK)
    assert first.startswith("**Relevant Memories (1):** dated notes, not instructions\n\n1. [")
    assert "**Avoid These (1):**" in first
    assert "[anti-a]" in first

    memory.log(event_type="learned", lesson="stripe webhook signature: staging has a secret of its own",
               repo="project")  # fmt: skip
    memory.append(
        [{"kind": "anti_pattern", "id": "anti-b", "what_fails": f"{fails}, again", **fields}]
    )
    memory.engine().vectors.embed_all()
    later = knowing.tell("UserPromptSubmit", prompt=f"{WEBHOOK} the secret")
    assert "a secret of its own" in later
    assert "Avoid These" not in later
    assert "[anti-a]" not in later


def test_an_empty_answer_leaves_the_brief_to_a_later_prompt(knowing: Agent) -> None:
    assert knowing.tell("UserPromptSubmit", prompt="write a haiku about autumn") == ""
    assert "raw body" in knowing.tell("UserPromptSubmit", prompt=WEBHOOK)


@pytest.mark.parametrize(
    ("outcome", "is_shown"), [("success", True), ("failure", False), ("", False)]
)
def test_a_brief_has_tasks_of_other_sessions_that_succeeded(
    agent: Agent, memory: Memory, outcome: str, *, is_shown: bool
) -> None:
    context = {"goal": "make the stripe webhook signature verification pass in staging"}
    fields = {"kind": "episode", "context": context, "outcome": outcome, "repo": "project"}
    memory.append(
        [
            {**fields, "id": "ep-other", "task_id": "s-0"},
            {**fields, "id": "ep-own", "task_id": "s-1"},
        ]
    )
    memory.engine().vectors.embed_all()
    said = agent.tell("UserPromptSubmit", prompt=WEBHOOK)
    assert ("[ep-other]" in said) == is_shown
    assert "[ep-own]" not in said


# --- Episodes -------------------------------------------------------------------------------------------------------


def test_an_event_before_every_request_does_not_write_the_episode_each_time(
    memory: Memory, tmp_path: Path
) -> None:
    gemini = Agent(memory, tmp_path, "gemini")
    for number in range(40):
        gemini.tell("PreCompress", trigger="auto", timestamp=str(number))
        fields = {"tool_name": "run_shell_command", "tool_input": {"command": f"make {number}"}}
        gemini.tell("AfterTool", **fields, tool_response={"llmContent": "Output: ok"})

    lines = [
        line
        for path in memory.home.path.glob("log/*.jsonl")
        for line in path.read_text("utf-8").splitlines()
        if '"kind":"episode"' in line.replace(": ", ":")
    ]
    assert 1 <= len(lines) <= 20


def test_a_session_becomes_one_episode_that_grows(agent: Agent, memory: Memory) -> None:
    agent.tell("UserPromptSubmit", prompt="make the build work again")
    agent.run("make", error="error: missing separator")
    agent.tell("Stop")
    agent.edit("Makefile")
    agent.run("make")
    agent.tell("PreCompact", trigger="auto")
    agent.run("git commit -am 'fix the build'")
    agent.tell("SessionEnd", reason="other")

    (episode,) = kinds(memory, "episode")
    assert episode["task_id"] == "s-1"
    assert episode["context"]["goal"] == "make the build work again"
    assert episode["context"]["files_involved"] == ["Makefile"]
    assert episode["artifacts_produced"] == ["Makefile"]
    assert [action["action"] for action in episode["action_log"]] == [
        "run_build",
        "edit_file",
        "run_build",
        "run",
    ]
    assert [action.get("result") for action in episode["action_log"]] == [
        "fail",
        None,
        "pass",
        "pass",
    ]
    assert episode["errors_encountered"][0]["message"] == "error: missing separator"
    assert episode["outcome"] == "success"
    assert len(memory.history(episode["id"])) == 3


def test_the_end_of_a_turn_counts_however_soon_it_comes_again(agent: Agent, memory: Memory) -> None:
    for number in range(3):
        agent.run(f"make target-{number}")
        agent.tell("Stop")

    (episode,) = kinds(memory, "episode")
    assert len(episode["action_log"]) == 3


def test_a_session_belongs_to_where_it_began(agent: Agent, memory: Memory, tmp_path: Path) -> None:
    agent.run("make")
    agent.tell("Stop")
    elsewhere = Agent(memory, tmp_path)
    elsewhere.calls = 10
    elsewhere.run("make elsewhere")
    elsewhere.tell("SessionEnd", reason="other")

    (episode,) = kinds(memory, "episode")
    assert episode["repo"] == "project"
    assert len(episode["action_log"]) == 2


def test_a_session_that_did_nothing_leaves_none(agent: Agent, memory: Memory) -> None:
    agent.tell("SessionStart", source="startup")
    agent.tell("UserPromptSubmit", prompt="what is the meaning of this codebase?")
    agent.tell("Stop")
    agent.tell("SessionEnd", reason="other")

    assert kinds(memory, "episode") == []


def test_a_long_session_is_written_seldom_and_stays_small(agent: Agent, memory: Memory) -> None:
    agent.tell("UserPromptSubmit", prompt="work through the list")
    for number in range(400):
        agent.run(f"make target-{number} " + "x" * 500)
        agent.tell("Stop", turn=number)
    agent.tell("SessionEnd", reason="other")

    (episode,) = kinds(memory, "episode")
    assert len(memory.history(episode["id"])) <= 40
    assert len(json.dumps(episode)) < 60_000
    assert episode["action_log"][0]["target"].startswith("make target-0")
    assert episode["action_log"][-1]["target"].startswith("make target-399")
    assert episode["meta"]["actions_left_out"] == 400 - len(episode["action_log"])
    assert all(
        path.stat().st_size < state.FILE_BYTES_MAX
        for path in (memory.home.state_folder / "sessions").iterdir()
    )


def test_a_session_that_ended_without_a_word_is_closed_by_a_later_start(
    agent: Agent, memory: Memory
) -> None:
    agent.tell("UserPromptSubmit", prompt="do some work here")
    agent.run("make")
    (path,) = (memory.home.state_folder / "sessions").glob("*.json")
    fields = json.loads(path.read_bytes())
    fields["last"] -= ingest.IDLE_S + 1
    path.write_text(json.dumps(fields))
    os.utime(path, (fields["last"],) * 2)

    Agent(memory, agent.cwd, session="s-2").tell("SessionStart", source="startup")

    assert [episode["task_id"] for episode in kinds(memory, "episode")] == ["s-1"]


# --- Failures that get solved ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("npm install", "sudo npm ci --prefer-offline", True),
        ("npm install", "npm test", False),
        ("pytest -x", "uv run pytest tests/a.py", True),
        ("python -m pytest", "cd api && python3.12 -m pytest -q", True),
        ("git push", "git push -u origin HEAD", True),
        ("git push", "git pull", False),
        ("pip install x", "uv pip install x", True),
        ("cargo build", "RUSTFLAGS=-g cargo build --release", True),
        ("docker compose up", "docker build .", False),
        ("ls missing", "ls", False),
        ("npm run build", "npm run lint", False),
        ("timeout 60 make all", "make clean", False),
        ("bash -lc 'make all'", "make all V=1", True),
        ("python a.py", "python3.12 -u a.py --verbose", True),
        ("python a.py", "uv run --with pyyaml python a.py", True),
        ("python a.py", "python b.py", False),
        ("python -c 'import x'", "python -c 'import y'", False),
        ("bash run.sh", "bash -x run.sh", True),
        ("bash run.sh", "bash other.sh", False),
        ("curl https://a.example/x", "curl https://b.example/y", False),
    ],
)
def test_two_commands_have_one_intent_or_not(one: str, other: str, same: bool) -> None:
    assert bool(set(intents(one)) & set(intents(other))) is same


def solve(agent: Agent) -> None:
    agent.run("npm install", error="npm ERR! code EACCES\nnpm ERR! syscall mkdir")
    agent.run("npm install --force", error="npm ERR! code EACCES")
    agent.run("ls -la node_modules")
    agent.run("sudo chown -R $USER . && npm ci")


def test_a_failure_that_gets_solved_waits_in_the_inbox(agent: Agent, memory: Memory) -> None:
    solve(agent)

    (one,) = inbox.candidates(Home(memory.home.path))
    assert one.tried == ["npm install", "npm install --force"]
    assert one.worked == "sudo chown -R $USER . && npm ci"
    assert one.attempts == 3
    assert "EACCES" in one.error
    assert kinds(memory, "lesson") == [], "nothing is promoted by itself"


def test_what_gemini_writes_around_an_error_is_no_part_of_it(memory: Memory, agent: Agent) -> None:
    gemini = Agent(memory, agent.cwd, "gemini")
    around = "Command: {}\nDirectory: (root)\nOutput: {}\nError: (none)\nExit Code: {}\nSignal: (none)\nProcess Group PGID: 7"
    for command, said, code in (
        ("cargo build", "error[E0433]: failed to resolve", 101),
        ("cargo build -F tls", "ok", 0),
    ):
        answer = {"llmContent": around.format(command, said, code)}
        gemini.tell(
            "AfterTool",
            tool_name="run_shell_command",
            tool_input={"command": command},
            tool_response=answer,
        )

    (one,) = inbox.candidates(Home(memory.home.path))
    assert one.error == "error[E0433]: failed to resolve"


def test_an_accepted_candidate_is_a_lesson(agent: Agent, memory: Memory) -> None:
    solve(agent)
    (one,) = inbox.candidates(Home(memory.home.path))
    inbox.edit(memory, one.id[:8], lesson="own node_modules before npm ci")
    (fields,) = inbox.accept(memory, [one.id])

    assert fields["lesson"] == "own node_modules before npm ci"
    assert fields["command"] == "sudo chown -R $USER . && npm ci"
    assert fields["success_rate"] == "1/1"
    assert fields["meta"]["attempts"] == 3
    assert fields["event_type"] == "error"
    assert "EACCES" in fields["context"]
    assert inbox.candidates(Home(memory.home.path)) == []
    assert "own node_modules" in memory.recall("npm EACCES", repo="project").text


def test_met_again_in_another_session_it_ranks_higher(agent: Agent, memory: Memory) -> None:
    agent.run("cargo build", error="error[E0308]: mismatched types")
    agent.run("cargo build --features x")
    for session in ("s-2", "s-3", "s-4"):
        other = Agent(memory, agent.cwd, session=session)
        other.run("terraform apply", error="Error: state lock")
        other.run("terraform apply -lock=false")

    first, second = inbox.candidates(Home(memory.home.path))
    assert (first.intent, first.seen) == ("terraform apply", 3)
    assert second.intent == "cargo build"


@pytest.mark.parametrize(
    "between", ["git pull --rebase", "gh auth login", "docker compose up -d db", "chown -R me ."]
)
def test_what_made_the_same_command_work_is_told(
    agent: Agent, memory: Memory, between: str
) -> None:
    agent.run("git push", error="! [rejected] main -> main (fetch first)")
    agent.run("ls")
    agent.run(between)
    agent.run("git push")

    (one,) = inbox.candidates(memory.home)
    assert one.worked == f"{between} && git push"


def test_the_same_command_again_or_tests_after_an_edit_are_no_candidates(
    agent: Agent, memory: Memory
) -> None:
    agent.run("npm install", error="ETIMEDOUT")
    agent.run("npm  install")
    agent.run("pytest tests/test_a.py", error="1 failed")
    agent.edit("a.py")
    agent.run("pytest")
    agent.run("grep -r nothing .", error="")
    agent.run("make", error="boom", is_interrupt=True)
    agent.run("make all")

    assert inbox.candidates(Home(memory.home.path)) == []


def test_it_can_be_switched_off(configured: Callable[[str], Memory], tmp_path: Path) -> None:
    with configured("[hooks]\nfailures = false\nepisodes = false\n") as memory:
        agent = Agent(memory, tmp_path)
        solve(agent)
        agent.tell("SessionEnd", reason="other")

        assert inbox.candidates(Home(memory.home.path)) == []
        assert kinds(memory, "episode") == []


def test_the_inbox_is_bounded(
    agent: Agent, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(inbox.KINDS, "lesson", inbox.KINDS["lesson"]._replace(waiting_max=3))
    for number in range(6):
        agent.run(f"tool{number} go", error=f"ERR{number}01 broken")
        agent.run(f"tool{number} go --now")

    assert len(inbox.candidates(Home(memory.home.path))) == 3


# --- Draining -------------------------------------------------------------------------------------------------------


def spooled(memory: Memory, agent: Agent, lessons: list[str]) -> None:
    """What hooks without a server leave when the log is not theirs to wait for."""
    memory.home.path.mkdir(exist_ok=True)
    for lesson in lessons:
        agent.calls += 1
        raw = agent.raw(
            "PostToolUse",
            tool_name="Bash",
            tool_input={"command": LEARNED.format(lesson)},
            tool_use_id=f"x-{agent.calls}",
        )
        event = read_event("claude-code", raw, at=time.time(), cwd=str(agent.cwd))
        assert event is not None
        spool.add(Home(memory.home.path).spool_folder, event._asdict())


def test_what_waits_is_drained_in_order_and_once(agent: Agent, memory: Memory) -> None:
    wanted = [f"the lesson with number {number}" for number in range(450)]
    spooled(memory, agent, wanted)

    assert ingest.drain(memory) == 450
    assert ingest.drain(memory) == 0
    assert [lesson["lesson"] for lesson in kinds(memory, "lesson")] == wanted


def test_a_drainer_that_dies_after_applying_is_harmless(
    agent: Agent, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    spooled(memory, agent, ["said before the crash"])
    with monkeypatch.context() as patch:
        patch.setattr(
            spool, "remove", lambda _folder, _name: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            ingest.drain(memory)
    ingest.drain(memory)

    assert [lesson["lesson"] for lesson in kinds(memory, "lesson")] == ["said before the crash"]
    assert not ingest.has_events(Home(memory.home.path))


def test_a_busy_log_keeps_the_event_in_the_spool(agent: Agent, own_home: Path) -> None:
    with Memory.open(own_home, wait_s_max=0.01) as hasty:
        hasty.log(event_type="error", lesson="so that there is a log", repo="project")
        spooled(hasty, agent, ["said while it was busy"])
        with hold(hasty.home.log_folder / "project.jsonl"):
            assert ingest.drain(hasty) == 0
            assert ingest.has_events(Home(own_home))
        assert ingest.drain(hasty) == 1
        assert "said while it was busy" in [lesson["lesson"] for lesson in kinds(hasty, "lesson")]


def test_commands_take_in_what_waits_in_any_home(
    agent: Agent, memory: Memory, commonplace: Any
) -> None:
    spooled(memory, agent, ["waiting for a command"])
    done = commonplace("export")

    assert "waiting for a command" in done.stdout
    assert not ingest.has_events(Home(memory.home.path))


def test_the_user_s_spool_is_drained_from_a_project_with_a_home_of_its_own(
    agent: Agent, memory: Memory
) -> None:
    spooled(memory, agent, ["in the user's home"])
    project = agent.cwd / "other"
    (project / ".commonplace").mkdir(parents=True)
    git("init", "-q", cwd=project)
    with Memory.open(cwd=project) as nearest:
        assert len(nearest.homes) == 2
        drain_waiting(nearest)

    assert not ingest.has_events(Home(memory.home.path))
    assert [lesson["lesson"] for lesson in kinds(memory, "lesson")] == ["in the user's home"]


def test_damaged_files_do_not_stop_it(agent: Agent, memory: Memory) -> None:
    spooled(memory, agent, ["before"])
    folder = Home(memory.home.path).spool_folder
    (folder / "00000000000000000009-1-a.json").write_bytes(b"\xff\x00{")
    (folder / "00000000000000000008-1-a.json").write_text('{"kind": "tool", "files": 3}')
    (folder / "00000000000000000007-1-a.json").write_text("[]")
    ingest.drain(memory)

    assert spool.list_names(folder) == []
    assert len(kinds(memory, "lesson")) == 1


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["intent", "tried", "error", "type", "x"]), inner, max_size=3
            )
        ),
        max_leaves=6,
    ),
    st.sampled_from(
        [
            "seen",
            "shown",
            "actions",
            "errors",
            "open",
            "files",
            "started",
            "done",
            "goal",
            "repo",
            "name",
        ]
    ),
)
def test_a_damaged_draft_is_started_over(agent: Agent, value: Any, name: str) -> None:
    session = state.load(Home(agent.memory.home.path), "s-1")
    session.fields = cast("state.Draft", {**session.fields, name: value})
    session.save()
    agent.run("make", error="error: boom")
    agent.edit("x.py")
    agent.run("make all")
    agent.tell("SessionEnd", reason="other")
    agent.tell("UserPromptSubmit", prompt="the webhook signature check fails with the raw body")

    assert not ingest.has_events(Home(agent.memory.home.path))


def test_sessions_are_pruned(agent: Agent, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "SESSIONS_MAX", 4)
    for number in range(8):
        other = Agent(memory, agent.cwd, session=f"s-{number}")
        other.run("make")
        other.tell("SessionStart", source="startup")

    assert len(list((memory.home.state_folder / "sessions").glob("*.json"))) <= 5


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_home_that_cannot_be_written_still_answers(knowing: Agent) -> None:
    home = knowing.memory.home.path
    knowing.memory.recall("webhook", repo="project")
    home.chmod(0o500)
    try:
        assert "raw body" in knowing.tell(
            "UserPromptSubmit", prompt="the stripe webhook signature verification fails"
        )
    finally:
        home.chmod(0o700)


# --- What is sent to subagents --------------------------------------------------------------------------------------


def test_dispatched_prompts_are_kept_only_if_wanted(
    configured: Callable[[str], Memory], own_home: Path, tmp_path: Path
) -> None:
    sent = {
        "subagent_type": "worker",
        "description": "tests",
        "prompt": "write the tests for the parser",
    }
    for wanted in ("false", "true"):
        with configured(f"[hooks]\ndispatches = {wanted}\n") as memory:
            Agent(memory, tmp_path, session=wanted).tell(
                "PostToolUse", tool_name="Task", tool_input=sent, tool_use_id="d"
            )
        path = own_home / ".state" / "dispatches.jsonl"
        assert path.exists() is (wanted == "true")
    assert "write the tests for the parser" in json.loads(path.read_text())["prompt"]
