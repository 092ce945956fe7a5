"""Episodes are linked with what they involve: nodes they name, records they were given or rated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.graph import observations
from commonplace.learn.drafts import Note
from commonplace.maintenance import runner
from commonplace.memory import Memory
from conftest import SLOW_LAW
from test_sessions import Agent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NODES = [
    {"id": "skill.cpp.raii", "type": "skill", "label": "RAII"},
    {"id": "pattern.cpp.enable_if", "type": "pattern", "label": "enable_if idiom"},
    {"id": "concept.tests", "type": "concept", "label": "test"},
    {"id": "src/app.py", "type": "snippet", "label": "The entry point"},
    {"id": "persona.grump", "type": "persona", "label": "Grump Bot"},
    {"id": "task-7", "type": "task", "label": "Descaling"},
    {"id": "task.q1", "type": "task", "label": "The first quarter"},
]


@pytest.fixture
def memory(own_home: Path) -> Iterator[Memory]:
    with Memory.open(own_home, settings={"embedder.kind": "none"}) as found:
        found.upsert_nodes(NODES)
        yield found


def links_of(memory: Memory, ident: str) -> dict[str, tuple[str, float]]:
    return {link.to: (link.rel, link.w) for link in memory.links(ident)}


def step(memory: Memory) -> dict[str, Any]:
    return runner.run(memory, ["observations"]).steps["observations"]


def episode(**fields: Any) -> dict[str, Any]:
    return {"task_id": "t-1", "context": {"goal": "brew tea"}, "outcome": "success", **fields}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"context": {"goal": "make RAII wrappers"}}, {"skill.cpp.raii": ("uses", 0.5)}),
        ({"context": {"goal": "make raii wrappers"}}, {}),
        ({"context": {"goal": "make RAIIs"}}, {}),
        ({"context": {"goal": "run the test as Grump Bot"}}, {}),
        (
            {"action_log": [{"action": "edit_file", "target": "apply skill.cpp.raii, then test"}]},
            {"skill.cpp.raii": ("uses", 0.8)},
        ),
        (
            {"errors_encountered": [{"message": "the Enable_if \n idiom fails"}]},
            {"pattern.cpp.enable_if": ("uses", 0.5)},
        ),
        (
            {"context": {"goal": "x", "files_involved": ["src/app.py", "src/other.py"]}},
            {"src/app.py": ("related_to", 0.8)},
        ),
        ({"artifacts_produced": ["src/app.py"]}, {"src/app.py": ("related_to", 0.8)}),
        ({"task_id": "task-7"}, {"task-7": ("related_to", 0.8)}),
        ({"task_id": "q1"}, {"task.q1": ("related_to", 0.8)}),
        ({"context": {"goal": "as in task-7, but warmer"}}, {}),
    ],
)
def test_an_episode_is_linked_with_the_nodes_that_it_names(
    memory: Memory, fields: dict[str, Any], expected: dict[str, tuple[str, float]]
) -> None:
    written = memory.record_episode(episode(**fields))
    assert links_of(memory, written.id) == expected
    assert observations.link_new(memory) == 0  # There is nothing left to link.


def test_links_that_were_given_stay(memory: Memory) -> None:
    given_link = {"to": "skill.cpp.raii", "rel": "derived_from", "w": 0.1}
    written = memory.record_episode(episode(context={"goal": "RAII"}, links=[given_link]))
    assert written.fields["links"] == [given_link]


def test_an_episode_that_is_told_step_by_step_is_linked_when_it_ends(memory: Memory) -> None:
    memory.start_episode("wrap the socket with RAII")
    memory.note_episode(Note("", "edit_file", "src/app.py", files=("src/app.py",)))
    written = memory.end_episode("success")
    assert links_of(memory, written.id).keys() == {"skill.cpp.raii", "src/app.py"}


def test_a_session_is_linked_with_what_it_was_given_rated_and_named(
    memory: Memory, tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    agent = Agent(memory, tmp_path / "project")
    here = memory.beside(cwd=agent.cwd).repository.name
    used, given_only = (
        memory.log(lesson=f"the kettle leaks when the {part} is loose", repo=here)
        for part in ("lid", "cable")
    )
    agent.tell("SessionStart", source="startup")
    agent.tell("UserPromptSubmit", prompt="why does the kettle leak, is RAII of any help?")
    agent.run(f"commonplace feedback {used.id[:-4]} worked")
    agent.run("make kettle")
    agent.tell("SessionEnd", reason="other")
    (written,) = memory.records(kind="episode")
    own = {link["to"]: (link["rel"], link["w"]) for link in written.fields["links"]}
    assert own == {used.id: ("uses", 1.0), given_only.id: ("related_to", 0.5)}
    # Concepts are looked up later: no hook waits for that.
    assert step(memory) == {"links": 1}
    assert links_of(memory, written.id) == {**own, "skill.cpp.raii": ("uses", 0.5)}
    assert step(memory) == {"links": 0}


def test_what_the_same_agent_rates_meanwhile_was_used(memory: Memory) -> None:
    lesson, other = (memory.log(lesson=f"use npm ci {n}") for n in range(2))
    memory.feedback(lesson.id, "worked")
    memory.beside(agent_id="somebody-else").feedback(other.id, "worked")
    started = memory.get(lesson.id).timestamp
    written = memory.record_episode(episode(timestamp=started, duration_seconds=3600))
    memory.record_episode(episode(task_id="t-2", timestamp="2020-01-01T00:00:00Z"))
    assert observations.link_new(memory, dry_run=True) == 1
    assert observations.link_new(memory) == 1
    assert links_of(memory, written.id) == {lesson.id: ("uses", 1.0)}


texts = st.text(st.sampled_from("RAIIenable_f dom.\n("), max_size=40)


@SLOW_LAW
@given(st.lists(st.fixed_dictionaries({"target": texts, "error": texts}), max_size=5), texts)
def test_links_are_few_lead_somewhere_and_are_written_once(
    tmp_path_factory: pytest.TempPathFactory, actions: list[dict[str, str]], goal: str
) -> None:
    home = tmp_path_factory.mktemp("home")
    with Memory.open(home, settings={"embedder.kind": "none"}) as memory:
        memory.upsert_nodes([*NODES, *({**NODES[0], "id": f"a.b{n}"} for n in range(12))])
        fields = {"kind": "episode", **episode(context={"goal": goal}, action_log=actions)}
        memory.append([fields])
        assert observations.link_new(memory) <= observations.LINKS_MAX
        (written,) = memory.records(kind="episode")
        known = {node["id"] for node in NODES} | {f"a.b{n}" for n in range(12)}
        assert links_of(memory, written.id).keys() <= known
        memory.home.observations_mark.unlink()
        assert observations.link_new(memory) == 0
