"""Bloom: from a few seeds along the links to what is around them, hop by hop.

Pure: who calls it says how links are read, so the server and the client library use the same one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    # The neighbours of each id, as (id, weight).
    Expand = Callable[[Sequence[str]], Mapping[str, Sequence[tuple[str, float]]]]
    # Whether one of these links, as (from, to), does not hold; the next `Expand` leaves it out.
    Refuse = Callable[[Collection[tuple[str, str]]], bool]

HOPS_MIN, HOPS_MAX = 1, 3
PER_NODE_MAX = 6
# The most nodes in a working set, and so the most that light up for one question.
NODES_MAX = 800
# The most nodes that a hop adds: those with the heaviest links to the best.
LAYER_MAX = 32


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
    refuse: Refuse | None = None,
) -> Bloomed:
    """Return *seeds*, which are the best first, and what is up to *hops* links away.

    *strengths* says how strong each seed is, from 0 to 1; without it, all are as strong. A link
    counts as much as its weight times the strength of the node it comes from: what the best seed
    links to goes before what a doubtful one links to. A node is as strong as its best link.

    From each node only its *per_node_max* heaviest links are followed, never one of weight 0, and
    each node is expanded once: so this ends on cycles, and a hub with thousands of links adds no
    more than any other node. Where a hop reaches more than *layer_max* nodes, or all hops more than
    *nodes_max*, the heaviest links win, of equal ones that from the better node, then the smaller
    id.

    If *expand* returns links that may not hold, *refuse* checks them: only those that decide the
    result, which are a few of all that were expanded.
    """
    reached = dict.fromkeys(list(dict.fromkeys(seeds))[:nodes_max], 0)
    given = strengths or {}
    strong = {ident: given.get(ident, 1.0) for ident in reached}
    edges: dict[str, float] = {}
    layer = list(reached)
    for hop in range(1, hops + 1):
        room = min(layer_max, nodes_max - len(reached))
        if not layer or room <= 0:
            break
        while True:
            links = _links_from(layer, expand(layer), per_node_max, reached, strong)
            new = [ident for ident in links.best if ident not in reached]
            best = sorted(new, key=links.order)[:room]
            if refuse is None or not refuse(links.deciding(best, layer, len(best) == room)):
                break
        for ident in (*best, *layer):
            if ident in links.best:
                edges[ident] = max(edges.get(ident, 0.0), -links.best[ident].rank)
        layer = best
        reached |= dict.fromkeys(layer, hop)
        strong |= {ident: edges[ident] for ident in layer}
    return Bloomed(reached, edges)


class _Link(NamedTuple):
    """A link to a node: minus its strength, and the place of its start in the layer."""

    rank: float
    place: int
    start: str


class _Links(NamedTuple):
    # The strongest link to each node.
    best: dict[str, _Link]
    # The links of a node that are not followed, as (end, link), after those that are.
    waiting: list[tuple[list[str], list[tuple[str, _Link]]]]

    def order(self, ident: str) -> tuple[float, int, str]:
        """Return what nodes are sorted by, the one with the strongest link first."""
        link = self.best[ident]
        return link.rank, link.place, ident

    def deciding(
        self, new: Sequence[str], layer: Sequence[str], is_full: bool
    ) -> list[tuple[str, str]]:
        """Return the links on which it depends that the nodes in *new* were chosen, the best first.

        And how strong these and those of *layer* are. Those are the strongest link to each, and the
        links of a node that another one waits for which would count. *is_full* is whether there is
        no room for more nodes.
        """
        chosen = frozenset([*new, *layer])
        last = self.order(new[-1]) if new else None
        found = [(self.best[ident].start, ident) for ident in chosen if ident in self.best]
        for followed, waiting in self.waiting:
            if any(self._would_count(end, link, chosen, last, is_full) for end, link in waiting):
                found += [(waiting[0][1].start, end) for end in followed]
        return found

    def _would_count(
        self,
        end: str,
        link: _Link,
        chosen: frozenset[str],
        last: tuple[float, int, str] | None,
        is_full: bool,
    ) -> bool:
        if end in chosen:
            return end not in self.best or link[:2] < self.best[end][:2]
        return not is_full or last is None or (link.rank, link.place, end) < last


def _links_from(
    layer: Sequence[str],
    neighbours: Mapping[str, Sequence[tuple[str, float]]],
    per_node_max: int,
    reached: Mapping[str, int],
    strong: Mapping[str, float],
) -> _Links:
    """Return the strongest link of *layer* to each node that was not reached before it."""
    best: dict[str, _Link] = {}
    all_waiting: list[tuple[list[str], list[tuple[str, _Link]]]] = []
    own_hop = reached[layer[0]]
    for place, ident in enumerate(layer):
        strength = strong[ident]
        given = neighbours.get(ident, ())
        # A weight of 0 says that the one has nothing to do with the other.
        ends = [end for end in heaviest(given, len(given)) if end[1] > 0]
        waiting: list[tuple[str, _Link]] = []
        for number, (other, weight) in enumerate(ends):
            # What was reached before was there first: this link did not lead to it.
            if other == ident or reached.get(other, own_hop) < own_hop:
                continue
            link = _Link(-(weight * strength), place, ident)
            if number >= per_node_max:
                waiting.append((other, link))
            elif (known := best.get(other)) is None or link[:2] < known[:2]:
                best[other] = link
        if waiting:
            all_waiting.append(([other for other, _weight in ends[:per_node_max]], waiting))
    return _Links(best, all_waiting)


def heaviest(neighbours: Iterable[tuple[str, float]], count: int) -> list[tuple[str, float]]:
    """Return the *count* neighbours with the greatest weights; ties are broken by id."""
    best: dict[str, float] = {}
    for ident, weight in neighbours:
        best[ident] = max(best.get(ident, weight), weight)
    return sorted(best.items(), key=lambda one: (-one[1], one[0]))[:count]
