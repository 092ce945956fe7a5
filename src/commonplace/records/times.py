"""Timestamps: any ISO 8601 time as RFC 3339 in UTC, or as a number that can be compared."""

from __future__ import annotations

from datetime import UTC, datetime

from commonplace.records.json_text import quoted, type_name

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The canonical form is 2026-01-31T09:30:00Z. A week date or a time without colons may be as long,
# but has other characters in these places.
_CANONICAL_CHARS = 20
_CANONICAL_MARKS = "--T::Z"
_DAY_S = 86_400
_SECOND_MICROS = 1_000_000


def to_utc(value: object) -> str:
    """Return a time as RFC 3339 in UTC (`2026-01-31T09:30:00Z`); a time without a zone is in UTC.

    Raises `ValueError` if *value* is no time.
    """
    if isinstance(value, str):
        moment = _parse(value)
        if _is_canonical(value):
            return value
    elif isinstance(value, datetime):
        moment = value
    else:
        raise ValueError(f"must be a time such as 2026-01-31T09:30:00Z, not {type_name(value)}")
    return _in_utc(moment, value).replace(tzinfo=None).isoformat() + "Z"


def micros(timestamp: str) -> int:
    """Return the whole microseconds from 1970 to *timestamp*, negative before it.

    Compare times by this: as text, `…:00.5Z` sorts before `…:00Z`. Accepts what `to_utc` accepts
    and raises `ValueError` for the rest.
    """
    moment = _parse(timestamp)
    if not _is_canonical(timestamp):
        moment = _in_utc(moment, timestamp)
    since = moment - _EPOCH
    return (since.days * _DAY_S + since.seconds) * _SECOND_MICROS + since.microseconds


def _parse(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"is {quoted(text)}, not a time such as 2026-01-31T09:30:00Z") from None


def _is_canonical(text: str) -> bool:
    return len(text) == _CANONICAL_CHARS and text[4::3] == _CANONICAL_MARKS


def _in_utc(moment: datetime, value: object) -> datetime:
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"is {quoted(value)}, outside the years 1 to 9999") from None
