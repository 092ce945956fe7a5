"""Feedback: how often using a record ended in each outcome, and the success rate that follows."""

from __future__ import annotations

from typing import NamedTuple

from commonplace.records import Rate, parse_rate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from commonplace.records import Record


class Tally(NamedTuple):
    """How many times a record worked, failed, was wrong, was stale."""

    worked: int = 0
    failed: int = 0
    wrong: int = 0
    stale: int = 0


NO_FEEDBACK = Tally()
# In `meta` of a pattern: how often those worked that were merged into it.
MERGED_RATE = "merged_rate"


def tally(outcomes: Iterable[str]) -> Tally:
    """Count *outcomes*, one for each feedback id; unknown outcomes are not counted."""
    counts = dict.fromkeys(Tally._fields, 0)
    for outcome in outcomes:
        if outcome in counts:
            counts[outcome] += 1
    return Tally(**counts)


def stated_rate(record: Record) -> str:
    """Return the rate that *record* states itself, "X/Y"; "" if it states none.

    A lesson has one; a pattern or an anti-pattern has that of the records that were merged into it.
    """
    value = record.fields.get("success_rate") if record.kind == "lesson" else None
    if record.kind in ("pattern", "anti_pattern"):
        value = record.meta.get(MERGED_RATE)
    try:
        return str(parse_rate(value))
    except ValueError:
        return ""


def rate(stated: str, feedback: Tally) -> Rate | None:
    """Return the rate a record states, "X/Y", plus its feedback; `None` if it was never tried."""
    return add_feedback(parse_rate(stated) if stated else None, feedback)


def add_feedback(stated: Rate | None, feedback: Tally) -> Rate | None:
    """Return the *stated* rate plus *feedback*; `None` if the record was never tried."""
    if not feedback.worked and not feedback.failed:
        return stated
    worked, tried = stated or Rate(0, 0)
    tried += feedback.worked + feedback.failed
    return Rate(worked + feedback.worked, tried)


def is_doubted(feedback: Tally) -> bool:
    """Whether a record was rated wrong or stale more often than it worked."""
    return feedback.wrong + feedback.stale > feedback.worked
