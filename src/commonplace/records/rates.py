"""How often a record's advice worked: its stated rate, and what feedback says of it."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

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
        raise ValueError(f"is {value!r}, not of the form X/Y, e.g. 9/10")
    rate = Rate(int(worked), int(tried))
    if rate.worked > rate.tried:
        raise ValueError(f"is {value!r}: it cannot have worked more often than it was tried")
    return rate


def is_doubted(feedback: Mapping[str, int]) -> bool:
    """Whether *feedback* called a record wrong or stale more often than it reported success."""
    return feedback.get("wrong", 0) + feedback.get("stale", 0) > feedback.get("worked", 0)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX
