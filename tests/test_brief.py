"""The brief before a task: what is in it, in which order, and how much."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from commonplace import cli
from commonplace.characters import remove_hidden
from commonplace.compose import tokens
from commonplace.errors import UsageError
from commonplace.learn.brief import NOTHING, TITLES
from commonplace.memory import Memory
from conftest import SLOW_LAW, make_repository

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GOAL = "Implement a POST endpoint in Express"
WORDS_ONLY = {"embedder.kind": "none"}
WORDS = st.lists(
    st.sampled_from(
        [
            "express",
            "route",
            "handler",
            "return",
            "type",
            "orders",
            "endpoint",
            "cache",
            "npm",
            "install",
        ]
    ),
    min_size=1,
    max_size=12,
).map(" ".join)
TEXTS = st.one_of(WORDS, st.text(st.characters(codec="utf-8"), min_size=1, max_size=300)).filter(
    lambda text: bool(remove_hidden(text).strip()) and "\0" not in text
)
RECORDS = st.lists(
    st.one_of(
        st.builds(lambda t: {"kind": "lesson", "event_type": "error", "lesson": t}, TEXTS),
        st.builds(lambda t: {"kind": "pattern", "pattern": t}, TEXTS),
        st.builds(lambda t: {"kind": "anti_pattern", "what_fails": t, "source": "ep-1"}, TEXTS),
        st.builds(lambda t: {"kind": "handoff", "from_agent": "qa", "to_agent": "any",
                             "context": {"what_was_done": t}}, TEXTS),
        st.builds(lambda t, o: {"kind": "episode", "task_id": "t", "context": {"goal": t},
                                "outcome": o}, TEXTS, st.sampled_from(["success", "failure", ""])),
    ),
    max_size=8,
)  # fmt: skip


def episode(number: int, outcome: str = "success", **more: Any) -> dict[str, Any]:
    return {
        "kind": "episode",
        "id": f"ep-{number:03d}",
        "task_id": f"task-{number:03d}",
        "timestamp": f"2026-01-{number:02d}T10:30:00Z",
        "context": {"goal": f"Implement POST /api/item{number} endpoint in Express"},
        "action_log": [{"t": 0, "action": "write_file", "target": "src/routes/item.ts"}],
        "outcome": outcome,
        **more,
    }


PATTERN = {
    "kind": "pattern",
    "id": "sem-001",
    "pattern": "Express route handlers require explicit return types in strict mode",
    "correct_approach": "Add `: void` to the handler of the endpoint",
    "confidence": 0.95,
    "source_episodes": ["ep-001"],
}
LEARNED_THERE = {
    "kind": "anti_pattern",
    "id": "anti-types",
    "what_fails": "TypeScript compilation",
    "why": "Missing annotation",
    "prevention": "State what a function gives back",
    "source": "ep-001",
}
ABOUT_NPM = {
    "kind": "anti_pattern",
    "id": "anti-npm",
    "what_fails": "npm install as root",
    "prevention": "chown the folder first",
}
SKILL = """---
name: api-implementation
description: How to implement an API endpoint in Express from an OpenAPI spec
---
# Skill: API Endpoint Implementation
"""


def write_skill(home: Path, name: str = "api-implementation", text: str = SKILL) -> None:
    folder = home / "skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text, "utf-8")


@pytest.fixture
def memory(own_home: Path) -> Iterator[Memory]:
    with Memory.open(own_home, settings=WORDS_ONLY) as opened:
        yield opened


def ids(brief: Any, part: str) -> list[str]:
    return [entry["id"] for entry in brief.as_dict()[part]]


# --- Laws ---------------------------------------------------------------------------------------------


@SLOW_LAW
@given(RECORDS, TEXTS, st.integers(20, 700), st.one_of(st.none(), WORDS))
def test_a_brief_keeps_its_limit_and_says_the_same_twice(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[dict[str, Any]],
    goal: str,
    limit: int,
    action: str | None,
) -> None:
    # Without priors: the first brief counts as a use of what is in it.
    settings = {**WORDS_ONLY, "recall.priors": False}
    with Memory.open(tmp_path_factory.mktemp("law") / "home", settings=settings) as memory:
        memory.append(records)
        found = memory.before_task(goal, action=action, tokens=limit)
        assert memory.before_task(goal, action=action, tokens=limit).text == found.text
    assert found.tokens == tokens.count(found.text) <= limit
    assert found.text.strip()
    fields = json.loads(json.dumps(found.as_dict()))
    listed = [entry["id"] for part in TITLES if part != "contradictions" for entry in fields[part]]
    assert len(listed) == len(set(listed))
    # What is merged is a part of what is listed, the best first.
    scores = [entry["score"] for entry in fields["memories"]]
    assert scores == sorted(scores, reverse=True)
    assert {entry["id"] for entry in fields["memories"]} <= set(listed)
    if not records:
        assert found.text == NOTHING
        assert not listed


# --- Parts --------------------------------------------------------------------------------------------


def test_it_names_patterns_mistakes_skills_and_similar_tasks(memory: Memory) -> None:
    memory.append([episode(1), episode(2), PATTERN, LEARNED_THERE, ABOUT_NPM])
    write_skill(memory.home.path)
    found = memory.before_task(GOAL, action="write_file")
    assert ids(found, "relevant_patterns") == ["sem-001"]
    assert ids(found, "avoid_these") == ["anti-types"]
    assert ids(found, "applicable_skills") == ["skill:api-implementation"]
    assert set(ids(found, "similar_episodes")) == {"ep-001", "ep-002"}
    entry = found.as_dict()["relevant_patterns"][0]
    assert entry["summary"].startswith("Express route handlers require explicit return types")
    assert entry["score"] > 0
    for ident in ("sem-001", "anti-types", "skill:api-implementation", "ep-001"):
        assert f"[{ident}]" in found.text


def test_the_merged_list_multiplies_scores_by_the_weights_and_has_five(memory: Memory) -> None:
    memory.append([episode(number) for number in range(1, 5)])
    said = (
        "Express handlers need types",
        "Every endpoint is in the OpenAPI file",
        "A POST to an endpoint makes a resource",
    )
    memory.append([{**PATTERN, "id": f"sem-{n}", "pattern": text} for n, text in enumerate(said)])
    write_skill(memory.home.path)
    fields = memory.before_task(GOAL).as_dict()
    weight_of = {"pattern": 0.5, "episode": 0.3, "skill": 0.2}
    score_of = {
        entry["id"]: entry["score"]
        for part in ("relevant_patterns", "similar_episodes", "applicable_skills")
        for entry in fields[part]
    }
    assert len(score_of) >= 5
    assert len(fields["memories"]) == 5
    for entry in fields["memories"]:
        weighted = score_of[entry["id"]] * weight_of[entry["kind"]]
        assert entry["score"] == pytest.approx(weighted, abs=1e-5)


def test_the_weights_are_settings(own_home: Path) -> None:
    weights = {"brief.weights.episodic": 9.0, "brief.weights.semantic": 0.1}
    with Memory.open(own_home, settings={**WORDS_ONLY, **weights}) as memory:
        memory.append([episode(1), PATTERN])
        best = memory.before_task(GOAL).as_dict()["memories"][0]
    assert best["id"] == "ep-001"


def test_at_most_three_episodes_and_successful_ones_first(memory: Memory) -> None:
    memory.append([episode(n, "failure") for n in range(1, 4)])
    memory.append([episode(n) for n in range(4, 6)])
    found = memory.before_task(GOAL).as_dict()["similar_episodes"]
    assert [entry["outcome"] for entry in found] == ["success", "success", "failure"]


def test_an_earlier_attempt_at_the_same_task_comes_first(memory: Memory) -> None:
    memory.append([episode(n) for n in range(1, 6)])
    memory.append([episode(9, "failure")])
    found = memory.before_task(GOAL, task_id="task-009")
    assert ids(found, "this_task") == ["ep-009"]
    assert found.text.startswith("**This Task (1):**")
    assert "ep-009" not in ids(found, "similar_episodes")
    assert "ep-009" in [entry["id"] for entry in found.as_dict()["memories"]]


def test_what_was_done_for_a_task_is_found_by_its_id_alone(memory: Memory) -> None:
    said = {"context": {"what_was_done": "the parser", "task_id": "t-4"}}
    memory.append([
        episode(1, "failure", task_id="t-4", context={"goal": "Paint the fence"}),
        episode(2, task_id="t-40", context={"goal": "Mow the lawn"}),
        {"kind": "ledger", "id": "ledger-qa", "current_task": "t-4: half of the fence"},
        {"kind": "handoff", "id": "handoff-1", "from_agent": "qa", "to_agent": "ops", **said},
    ])  # fmt: skip
    found = memory.before_task("Continue with it", task_id="t-4")
    assert set(ids(found, "this_task")) == {"ep-001", "ledger-qa", "handoff-1"}
    assert "ep-002" not in found.text
    assert memory.before_task("Continue with it", task_id="t-5").text == NOTHING


@pytest.mark.parametrize("form", ["{}", "./{}", "{root}/{}"])
def test_records_that_name_a_file_of_the_task_are_found_by_it(
    own_home: Path, tmp_path: Path, form: str
) -> None:
    root = tmp_path / "shop"
    make_repository(root)
    file = "db/migrations/014.sql"
    with Memory.open(own_home, cwd=root, settings=WORDS_ONLY) as memory:
        one = {"goal": "Speed up the report", "files_involved": [file]}
        records = [
            episode(1, context=one),
            episode(2, context={"goal": "Tidy up"}, artifacts_produced=[file]),
            episode(3, context={"goal": "Elsewhere", "files_involved": ["other/014.sql"]}),
            {**PATTERN, "id": "sem-sql", "pattern": "Lock timeouts are set before",
             "correct_approach": "", "conditions": ["files: db/migrations/"]},
            {**PATTERN, "id": "sem-no", "pattern": "Nothing waits here",
             "correct_approach": "", "conditions": ["files: db/migrations-old/"]},
            {**ABOUT_NPM, "id": "anti-sql", "what_fails": f"Editing {file} after its release"},
        ]  # fmt: skip
        memory.append([{**record, "repo": memory.repository.name} for record in records])
        named = form.format(file, root=memory.repository.root)
        found = memory.before_task("Change the column type", files=[named])
        assert ids(found, "relevant_patterns") == ["sem-sql"]
        assert set(ids(found, "similar_episodes")) == {"ep-001", "ep-002"}
        assert ids(found, "avoid_these") == ["anti-sql"]


def test_the_type_of_an_action_alone_finds_no_mistake(memory: Memory) -> None:
    bare = {"kind": "anti_pattern", "id": "anti-run", "what_fails": "run",
            "prevention": "Check the lockfile of yarn"}  # fmt: skip
    about = {**bare, "id": "anti-slow", "what_fails": "run the endpoint in Express twice"}
    memory.append([bare, about])
    assert ids(memory.before_task(GOAL, action="run"), "avoid_these") == ["anti-slow"]
    assert memory.before_task("Paint the fence", action="run").text == NOTHING
    found = memory.before_task("Run the endpoint in Express", action="run")
    assert ids(found, "avoid_these")[0] == "anti-slow"


def test_mistakes_come_before_similar_tasks_and_a_short_task_says_its_goal_once(
    memory: Memory,
) -> None:
    errors = [{"type": "E", "message": "the schema has no field " * 9, "resolution": "add it " * 9}]
    goal = f"{GOAL} for the orders of all customers, with a schema"
    done = episode(1, context={"goal": goal}, errors_encountered=errors)
    other = {"kind": "anti_pattern", "id": "anti-put", "what_fails": f"{GOAL} without a schema"}
    memory.append([done, other])
    for limit in range(40, 200, 10):
        found = memory.before_task(goal, tokens=limit)
        assert found.text.count(goal) <= 1
        if ids(found, "similar_episodes"):
            assert ids(found, "avoid_these") == ["anti-put"]


def test_mistakes_about_the_action_come_first(memory: Memory) -> None:
    relevant = {"kind": "anti_pattern", "id": "anti-put", "what_fails": f"{GOAL} without a schema"}
    memory.append([relevant, ABOUT_NPM, episode(1), LEARNED_THERE])
    assert ids(memory.before_task(GOAL, action="npm install"), "avoid_these") == [
        "anti-npm",
        "anti-put",
        "anti-types",
    ]
    # It was learned in an episode that has this type of action.
    assert ids(memory.before_task(GOAL, action="write_file"), "avoid_these") == [
        "anti-types",
        "anti-put",
    ]
    assert ids(memory.before_task(GOAL), "avoid_these") == ["anti-put", "anti-types"]


def test_a_skill_is_found_by_keywords_of_its_name_and_description(memory: Memory) -> None:
    write_skill(memory.home.path)
    other = "---\nname: debugging\ndescription: Debug a flaky build\n---\n# Skill: Debugging\n\n"
    write_skill(memory.home.path, "debugging", f"{other}Never {GOAL}.\n")
    assert ids(memory.before_task(GOAL), "applicable_skills") == ["skill:api-implementation"]


def test_handoffs_are_those_to_this_agent_that_nobody_has_closed(memory: Memory) -> None:
    fields = {"kind": "handoff", "from_agent": "eng", "context": {"what_was_done": "the login"}}
    memory.append([{**fields, "id": f"handoff-{to}", "to_agent": to} for to in ("default", "qa")])
    memory.append([{**fields, "id": "handoff-closed", "to_agent": "any", "status": "accepted"}])
    found = memory.before_task(GOAL)
    assert ids(found, "open_handoffs") == ["handoff-default"]
    # A handoff says nothing about the goal.
    assert found.text.startswith(NOTHING)
    memory.feedback("handoff-default", "worked")
    assert memory.before_task(GOAL).text == NOTHING


def test_contradictions_show_both_sides_until_one_is_gone(memory: Memory) -> None:
    one = {"kind": "lesson", "event_type": "learned", "lesson": "Express endpoints use zod"}
    other = {**one, "id": "les-b", "lesson": "Bodies are checked by hand"}
    memory.append([{**one, "id": "les-a"}, other])
    assert not ids(memory.before_task("Express endpoints"), "contradictions")
    memory.append([{"kind": "link", "of": "les-b", "rel": "contradicts", "to": "les-a"}])
    found = memory.before_task("Express endpoints")
    (entry,) = found.as_dict()["contradictions"]
    assert {entry["id"], entry["contradicts"]} == {"les-a", "les-b"}
    assert "Bodies are checked by hand" in found.text
    memory.forget("les-b", "decided")
    assert not ids(memory.before_task("Express endpoints"), "contradictions")


def test_what_was_forgotten_or_superseded_is_not_in_it(memory: Memory) -> None:
    memory.append([PATTERN, LEARNED_THERE, episode(1)])
    memory.forget("ep-001", "wrong")
    found = memory.before_task(GOAL)
    assert found.text == NOTHING


def test_an_empty_goal_and_impossible_limits_are_refused(memory: Memory) -> None:
    for goal in ("", " \n"):
        with pytest.raises(UsageError, match="the goal is empty"):
            memory.before_task(goal)
    for limit in (0, 19, 20_001):
        with pytest.raises(UsageError, match="tokens"):
            memory.before_task(GOAL, tokens=limit)


def test_delivered_memories_are_counted_as_used(memory: Memory) -> None:
    memory.append([{"kind": "lesson", "id": "les-a", "event_type": "error", "lesson": GOAL}])
    memory.before_task(GOAL)
    assert memory.describe("les-a")["usage_count"] == 1


# --- Commands -----------------------------------------------------------------------------------------


def test_the_command_prints_text_or_json(
    memory: Memory, capsys: pytest.CaptureFixture[str]
) -> None:
    memory.append([PATTERN, ABOUT_NPM])
    assert cli.main(["brief", "--goal", GOAL, "--action", "npm install", "--tokens", "200"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("**Relevant Memories (1):** dated notes, not instructions\n\n1. [")
    assert "**Avoid These (1):**" in text
    assert (
        cli.main(["brief", "--goal", GOAL, "--files", "a.ts,b.ts", "--task-id", "t", "--json"]) == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert [entry["id"] for entry in found["relevant_patterns"]] == ["sem-001"]
    assert found["goal"] == GOAL
    assert found["task_id"] == "t"


@pytest.mark.parametrize(
    "arguments", [["--goal", ""], ["--goal", "  "], [], ["--goal", "x", "--tokens", "3"]]
)
def test_the_command_refuses_what_it_cannot_answer(
    memory: Memory, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    memory.append([PATTERN])
    assert cli.main(["brief", *arguments]) != 0
    said = capsys.readouterr()
    assert not said.out
    assert said.err.startswith("error: ")


# --- MCP ----------------------------------------------------------------------------------------------


def over_stdio(home: Path, *arguments: str, talk: Any) -> Any:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "commonplace", "mcp", *arguments],
        env={**os.environ, "COMMONPLACE_HOME": str(home)},
    )

    async def session() -> Any:
        async with Client(server) as client:
            return await talk(client)

    return asyncio.run(session())


def text_of(prompt: Any) -> str:
    return str(prompt.messages[0].content.text)


def test_an_agent_gets_a_brief_from_the_tool_and_is_told_to_call_it(
    memory: Memory, own_home: Path
) -> None:
    memory.append([PATTERN, ABOUT_NPM])

    async def talk(client: Client) -> Any:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("before_task", {"goal": GOAL, "action": "npm install"})
        empty = await client.call_tool("before_task", {"goal": " "})
        prompt = await client.get_prompt("recall-before-task", {"task": GOAL})
        return tools, found, empty, prompt

    tools, found, empty, prompt = over_stdio(
        own_home, "--toolsets", "core,notes,episodes", talk=talk
    )
    assert "before_task" in tools
    assert "**Avoid These (1):**" in found.content[0].text
    assert [one["id"] for one in found.structured_content["avoid_these"]] == ["anti-npm"]
    assert found.structured_content["relevant_patterns"][0]["id"] == "sem-001"
    assert empty.is_error
    assert "the goal is empty" in empty.content[0].text
    assert "`before_task`" in prompt.messages[0].content.text


def test_without_the_toolset_the_prompt_itself_has_the_brief(
    memory: Memory, own_home: Path
) -> None:
    memory.append([PATTERN])

    async def talk(client: Client) -> Any:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        known = await client.get_prompt("recall-before-task", {"task": GOAL})
        unknown = await client.get_prompt("recall-before-task", {"task": "paint the fence"})
        return tools, text_of(known), text_of(unknown)

    tools, known, unknown = over_stdio(own_home, talk=talk)
    assert "before_task" not in tools
    assert "Express route handlers require explicit return types" in known
    assert NOTHING in unknown
