"""What the memory cost in the last days, and what came of it.

The cost is the tokens of all texts with memories that agents were given. What came of it: feedback
about one of those memories afterwards, and the tests and builds of the same task or session
afterwards. Tasks with and without memories are shown beside each other; that they differ need not
be because of them. A task is one with episodes: an observation of a single step (a node of the type
`episode`) says what a test gave, and nothing about how a task ended.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace import injections
from commonplace.graph import resonance
from commonplace.learn.metrics import DAYS, tasks
from commonplace.records import OUTCOMES, Episode, Node, micros, to_utc
from commonplace.records.episodes import actions_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commonplace.injections import Injection
    from commonplace.learn.metrics import Task
    from commonplace.recaller import Recaller
    from commonplace.records import Record

DEFINITIONS = {
    "coverage": "contexts with a node of the task's domain, as a share of those with domain tags",
    "drift": "mean distance (1 - cosine) from the question to the three best knowledge nodes",
    "rated": "feedback on a memory after an agent was given it in these days",
    "tests_after": "test and build runs in a task or session after it was given memories",
}
CHECK_RUNS = ("run_test", "run_build")
# The outcomes of an observation that say how a test or build went.
_PASSED = frozenset(["pass", "passed", "success", "succeeded", "ok", "green"])
_FAILED = frozenset(["fail", "failed", "failure", "error", "red"])
# Both times are rounded to whole seconds.
_ROUNDED_S = 1


class _Run(NamedTuple):
    """A test or build run: the task or session, when, and how it went."""

    task: str
    micros: int
    result: str


def worth(memory: Recaller, days: int = DAYS) -> dict[str, Any]:
    """Return the cost of the last *days* and what followed, of all trusted homes."""
    since = to_utc(memory.now() - timedelta(days=days))
    given = _given(memory, since)
    episodes, feedback = (
        list(
            memory.select_everywhere(
                kinds=[kind], all_repos=True, since=since, archived=True, automatic=True
            )
        )
        for kind in ("episode", "feedback")
    )
    return {
        "days": days,
        "since": since,
        "cost": _cost(given),
        "context": _context([one for one in given if one.source == "context"], memory),
        "utility": _utility(given, episodes, feedback),
        "definitions": DEFINITIONS,
    }


def _given(memory: Recaller, since: str) -> list[Injection]:
    usage = memory.engine().usage.nearest
    return injections.since(usage, since) if usage is not None else []


def _cost(given: Sequence[Injection]) -> dict[str, Any]:
    times, tokens, frames = Counter[str](), Counter[str](), Counter[str]()
    for one in given:
        times[one.source] += 1
        tokens[one.source] += one.tokens
        frames.update(one.frames)
    return {
        "injections": len(given),
        "tokens": sum(tokens.values()),
        "by_source": {
            source: {"injections": times[source], "tokens": tokens[source]}
            for source in injections.SOURCES
            if times[source]
        },
        "by_frame": dict(frames),
    }


def _context(built: Sequence[Injection], memory: Recaller) -> dict[str, Any]:
    working = resonance.read(memory)
    covered = [one.covered for one in built if one.covered is not None]
    drifts = [one.drift for one in built if one.drift is not None]
    return {
        "built": len(built),
        "coverage": _mean(covered),
        "drift": _mean(drifts),
        "nodes_now": len(working.rows),
        "nodes_most": max((one.nodes for one in built), default=0),
        "mean_resonance_now": round(working.mean_value(), 4) if working.rows else None,
    }


def _utility(
    given: Sequence[Injection], traces: Sequence[Record], feedback: Sequence[Record]
) -> dict[str, Any]:
    episodes = [one for one in traces if isinstance(one, Episode)]
    first_by_task: dict[str, str] = {}
    first_by_id: dict[int, str] = {}
    for one in given:
        for task in one.task.split():
            first_by_task.setdefault(task, one.at)
        for ident in one.ids:
            first_by_id.setdefault(ident, one.at)
    rated = Counter(
        str(one.fields.get("outcome")) for one in feedback if _is_after(one, first_by_id)
    )
    judged = rated["worked"] + rated["failed"] + rated["wrong"] + rated["stale"]
    is_given = {one.id: _was_given(one, first_by_task) for one in episodes}
    found = tasks(episodes)
    return {
        "rated": {outcome: rated[outcome] for outcome in OUTCOMES},
        "share_worked": round(rated["worked"] / judged, 4) if judged else None,
        "tests_after": _tests_after(traces, first_by_task),
        "tasks_with": _work([one for one in found if is_given[one.episodes[-1]]]),
        "tasks_without": _work([one for one in found if not is_given[one.episodes[-1]]]),
    }


def _was_given(episode: Record, first: dict[str, str]) -> bool:
    """Whether an agent was given a memory for the task before the episode ended."""
    at = first.get(injections.hash_of_task(str(episode.fields.get("task_id"))))
    times = [_seconds(action.get("t")) for action in actions_of(episode)]
    lasted_s = max([_seconds(episode.fields.get("duration_seconds")), *times])
    return at is not None and _seconds_after(episode, at) <= lasted_s + _ROUNDED_S


def _seconds_after(episode: Record, at: str) -> float:
    return (micros(at) - micros(episode.timestamp)) / 1e6


def _is_after(feedback: Record, first: dict[int, str]) -> bool:
    """Whether an agent was given the memory before it rated it."""
    (ident,) = injections.hashes([str(feedback.fields.get("of"))])
    return ident in first and first[ident] <= feedback.timestamp


def _tests_after(traces: Iterable[Record], first: dict[str, str]) -> dict[str, int]:
    runs = [run for one in traces for run in _runs(one)]
    results = Counter(
        run.result
        for run in runs
        if (at := first.get(injections.hash_of_task(run.task))) is not None
        and run.micros >= micros(at) - _ROUNDED_S * 1_000_000
    )
    return {"passed": results["pass"], "failed": results["fail"]}


def _runs(trace: Record) -> Iterator[_Run]:
    """Yield the test and build runs of an episode, or the one that a node tells of."""
    start = micros(trace.timestamp)
    if not isinstance(trace, Node):
        for action in actions_of(trace):
            if action.get("action") in CHECK_RUNS:
                at = start + round(_seconds(action.get("t")) * 1_000_000)
                yield _Run(str(trace.fields.get("task_id")), at, str(action.get("result")))
        return
    said = trace.payload if isinstance(trace.payload, dict) else {}
    if said.get("action") in CHECK_RUNS:
        outcome = str(said.get("outcome")).strip().lower()
        result = "pass" if outcome in _PASSED else "fail" if outcome in _FAILED else ""
        yield _Run(str(said.get("task_id")), start, result)


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _work(found: Sequence[Task]) -> dict[str, Any]:
    count = len(found)
    return {
        "tasks": count,
        "succeeded": sum(one.outcome == "success" for one in found),
        "failed": sum(one.outcome == "failure" for one in found),
        "retries_a_task": round(sum(one.retries for one in found) / count, 2) if count else None,
        "errors_a_task": round(sum(one.errors for one in found) / count, 2) if count else None,
    }


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None
