"""JSON objects to text and back, within the limits that a line of a log has."""

from __future__ import annotations

import json
import sys
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# A reader accepts longer lines than a writer may make (`line_bytes_max`): other programs write too.
LINE_READ_BYTES_MAX = 64 << 20
# Code that walks a record may recurse once per level; Python allows some hundreds of calls.
DEPTH_MAX = 64
QUOTED_CHARS_MAX = 100
NUMBER_MAX = sys.float_info.max

_TYPE_NAMES: dict[type, str] = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


def decode(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in *raw*; raise `ValueError` with the reason if there is none."""
    if len(raw) > LINE_READ_BYTES_MAX:
        raise ValueError(f"is longer than {LINE_READ_BYTES_MAX:,} bytes")
    try:
        text = raw.decode("utf-8")
        value = _DECODER.decode(text)
    except UnicodeDecodeError:
        raise ValueError("is not valid UTF-8") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise ValueError(f"is not a JSON object but {type_name(value)}")
    check_depth(value, text)
    if "\\" in text and ("\\ud" in text or "\\uD" in text):
        _check_surrogates(value)
    return value


def encode(fields: Mapping[str, Any]) -> str:
    """Return *fields* as one line without its newline; `ValueError` if JSON cannot express them."""
    return _encode_with(_ENCODER, fields)


def encode_sorted(value: object) -> str:
    """Return *value* as JSON that does not depend on the order of its keys."""
    return _encode_with(_SORTING_ENCODER, value)


def check_depth(fields: Mapping[str, Any], text: str) -> None:
    """Raise `ValueError` if *fields*, whose JSON is *text*, have more than `DEPTH_MAX` levels."""
    if text.count("{") + text.count("[") <= DEPTH_MAX:
        return
    level: list[Any] = [fields]
    for _ in range(DEPTH_MAX):
        inner = (value.values() if isinstance(value, dict) else value for value in level)
        level = [
            value for values in inner for value in values if isinstance(value, dict | list | tuple)
        ]
        if not level:
            return
    raise ValueError(f"is nested more than {DEPTH_MAX} levels deep")


def type_name(value: object) -> str:
    """Return what JSON calls the type of *value*, as part of an error message."""
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def quoted(value: object) -> str:
    """Return *value* as an error message shows it: in backticks, on one line, cut if long."""
    shown = repr(value)[1:-1] if isinstance(value, str) else repr(value)
    return f"`{shown if len(shown) <= QUOTED_CHARS_MAX else shown[:QUOTED_CHARS_MAX] + '…'}`"


def _encode_with(encoder: json.JSONEncoder, value: object) -> str:
    try:
        return encoder.encode(value)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"cannot be written as JSON: {error}") from None


def _check_surrogates(fields: Mapping[str, Any]) -> None:
    try:
        encode(fields).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("is not valid UTF-8 (a lone surrogate)") from None


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _parse_float(text: str) -> float:
    number = float(text)
    if not -NUMBER_MAX <= number <= NUMBER_MAX:
        raise ValueError(f"{text[:20]} is too large a number")
    return number


_DECODER = json.JSONDecoder(parse_constant=_reject_constant, parse_float=_parse_float)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_SORTING_ENCODER = json.JSONEncoder(sort_keys=True)
