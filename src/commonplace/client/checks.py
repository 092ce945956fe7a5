"""What an agent's program gives the orchestrator, checked before anything is sent or written down.

Only what no memory server could take is an error here; the rest is for the server to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from commonplace.errors import UsageError
from commonplace.graph.given import FILE_PREFIXES
from commonplace.records.json_text import encode_sorted, quoted
from commonplace.records.nodes import NODE_TYPES

_NODE_HINT = 'give {"id": "skill.cpp.raii", "type": "skill", "label": "RAII"}, or others like it'
_BLOCK_HINT = 'give [{"kind": "scratchpad", "data": "…"}]'


def filled(value: object, what: str, hint: str = "") -> str:
    """Return *value*, the text that is called *what* in the error if there is none."""
    if not isinstance(value, str):
        raise UsageError(f"{what} is {quoted(value)}, and no text", hint)
    if not value.strip():
        raise UsageError(f"{what} is empty", hint)
    return value


def texts(given: object, what: str) -> list[str]:
    """Return the ids, tags or paths in *given*; a text alone is no list."""
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise UsageError(f"{what} is {quoted(given)}, and no list", "give a list such as ['x']")
    return [filled(one, f"one of {what}") for one in given]


def nodes(given: object) -> list[dict[str, Any]]:
    """Return the nodes in *given*, each with what every server needs."""
    return [_node(one) for one in _objects(given, "the nodes", _NODE_HINT)]


def blocks(given: object) -> list[dict[str, Any]]:
    """Return the blocks of a context in *given*; there must be one."""
    found = _objects(given, "the frames", _BLOCK_HINT)
    if not found:
        raise UsageError("there are no frames to save", _BLOCK_HINT)
    for one in found:
        filled(one.get("kind"), "the kind of a frame", _BLOCK_HINT)
        if "data" not in one:
            raise UsageError(f"the frame `{one['kind']}` has no `data`", _BLOCK_HINT)
    return found


def _objects(given: object, what: str, hint: str) -> list[dict[str, Any]]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise UsageError(f"{what} are {quoted(given)}, and no list", hint)
    found = []
    for one in given:
        if not isinstance(one, Mapping):
            raise UsageError(f"{what} have {quoted(one)}, which is no dictionary", hint)
        try:
            encode_sorted(fields := dict(one))
        except ValueError as error:
            raise UsageError(f"one of {what} {error}", hint) from None
        found.append(fields)
    return found


def _node(fields: dict[str, Any]) -> dict[str, Any]:
    ident = filled(fields.get("id"), "the id of a node", _NODE_HINT)
    if ident.startswith(FILE_PREFIXES):
        raise UsageError(
            f"the id `{ident}` begins with `{ident.partition(':')[0]}:`, which belongs to files",
            "write `skill.x` instead of `skill:x`",
        )
    if "label" in fields:
        filled(fields["label"], f"the label of `{ident}`", _NODE_HINT)
    if "type" in fields and fields["type"] not in NODE_TYPES:
        raise UsageError(
            f"the type of `{ident}` is {quoted(fields['type'])}",
            f"choose among {', '.join(NODE_TYPES)}",
        )
    return fields
