"""Prepare a record for the log: check it, redact it, encode it, and limit its size.

Every line is prepared here before it is written.
"""

# Commands that only read import this module too, and most lines hold nothing suspicious. So each
# part of `redaction/` is imported where it is used.
# ruff: noqa: PLC0415

from __future__ import annotations

from typing import Any, NamedTuple

from commonplace import records
from commonplace.characters import may_hold_hidden, remove_hidden
from commonplace.errors import RecordInvalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from commonplace.redaction.fields import Redaction


class PreparedLine(NamedTuple):
    """A record ready to be appended, and its line."""

    record: records.Record
    line: bytes


def prepare(
    given: Mapping[str, Any], *, now: datetime, repo: str, agent_id: str, line_bytes_max: int
) -> PreparedLine:
    """Return the record and its line for the fields *given*. Raises `RecordInvalid`."""
    from commonplace.redaction.suspicion import may_hold_secret

    record = records.make(given, now=now, repo=repo, agent_id=agent_id)
    line = _encode(record)
    redactions: list[Redaction] = []
    if _may_hold_hidden(line):
        from commonplace.redaction.fields import Redaction

        redactions = [
            Redaction("control-character", name) for name in find_hidden_characters(record.fields)
        ]
        if redactions:
            # Before the search for secrets: one may have a control character in its middle.
            record = _remake(given, remove_hidden_everywhere(record.fields), now)
            line = _encode(record)
    # A generated id looks like a random secret, and is only a hash of the rest of the line.
    if may_hold_secret(line if given.get("id") else line[len('{"id":""') + len(record.id) :]):
        from commonplace.redaction.fields import redact

        fields, found = redact(record.fields)
        if any(redaction.field == "repo" for redaction in found):
            # The name of a log cannot be redacted: two of them would become one.
            raise RecordInvalid(
                "repo", "looks like a secret", hint="name the repository without it"
            )
        if found:
            redactions += found
            record = _remake(given, fields, now)
            line = _encode(record)
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
    return PreparedLine(record, raw + b"\n")


def _remake(given: Mapping[str, Any], fields: dict[str, Any], now: datetime) -> records.Record:
    """Return the redacted record. Its generated id does not depend on the removed text."""
    if not given.get("id"):
        fields = {**fields, "id": None}
    return records.make(fields, now=now, repo="", agent_id="")


def _encode(record: records.Record) -> str:
    try:
        line = records.encode(record.fields)
        records.check_depth(record.fields, line)
    except ValueError as error:
        raise RecordInvalid("record", str(error)) from None
    return line


def _may_hold_hidden(line: str) -> bool:
    # JSON escapes the control characters of ASCII but DEL, so only lines with these escapes can
    # hold one. A backslash in a text may look the same.
    if "\\u00" in line or "\\b" in line or "\\f" in line or "\x7f" in line:
        return True
    return not line.isascii() and may_hold_hidden(line)


def find_hidden_characters(fields: Mapping[str, Any]) -> list[str]:
    """Return the names of fields that hold control characters, or others that cannot be seen.

    Raises `RecordInvalid` for a NUL character, which only binary data holds.
    """
    found = [name for name, text in _texts(fields) if remove_hidden(text) != text]
    for name, text in _texts(fields):
        if "\x00" in text:
            raise RecordInvalid(
                name, "holds a NUL character (U+0000)", hint="that is binary data; log text"
            )
    return list(dict.fromkeys(found))


def remove_hidden_everywhere(value: Any) -> Any:  # noqa: ANN401 (any JSON value)
    """Return *value* without characters that cannot be seen in its texts and keys."""
    if isinstance(value, str):
        return remove_hidden(value)
    if isinstance(value, dict):
        clean: dict[Any, Any] = {}
        for key, item in value.items():
            name = remove_hidden_everywhere(key)
            # Two keys may differ only in what cannot be seen; no value may be lost.
            while name in clean:
                name += "~"
            clean[name] = remove_hidden_everywhere(item)
        return clean
    if isinstance(value, list):
        return [remove_hidden_everywhere(item) for item in value]
    return value


def _field_with_surrogate(fields: Mapping[str, Any]) -> str:
    return next((name for name, text in _texts(fields) if not _is_encodable(text)), "record")


def _is_encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _longest_field(fields: Mapping[str, Any]) -> str:
    return max(fields, key=lambda name: len(records.encode({name: fields[name]})))


def _texts(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text in *value*, keys included, with the name of the field it is in."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield name or key, key
            yield from _texts(item, name or key)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, name)
