"""The resonance score of a node: a weighted sum of six signals, each from 0 to 1.

    score = similarity + edge + recency + usage + task affinity + persona, each times its weight

Pure functions: the server and the client library use the same ones.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from commonplace.records.nodes import GraphNode
    from commonplace.settings import Settings

# Scores are rounded, so that two machines that add in another order have the same ranks.
DIGITS = 6
# A node that was used this often has the full signal.
USES_FULL = 50
# The drift of a context is that of so many of its best nodes.
DRIFT_NODES = 3


class Weights(NamedTuple):
    """How much each signal is worth."""

    similarity: float = 0.45
    edge: float = 0.20
    recency: float = 0.15
    usage: float = 0.10
    task: float = 0.07
    persona: float = 0.03

    @classmethod
    def from_settings(cls, settings: Settings) -> Weights:
        """Return the weights of the settings `context.weights.…`."""
        return cls(*(float(settings[f"context.weights.{name}"]) for name in cls._fields))


class Signals(NamedTuple):
    """What the score of a node is made of, each from 0 to 1."""

    # The cosine of the node and the question, or how many of the question's words it has.
    similarity: float = 0.0
    # The weight of its strongest link to a node that was found before it.
    edge: float = 0.0
    recency: float = 0.0
    usage: float = 0.0
    task: float = 0.0
    persona: float = 0.0


def score(signals: Signals, weights: Weights = Weights()) -> float:  # noqa: B008 (immutable)
    """Return the weighted sum of *signals*."""
    found = 0.0
    for signal, weight in zip(signals, weights, strict=True):
        if weight and signal:
            found += weight * (signal if 0.0 < signal <= 1.0 else _share(signal))
    return round(found, DIGITS)


def _share(value: float) -> float:
    """Return *value* between 0 and 1; what is no number is 0."""
    return min(1.0, max(0.0, value)) if value == value else 0.0  # noqa: PLR0124 (NaN)


def recency(age_days: float, half_life_days: float) -> float:
    """Return 1 for something new, and half as much after every *half_life_days*.

    Whole days count: a context that is built a second later has the same scores.
    """
    return math.pow(0.5, max(0, math.floor(age_days)) / half_life_days)


def usage(uses: float) -> float:
    """Return 0 for a node that was never used, 1 from `USES_FULL` uses on."""
    return min(1.0, math.log1p(max(0.0, uses)) / math.log1p(USES_FULL))


def task_affinity(node: GraphNode, tags: Collection[str]) -> float:
    """Return which share of the *tags* of the task the node has, as a tag or in its path."""
    return affinity(words_of(node), lowered(tags)) if tags else 0.0


def affinity(words: Collection[str], wanted: Collection[str]) -> float:
    """Return which share of *wanted* is among the *words* of a node."""
    if not wanted:
        return 0.0
    return sum(word in words for word in wanted) / len(wanted)


def lowered(tags: Iterable[str]) -> frozenset[str]:
    """Return *tags* in lower case."""
    return frozenset(tag.lower() for tag in tags)


def words_of(node: GraphNode) -> set[str]:
    """Return the tags of a node, its domain tags, and the parts of its path, in lower case."""
    domain = node.meta.get("domain_tags", ())
    more = map(str, domain) if isinstance(domain, list | tuple) else ()
    return words_in(node.id, (*node.tags, *more))


def words_in(ident: str, tags: Iterable[str]) -> set[str]:
    """Return *tags* and the parts of the path *ident*, in lower case."""
    return {*map(str.lower, tags), *ident.lower().split(".")}


def persona_weights(persona: GraphNode | None) -> dict[str, float]:
    """Return the weight of each node that the active *persona* links to, and of itself."""
    if persona is None:
        return {}
    found = {persona.id: 1.0}
    for link in persona.links:
        found[link.to] = max(found.get(link.to, 0.0), link.w)
    return found


def persona_weight(
    node: GraphNode, linked: Mapping[str, float], persona: GraphNode | None
) -> float:
    """Return how near the node is to the persona: linked to it, or which share of its tags it has.

    *linked* are the `persona_weights` of the same persona.
    """
    if persona is None:
        return 0.0
    return max(linked.get(node.id, 0.0), task_affinity(node, persona.tags))


def decayed(value: float, decay: float, ticks: int) -> float:
    """Return what is left of *value* after *ticks* in which the node was not lit."""
    return float(value * decay ** max(0, ticks))


def is_covered(nodes: Iterable[GraphNode], tags: Collection[str]) -> bool | None:
    """Return whether one of *nodes* is of the domain of a task; `None` for a task without tags."""
    return any(task_affinity(node, tags) for node in nodes) if tags else None


def drift(similarities: Sequence[float]) -> float | None:
    """Return how far the best nodes are from the question, from 0 to 1; `None` without nodes.

    *similarities* are those of the nodes that are shown, the best node first.
    """
    best = similarities[:DRIFT_NODES]
    # A cosine of rounded vectors may be a little over 1.
    return round(min(1.0, max(0.0, 1 - mean(best))), 4) if best else None


def mean(values: Iterable[float]) -> float:
    """Return the mean of *values*; 0 if there are none."""
    found = list(values)
    return sum(found) / len(found) if found else 0.0
