"""Dates and ages as people write them: `2026-01-31`, `2026-01-31T09:30:00Z`, `7d`, `12h`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from commonplace.errors import UsageError
from commonplace.records import to_utc
from commonplace.records.json_text import quoted

if TYPE_CHECKING:
    from datetime import datetime

_AGE = re.compile(r"(\d+)\s*([hdwmy])", re.IGNORECASE)
_HINT = "give a date such as 2026-01-31, a time such as 2026-01-31T09:30:00Z, or an age such as 7d"
_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}


def parse_moment(text: str, now: datetime, name: str = "date", *, end_of_day: bool = False) -> str:
    """Return the timestamp of *text*: a date, a time, or an age counted back from *now*.

    With *end_of_day*, a date stands for the end of that day instead of its start. *name* is that of
    the option, for an error.
    """
    given = text.strip()
    if age := _AGE.fullmatch(given):
        try:
            return to_utc(now - timedelta(days=int(age[1]) * _DAYS[age[2].lower()]))
        except (OverflowError, ValueError):
            raise UsageError(
                f"is {quoted(given)}, which goes back to before the year 1", _HINT, name
            ) from None
    try:
        moment = to_utc(given)
    except ValueError:
        raise UsageError(f"is {quoted(given)}, not a date, a time or an age", _HINT, name) from None
    is_date = len(given) == len("2026-01-31")
    return f"{moment[:10]}T23:59:59Z" if end_of_day and is_date else moment
