"""A line of a log to a record and back; and a new record from what a caller gives."""

from __future__ import annotations

from typing import Any

from commonplace.errors import RecordInvalid
from commonplace.records.ids import check_id, make_id
from commonplace.records.json_text import decode, encode
from commonplace.records.kinds import KINDS, Lesson, Record
from commonplace.records.names import check_repo_name
from commonplace.records.times import to_utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime


def make(given: Mapping[str, Any], *, now: datetime, repo: str, agent_id: str) -> Record:
    """Return the record that *given* describes: checked, times in UTC, defaults and id filled in.

    A known field that is `None` is treated as absent. Raises `RecordInvalid`.
    """
    kind = given.get("kind") or "lesson"
    cls = KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise RecordInvalid("kind", f"is `{kind}`, not one of {', '.join(KINDS)}")
    fields: dict[str, Any] = {
        "id": "",
        "kind": kind,
        "timestamp": "",
        "agent_id": agent_id,
        "repo": repo,
    }
    known = cls.known
    fields |= {
        name: value for name, value in given.items() if value is not None or name not in known
    }
    if kind == "link":
        _name_relation(fields)
    fields["timestamp"] = _call("timestamp", to_utc, fields["timestamp"] or now)
    for name in cls.times:
        if fields.get(name) is not None:
            fields[name] = _call(name, to_utc, fields[name])
    fields["repo"] = _call("repo", check_repo_name, fields["repo"] or repo)
    if fields["id"]:
        _call("id", check_id, fields["id"])
    record = cls(fields)
    _check_fields(record)
    if not fields["id"]:
        fields["id"] = _call("record", make_id, record)
    return record


def from_line(raw: bytes) -> Record:
    """Return the record in one line of a log. Raises `ValueError` with the reason if there is none.

    A kind that is not known here becomes a plain `Record`: a newer version may have written it.
    A value that cannot be used is left out: another program may have its own idea of a field, and
    the rest of the record can be shown. A lesson that a person or a script wrote without `id` and
    `kind` gets both.
    """
    fields = fill_identity(decode(raw))
    kind = fields.get("kind")
    cls = KINDS.get(kind, Record) if isinstance(kind, str) else Record
    if kind == "link":
        _name_relation(fields)
    unusable: list[str] = []
    for name, field in cls.known.items():
        value = fields.get(name)
        if value is not None:
            try:
                field.check_read(value)
            except ValueError as error:
                reason = f"`{name}` {error}"
                if field.needed and field.stand_in is None:
                    raise ValueError(reason) from None
                unusable.append(reason)
                fields[name] = field.stand_in
                if field.stand_in is None:
                    del fields[name]
        elif field.needed:
            raise ValueError(f"`{name}` is missing")
    record = cls(fields)
    record.unusable = tuple(unusable)
    return record


def fill_identity(fields: dict[str, Any]) -> dict[str, Any]:
    """Return *fields* with the `kind` and the `id` that the line of a lesson may lack.

    The id is the one that `make` generates, so it is the same in every reader, and the same as if
    the lesson had been logged.
    """
    if fields.get("id") is not None and fields.get("kind") is not None:
        return fields
    lesson = fields.get("lesson")
    if fields.get("kind", "lesson") not in (None, "lesson") or not isinstance(lesson, str):
        return fields
    rest = {name: value for name, value in fields.items() if name not in ("id", "kind")}
    if fields.get("id") is not None:
        return {"id": fields["id"], "kind": "lesson", **rest}
    repo = fields.get("repo")
    named = {**rest, "kind": "lesson", "repo": repo if isinstance(repo, str) else ""}
    return {"id": make_id(Lesson(named)), "kind": "lesson", **rest}


def _name_relation(fields: dict[str, Any]) -> None:
    """Give a link its `rel`; Loki names it `relation`."""
    if fields.get("rel") is None and fields.get("relation") is not None:
        fields["rel"] = fields["relation"]


def to_line(record: Record) -> bytes:
    """Return the line that `from_line` turns back into *record*, with its newline."""
    return encode(record.fields).encode("utf-8") + b"\n"


def _check_fields(record: Record) -> None:
    """Raise `RecordInvalid` for the first field whose value its kind does not allow."""
    fields, checks = record.fields, record.checks
    name = ""
    try:
        for name in record.required:
            if fields.get(name) is None:
                raise ValueError("is missing")
        for name, value in fields.items():
            # An empty id is made later.
            if value is not None and name in checks and (value or name != "id"):
                checks[name](value)
    except ValueError as error:
        raise RecordInvalid(name, str(error)) from None


def _call(name: str, function: Callable[[Any], Any], value: object) -> Any:  # noqa: ANN401
    """Call *function* on *value*; its `ValueError` becomes one about the field *name*."""
    try:
        return function(value)
    except ValueError as error:
        raise RecordInvalid(name, str(error)) from None
