"""The links that hold between records of several homes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.ports import Filter
from commonplace.recall.visibility import shown_cards, standings_of
from commonplace.rules import is_statement

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

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
    found: dict[str, dict[str, float]] = {ident: {} for ident in ids}
    shown: dict[str, Card | None] = {}
    waiting, limit = set(ids), count
    while waiting:
        left, cut = _ends(readers, waiting, limit, filter_)
        while left:
            # Only as many as are still missing are looked up.
            some = {ident: ends[: count - len(found[ident])] for ident, ends in left.items()}
            _look_up(readers, some, shown, filter_)
            for ident, ends in some.items():
                for end in ends:
                    is_stated = shown[end.by] is not None and end.id != ident
                    if is_stated and _is_neighbour(shown[end.id], filter_):
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
) -> tuple[dict[str, list[FarEnd]], set[str]]:
    """Return the other ends of the heaviest edges, and the ids that may have more than *limit*."""
    found: dict[str, list[FarEnd]] = {}
    cut: set[str] = set()
    for home, reader in enumerate(readers):
        if home not in filter_.without_homes:
            for ident, ends in reader.heaviest_edges(ids, limit).items():
                found.setdefault(ident, []).extend(ends)
                if len(ends) >= limit:
                    cut.add(ident)
    for ident, ends in found.items():
        ends.sort(key=lambda end: (-end.w, end.id, end.by))
        if ident in cut:
            del ends[limit:]  # An edge that was not read may be heavier than the rest.
    return found, cut


def _look_up(
    readers: Sequence[Reader],
    ends: Mapping[str, Sequence[FarEnd]],
    shown: dict[str, Card | None],
    filter_: Filter,
) -> None:
    """Add the cards of *ends*, and of what states them, to *shown*; `None` if they are hidden."""
    wanted = {name for some in ends.values() for end in some for name in (end.id, end.by)}
    missing = wanted - shown.keys()
    shown |= dict.fromkeys(missing)
    for home in reversed(range(len(readers))) if missing else ():
        if home not in filter_.without_homes:
            cards = _shown(readers, home, missing, filter_.untrusted)
            shown |= {card.id: card for card in cards}


def _is_neighbour(card: Card | None, filter_: Filter) -> bool:
    return (
        card is not None
        and not is_statement(card.kind)
        and filter_.admits(card)
        and filter_.shows(card.standing)
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
