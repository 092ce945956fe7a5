"""What the memory costs, and what comes of it: every text with memories is written down, nothing of its words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import cli, injections
from commonplace.injections import Injection
from commonplace.memory import Memory
from commonplace.usage import Usage
from test_sessions import Agent

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = datetime(2026, 1, 7, 12, tzinfo=UTC)

INJECTIONS = st.builds(
    injections.make,
    at=st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]),
    source=st.sampled_from(injections.SOURCES),
    tokens=st.integers(0, 10_000),
    ids=st.lists(st.text(max_size=20), max_size=5),
    task=st.text(max_size=10),
    frames=st.dictionaries(st.text(max_size=5), st.integers(0, 99), max_size=3),
    covered=st.none() | st.booleans(),
    drift=st.none() | st.floats(0, 2),
)


@given(st.lists(INJECTIONS, max_size=8))
def test_what_was_written_down_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, given_ones: Sequence[Injection]
) -> None:
    usage = Usage(tmp_path_factory.mktemp("home") / "usage.sqlite")
    for one in given_ones:
        injections.add(usage, one)
    found = injections.since(usage, "2026-01-02")
    usage.close()

    assert found == [one for one in given_ones if one.at >= "2026-01-02"]


def test_only_the_latest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injections, "KEPT_MAX", 3)
    usage = Usage(tmp_path / "usage.sqlite")
    for number in range(5):
        injections.add(usage, injections.make("2026-01-01T00:00:00Z", "recall", number, []))
    injections.trim(usage)

    assert [one.tokens for one in injections.since(usage, "")] == [2, 3, 4]
    usage.close()


def test_a_damaged_file_costs_no_answer(own_home: Path) -> None:
    for damage in (b"", b"this is no database"):
        with Memory.open(own_home) as memory:
            memory.log(repo="app", lesson="npm install needs the registry of the company")
            assert memory.recall("npm install registry", repo="app").hits
            assert memory.worth()["cost"]["injections"] in (0, 1)
            file = memory.home.usage_file
        file.write_bytes(damage)


def test_no_word_of_a_memory_or_task_is_kept(memory: Memory) -> None:
    memory.log(repo="app", lesson="the zanzibar cache must be cleared before the build")
    memory.recall("zanzibar cache", repo="app")
    memory.note_injection("brief", 5, ["les-zanzibar"], "task-zanzibar")
    memory.engine().usage.nearest.flush()  # type: ignore[union-attr]
    (row,) = memory.engine().usage.nearest.read(  # type: ignore[union-attr]
        "SELECT group_concat(source || agent || repo || task || frames || hex(ids)) FROM injection"
    )

    assert "zanzibar" not in str(row)


def test_a_session_is_followed_to_its_tests_and_feedback(memory: Memory, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    there = memory.beside(cwd=project)
    lesson = there.log(lesson="the zanzibar tests need TZ=UTC in the environment, or they fail")
    agent = Agent(memory, project)
    assert "zanzibar" in agent.tell("UserPromptSubmit", prompt="fix the zanzibar tests, TZ is odd")
    agent.run("pytest tests", error="AssertionError: wrong day")
    agent.run("TZ=UTC pytest tests")
    agent.tell("SessionEnd", reason="other")
    there.feedback(lesson.id, "worked")
    other = Agent(memory, project, session="s-2")
    other.run("make lint")
    other.tell("SessionEnd", reason="other")

    found = memory.worth()

    assert found["cost"]["by_source"]["prompt"]["injections"] == 1
    assert 0 < found["cost"]["tokens"] <= 500
    assert found["utility"]["rated"]["worked"] == 1
    assert found["utility"]["share_worked"] == 1.0
    assert found["utility"]["tests_after"] == {"passed": 1, "failed": 1}
    assert found["utility"]["tasks_with"]["tasks"] == 1
    assert found["utility"]["tasks_with"]["succeeded"] == 1
    assert found["utility"]["tasks_without"]["tasks"] == 1


def test_builds_count_and_so_does_the_session_of_a_task(memory: Memory, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    there = memory.beside(cwd=project)
    there.log(lesson="the zanzibar build needs GNU make")
    there.build_context("the zanzibar build", {"id": "t-7", "session": "s-1"})
    agent = Agent(memory, project)
    agent.edit("Makefile")
    agent.run("make", error="error: missing separator")
    agent.run("cargo build")
    agent.run("ls")
    agent.tell("SessionEnd", reason="other")

    assert memory.worth()["utility"]["tests_after"] == {"passed": 1, "failed": 1}


def test_feedback_from_before_counts_for_nothing(own_home: Path) -> None:
    clock = [NOW]
    with Memory.open(own_home, clock=lambda: clock[0]) as memory:
        lesson = memory.log(repo="app", lesson="the proxy needs a restart after a new certificate")
        memory.feedback(lesson.id, "worked")
        clock[0] += timedelta(hours=1)
        assert memory.recall("proxy certificate restart", repo="app").hits
        before = memory.worth()["utility"]["rated"]
        memory.feedback(lesson.id, "failed")
        after = memory.worth()["utility"]["rated"]
        clock[0] += timedelta(days=8)
        later = memory.worth()

    assert before == {"worked": 0, "failed": 0, "wrong": 0, "stale": 0}
    assert after == {**before, "failed": 1}
    assert later["cost"]["injections"] == 0


def test_a_task_that_ended_before_it_was_given_memories_did_without(own_home: Path) -> None:
    clock = [NOW]
    with Memory.open(own_home, clock=lambda: clock[0]) as memory:
        memory.log(repo="app", lesson="the proxy needs a restart after a new certificate")
        memory.record_episode(
            {"task_id": "t-1", "context": {"goal": "renew the certificate"}, "outcome": "success"}
        )
        clock[0] += timedelta(hours=1)
        memory.build_context("proxy certificate", {"id": "t-1"})
        early = memory.worth()["utility"]
        memory.record_episode(
            {"task_id": "t-1", "context": {"goal": "renew it again"}, "outcome": "success"}
        )
        late = memory.worth()["utility"]

    assert (early["tasks_with"]["tasks"], early["tasks_without"]["tasks"]) == (0, 1)
    assert (late["tasks_with"]["tasks"], late["tasks_without"]["tasks"]) == (1, 0)


def test_what_nobody_asked_for_and_nobody_got_is_not_counted(memory: Memory) -> None:
    memory.log(repo="app", lesson="the proxy needs a restart after a new certificate")
    memory.recall("proxy certificate", repo="app", automatic=True)
    memory.recall("penguins of the antarctic", repo="app")

    assert memory.worth()["cost"]["injections"] == 0


def test_a_context_is_counted_by_frame_with_coverage_and_drift(memory: Memory) -> None:
    memory.upsert_nodes(
        [
            {"id": "skill.cpp.raii", "type": "concept", "label": "RAII owns resources"},
            {"id": "skill.sql.index", "type": "concept", "label": "An index finds rows"},
        ]
    )
    for tags in (["cpp"], ["cobol"], []):
        built = memory.build_context("which object owns resources: RAII", {"id": "t", "tags": tags})
    found = memory.worth()

    assert found["cost"]["by_source"]["context"]["injections"] == 3
    assert found["cost"]["by_frame"]["knowledgeHDoD"] >= built.tokens["knowledgeHDoD"] > 0
    assert found["context"]["built"] == 3
    assert found["context"]["coverage"] == 0.5
    assert 0 <= found["context"]["drift"] < 1
    assert 0 < found["context"]["nodes_now"] <= found["context"]["nodes_most"]


@pytest.mark.parametrize("more", [["--repo", "app"], ["--savings"]])
def test_two_reports_at_once_are_refused(
    memory: Memory, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["stats", "--context", *more, "--home", str(memory.home.path)]) == 2
    assert "--context" in capsys.readouterr().err


def test_an_observation_says_how_a_test_went_and_is_no_task(memory: Memory) -> None:
    def step(name: str, action: str, outcome: str, task: str) -> dict[str, object]:
        payload = {"action": action, "outcome": outcome, "task_id": task}
        return {"id": f"episode.{name}", "type": "episode", "label": action, "payload": payload}

    memory.log(repo="app", lesson="the zanzibar build needs GNU make")
    memory.build_context("the zanzibar build", {"id": "t-7"})
    memory.upsert_nodes(
        [
            step("a", "run_test", "fail", "t-7"),
            step("b", "run_build", "Passed", "t-7"),
            step("c", "run_test", "pass", "t-8"),
            step("d", "edit_file", "pass", "t-7"),
        ]
    )

    found = memory.worth()["utility"]

    assert found["tests_after"] == {"passed": 1, "failed": 1}
    assert found["tasks_with"]["tasks"] == found["tasks_without"]["tasks"] == 0


def test_the_working_set_is_that_of_now(own_home: Path) -> None:
    now = [NOW]
    with Memory.open(own_home, clock=lambda: now[0]) as memory:
        memory.upsert_nodes([{"id": "fact.zanzibar", "type": "fact", "label": "zanzibar build"}])
        memory.build_context("the zanzibar build", {"id": "t-7"})
        assert memory.worth()["context"]["nodes_now"] == 1
        now[0] += timedelta(days=4)

        context = memory.worth()["context"]

    assert (context["nodes_now"], context["nodes_most"]) == (0, 1)
    assert context["mean_resonance_now"] is None


def test_the_report_in_a_terminal(memory: Memory, capsys: pytest.CaptureFixture[str]) -> None:
    memory.log(repo="app", lesson="the proxy needs a restart after a new certificate")
    memory.recall("proxy certificate restart", repo="app")
    frames = {"knowledge": 100, "problem": 20}
    memory.note_injection(
        "context", 120, [], frames=frames, covered=True, drift=0.25, nodes=12, resonance=0.5
    )
    memory.engine().usage.nearest.flush()  # type: ignore[union-attr]
    assert cli.main(["stats", "--context", "--home", str(memory.home.path)]) == 0
    told = capsys.readouterr().out

    assert "memories given 2 times" in told
    assert "frame knowledge" in told
    assert "coverage 100%, drift 0.25, working set 0 nodes (at most 12)" in told
