"""Learnings and metrics: computed from episodes and feedback, exported for Loki, never imported."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import UsageError
from commonplace.exchange.exporter import export_layout
from commonplace.exchange.importer import import_files
from commonplace.learn import metrics
from commonplace.learn.learnings import by_day
from commonplace.memory import Memory
from commonplace.records import Episode, Feedback
from conftest import SLOW_LAW, make_repository
from test_episodes import SEED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from commonplace.records import Record

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
WORD = st.sampled_from(["", "npm", "EACCES", "chown it"])
ACTIONS = st.fixed_dictionaries(
    {"t": st.integers(0, 9), "action": st.sampled_from(["run", "edit"])},
    optional={"target": st.sampled_from(["a", "b"]), "result": st.sampled_from(["pass", "fail"])},
)
EPISODES = st.lists(
    st.builds(
        lambda number, day, **fields: {
            "kind": "episode",
            "id": f"ep-{number}",
            "timestamp": f"2026-01-{day:02}T10:00:00Z",
            "agent_id": "ana",
            "repo": "app",
            **fields,
        },
        number=st.integers(0, 99),
        day=st.integers(1, 10),
        task_id=st.sampled_from(["t-1", "t-2", "t-3"]),
        duration_seconds=st.integers(0, 500),
        outcome=st.sampled_from(["success", "failure", "unknown", ""]),
        action_log=st.lists(ACTIONS, max_size=6),
        errors_encountered=st.lists(
            st.fixed_dictionaries({"type": WORD, "message": WORD, "resolution": WORD}), max_size=3
        ),
    ),
    max_size=8,
    unique_by=lambda one: one["id"],
)


def records(found: list[dict[str, Any]]) -> list[Record]:
    return [Episode(fields) for fields in found]


# --- Laws -------------------------------------------------------------------------------------------------


@given(EPISODES)
def test_each_solved_error_is_under_its_day_with_its_episodes(found: list[dict[str, Any]]) -> None:
    days = by_day(records(found))
    listed = {
        (day["day"], *(entry[name] for name in ("type", "message", "resolution")), ident)
        for day in days
        for entry in day["learnings"]
        for ident in entry["episodes"]
    }

    assert listed == {
        (one["timestamp"][:10], error["type"], error["message"], error["resolution"], one["id"])
        for one in found
        for error in one["errors_encountered"]
        if error["resolution"]
    }
    assert [day["day"] for day in days] == sorted({day["day"] for day in days}, reverse=True)
    assert by_day(records(found[::-1])) == days


@given(EPISODES, st.integers(1, 12))
def test_days_and_tasks_add_up_to_the_whole(found: list[dict[str, Any]], days: int) -> None:
    figures = metrics.summarise_period(records(found), [], NOW, days)
    recent = [one for one in found if one["timestamp"] >= figures["since"]]

    assert figures["attempts"] == len(recent)
    assert figures["seconds"] == sum(one["duration_seconds"] for one in recent)
    for name in ("attempts", "retries", "errors", "seconds"):
        assert figures[name] == sum(day[name] for day in figures["by_day"])
        assert figures[name] == sum(task[name] for task in figures["by_task"])
    assert figures["tasks"] == len({one["task_id"] for one in recent})
    assert sum(figures["outcomes"].values()) == figures["tasks"]
    assert metrics.summarise_period(records(found[::-1]), [], NOW, days) == figures


def test_an_episode_of_another_century_is_not_of_the_last_days() -> None:
    one = {"id": "ep-1", "kind": "episode", "task_id": "t", "timestamp": "2099-01-01T00:00:00Z"}
    assert metrics.summarise_period([Episode(one)], [], NOW, 7)["attempts"] == 0


@SLOW_LAW
@given(EPISODES)
def test_an_export_is_imported_without_what_it_computed(
    tmp_path: Path, found: list[dict[str, Any]]
) -> None:
    for name in ("first", "second", "out", "again"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
    with (
        Memory.open(tmp_path / "first", clock=lambda: NOW) as first,
        Memory.open(tmp_path / "second", clock=lambda: NOW) as second,
    ):
        first.append(found)
        export_layout(first, "loki", tmp_path / "out")
        export_layout(first, "loki", tmp_path / "out")  # Nothing is there twice.
        if found:
            import_files(second, tmp_path / "out")
        kinds = Counter(record.kind for record in second.records())

        assert kinds == Counter({"episode": len(found)} if found else {})
        assert second.learnings(all_repos=True) == first.learnings(all_repos=True)
        assert second.metrics(30, all_repos=True) == first.metrics(30, all_repos=True)
        export_layout(second, "loki", tmp_path / "again")
    for name in ("learnings", "metrics"):
        one, other = (
            {
                path.name: path.read_bytes()
                for path in sorted((tmp_path / out).rglob(f"{name}/**/*.json"))
            }
            for out in ("out", "again")
        )
        assert one == other


# --- Examples ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "retries"),
    [
        ([("run_test", "", "fail"), ("edit", "a", ""), ("run_test", "", "pass")], 1),
        ([("run", "a", "fail"), ("run", "b", "pass")], 0),
        ([("run", "a", "fail"), ("run", "a", "fail"), ("run", "a", "pass")], 2),
        ([("run", "a", "pass"), ("run", "a", "pass")], 0),
        ([("run", "a", "fail"), ("run", "a", "pass"), ("run", "a", "pass")], 1),
    ],
)
def test_a_retry_is_an_action_that_failed_and_is_run_again(
    log: list[tuple[str, str, str]], retries: int
) -> None:
    actions = [
        {"action": action, **({"target": target} if target else {}), "result": result}
        for action, target, result in log
    ]
    (task,) = metrics.tasks([Episode({**SEED, "repo": "app", "action_log": actions})])

    assert (task.attempts, task.retries) == (1, retries)


def test_signals_of_a_task(memory: Memory) -> None:
    memory.record_episode(SEED)
    later = {"id": "ep-2", "outcome": "failure", "timestamp": "2026-01-07T00:00:00Z"}
    memory.record_episode({**SEED, **later})
    for outcome in ("worked", "worked", "stale"):
        memory.feedback("ep-2", outcome)
    tasks = metrics.tasks(memory.records(kind="episode"))
    (reward,) = metrics.rewards(tasks, memory.records(kind="feedback"))

    assert reward["outcome"] == 0.0
    assert reward["efficiency"] == 0.25  # Two episodes with one retry each.
    assert reward["preference"] == {"worked": 2, "stale": 1}


def test_learnings_of_a_day_and_their_episodes(commonplace: Callable[..., Any]) -> None:
    for ident, day in (("ep-a", "06"), ("ep-b", "06"), ("ep-c", "07")):
        episode = {**SEED, "id": ident, "timestamp": f"2026-01-{day}T10:30:00Z"}
        commonplace("episode", "record", "-", stdin=json.dumps(episode))
    listed = json.loads(commonplace("learnings", "--json").stdout)
    one = json.loads(commonplace("learnings", "--day", "2026-01-06", "--json").stdout)
    text = commonplace("learnings").stdout

    assert [day["day"] for day in listed] == ["2026-01-07", "2026-01-06"]
    assert one == listed[1:]
    assert one[0]["learnings"][0]["episodes"] == ["ep-a", "ep-b"]
    assert text.index("2026-01-07") < text.index("2026-01-06")
    assert "fixed by: Added explicit :void to route handler" in text
    assert commonplace("learnings", "--day", "2026-01-05").stdout == ""
    for wrong in ("yesterday", "2026-01", "2026-13-01", "7d", ""):
        done = commonplace("learnings", "--day", wrong)
        assert (done.returncode, "is not a day" in done.stderr) == (2, True)


def test_learnings_say_where_the_tasks_failed(commonplace: Callable[..., Any]) -> None:
    def record(ident: str, outcome: str) -> list[str]:
        episode = {**SEED, "id": ident, "outcome": outcome}
        commonplace("episode", "record", "-", stdin=json.dumps(episode))
        (day,) = json.loads(commonplace("learnings", "--json").stdout)
        return list(day["learnings"][0]["failed"])

    assert record("ep-a", "failure") == ["ep-a"]
    text = commonplace("learnings").stdout
    assert "noted as the fix, but the task failed: Added explicit :void" in text
    assert record("ep-b", "success") == ["ep-a"]
    assert "fixed by: Added explicit :void" in commonplace("learnings").stdout


def test_learnings_are_of_this_repository_unless_all_are_asked_for(
    memory: Memory, tmp_path: Path
) -> None:
    here = memory.beside(cwd=make_repository(tmp_path / "one"))
    other = memory.beside(cwd=make_repository(tmp_path / "two"))
    here.record_episode(SEED)

    assert other.learnings() == []
    assert other.learnings(all_repos=True) == here.learnings()
    assert other.learnings(repo="one") == here.learnings()
    with pytest.raises(UsageError):
        other.learnings(repo="one", all_repos=True)


def test_a_home_that_is_not_trusted_teaches_nothing(own_home: Path, tmp_path: Path) -> None:
    root = make_repository(tmp_path / "cloned")
    with Memory.open(root / ".commonplace", clock=lambda: NOW) as theirs:
        theirs.record_episode({**SEED, "repo": None})
    with Memory.open(own_home, clock=lambda: NOW) as mine:
        mine.log(lesson="a home of the user")
    (tmp_path / "home").mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COMMONPLACE_HOME")
        patch.setenv("HOME", str(tmp_path))
        with Memory.open(cwd=root, clock=lambda: NOW) as both:
            is_seen = any(home.path == root / ".commonplace" for home in both.homes)
            assert is_seen
            assert both.learnings(all_repos=True) == []
            assert both.metrics(30, all_repos=True)["tasks"] == 0


def test_stats_sum_up_the_last_days(commonplace: Callable[..., Any]) -> None:
    now = datetime.now(UTC)
    for number, age in enumerate((1, 3, 20)):
        at = (now - timedelta(days=age)).isoformat()
        episode = {**SEED, "id": f"ep-{number}", "task_id": f"t-{number}", "timestamp": at}
        commonplace("episode", "record", "-", stdin=json.dumps(episode))
    commonplace("feedback", "ep-0", "worked")
    week = json.loads(commonplace("stats", "--json").stdout)
    month = json.loads(commonplace("stats", "--days", "30", "--json").stdout)
    text = commonplace("stats").stdout

    assert {"records", "archived", "repos", "kinds", "types"} <= week.keys()
    figures = week["metrics"]
    assert (figures["tasks"], figures["attempts"], figures["retries"]) == (2, 2, 2)
    assert figures["seconds"] == 684
    assert figures["outcomes"] == {"success": 2}
    assert figures["feedback"]["worked"] == 1
    assert month["metrics"]["tasks"] == 3
    assert "last 7 days: 2 tasks, 2 attempts, 2 retries, 2 errors, 11 min 24 s" in text
    assert commonplace("stats", "--days", "0").returncode == 2
    assert commonplace("stats", "--savings", "--days", "3").returncode == 2


def test_the_loki_layout_has_metrics_and_leaves_those_of_others(
    memory: Memory, tmp_path: Path
) -> None:
    memory.record_episode(SEED)
    folder = tmp_path / "out" / ".loki"
    (folder / "metrics" / "efficiency").mkdir(parents=True)
    (folder / "memory" / "learnings").mkdir(parents=True)
    theirs = {"date": "2026-01-06", "note": "theirs"}
    (folder / "metrics" / "efficiency" / "2026-01-06.json").write_text(json.dumps([theirs]))
    (folder / "memory" / "learnings" / "2026-01-06.json").write_text(json.dumps([theirs]))
    (folder / "metrics" / "dashboard.json").write_text('{"theirs": true}')
    report = export_layout(memory, "loki", tmp_path / "out")

    def read(name: str) -> Any:
        return json.loads((folder / name).read_text())

    assert ".loki/metrics/dashboard.json" in report.stayed
    assert read("metrics/dashboard.json") == {"theirs": True}
    kept, task = read("metrics/efficiency/2026-01-06.json")
    assert kept == theirs
    assert (task["task_id"], task["seconds"], task["retries"]) == ("task-042", 342, 1)
    kept, learned = read("memory/learnings/2026-01-06.json")
    assert kept == theirs
    assert learned["resolution"] == "Added explicit :void to route handler"
    assert read("metrics/rewards/2026-01-06.json")[0]["outcome"] == 1.0


def test_feedback_before_the_period_is_not_counted() -> None:
    given_feedback = [
        Feedback(
            {"id": f"fb-{day}", "timestamp": f"2026-01-{day:02}T00:00:00Z", "outcome": "worked"}
        )
        for day in (1, 9)
    ]
    figures = metrics.summarise_period([], given_feedback, NOW, 7)

    assert figures["feedback"]["worked"] == 1
    assert [day["day"] for day in figures["by_day"]] == ["2026-01-09"]
