"""Metrics: time, attempts and retries of each task, outcomes and feedback, over some days.

A task is all episodes with one `task_id` in one repository. An attempt is an episode. A retry is an
action that failed and was run again in the same episode.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.records import OUTCOMES, Episode, to_utc
from commonplace.records.episodes import actions_of, errors_of, goal_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from commonplace.recaller import Recaller
    from commonplace.records import Record

DAYS = 7
# A record may be a little later than our clock says; one of another year has a wrong date.
CLOCKS_APART_MAX = timedelta(days=1)
DAYS_MAX = 3650
# What an outcome is worth, as a share of success; of any other word nothing is known.
OUTCOME_WORTH = {"success": 1.0, "partial": 0.5, "failure": 0.0}


class Task(NamedTuple):
    """What one task took."""

    task_id: str
    repo: str
    goal: str
    outcome: str  # That of its last episode.
    first: str
    last: str
    seconds: float
    attempts: int
    retries: int
    errors: int
    agents: list[str]
    episodes: list[str]

    @property
    def day(self) -> str:
        """The day of its last episode."""
        return self.last[:10]


def metrics(
    memory: Recaller, days: int = DAYS, *, repo: str | None = None, all_repos: bool = False
) -> dict[str, Any]:
    """Return the metrics of the last *days*, of all trusted homes."""
    now = memory._clock()  # noqa: SLF001 (the clock of the memory is the only one)
    episodes, feedback = (
        memory.select_everywhere(
            kinds=[kind],
            nodes=False,
            repo=repo,
            all_repos=all_repos,
            since=to_utc(now - timedelta(days=days)),
            archived=True,
            automatic=True,
        )
        for kind in ("episode", "feedback")
    )
    return summarise_period(episodes, feedback, now, days)


def summarise_period(
    episodes: Iterable[Record], feedback: Iterable[Record], now: datetime, days: int = DAYS
) -> dict[str, Any]:
    """Return the metrics of the *days* before *now*, whole and by day, the newest first."""
    since, until = to_utc(now - timedelta(days=days)), to_utc(now + CLOCKS_APART_MAX)
    recent = [one for one in episodes if since <= one.timestamp <= until]
    rated = [one for one in feedback if since <= one.timestamp <= until]
    found = tasks(recent)
    dates = {one.timestamp[:10] for one in (*recent, *rated)}
    return {
        "days": days,
        "since": since,
        "until": to_utc(now),
        **_totals(found, rated),
        "by_day": [
            {
                "day": day,
                **_totals(
                    tasks(one for one in recent if one.timestamp.startswith(day)),
                    [one for one in rated if one.timestamp.startswith(day)],
                ),
            }
            for day in sorted(dates, reverse=True)
        ],
        "by_task": [task._asdict() for task in found],
    }


def tasks(episodes: Iterable[Record]) -> list[Task]:
    """Return what each task took, the latest first."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for one in sorted(episodes, key=lambda one: (one.timestamp, one.id)):
        task_id = one.fields.get("task_id")
        key = task_id if isinstance(task_id, str) else one.id
        groups.setdefault((one.repo, key), []).append(one)
    found = [_task(task_id, repo, group) for (repo, task_id), group in groups.items()]
    return sorted(found, key=lambda task: (task.last, task.task_id), reverse=True)


def rewards(found: Iterable[Task], feedback: Iterable[Record]) -> list[dict[str, Any]]:
    """Return each task's signals: its outcome, its efficiency, and what agents said of it."""
    given: dict[str, Counter[str]] = {}
    for one in feedback:
        given.setdefault(str(one.fields.get("of")), Counter())[str(one.fields["outcome"])] += 1
    return [
        {
            "task_id": task.task_id,
            "repo": task.repo,
            "timestamp": task.last,
            "outcome": OUTCOME_WORTH.get(task.outcome),
            "efficiency": round(1 / (task.attempts + task.retries), 4),
            "preference": dict(sum((given.get(i, Counter()) for i in task.episodes), Counter())),
        }
        for task in found
    ]


def _task(task_id: str, repo: str, episodes: Sequence[Record]) -> Task:
    last = episodes[-1]
    return Task(
        task_id=task_id,
        repo=repo,
        goal=next((goal for one in reversed(episodes) if (goal := goal_of(one))), ""),
        outcome=_outcome(last),
        first=episodes[0].timestamp,
        last=last.timestamp,
        seconds=sum(_seconds(one) for one in episodes),
        attempts=len(episodes),
        retries=sum(retries_of(one) for one in episodes),
        errors=sum(len(errors_of(one)) for one in episodes),
        agents=sorted({one.agent_id for one in episodes if one.agent_id}),
        episodes=[one.id for one in episodes],
    )


def _totals(found: Sequence[Task], feedback: Sequence[Record]) -> dict[str, Any]:
    outcomes = Counter(task.outcome for task in found)
    given = Counter(one.fields.get("outcome") for one in feedback)
    return {
        "tasks": len(found),
        "attempts": sum(task.attempts for task in found),
        "retries": sum(task.retries for task in found),
        "errors": sum(task.errors for task in found),
        "seconds": sum(task.seconds for task in found),
        "outcomes": dict(sorted(outcomes.items())),
        "feedback": {outcome: given[outcome] for outcome in OUTCOMES},
    }


def _outcome(episode: Record) -> str:
    outcome = episode.fields.get("outcome")
    return outcome if isinstance(outcome, str) and outcome else "unknown"


def _seconds(episode: Record) -> float:
    seconds = episode.duration_seconds if isinstance(episode, Episode) else 0
    return max(seconds, 0)


def retries_of(episode: Record) -> int:
    """Return how many actions were run again after they had failed."""
    counted = episode.meta.get("retries")
    if isinstance(counted, int) and not episode.fields.get("action_log"):
        return counted  # It was summarized.
    failed: set[tuple[str, str]] = set()
    count = 0
    for action in actions_of(episode):
        key = (str(action.get("action")), str(action.get("target", "")))
        count += key in failed
        failed.discard(key)
        if action.get("result") == "fail":
            failed.add(key)
    return count
