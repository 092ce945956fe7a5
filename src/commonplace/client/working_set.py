"""The working set: the nodes that lit up lately, each with its resonance.

A tick is one context that is built. With every tick in which a node is not lit its resonance
decays; below the least value, or after its time to live, the node leaves the set. There are never
more nodes than the limit: those with the least resonance leave first.
"""

from __future__ import annotations

import base64
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.client import answers
from commonplace.graph.scoring import decayed
from commonplace.graph.selection import working_set
from commonplace.records.nodes import names_of
from commonplace.records.times import micros

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from commonplace.client.answers import Found
    from commonplace.records.nodes import GraphNode

_DAY_MICROS = 86_400_000_000


class Limits(NamedTuple):
    """How long nodes stay in the working set, and how many."""

    decay: float = 0.98
    value_min: float = 0.05
    ttl_hours: float = 24.0
    nodes_max: int = 800


@dataclass(slots=True)
class Hot:
    """A node in the working set."""

    node: GraphNode
    # The resonance when it was last lit, in which tick and when that was.
    value: float = 0.0
    tick: int = 0
    lit_at: str = ""
    # What is left of its resonance after a tick; 0 if the limits say it.
    decay: float = 0.0
    uses: int = 0
    last_used_at: str = ""
    # The tick in which it was last put into the set: the server returned it, or the agent wrote it.
    seen: int = 0
    # What `vector` was made from, so that a changed node gets a new one.
    model: str = ""
    vector: array[float] = field(default_factory=lambda: array("f"))


class WorkingSet:
    """The nodes by their ids."""

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008 (immutable)
        self.limits = limits
        self.tick = 0
        self.hot: dict[str, Hot] = {}

    def __contains__(self, ident: str) -> bool:
        return ident in self.hot

    def __len__(self) -> int:
        return len(self.hot)

    def node(self, ident: str) -> GraphNode | None:
        found = self.hot.get(ident)
        return found.node if found else None

    def named(self, type_: str, name: str) -> GraphNode | None:
        """Return the node of that type with that name."""
        found = (self.node(ident) for ident in names_of(type_, name))
        return next((node for node in found if node is not None and node.type == type_), None)

    def add(self, found: Found, now: str) -> None:
        """Put a node into the set, or its newer version; what is known of its use stays."""
        old = self.hot.get(found.node.id)
        if old is None:
            # What the server knows of its resonance and use is where it begins here.
            old = Hot(found.node, found.resonance, self.tick, now)
            self.hot[found.node.id] = old
        elif old.node != found.node:
            old.model, old.vector = "", array("f")
        old.node, old.decay, old.seen = found.node, found.decay, self.tick
        old.uses = max(old.uses, found.uses)
        old.last_used_at = max(old.last_used_at, found.last_used_at)
        if found.vector:
            old.model, old.vector = found.model, array("f", found.vector)

    def drop(self, ident: str) -> None:
        """Remove a node that the server no longer has."""
        del self.hot[ident]

    def was_returned(self, ident: str) -> bool:
        """Whether the server returned the node in this tick."""
        return self.hot[ident].seen == self.tick

    def longest_unseen(self) -> list[str]:
        """Return the nodes that the server did not return in this tick, the longest ago first."""
        return sorted(
            (ident for ident in self.hot if not self.was_returned(ident)),
            key=lambda ident: (self.hot[ident].seen, ident),
        )

    def value(self, ident: str) -> float:
        """Return the resonance of a node now."""
        hot = self.hot[ident]
        return decayed(hot.value, hot.decay or self.limits.decay, self.tick - hot.tick)

    def light(self, scores: Mapping[str, float], now: str) -> None:
        """Raise the resonance of nodes to their *scores*; none is lowered."""
        for ident, score in scores.items():
            hot = self.hot[ident]
            hot.value = max(score, self.value(ident))
            hot.tick, hot.lit_at = self.tick, now

    def use(self, ids: Iterable[str], now: str) -> None:
        """Count that nodes were shown."""
        for ident in ids:
            if ident in self.hot:
                hot = self.hot[ident]
                hot.uses += 1
                hot.last_used_at = now

    def prune(self, now: str) -> None:
        """Remove the nodes that have cooled down, are too old, or are too many."""
        values = {
            ident: self.value(ident)
            for ident, hot in self.hot.items()
            if age_days(hot.lit_at, now) * 24 <= self.limits.ttl_hours
        }
        kept = working_set(values, self.limits.value_min, self.limits.nodes_max)
        self.hot = {ident: hot for ident, hot in self.hot.items() if ident in kept}

    def as_dict(self) -> dict[str, Any]:
        """Return the set as it is kept in a file."""
        return {
            "tick": self.tick,
            "nodes": [
                {
                    "node": hot.node.as_dict(),
                    "value": hot.value,
                    "tick": hot.tick,
                    "lit_at": hot.lit_at,
                    "decay": hot.decay,
                    "uses": hot.uses,
                    "last_used_at": hot.last_used_at,
                    "model": hot.model,
                    "vector": base64.b64encode(hot.vector.tobytes()).decode("ascii"),
                }
                for hot in self.hot.values()
            ],
        }

    def load(self, kept: Mapping[str, Any]) -> None:
        """Take over what `as_dict` returned. Raises for anything else."""
        hot: dict[str, Hot] = {}
        for entry in kept["nodes"]:
            found = answers.node(entry["node"])
            if found is None:
                raise ValueError("a node has no id")
            vector = array("f")
            vector.frombytes(base64.b64decode(entry["vector"]))
            hot[found.node.id] = Hot(
                found.node,
                float(entry["value"]),
                int(entry["tick"]),
                str(entry["lit_at"]),
                float(entry["decay"]),
                int(entry["uses"]),
                str(entry["last_used_at"]),
                model=str(entry["model"]),
                vector=vector,
            )
        self.tick, self.hot = int(kept["tick"]), hot


def age_days(then: str, now: str) -> float:
    """Return how many days are between two times; 0 if *then* is none."""
    try:
        return max(0.0, (micros(now) - micros(then)) / _DAY_MICROS)
    except ValueError:
        return 0.0
