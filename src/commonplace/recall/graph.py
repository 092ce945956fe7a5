"""The links that hold between records of several homes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.ports import Filter
from commonplace.recall.visibility import shown_cards, standings_of
from commonplace.rules import is_statement

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from commonplace.index.ports import Card, FarEnd, Reader
    from commonplace.recall.hits import Address
    from commonplace.records import Record
    from commonplace.rules import Edge


class Statement(NamedTuple):
    """A link, and the record that states it: a link record, or one of its two ends."""

    edge: Edge
    record: Record


def statements(
    readers: Sequence[Reader],
    ids: Collection[str],
    untrusted: frozenset[int] = frozenset(),
    rel: str | None = None,
) -> list[Statement]:
    """Return the links at either end of *ids* that records state which are not hidden.

    A home that is not trusted speaks for its own records only.
    """
    if not any(reader.has_statements() for reader in readers):
        return []
    found: list[Statement] = []
    theirs = _only_in(readers, ids, untrusted)
    for home, reader in enumerate(readers):
        asked = theirs if home in untrusted else set(ids) - theirs
        edges = reader.edges(asked, rel) if asked else []
        by = {edge.by for edge in edges}
        cards = {card.id: card for card in _shown(readers, home, by, untrusted)}
        records = reader.records([card.key for card in cards.values()])
        found += [
            Statement(edge, records[cards[edge.by].key]) for edge in edges if edge.by in cards
        ]
    return found


def shown(
    readers: Sequence[Reader], ids: Collection[str], untrusted: frozenset[int] = frozenset()
) -> dict[str, tuple[Address, Card]]:
    """Return the address and the card of each of *ids* that is a record and not hidden."""
    found: dict[str, tuple[Address, Card]] = {}
    for home in range(len(readers)):
        for card in _shown(readers, home, ids, untrusted):
            if not is_statement(card.kind):
                found.setdefault(card.id, ((home, card.key), card))
    return found


def heaviest(
    readers: Sequence[Reader],
    ids: Collection[str],
    count: int,
    filter_: Filter,
    visible: Visible | None = None,
) -> dict[str, list[tuple[str, float]]]:
    """Return the *count* heaviest neighbours of each of *ids*, with the weights of the links.

    Neighbours are in either direction, by links and by children, and pass *filter_*. Equal weights
    are in the order of ids. What a record with many links costs depends on *count*. *visible*
    knows what was looked up before, with the same filter.
    """
    found: dict[str, dict[str, float]] = {ident: {} for ident in ids}
    visible = visible or Visible(readers, filter_)
    waiting, limit = set(ids), count
    while waiting:
        left, cut = _ends(readers, waiting, limit, filter_)
        while left:
            # Only as many as are still missing are looked up.
            some = {ident: ends[: count - len(found[ident])] for ident, ends in left.items()}
            visible.look_up(end for ends in some.values() for end in ends)
            for ident, ends in some.items():
                for home, end in ends:
                    if (home, end.by) in visible.stating and end.id in visible.cards:
                        found[ident].setdefault(end.id, end.w)
            left = {
                ident: rest
                for ident, ends in left.items()
                if len(found[ident]) < count and (rest := ends[len(some[ident]) :])
            }
        waiting = {ident for ident in cut if len(found[ident]) < count}
        limit *= 8
    return {ident: list(ends.items()) for ident, ends in found.items()}


def _ends(
    readers: Sequence[Reader], ids: Collection[str], limit: int, filter_: Filter
) -> tuple[dict[str, list[tuple[int, FarEnd]]], set[str]]:
    """Return the other ends of the heaviest edges with the homes that state them.

    And the ids that may have more than *limit*.
    """
    found: dict[str, list[tuple[int, FarEnd]]] = {}
    cut: set[str] = set()
    for home, reader in enumerate(readers):
        if home not in filter_.without_homes:
            for ident, ends in reader.heaviest_edges(ids, limit).items():
                found.setdefault(ident, []).extend((home, end) for end in ends if end.id != ident)
                if len(ends) >= limit:
                    cut.add(ident)
    for ident, stated in found.items():
        stated.sort(key=lambda one: (-one[1].w, one[1].id, one[0], one[1].by))
        if ident in cut:
            del stated[limit:]  # An edge that was not read may be heavier than the rest.
    return found, cut


class Visible:
    """Which ids may be shown, and which lines may state an edge; each is looked up once."""

    def __init__(self, readers: Sequence[Reader], filter_: Filter) -> None:
        self._readers = readers
        self._filter = filter_
        self._decided = standings_of(readers)
        self._known: set[str] = set()
        self._known_lines: set[Address] = set()
        # Where each id that may be shown is, and its card.
        self.cards: dict[str, tuple[Address, Card]] = {}
        self.stating: set[Address] = set()

    def look_up(self, ends: Iterable[tuple[int, FarEnd]]) -> None:
        """Find out about the other ends of some edges, and the lines that state them."""
        ids: set[str] = set()
        lines: set[Address] = set()
        for home, end in ends:
            ids.add(end.id)
            lines.add((home, end.by))
        self._find(ids, lines)

    def find(self, ids: Collection[str]) -> dict[str, tuple[Address, Card]]:
        """Return those of *ids* that may be shown: where each is, and its card."""
        self._find(set(ids), set())
        return {ident: self.cards[ident] for ident in ids if ident in self.cards}

    def _find(self, ids: set[str], lines: set[Address]) -> None:
        ids -= self._known
        lines -= self._known_lines
        self._known |= ids
        self._known_lines |= lines
        if not (ids or lines):
            return
        anything = replace(self._filter, archived=True, superseded=True, kinds=None)
        for home, reader in enumerate(self._readers):
            if home in self._filter.without_homes:
                continue
            keys = set(reader.keys(ids).values())
            stating = {key for number, key in lines if number == home}
            cards = reader.cards(keys | stating).values()
            for card in shown_cards(self._readers, home, cards, anything, self._decided):
                if card.key in stating:
                    self.stating.add((home, card.key))
                if card.key in keys and not is_statement(card.kind) and self._passes(card):
                    self.cards.setdefault(card.id, ((home, card.key), card))

    def _passes(self, card: Card) -> bool:
        """Whether a card that passed without these conditions passes the filter."""
        return (
            (self._filter.archived or not card.archived)
            and self._filter.admits_kind(card)
            and self._filter.shows(card.standing)
        )


def _shown(
    readers: Sequence[Reader], home: int, ids: Iterable[str], untrusted: frozenset[int]
) -> list[Card]:
    reader = readers[home]
    cards = reader.cards(list(reader.keys(set(ids)).values())).values()
    anything = Filter(archived=True, superseded=True, untrusted=untrusted)
    return shown_cards(readers, home, cards, anything, standings_of(readers))


def _only_in(
    readers: Sequence[Reader], ids: Collection[str], untrusted: frozenset[int]
) -> set[str]:
    """Return those of *ids* that only homes which are not trusted have."""
    if not untrusted:
        return set()
    own = {
        ident
        for number, reader in enumerate(readers)
        if number not in untrusted
        for ident in reader.keys(set(ids))
    }
    return set(ids) - own
