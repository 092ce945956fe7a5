"""Dates and ages as people write them: `2026-01-31`, `2026-01-31T09:30:00Z`, `7d`, `12h`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from commonplace.errors import UsageError
from commonplace.records import to_utc

if TYPE_CHECKING:
    from datetime import datetime

_AGE = re.compile(r"(\d+)\s*([hdwmy])", re.IGNORECASE)
_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}


def parse_moment(text: str, now: datetime, *, end_of_day: bool = False) -> str:
    """Return the timestamp of *text*: a date, a time, or an age counted back from *now*.

    With *end_of_day*, a date stands for the end of that day instead of its start.
    """
    given = text.strip()
    if age := _AGE.fullmatch(given):
        try:
            return to_utc(now - timedelta(days=int(age[1]) * _DAYS[age[2].lower()]))
        except (OverflowError, ValueError):
            raise UsageError(
                "the age goes back to before the year 1", "give a date such as 2026-01-31"
            ) from None
    try:
        moment = to_utc(given)
    except ValueError as error:
        raise UsageError(
            f"the date {error}", "give a date such as 2026-01-31, or an age such as 7d"
        ) from None
    is_date = len(given) == len("2026-01-31")
    return f"{moment[:10]}T23:59:59Z" if end_of_day and is_date else moment
