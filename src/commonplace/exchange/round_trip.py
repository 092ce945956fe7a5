"""Round trips: export a record to another system's fields and import it again without loss.

An exported entry is read back at once, with the code that imports such entries. Fields that come
back differently are stored in one extra key of the entry. When somebody edits the other fields of
the entry, an import takes the edited values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.records import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EXTRA = "commonplace"
# Marks an entry that is computed from others, so that an import does not read it as one more.
DERIVED = {EXTRA: {"derived": True}}


def add_extra(
    fields: Mapping[str, Any],
    entry: Mapping[str, Any],
    read_entry: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    """Return *entry* with the key that holds what *read_entry* does not restore of *fields*."""
    restored = {name: value for name, value in read_entry(entry).items() if value is not None}
    differing = {
        name: value
        for name, value in fields.items()
        if name not in restored or not _is_same(restored[name], value)
    }
    absent = [name for name in restored if name not in fields]
    return {**entry, EXTRA: {"fields": differing, **({"without": absent} if absent else {})}}


def apply_extra(
    entry: Mapping[str, Any], read_entry: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """Return the fields of the record that *entry* was exported from."""
    own = {name: value for name, value in entry.items() if name != EXTRA}
    fields = read_entry(own)
    extra = entry.get(EXTRA)
    if not isinstance(extra, dict):
        return fields
    absent = extra.get("without")
    for name in absent if isinstance(absent, list) else ():
        fields.pop(name, None)
    differing = extra.get("fields")
    return {**fields, **differing} if isinstance(differing, dict) else fields


def is_ours(entry: object) -> bool:
    """Whether an export of Commonplace wrote *entry*."""
    return isinstance(entry, dict) and isinstance(entry.get(EXTRA), dict)


def is_derived(entry: object) -> bool:
    """Whether an export computed *entry* from other entries."""
    return is_ours(entry) and isinstance(entry, dict) and entry[EXTRA].get("derived") is True


def _is_same(left: object, right: object) -> bool:
    # In Python 1, 1.0 and true are equal; in JSON they are not.
    return encode({"": left}) == encode({"": right})
