"""The links that hold between records of several homes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.ports import Filter
from commonplace.recall.visibility import shown_cards, standings_of
from commonplace.rules import is_statement

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from commonplace.index.ports import Card, Reader
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
