"""The next version of a record: some fields changed, the others kept.

It is appended as a later line of the same id, so the history keeps every version. Its `timestamp`
stays: it says when the thing was learned, and a corrected word does not make a memory newer.
`meta.edited` says when the words were changed.
"""

from __future__ import annotations

from typing import Any

from commonplace.errors import RecordInvalid, UsageError
from commonplace.records import Record, to_utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

# They name the record and its log: another value would be another record.
# What an automatic step notes in `meta` of the records that it writes (see learn/batches.py).
OF_BATCH = ("batch", "step")
FIXED = ("id", "kind", "repo")
# The type of a lesson whose line has none, which a writer must give.
TYPE_DEFAULT = "learned"


def editable_fields(record: Record) -> tuple[str, ...]:
    """Return the names of the fields of this kind that may be changed, its text first."""
    first = record.title_field
    rest = [name for name in _own_first(record) if name not in (*FIXED, first)]
    return tuple([first, *rest] if first in record.known and first not in FIXED else rest)


def _own_first(record: Record) -> list[str]:
    """Return the fields of the kind, and after them those that all kinds have."""
    shared = Record.known
    return [*(name for name in record.known if name not in shared), *shared]


def next_version(record: Record, changes: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return the fields of *record* with *changes*; `None` removes a field.

    Without any difference the fields are those of *record*. `Writer.prepare` checks the values.
    """
    if record.kind == "forget":
        # A later line would forget its record again, even after that was undone.
        raise UsageError(
            f"`{record.id}` forgets a record, and cannot be edited",
            f"`commonplace forget --undo {record.fields.get('of')}` brings the record back",
        )
    known = editable_fields(record)
    for name in changes:
        if name in FIXED:
            raise UsageError(f"`{name}` cannot be changed", "log a new record instead")
        if name not in known and name not in record.fields:
            raise RecordInvalid(
                name, f"is no field of `{record.kind}`", f"choose among {', '.join(known)}"
            )
    fields = {**record.fields, **changes}
    fields = {name: value for name, value in fields.items() if value is not None}
    if fields == record.fields:
        return fields
    if record.kind == "lesson":
        fields.setdefault("event_type", TYPE_DEFAULT)
    meta = fields.get("meta")
    kept = dict(meta) if isinstance(meta, dict) else {}
    for name in OF_BATCH:
        kept.pop(name, None)  # What a person changed is no longer what the batch wrote.
    fields["meta"] = {**kept, "edited": to_utc(now)}
    return fields


def change_tags(tags: Sequence[str], words: Iterable[str]) -> list[str]:
    """Return *tags* with those of *words* added that begin with `+`, and without those with `-`.

    Words without a sign are the whole list.
    """
    given = [word.strip() for word in words if word.strip("+- \t")]
    signed = [word for word in given if word[0] in "+-"]
    if not signed:
        return list(dict.fromkeys(given))
    if len(signed) < len(given):
        raise UsageError(
            "some tags have a sign and others do not",
            "`+a,-b` adds and removes; `a,b` is the whole list",
        )
    changed = list(tags)
    for word in signed:
        name = word[1:].strip()
        # Case does not matter to recall, so one tag in two spellings would be there twice.
        same = [tag for tag in changed if tag.lower() == name.lower()]
        if word[0] == "+" and not same:
            changed.append(name)
        elif word[0] == "-":
            changed = [tag for tag in changed if tag not in same]
    return changed
