"""The links that hold between records of several homes."""

from __future__ import annotations

from collections import Counter
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
    readers: Sequence[Reader], ids: Collection[str], count: int, filter_: Filter
) -> dict[str, list[tuple[str, float]]]:
    """Return the *count* heaviest neighbours of each of *ids*, with the weights of the links.

    Neighbours are in either direction, by links and by children, and pass *filter_*. Equal weights
    are in the order of ids. What a record with many links costs depends on *count*.
    """
    around = Neighbourhood(readers, count, Visible(readers, filter_))
    while True:
        found = {ident: ends[:count] for ident, ends in around.expand(ids).items()}
        if not around.refuse([(ident, end) for ident, ends in found.items() for end, _w in ends]):
            return found


class Neighbourhood:
    """The heaviest links of records, as lines state them; whether they hold is asked later.

    A line may be hidden, and so may the record at the other end. To find that out takes most of the
    time, and few of the links that are looked at matter in the end.
    """

    def __init__(self, readers: Sequence[Reader], count: int, visible: Visible) -> None:
        self._readers = readers
        # So many of each record must be right.
        self._count = count
        self._visible = visible
        self._ends: dict[str, list[tuple[int, FarEnd]]] = {}
        # How many were read of those that may have more, and how many were refused.
        self._read: dict[str, int] = {}
        self._refused = Counter[str]()

    def expand(self, ids: Collection[str]) -> dict[str, list[tuple[str, float]]]:
        """Return the neighbours of each of *ids*, the heaviest first, without those refused."""
        self._fill([ident for ident in ids if ident not in self._ends], self._count)
        found: dict[str, list[tuple[str, float]]] = {}
        for ident in ids:
            while len(best := _distinct(self._ends[ident])) < self._count and ident in self._read:
                self._fill([ident], 8 * self._read[ident])
            found[ident] = list(best.items())
        return found

    def refuse(self, links: Collection[tuple[str, str]]) -> bool:
        """Whether one of *links*, as (from, to), does not hold. It is not returned again."""
        asked: dict[str, set[str]] = {}
        for ident, other in links:
            asked.setdefault(ident, set()).add(other)
        wanted: dict[str, list[tuple[int, FarEnd]]] = {}
        for ident, others in asked.items():
            ends = self._ends[ident]
            last = max((at for at, one in enumerate(ends, 1) if one[1].id in others), default=0)
            # Where many were refused, many more will be: ask about them at once.
            more = ends[last : last + self._refused[ident]]
            wanted[ident] = [one for one in ends[:last] if one[1].id in others] + more
        self._visible.look_up(end for ends in wanted.values() for end in ends)
        is_any = False
        for ident, ends in wanted.items():
            gone = {one for one in ends if not self._visible.holds(*one)}
            if gone:
                is_any = True
                self._refused[ident] += len(gone)
                self._ends[ident] = [one for one in self._ends[ident] if one not in gone]
        return is_any

    def _fill(self, ids: Collection[str], limit: int) -> None:
        """Read the *limit* heaviest links of *ids*, in each direction and home."""
        if not ids:
            return
        found: dict[str, list[tuple[int, FarEnd]]] = {ident: [] for ident in ids}
        cut: set[str] = set()
        for home, reader in enumerate(self._readers):
            if home not in self._visible.filter.without_homes:
                for ident, ends in reader.heaviest_edges(ids, limit).items():
                    found[ident] += [(home, end) for end in ends if end.id != ident]
                    if len(ends) >= limit:
                        cut.add(ident)
        for ident, stated in found.items():
            stated.sort(key=lambda one: (-one[1].w, one[1].id, one[0], one[1].by))
            if ident in cut:
                del stated[limit:]  # An edge that was not read may be heavier than the rest.
                self._read[ident] = limit
            else:
                self._read.pop(ident, None)
            self._ends[ident] = [one for one in stated if not self._visible.refuses(*one)]


def _distinct(ends: Iterable[tuple[int, FarEnd]]) -> dict[str, float]:
    """Return each other end with the weight of its heaviest link; *ends* are the heaviest first."""
    found: dict[str, float] = {}
    for _home, end in ends:
        found.setdefault(end.id, end.w)
    return found


class Visible:
    """Which ids may be shown, and which lines may state an edge; each is looked up once."""

    def __init__(self, readers: Sequence[Reader], filter_: Filter) -> None:
        self._readers = readers
        self.filter = filter_
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

    def holds(self, home: int, end: FarEnd) -> bool:
        """Whether an edge that was looked up is stated by a line that is shown, and ends at one."""
        return (home, end.by) in self.stating and end.id in self.cards

    def refuses(self, home: int, end: FarEnd) -> bool:
        """Whether an edge was looked up and does not hold."""
        is_known = end.id in self._known and (home, end.by) in self._known_lines
        return is_known and not self.holds(home, end)

    def _find(self, ids: set[str], lines: set[Address]) -> None:
        ids -= self._known
        lines -= self._known_lines
        self._known |= ids
        self._known_lines |= lines
        if not (ids or lines):
            return
        anything = self.filter.with_(archived=True, superseded=True, kinds=None)
        for home, reader in enumerate(self._readers):
            if home in self.filter.without_homes:
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
            (self.filter.archived or not card.archived)
            and self.filter.admits_kind(card)
            and self.filter.shows(card.standing)
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
