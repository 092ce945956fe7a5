"""Bloom: from a few seeds along the links to what is around them, hop by hop.

Pure: who calls it says how links are read, so the server and the client library use the same one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    # The neighbours of each id, as (id, weight).
    Expand = Callable[[Sequence[str]], Mapping[str, Sequence[tuple[str, float]]]]

HOPS_MIN, HOPS_MAX = 1, 3
PER_NODE_MAX = 6
# The most nodes in a working set, and so the most that light up for one question.
NODES_MAX = 800
# The most nodes that a hop adds: those with the heaviest links to the best.
LAYER_MAX = 64


class Bloomed(NamedTuple):
    """The nodes that were reached: after how many hops, and by which link."""

    # In the order in which they were reached; a seed has 0 hops.
    hops: dict[str, int]
    # The strongest link from a node that was reached before, or as early: its weight, times how
    # strong that node is itself.
    edges: dict[str, float]


def bloom(
    seeds: Iterable[str],
    expand: Expand,
    hops: int = 2,
    per_node_max: int = PER_NODE_MAX,
    nodes_max: int = NODES_MAX,
    layer_max: int = LAYER_MAX,
    strengths: Mapping[str, float] | None = None,
) -> Bloomed:
    """Return *seeds*, which are the best first, and what is up to *hops* links away.

    *strengths* says how strong each seed is, from 0 to 1; without it, all are as strong. A link
    counts as much as its weight times the strength of the node it comes from: what the best seed
    links to goes before what a doubtful one links to. A node is as strong as its best link.

    From each node only its *per_node_max* heaviest links are followed, and each node is expanded
    once: so this ends on cycles, and a hub with thousands of links adds no more than any other
    node. Where a hop reaches more than *layer_max* nodes, or all hops more than *nodes_max*, the
    heaviest links win, of equal ones that from the better node, then the smaller id.
    """
    reached = dict.fromkeys(list(dict.fromkeys(seeds))[:nodes_max], 0)
    given = strengths or {}
    strong = {ident: given.get(ident, 1.0) for ident in reached}
    edges: dict[str, float] = {}
    layer = list(reached)
    for hop in range(1, hops + 1):
        if not layer or len(reached) >= nodes_max:
            break
        new = _links_from(layer, expand, per_node_max, reached, strong, edges)
        best = sorted(new, key=lambda ident: (*new[ident], ident))
        layer = best[: min(layer_max, nodes_max - len(reached))]
        reached |= dict.fromkeys(layer, hop)
        strong |= {ident: edges[ident] for ident in layer}
    return Bloomed(reached, {ident: edges[ident] for ident in reached if ident in edges})


def _links_from(
    layer: Sequence[str],
    expand: Expand,
    per_node_max: int,
    reached: Mapping[str, int],
    strong: Mapping[str, float],
    edges: dict[str, float],
) -> dict[str, tuple[float, int]]:
    """Note the links of *layer* in *edges*, and return the nodes that are new with their rank."""
    new: dict[str, tuple[float, int]] = {}
    neighbours = expand(layer)
    own_hop = reached[layer[0]]
    for place, ident in enumerate(layer):
        for other, weight in heaviest(neighbours.get(ident, ()), per_node_max):
            if other == ident:
                continue
            if reached.get(other, own_hop) < own_hop:
                continue  # It was there first: this link did not lead to it.
            strength = weight * strong[ident]
            edges[other] = max(edges.get(other, 0.0), strength)
            if other not in reached:
                rank = (-strength, place)
                new[other] = min(new.get(other, rank), rank)
    return new


def heaviest(neighbours: Iterable[tuple[str, float]], count: int) -> list[tuple[str, float]]:
    """Return the *count* neighbours with the greatest weights; ties are broken by id."""
    best: dict[str, float] = {}
    for ident, weight in neighbours:
        best[ident] = max(best.get(ident, weight), weight)
    return sorted(best.items(), key=lambda one: (-one[1], one[0]))[:count]
