"""Which records may be shown from several homes, whose records can hide one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.rules import SeveralHomes, standings, tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from commonplace.index.ports import Card, Filter, Reader


def shown_cards(
    readers: Sequence[Reader], home: int, cards: Iterable[Card], filter_: Filter
) -> list[Card]:
    """Return those of *cards*, from that home, that pass the filter and are not hidden."""
    admitted = [card for card in cards if filter_.admits(card)]
    if len(readers) > 1 and admitted:
        admitted = _combine_homes(readers, home, admitted)
    return [card for card in admitted if filter_.shows(card.standing)]


def _combine_homes(readers: Sequence[Reader], home: int, cards: Sequence[Card]) -> list[Card]:
    """Return *cards* with the standings of all homes, without those that a nearer home has."""
    ids = {card.id for card in cards}
    for nearer in readers[:home]:
        ids -= nearer.keys(ids).keys()
    kept = [card for card in cards if card.id in ids]
    if not kept or not any(reader.has_statements() for reader in readers):
        return kept
    standing = standings(ids, SeveralHomes(readers))
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
