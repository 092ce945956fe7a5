"""Which of the nodes that lit up are shown: the best of each type, so that no type is all of them.

Pure: the server and the client library use the same functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commonplace.graph.scoring import lowered
from commonplace.records.nodes import NODE_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from commonplace.settings import Settings

# How many nodes of each type a context has at most.
CAPS: dict[str, int] = {
    "concept": 8,
    "skill": 6,
    "fact": 10,
    "snippet": 10,
    "pattern": 4,
    "episode": 6,
    "tool": 4,
    "persona": 1,
    "task": 2,
}


# A tool must be this much more like the question than other nodes.
TOOL_SIMILARITY = 2.0


class Scored(NamedTuple):
    """A node by its id, with its type and score."""

    id: str
    type: str
    score: float


def caps_from_settings(settings: Settings) -> dict[str, int]:
    """Return the caps of the settings `context.caps.…`."""
    return {name: int(settings[f"context.caps.{name}"]) for name in NODE_TYPES}


def select(scored: Iterable[Scored], caps: Mapping[str, int] = CAPS) -> list[Scored]:
    """Return the best of each type, at most as many as *caps* allows; the best of all first.

    A type without a cap is left out. Ties are broken by id.
    """
    kept: list[Scored] = []
    counts: dict[str, int] = {}
    for one in by_score(scored):
        count = counts.get(one.type, 0)
        if count < caps.get(one.type, 0):
            counts[one.type] = count + 1
            kept.append(one)
    return kept


def is_tool_listed(
    *,
    is_linked: bool,
    own_tags: Iterable[str],
    tags: Iterable[str],
    similarity: float,
    similarity_min: float,
) -> bool:
    """Whether a tool that lit up is one to name: links lead to many that have nothing to do here.

    It is linked to the task or the persona, has one of the *tags* of the task, or is clearly like
    the question.
    """
    return (
        is_linked
        or not lowered(own_tags).isdisjoint(lowered(tags))
        or similarity >= TOOL_SIMILARITY * similarity_min
    )


def by_score(scored: Iterable[Scored]) -> list[Scored]:
    """Return *scored* in order, the best first; ties are broken by id."""
    return sorted(scored, key=lambda one: (-one.score, one.id))


def working_set(values: Mapping[str, float], value_min: float, size_max: int) -> dict[str, float]:
    """Return those of *values* that stay in the working set: no smaller ones, and not too many."""
    kept = sorted((-value, ident) for ident, value in values.items() if value >= value_min)
    return {ident: -value for value, ident in kept[:size_max]}
