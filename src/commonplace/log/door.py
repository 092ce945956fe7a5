"""The one door: what every line passes before it is written. Checks, redaction, the size limit; then bytes."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from commonplace import records
from commonplace.capture.redact import Redaction, redact, suspicious
from commonplace.errors import RecordInvalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime


class Entry(NamedTuple):
    """A record ready to be appended, and its line."""

    record: records.Record
    line: bytes


def prepare(given: Mapping[str, Any], *, now: datetime, repo: str, agent_id: str, line_bytes_max: int) -> Entry:
    """The line for *given*, or `RecordInvalid` with the field to put right. Nothing is written here."""
    record = records.make(given, now=now, repo=repo, agent_id=agent_id)
    line = _encoded(record)
    redactions: list[Redaction] = []
    # A made id is long and random to look at, and holds nothing that the rest of the line does not.
    if suspicious(line if given.get("id") else line[len('{"id":""') + len(record.id) :]):
        fields, redactions = redact(record.fields)
        if redactions:
            record = _made_again(given, fields, now)
            line = _encoded(record)
    _refuse_controls(record.fields, line)
    try:
        raw = line.encode("utf-8")
    except UnicodeEncodeError:
        raise RecordInvalid(_field_with_surrogate(record.fields), "is not valid UTF-8 (a lone surrogate)") from None
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


def _refuse_controls(fields: Mapping[str, Any], line: str) -> None:
    """Refuse NUL, escape sequences and their kin, which only ever come from a mistake; tabs and line ends are text."""
    # JSON escapes them all, so one look at the line settles it nearly always; a backslash in a text looks alike.
    if not ("\\u00" in line or "\\b" in line or "\\f" in line or "\x7f" in line):
        return
    control = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
    for name, text in _texts(fields):
        if found := control.search(text):
            raise RecordInvalid(
                name,
                f"holds the control character U+{ord(found.group()):04X}",
                hint="remove terminal colours and binary data before logging",
            )


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
