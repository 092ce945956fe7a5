"""Round trips: an entry in another system's fields, and whatever those cannot say in one key beside them.

An entry is made from a record and read back by the same eyes that read a foreign one; only where the two differ does
something go into the key. So a hand that edits the entry's own fields is heard, and nothing is ever lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.records import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EXTRA = "commonplace"


def dressed(
    fields: Mapping[str, Any],
    entry: Mapping[str, Any],
    plain: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    """*entry*, which stands for the record *fields*, with the key that makes the way back exact."""
    back = {name: value for name, value in plain(entry).items() if value is not None}
    differing = {
        name: value
        for name, value in fields.items()
        if name not in back or not _same(back[name], value)
    }
    absent = [name for name in back if name not in fields]
    return {**entry, EXTRA: {"fields": differing, **({"without": absent} if absent else {})}}


def undressed(
    entry: Mapping[str, Any], plain: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """The fields that *entry* stands for."""
    own = {name: value for name, value in entry.items() if name != EXTRA}
    fields = plain(own)
    extra = entry.get(EXTRA)
    if not isinstance(extra, dict):
        return fields
    absent = extra.get("without")
    for name in absent if isinstance(absent, list) else ():
        fields.pop(name, None)
    differing = extra.get("fields")
    return {**fields, **differing} if isinstance(differing, dict) else fields


def is_ours(entry: object) -> bool:
    """Whether *entry* was written by an export of ours."""
    return isinstance(entry, dict) and isinstance(entry.get(EXTRA), dict)


def _same(left: object, right: object) -> bool:
    # Python holds 1, 1.0 and true for the same; JSON does not.
    return encode({"": left}) == encode({"": right})
