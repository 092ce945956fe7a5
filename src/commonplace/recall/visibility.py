"""Which records may be shown from several homes, whose records can hide one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.rules import SeveralHomes, Standings, tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from commonplace.index.ports import Card, Filter, Reader


def shown_cards(
    readers: Sequence[Reader],
    home: int,
    cards: Iterable[Card],
    filter_: Filter,
    decided: Standings | None = None,
) -> list[Card]:
    """Return those of *cards*, from that home, that pass the filter and are not hidden.

    A question that asks page by page gives the same *decided* (`standings_of`) each time.
    """
    if home in filter_.without_homes:
        return []
    admitted = [card for card in cards if filter_.admits(card)]
    if filter_.untrusted and admitted:
        admitted = _keep_apart(readers, home, admitted, filter_.untrusted)
    elif len(readers) > 1 and admitted:
        admitted = _combine_homes(readers, home, admitted, decided or standings_of(readers))
    return [card for card in admitted if filter_.shows(card.standing)]


def _keep_apart(
    readers: Sequence[Reader], home: int, cards: Sequence[Card], untrusted: frozenset[int]
) -> list[Card]:
    """Return *cards* by what their own home says, without those whose id a trusted home has.

    An untrusted home could forget, supersede, rate or replace the user's records. So homes are not
    combined while there is one: it is the nearest of two.
    """
    if home not in untrusted:
        return list(cards)
    ids = {card.id for card in cards}
    for number, reader in enumerate(readers):
        if number not in untrusted:
            ids -= reader.keys(ids).keys()
    return [card for card in cards if card.id in ids]


def standings_of(readers: Sequence[Reader]) -> Standings:
    """Return the standings over all homes."""
    return Standings(SeveralHomes(readers))


def _combine_homes(
    readers: Sequence[Reader], home: int, cards: Sequence[Card], decided: Standings
) -> list[Card]:
    """Return *cards* with the standings of all homes, without those that a nearer home has."""
    ids = {card.id for card in cards}
    for nearer in readers[:home]:
        ids -= nearer.keys(ids).keys()
    kept = [card for card in cards if card.id in ids]
    if not kept or not any(reader.has_statements() for reader in readers):
        return kept
    standing = decided.of(ids)
    feedback: dict[str, dict[str, str]] = {}
    for reader in reversed(readers):  # The nearest home's feedback replaces others.
        for ident, outcomes in reader.feedback(ids).items():
            feedback.setdefault(ident, {}).update(outcomes)
    return [
        card._replace(
            standing=standing[card.id], feedback=tally(feedback.get(card.id, {}).values())
        )
        for card in kept
    ]
