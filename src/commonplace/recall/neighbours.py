"""The records of a repository that are most like a given one, by meaning and by words."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.document import document
from commonplace.index.ports import Filter
from commonplace.index.terms import query_terms
from commonplace.recall.dedupe import overlap
from commonplace.recall.visibility import shown_cards, standings_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from commonplace.index.ports import Reader

TERMS_MAX = 40
# Other repositories and kinds are among the nearest, and are left out afterwards.
NEAREST_SHARE = 4


class Neighbour(NamedTuple):
    """A record, and how much it is like another: cosine (0 without vectors), share of words."""

    id: str
    cosine: float
    overlap: float


def find(
    readers: Sequence[Reader], home: int, ids: Collection[str], kinds: frozenset[str], count: int
) -> dict[str, list[Neighbour]]:
    """Return the *count* records of that home most like each of *ids*, in the same repository."""
    reader, decided = readers[home], standings_of(readers)
    keys = reader.keys(ids)
    records = reader.records(list(keys.values()))
    vectors = reader.first_vectors(list(keys.values()))
    found: dict[str, list[Neighbour]] = {}
    for ident, key in keys.items():
        record, vector = records[key], vectors.get(key)
        filter_ = Filter(repos=frozenset([record.repo]), kinds=kinds)
        wanted = dict(list(query_terms(document(record).text).items())[:TERMS_MAX])
        matched = reader.match(wanted, reader.statistics(wanted), filter_, count)
        near = {} if vector is None else reader.nearest(vector, NEAREST_SHARE * count)
        others = {*near, *(other for other, _score in matched)} - {key}
        cards = shown_cards(readers, home, reader.cards(others).values(), filter_, decided)
        others = {card.key for card in cards}
        if vector is not None:
            near |= reader.similarity(vector, others - near.keys())
        terms = reader.term_sets([key, *others])
        rows = [
            Neighbour(card.id, near.get(card.key, 0.0), overlap(terms[key], terms[card.key]))
            for card in cards
            if card.key in terms and key in terms
        ]
        rows.sort(key=lambda one: (-one.cosine, -one.overlap, one.id))
        found[ident] = rows[:count]
    return found
