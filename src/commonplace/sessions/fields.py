"""Reading JSON that others wrote: a field that is missing or of another type is skipped."""

from __future__ import annotations

import json
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_OBJECT_CHARS_MAX = 32 << 20


def parse_object(raw: bytes) -> dict[str, Any] | None:
    """Return the JSON object in *raw*, tolerating bad UTF-8 and control characters; else `None`."""
    try:
        value = json.loads(raw)
    except (UnicodeDecodeError, RecursionError, ValueError):
        try:
            value = json.loads(raw.decode("utf-8", "replace"), strict=False)
        except (RecursionError, ValueError):
            return None
    return value if isinstance(value, dict) else None


def clean_text(text: str) -> str:
    """Return *text* without NUL characters and lone surrogates, which cannot be written."""
    if "\0" in text:
        text = text.replace("\0", "")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def first_value(fields: Mapping[str, Any], *names: str) -> Any:  # noqa: ANN401 (parsed JSON)
    """Return the value of the first of *names* that is there and not null."""
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def first_text(fields: Mapping[str, Any], *names: str) -> str:
    """Return the first of *names* that holds a text that is not empty; "" if none does."""
    values = (fields.get(name) for name in names)
    return next((clean_text(value) for value in values if isinstance(value, str) and value), "")


def first_int(fields: Mapping[str, Any], *names: str) -> int | None:
    """Return the value of the first of *names* that is not null, if that is an integer."""
    value = first_value(fields, *names)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def as_object(value: object) -> dict[str, Any] | None:
    """Return *value* if it is an object or a text that holds one; else `None`."""
    if isinstance(value, str) and value.lstrip().startswith("{") and len(value) < _OBJECT_CHARS_MAX:
        try:
            value = json.loads(value)
        except (RecursionError, ValueError):
            return None
    return value if isinstance(value, dict) else None
