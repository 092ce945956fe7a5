"""The seven tools of a memory server, and how each is found in what a server lists.

A server may list a tool by its short name, by its dotted id, by the dotted id with underscores
(many clients accept no dots), or carry the dotted id in the tool's `_meta`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SEARCH = "search_memory"
UPSERT = "upsert_memory"
RECALL = "recall_context"
SAVE = "save_context"
SNAPSHOT = "project_snapshot"
EXPORT = "export_encrypted"
IMPORT = "import_encrypted"
# These change nothing, so they may be repeated.
READING = (SEARCH, RECALL)
# Not one of the seven: a tool that some servers have besides, and its arguments.
RATE = "feedback"
RATING = frozenset(["id", "outcome"])
DOTTED = {
    SEARCH: "kom.memory.v1.search_memory",
    UPSERT: "kom.memory.v1.upsert_memory",
    RECALL: "kom.memory.v1.recall_context",
    SAVE: "kom.memory.v1.save_context",
    SNAPSHOT: "kom.meta.v1.project_snapshot",
    EXPORT: "kom.local.v1.backup.export_encrypted",
    IMPORT: "kom.local.v1.backup.import_encrypted",
}


class Listed(NamedTuple):
    """A tool as the server lists it: its name, what is in `_meta`, the names of its arguments."""

    name: str
    meta: Mapping[str, Any]
    arguments: frozenset[str] = frozenset()


def find(listed: Iterable[Listed]) -> dict[str, Listed]:
    """Return which of the *listed* tools is which of the seven, or rates, by short names.

    The dotted id is the surest sign, then the short name itself, then a name that ends with it.
    """
    tools = sorted(listed, key=lambda tool: tool.name)
    found: dict[str, Listed] = {}
    for short, dotted in DOTTED.items():
        signs = (
            lambda tool, dotted=dotted: dotted in _texts(tool.meta),
            lambda tool, dotted=dotted: tool.name == dotted,
            lambda tool, short=short: tool.name == short,
            lambda tool, dotted=dotted: _plain(tool.name).endswith(_plain(dotted)),
            lambda tool, short=short: _plain(tool.name).endswith(f"_{short}"),
        )
        match = next((tool for sign in signs for tool in tools if sign(tool)), None)
        if match is not None:
            found[short] = match
    rating = [tool for tool in tools if tool.name == RATE and tool.arguments >= RATING]
    return {**found, RATE: rating[0]} if rating else found


def _texts(value: object) -> set[str]:
    """Return all texts in a JSON value."""
    if isinstance(value, dict):
        return set().union(*map(_texts, value.values()))
    if isinstance(value, list):
        return set().union(*map(_texts, value))
    return {value} if isinstance(value, str) else set()


def _plain(name: str) -> str:
    return name.replace(".", "_").replace("-", "_")
