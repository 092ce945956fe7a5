"""The one door: what every line passes before it is written. Checks, redaction, the size limit; then bytes."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from commonplace import records
from commonplace.errors import RecordInvalid
from commonplace.redaction import Redaction, redact, suspicious

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime


class Entry(NamedTuple):
    """A record ready to be appended, and its line."""

    record: records.Record
    line: bytes


def prepare(
    given: Mapping[str, Any], *, now: datetime, repo: str, agent_id: str, line_bytes_max: int
) -> Entry:
    """The line for *given*, or `RecordInvalid` with the field to put right. Nothing is written here."""
    record = records.make(given, now=now, repo=repo, agent_id=agent_id)
    line = _encoded(record)
    redactions: list[Redaction] = []
    # JSON escapes control characters, so one look at the line settles it; a backslash in a text looks alike.
    if "\\u00" in line or "\\b" in line or "\\f" in line or "\x7f" in line:
        redactions = [Redaction("control-character", name) for name in controls_in(record.fields)]
        if redactions:
            # Before secrets are looked for: one could be written with a control character in its middle.
            record = _made_again(given, _without_controls(record.fields), now)
            line = _encoded(record)
    # A made id is long and random to look at, and holds nothing that the rest of the line does not.
    if suspicious(line if given.get("id") else line[len('{"id":""') + len(record.id) :]):
        fields, found = redact(record.fields)
        if found:
            redactions += found
            record = _made_again(given, fields, now)
            line = _encoded(record)
    try:
        raw = line.encode("utf-8")
    except UnicodeEncodeError:
        raise RecordInvalid(
            _field_with_surrogate(record.fields), "is not valid UTF-8 (a lone surrogate)"
        ) from None
    if len(raw) >= line_bytes_max:
        raise RecordInvalid(
            _longest_field(record.fields),
            f"makes a line of {len(raw):,} bytes, over the limit of {line_bytes_max:,}",
            hint="shorten it, split it, or raise `line_bytes_max` in config.toml",
        )
    record.redactions = tuple(redactions)
    return Entry(record, raw + b"\n")


def _made_again(given: Mapping[str, Any], fields: dict[str, Any], now: datetime) -> records.Record:
    """The redacted record, with an id that owes nothing to what was taken out."""
    if not given.get("id"):
        fields = {**fields, "id": None}
    return records.make(fields, now=now, repo="", agent_id="")


def _encoded(record: records.Record) -> str:
    try:
        line = records.encode(record.fields)
        records.check_depth(record.fields, line)
    except ValueError as error:
        raise RecordInvalid("record", str(error)) from None
    return line


def controls_in(fields: Mapping[str, Any]) -> list[str]:
    """The names of fields that hold control characters, which no text needs but tabs and line ends.

    NUL only ever comes from binary data, and is refused.
    """
    control = re.compile(_CONTROLS)
    found = [name for name, text in _texts(fields) if control.search(text)]
    for name, text in _texts(fields):
        if "\x00" in text:
            raise RecordInvalid(
                name, "holds a NUL character (U+0000)", hint="that is binary data; log text"
            )
    return list(dict.fromkeys(found))


# A terminal's colour sequence goes as a whole, any other control character alone.
_CONTROLS = r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"


def _without_controls(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, str):
        return re.sub(_CONTROLS, "", value)
    if isinstance(value, dict):
        return {_without_controls(key): _without_controls(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_controls(item) for item in value]
    return value


def _field_with_surrogate(fields: Mapping[str, Any]) -> str:
    return next((name for name, text in _texts(fields) if not _encodable(text)), "record")


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _longest_field(fields: Mapping[str, Any]) -> str:
    return max(fields, key=lambda name: len(records.encode({name: fields[name]})))


def _texts(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Every string in *value*, at any depth, with the name of the field it lies in; keys count too."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield name or key, key
            yield from _texts(item, name or key)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, name)
