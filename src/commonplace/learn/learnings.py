"""Learnings: the errors of episodes with what solved them, by day (Loki's `learnings/`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.errors import UsageError
from commonplace.records import to_utc
from commonplace.records.episodes import errors_of, has_failed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commonplace.recaller import Recaller
    from commonplace.records import Record


def learnings(
    memory: Recaller, day: str | None = None, *, repo: str | None = None, all_repos: bool = False
) -> list[dict[str, Any]]:
    """Return the solved errors of each day, the newest day first; with *day*, of that one.

    Homes that the user does not trust are left out.
    """
    day = None if day is None else _check_day(day)
    found = memory.select_everywhere(
        kinds=["episode"],
        repo=repo,
        all_repos=all_repos,
        since=day,
        until=day,
        archived=True,
        automatic=True,
    )
    return by_day(found)


def by_day(episodes: Iterable[Record]) -> list[dict[str, Any]]:
    """Return the solved errors of *episodes* by day, each once a day with its episodes.

    `failed` has those of them whose tasks failed.
    """
    days: dict[str, dict[tuple[str, ...], dict[str, Any]]] = {}
    # Only the errors are kept in memory, not the long records.
    found = sorted((one.timestamp, one.id, has_failed(one), errors_of(one)) for one in episodes)
    for timestamp, ident, failed, errors in found:
        for error in errors:
            if error.resolution:
                entry = days.setdefault(timestamp[:10], {}).setdefault(
                    tuple(error), {**error._asdict(), "episodes": [], "failed": []}
                )
                entry["episodes"].append(ident)
                entry["failed"] += [ident] if failed else []
    return [
        {"day": day, "learnings": list(entries.values())}
        for day, entries in sorted(days.items(), reverse=True)
    ]


def _check_day(text: str) -> str:
    """Return the day *text*; raise `UsageError` if it is none."""
    day = text.strip()
    try:
        if to_utc(day)[:10] == day:
            return day
    except ValueError:
        pass
    raise UsageError(f"`{day}` is not a day", "give it as YYYY-MM-DD, such as 2026-01-06", "day")
