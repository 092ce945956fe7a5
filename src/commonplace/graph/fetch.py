"""Read nodes and their neighbours by id, many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.errors import UsageError
from commonplace.index.ports import Filter
from commonplace.recall import graph
from commonplace.records.nodes import node_of, type_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from commonplace.recaller import Recaller
    from commonplace.records.nodes import GraphNode


def node(memory: Recaller, ident: str) -> GraphNode:
    """Return the node with that id, or with the one id that starts with it.

    A superseded node is returned as well, and one of a home that is not trusted.
    Raises `RecordNotFound`, and `UsageError` for a record that is no node, such as feedback.
    """
    found = nodes(memory, [ident], superseded=True, untrusted=True).get(ident)
    if found is not None:
        return found
    record = memory.get(ident)
    if not type_of(record):
        raise UsageError(
            f"`{record.id}` is of the kind {record.kind}, and no node of the graph",
            f"`commonplace show {record.id}` shows it",
        )
    return node_of(record)


def nodes(
    memory: Recaller,
    ids: Collection[str],
    *,
    superseded: bool = False,
    untrusted: bool = False,
) -> dict[str, GraphNode]:
    """Return those of *ids* that are nodes and not hidden, by id, in the order of *ids*.

    Records of homes that the user does not trust are left out unless *untrusted* is set, and
    superseded and archived ones unless *superseded* is.
    """
    filter_ = visible(memory, superseded=superseded, untrusted=untrusted)
    found: dict[str, GraphNode] = {}
    with memory.engine().reading() as readers:
        by_home: dict[int, list[int]] = {}
        shown = graph.shown(readers, set(ids), filter_.untrusted)
        for (home, key), card in shown.values():
            may_pass = filter_.admits(card) and filter_.shows(card.standing)
            if may_pass and home not in filter_.without_homes:
                by_home.setdefault(home, []).append(key)
        for home, keys in by_home.items():
            for record in readers[home].records(keys).values():
                if type_of(record):
                    found[record.id] = node_of(record)
    return {ident: found[ident] for ident in dict.fromkeys(ids) if ident in found}


def neighbours(
    memory: Recaller, ids: Collection[str], per_node_max: int
) -> dict[str, list[tuple[str, float]]]:
    """Return the *per_node_max* heaviest neighbours of each of *ids*, with the weights of links.

    In both directions, children and parents too; the heaviest first, equal ones by id. Homes that
    the user does not trust are left out.
    """
    if per_node_max < 1:
        raise UsageError(f"the number of neighbours is {per_node_max}, under 1")
    with memory.engine().reading() as readers:
        return graph.heaviest(readers, set(ids), per_node_max, visible(memory))


def visible(memory: Recaller, *, superseded: bool = False, untrusted: bool = False) -> Filter:
    """Return the filter of the records that this agent sees in the graph."""
    distrusted = frozenset(n for n, home in enumerate(memory.homes) if not memory.trusts(home))
    return Filter(
        archived=superseded,
        superseded=superseded,
        reader=memory.agent_id,
        untrusted=distrusted,
        without_homes=frozenset() if untrusted else distrusted,
    )
