"""What `show` says about one record, note or skill."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from commonplace.errors import NoteNotFound, NoteRefused, RecordNotFound
from commonplace.files.plain import read_small
from commonplace.records import Pattern
from commonplace.rules import Standing
from commonplace.where.home import SKILL_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.lookup import FoundRecord
    from commonplace.records import Record
    from commonplace.where.home import Home


def of_record(
    found: FoundRecord, uses: tuple[int, str], home: Home, *, is_trusted: bool
) -> dict[str, Any]:
    """Return the fields of the record with its feedback, its use and its home."""
    described = dict(found.record.fields)
    if found.rate is not None:
        described["success_rate"] = str(found.rate)
    if found.standing is Standing.SUPERSEDED:
        described["standing"] = "superseded"
    described["feedback"] = found.feedback._asdict()
    if "summarized" in found.record.meta:
        described["whole"] = "archive"  # Where the record is that this one was made from.
    described |= _counts(found.record, uses)
    described["home"] = str(home.path)
    if not is_trusted:
        described["trusted"] = False
    return described


def _counts(record: Record, uses: tuple[int, str]) -> dict[str, Any]:
    """Return how often and when it was used. A pattern says that itself, and what it rests on."""
    delivered, last = uses
    if not isinstance(record, Pattern):
        return {"usage_count": delivered, "last_used": last}
    return {
        "confidence": record.confidence,
        "usage_count": record.usage_count,
        "last_used": record.last_used,
        "sources": len(set(record.sources)),
        "delivered": delivered,
        "last_delivered": last,
    }


def of_text(homes: Sequence[Home], agent_id: str, ident: str) -> dict[str, Any]:
    """Return a skill, or one of this agent's own notes, by the id that recall gives it."""
    kind, _colon, name = ident.partition(":")
    for home in homes:
        found = _note(home, agent_id, name) if kind == "note" else _skill(home, name)
        if found is not None:
            path, text = found
            return {"id": ident, "kind": kind, "path": path, "text": text}
    raise RecordNotFound(ident)


def _note(home: Home, agent_id: str, name: str) -> tuple[str, str] | None:
    agent, _slash, path = name.partition("/")
    from commonplace.notes import Notes  # noqa: PLC0415 (`show` of a record must be quick)

    notes = Notes(home, agent_id)
    with suppress(NoteNotFound, NoteRefused):
        if agent == agent_id:
            return str(notes.folder / path), notes.read(path)
    return None


def _skill(home: Home, name: str) -> tuple[str, str] | None:
    path = home.skill(name)
    # A folder's name, not a path: other files are not skills of this home.
    is_plain = path.parent.parent == home.skills_folder and path.parent.name == name != ".."
    with suppress(OSError, ValueError):  # The name may be invalid in a file system.
        if is_plain:
            return str(path), read_small(path, SKILL_BYTES_MAX).decode("utf-8", "replace")
    return None
