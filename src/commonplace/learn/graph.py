"""Records as a graph: what links them, and which are alike, in the homes of a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.lookup import FoundRecord
from commonplace.recall import graph
from commonplace.recall import neighbours as nearest

if TYPE_CHECKING:
    from collections.abc import Collection

    from commonplace.recall.graph import Statement
    from commonplace.recall.neighbours import Neighbour
    from commonplace.recaller import Recaller


def statements(memory: Recaller, ids: Collection[str]) -> list[Statement]:
    """Return the links at either end of *ids*, and the records that state them."""
    with memory.engine().reading() as readers:
        return graph.statements(readers, ids, _untrusted(memory))


def shown(memory: Recaller, ids: Collection[str]) -> dict[str, FoundRecord]:
    """Return those of *ids* that are records and not hidden."""
    with memory.engine().reading() as readers:
        return {
            ident: FoundRecord(
                readers[home].records([key])[key],
                home,
                card.log,
                card.standing,
                card.rate,
                card.feedback,
            )
            for ident, ((home, key), card) in graph.shown(readers, ids, _untrusted(memory)).items()
        }


def neighbours(
    memory: Recaller, ids: Collection[str], kinds: Collection[str], count: int
) -> dict[str, list[Neighbour]]:
    """Return the *count* records of the nearest home that are most like each of *ids*."""
    with memory.engine().reading() as readers:
        return nearest.find(readers, 0, ids, frozenset(kinds), count)


def order_written(memory: Recaller, ids: Collection[str]) -> dict[str, int]:
    """Return numbers that tell in which order *ids* were written into a log of the nearest home."""
    with memory.engine().reading() as readers:
        return readers[0].first_keys(ids)


def _untrusted(memory: Recaller) -> frozenset[int]:
    return frozenset(n for n, home in enumerate(memory.homes) if not memory.trusts(home))
