"""Memories that contradict each other: both are marked, and shown one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.recall import graph
from commonplace.rules import Standing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from commonplace.index.ports import Reader
    from commonplace.recall.dedupe import Entry
    from commonplace.recall.hits import Address

    # Of each record, the records that contradict it.
    Conflicts = Mapping[str, Mapping[str, Address]]

MARK = "contradicts {}"


def find(
    readers: Sequence[Reader], ids: Collection[str], untrusted: frozenset[int] = frozenset()
) -> dict[str, dict[str, Address]]:
    """Return what contradicts each of *ids*, as far as both are current."""
    edges = [one.edge for one in graph.statements(readers, ids, untrusted, "contradicts")]
    if not edges:
        return {}
    ends = graph.shown(readers, {end for edge in edges for end in (edge.of, edge.to)}, untrusted)
    current = {
        ident: address
        for ident, (address, card) in ends.items()
        if card.standing is Standing.CURRENT
    }
    found: dict[str, dict[str, Address]] = {}
    for edge in edges:
        for one, other in ((edge.of, edge.to), (edge.to, edge.of)):
            if one == other or one not in current or other not in current:
                continue
            # A home that is not trusted says nothing about records of the user.
            is_across = (current[one][0] in untrusted) != (current[other][0] in untrusted)
            if not is_across:
                found.setdefault(one, {})[other] = current[other]
    return found


def show_together(
    entries: Sequence[Entry],
    conflicts: Conflicts,
    fetch: Callable[[Address], Entry | None],
    limit: int,
) -> list[Entry]:
    """Return the best *limit* entries, each followed by what contradicts it, all marked.

    What contradicts one of them is shown whether or not it fits the question; *fetch* returns it,
    unless the filters exclude it.
    """
    by_id = {entry.candidate.card.id: entry for entry in entries}
    placed: dict[str, Entry] = {}
    for entry in entries:
        _place(entry, conflicts, placed)
        others = conflicts.get(entry.candidate.card.id, {}) if limit > 1 else {}
        for ident, address in others.items():
            other = None if ident in placed else by_id.get(ident) or fetch(address)
            if other is not None:
                _place(other._replace(score=entry.score), conflicts, placed)
        if len(placed) >= limit:
            break
    return list(placed.values())[:limit]


def _place(entry: Entry, conflicts: Conflicts, placed: dict[str, Entry]) -> None:
    ident = entry.candidate.card.id
    marks = [MARK.format(other) for other in conflicts.get(ident, ())]
    placed.setdefault(ident, entry._replace(marks=(*entry.marks, *marks)))
