"""Saved contexts: versions of a task's frames, recalled by task, session, repository and agent."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import RecordInvalid, UsageError
from commonplace.graph.contexts import save_context
from commonplace.memory import Memory
from conftest import SLOW_LAW

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
STEPS = [{"kind": "episodic", "format": "markdown", "data": "# Steps\n- Compiled with -Wall"}]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", clock=lambda: NOW, settings=NO_VECTORS) as opened:
        yield opened


NO_VECTORS = {"embedder.kind": "none"}


def step(number: int) -> list[dict[str, Any]]:
    return [{"kind": "episodic", "format": "markdown", "data": f"step {number}"}]


def test_saving_adds_a_version_and_the_same_frames_twice_are_one(memory: Memory) -> None:
    first = memory.save_context("task-7", STEPS)
    again = memory.save_context("task-7", STEPS)
    assert first.is_new
    assert not again.is_new
    assert first.id == again.id
    other = memory.save_context("task-7", step(2))
    assert other.is_new
    assert other.id == first.id
    found = memory.recall_context("task", "task-7", 32)
    assert [one.frames for one in found] == [step(2), STEPS]
    assert len(memory.history(first.id)) == 2


@pytest.mark.parametrize(("one", "other"), [("q1", "task.q1"), ("task.q1", "q1")])
def test_a_task_is_the_same_by_both_of_its_names(memory: Memory, one: str, other: str) -> None:
    first = memory.save_context(one, step(1))
    second = memory.save_context(other, step(2))
    assert (second.id, second.task_id, second.version) == (first.id, one, 2)
    for name in (one, other):
        assert [found.frames for found in memory.recall_context("task", name)] == [step(2), step(1)]


@SLOW_LAW
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), max_size=6), st.integers(1, 5))
def test_recall_returns_the_last_k_newest_first(
    tmp_path_factory: pytest.TempPathFactory, saves: list[tuple[str, int]], k: int
) -> None:
    home = tmp_path_factory.mktemp("law") / "home"
    with Memory.open(home, clock=lambda: NOW, settings=NO_VECTORS) as memory:
        expected: dict[str, list[int]] = {"a": [], "b": []}
        for task, number in saves:
            memory.save_context(task, step(number))
            if expected[task][:1] != [number]:
                expected[task].insert(0, number)
        for task, numbers in expected.items():
            found = memory.recall_context("task", task, k)
            assert [one.frames for one in found] == [step(number) for number in numbers][:k]


def test_each_scope_has_its_own_contexts(tmp_path: Path) -> None:
    clock = iter(NOW + timedelta(seconds=number) for number in range(1000))
    with Memory.open(tmp_path / "home", clock=lambda: next(clock), settings=NO_VECTORS) as memory:
        memory.save_context("one", step(1), session="s1")
        other = memory.beside(agent_id="claude")
        other.save_context("one", step(2), session="s2")
        other.save_context("two", step(3), session="s1")

        def steps(scope: str, ident: str = "", k: int = 32) -> list[str]:
            return [one.frame("episodic") for one in memory.recall_context(scope, ident, k)]

        assert steps("session", "s1") == ["step 3", "step 1"]
        assert steps("agent", "claude") == ["step 3", "step 2"]
        assert steps("agent") == ["step 1"]
        assert steps("repo") == ["step 3", "step 2", "step 1"]
        assert steps("repo", k=2) == ["step 3", "step 2"]
        assert steps("task", "two") == ["step 3"]
        assert steps("task", "three") == []


def test_each_session_and_agent_has_its_own_save_of_the_same_frames(memory: Memory) -> None:
    memory.save_context("one", STEPS, session="s1")
    assert memory.save_context("one", STEPS, session="s2").is_new
    assert memory.beside(agent_id="claude").save_context("one", STEPS, session="s2").is_new
    assert [one.session for one in memory.recall_context("session", "s1")] == ["s1"]
    assert [one.agent_id for one in memory.recall_context("agent", "claude")] == ["claude"]


def test_the_last_contexts_of_a_session_are_found_behind_any_number_of_others(
    memory: Memory,
) -> None:
    memory.save_context("one", step(0), session="s1")
    for number in range(1, 130):
        memory.save_context("one", step(number), session="s2")
    assert [one.frame("episodic") for one in memory.recall_context("session", "s1")] == ["step 0"]
    found = memory.recall_context("session", "s2", 200)
    assert [one.frame("episodic") for one in found] == [f"step {n}" for n in range(129, 0, -1)]
    assert len(memory.recall_context("repo", k=200)) == 130
    assert len(memory.recall_context("agent", k=7)) == 7


def test_frames_may_have_the_keys_of_a_context(memory: Memory) -> None:
    saved = memory.save_context("t", {"problem": "p", "knowledgeHDoD": {"a.b": {"label": "B"}}})
    assert saved.frames == [
        {"kind": "problem", "format": "markdown", "data": "p"},
        {"kind": "knowledge", "format": "hdod.json", "data": {"a.b": {"label": "B"}}},
    ]


@pytest.mark.parametrize(
    ("task", "frames"),
    [
        ("", STEPS),
        ("t", []),
        ("t", {}),
        ("t", "text"),
        ("t", [{"data": 1}]),
        ("t", [{"kind": "problem"}]),
        ("t", ["text"]),
        ("t", {"prose": "x"}),
        ("t", [{"kind": "save", "format": "save.json", "data": {"id": "x"}}]),
        ("t", [*STEPS, {"kind": "save", "format": "save.json", "data": {"built": True}}]),
    ],
)
def test_what_is_no_frames_costs_nothing_stored(memory: Memory, task: str, frames: Any) -> None:
    with pytest.raises(RecordInvalid):
        memory.save_context(task, frames)
    assert not memory.home.path.exists()


def test_unknown_scopes_and_missing_ids_are_errors(memory: Memory) -> None:
    for scope, ident, k in (
        ("all", "x", 1),
        ("task", " ", 1),
        ("session", "", 1),
        ("task", "x", 0),
    ):
        with pytest.raises(UsageError):
            memory.recall_context(scope, ident, k)


def test_secrets_in_frames_are_redacted(memory: Memory) -> None:
    secret = "ghp_" + "abcdEFGH0123" * 3
    saved = memory.save_context("t", [{"kind": "episodic", "data": f"token {secret}"}])
    assert secret not in str(saved.frames)


def test_a_context_that_repeats_a_forgotten_or_erased_memory_is_gone(memory: Memory) -> None:
    lesson = memory.log(lesson="use the tall ladder", context="painting")
    memory.save_context("t", step(1))
    tree = {lesson.id: {"label": "use the tall ladder"}}
    built = {"problem": "paint", "knowledgeHDoD": tree}
    save_context(memory, "t", built, nodes=[lesson.id], is_built=True)
    memory.save_context("t", step(2))
    assert len(memory.recall_context("task", "t")) == 3
    memory.forget(lesson.id)
    assert [one.frames for one in memory.recall_context("task", "t")] == [step(2), step(1)]
    memory.erase(lesson.id)
    assert "tall ladder" not in "".join(
        path.read_text("utf-8") for path in memory.home.path.rglob("*.jsonl")
    )
    assert [one.frames for one in memory.recall_context("task", "t")] == [step(2), step(1)]


def test_what_a_context_repeats_is_not_found_by_recall(memory: Memory) -> None:
    save_context(memory, "t", {"problem": "overload resolution"}, is_built=True)
    assert memory.recall("overload resolution").hits == []
    memory.save_context("u", [{"kind": "episodic", "data": "overload resolution failed"}])
    assert [hit.kind for hit in memory.recall("overload resolution").hits] == ["context"]


SAVES = """
import sys
from commonplace.memory import Memory
with Memory.open(sys.argv[1], settings={"embedder.kind": "none"}) as memory:
    for number in range(15):
        memory.save_context("t", [{"kind": "episodic", "data": f"{sys.argv[2]} {number}"}])
"""


def test_processes_that_save_one_task_get_a_version_each(memory: Memory) -> None:
    names = ("one", "two", "three", "four")
    running = [
        subprocess.Popen([sys.executable, "-c", SAVES, str(memory.home.path), name])
        for name in names
    ]
    assert [process.wait(120) for process in running] == [0] * len(names)
    found = memory.recall_context("task", "t", 100)
    assert sorted(one.version for one in found) == [*range(1, 61)]
    assert {one.frame("episodic") for one in found} == {
        f"{name} {number}" for name in names for number in range(15)
    }
