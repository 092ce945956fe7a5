"""Check what a program gives to the functions about the graph: a mistake is a sentence."""

from __future__ import annotations

from collections.abc import Iterable

from commonplace.errors import UsageError

SHOWN_CHARS_MAX = 40


def check_text(what: str, value: object, hint: str = "") -> str:
    """Return *value*, which must be a text. Raises `UsageError`."""
    if not isinstance(value, str):
        raise UsageError(f"{what} is {_shown(value)}, which is no text", hint)
    return value


def check_texts(what: str, values: object) -> list[str]:
    """Return *values*, which must be texts; one alone must be in a list, too."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UsageError(f"{what} is {_shown(values)}, which is no list", "give a list of texts")
    return [check_text(f"one of {what}", one, "give a list of texts") for one in values]


def check_number(what: str, value: object, lowest: int, highest: int) -> int:
    """Return *value*, which must be a whole number between two others."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{what} is {_shown(value)}, which is no whole number")
    if not lowest <= value <= highest:
        raise UsageError(f"{what} is {value}, not between {lowest} and {highest}")
    return value


def _shown(value: object) -> str:
    # A text in quotes: "2" is not the number 2.
    shown = repr(value)
    return f"`{shown[:SHOWN_CHARS_MAX]}{'…' if len(shown) > SHOWN_CHARS_MAX else ''}`"
