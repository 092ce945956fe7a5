"""`commonplace log --id ID` of a record that is there already: merge with it, or say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note
from commonplace.editing import change_tags
from commonplace.errors import IdAmbiguous, RecordNotFound

if TYPE_CHECKING:
    from commonplace.memory import Memory
    from commonplace.records import Record


def merge(home: str | None, fields: dict[str, str]) -> Record | None:
    """Change the record that *fields* name and keep its other fields; `None` if there is none."""
    with open_memory(home, to_write=True) as memory:
        record = _find(memory, fields["id"])
        if record is None:
            return None
        changes: dict[str, Any] = {name: text for name, text in fields.items() if name != "id"}
        words = changes.pop("tags", None)
        if changes.get("repo") == record.repo:
            del changes["repo"]

        def tags(latest: Record) -> dict[str, Any]:
            return {} if words is None else {"tags": change_tags(latest.tags, words.split(","))}

        return memory.edit(record.id, tags, **changes)


def warn_if_replaced(home: str | None, ident: str) -> None:
    """Say on stderr that a record with this id is there, and what becomes of its fields."""
    with open_memory(home, to_write=True) as memory:
        if _find(memory, ident) is not None:
            note(
                f"note: `{ident}` was there already, and this version replaces all its fields;"
                " `--merge` keeps those that are not given"
            )


def _find(memory: Memory, ident: str) -> Record | None:
    try:
        record = memory.get(ident)
    except (RecordNotFound, IdAmbiguous):
        return None
    return record if record.id == ident else None
