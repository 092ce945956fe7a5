"""How often a record's advice worked, as it states it itself."""

from __future__ import annotations

from typing import NamedTuple

from commonplace.records.json_text import quoted

_DIGITS_MAX = 9


class Rate(NamedTuple):
    """`success_rate`: the number of times it worked, and the number of times it was tried."""

    worked: int
    tried: int

    def __str__(self) -> str:
        return f"{self.worked}/{self.tried}"


def parse_rate(value: object) -> Rate:
    """Return the numbers in `"X/Y"`; raise `ValueError` unless 0 ≤ X ≤ Y."""
    worked, slash, tried = value.partition("/") if isinstance(value, str) else ("", "", "")
    if not (slash and _is_count(worked) and _is_count(tried)):
        raise ValueError(f"is {quoted(value)}, not of the form X/Y, e.g. 9/10")
    rate = Rate(int(worked), int(tried))
    if rate.worked > rate.tried:
        raise ValueError(f"is {quoted(value)}: it cannot have worked more often than it was tried")
    return rate


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX
