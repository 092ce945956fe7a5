"""What an orchestrator may be told to do differently."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commonplace.client.working_set import Limits
from commonplace.graph.bloom import HOPS_MAX, HOPS_MIN, PER_NODE_MAX
from commonplace.graph.scoring import Weights
from commonplace.graph.selection import CAPS

if TYPE_CHECKING:
    from collections.abc import Mapping


class Options(NamedTuple):
    """The defaults are those of the settings `context.…` of the server."""

    hops: int = 2
    per_node_max: int = PER_NODE_MAX
    # How many seeds are asked for: by meaning, and of the task.
    seeds_max: int = 32
    weights: Weights = Weights()
    caps: Mapping[str, int] = CAPS
    limits: Limits = Limits()
    knowledge_share: float = 0.5
    half_life_days: float = 30.0
    # The least likeness to the question of a node that no link leads to.
    similarity_min: float = 0.15
    # With fewer seeds by meaning, nodes with the task's tags are added.
    sparse_below: int = 3
    # The maximum number of calls that look for linked nodes, in one context.
    lookups_max: int = 12

    def hops_checked(self) -> int:
        """Return the number of hops, from 1 to 3."""
        return min(HOPS_MAX, max(HOPS_MIN, self.hops))
