"""Ids of records whose program counts: `sem-001` means another pattern in every project.

Where another repository's record has the id already, the record gets one of its own, and so do the
names by which other records of its project refer to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.records import id_in_repo

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Fields that hold an id, or a list of ids.
_ONE = ("id", "of", "to", "source")
_SEVERAL = ("source_episodes",)
# Fields of `context` that do.
_IN_CONTEXT = ("relevant_patterns", "patterns_learned")


def with_own_ids(
    fields: Mapping[str, Any], repo: str, is_elsewhere: Callable[[str, str], bool]
) -> dict[str, Any]:
    """Return *fields* of a record of *repo*.

    *is_elsewhere* says of an id that its project gives it to a record, and only other logs have it.
    """

    def own(value: object) -> object:
        if isinstance(value, str) and value and is_elsewhere(value, repo):
            return id_in_repo(value, repo)
        return value

    return map_ids(fields, own)


def map_ids(fields: Mapping[str, Any], change: Callable[[object], object]) -> dict[str, Any]:
    """Return *fields* with every id in them as *change* returns it: its own, and those it names."""

    def change_all(values: object) -> object:
        return [change(one) for one in values] if isinstance(values, list) else values

    changed = dict(fields)
    for name in _ONE:
        if name in changed:
            changed[name] = change(changed[name])
    for name in _SEVERAL:
        if name in changed:
            changed[name] = change_all(changed[name])
    context = changed.get("context")
    if isinstance(context, dict):
        known = {name: change_all(context[name]) for name in _IN_CONTEXT if name in context}
        changed["context"] = {**context, **known}
    for name in ("links", "children"):
        changed |= {name: _change_ends(changed[name], change)} if changed.get(name) else {}
    return changed


def _change_ends(value: object, change: Callable[[object], object]) -> object:
    """Return the links of a list, or the children of a map, with the ids at their ends."""
    if isinstance(value, dict):
        return {name: change(ident) for name, ident in value.items()}
    if isinstance(value, list):
        return [
            {**link, "to": change(link["to"])} if isinstance(link, dict) and "to" in link else link
            for link in value
        ]
    return value
