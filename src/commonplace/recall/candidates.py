"""Candidates: what is known of the documents the engines propose, beside how well they match."""

from __future__ import annotations

import math
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.document import Document, document
from commonplace.index.terms import term_set
from commonplace.recall import priors
from commonplace.recall.hits import Hit
from commonplace.recall.visibility import NO_FEEDBACK, feedback_of, hidden_ids, wants
from commonplace.records import Lesson, Rate, parse_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from commonplace.index.index import Index
    from commonplace.index.store import Row
    from commonplace.recall.hits import Query
    from commonplace.recall.priors import Weights

    # The number of its home, and its key there.
    Place = tuple[int, int]


class Proposal(NamedTuple):
    """A document either engine proposes: where it is and what the engines think of it."""

    place: Place
    words: float
    meaning: float | None
    fused: float


class _Known(NamedTuple):
    row: Row
    rate: Rate | None
    uses: int
    factors: Mapping[str, float]
    prior: float


class Candidates:
    """The documents of one question, each read once, whoever proposes it and whenever.

    Reading costs more than finding, and what the words propose can be read while the model is at the question.
    """

    def __init__(
        self, indexes: Sequence[Index], query: Query, uses: Callable[[str], int], weights: Weights
    ) -> None:
        self._indexes = indexes
        self._query = query
        self._uses = uses
        self._weights = weights
        self._newest = _newest(indexes)
        # Those that may not be shown are known too, as nothing.
        self._known: dict[Place, _Known | None] = {}
        self._said: dict[Place, tuple[Document, frozenset[str]]] = {}

    def read(self, places: Iterable[Place]) -> None:
        """Read those of *places* that were not, and weigh their priors."""
        fresh = [place for place in places if place not in self._known]
        self._known |= dict.fromkeys(fresh)
        for book, index in enumerate(self._indexes):
            keys = [key for home, key in fresh if home == book]
            rows = (
                [row for row in index.store.rows(keys).values() if wants(row, self._query)]
                if keys
                else []
            )
            hidden = hidden_ids(self._indexes, {row.id: (book, row) for row in rows})
            feedback = feedback_of(index, [row.id for row in rows])
            for row in rows:
                if row.id not in hidden:
                    self._known[book, row.key] = self._weighed(
                        row, feedback.get(row.id, NO_FEEDBACK)
                    )

    def _weighed(self, row: Row, feedback: Mapping[str, int]) -> _Known:
        rate, uses = _rate(row, feedback), self._uses(row.id)
        factors = priors.factors(
            row, self._query, rate, feedback, uses, self._newest, self._weights
        )
        return _Known(row, rate, uses, factors, math.prod(factors.values()))

    def read_closely(self, scores: Mapping[Place, float], count: int) -> None:
        """Of what was read, read the texts of the *count* that lead if *scores* are all there is."""
        leading = [
            (known.prior * score, place)
            for place, score in scores.items()
            if (known := self._known.get(place))
        ]
        for _score, place in sorted(leading, reverse=True)[:count]:
            self._text(place)

    def _text(self, place: Place) -> tuple[Document, frozenset[str]]:
        if place not in self._said:
            known = self._known[place]
            assert known is not None
            found = document(known.row.record)
            self._said[place] = found, term_set(found.text)
        return self._said[place]

    def said(self, hit: Hit) -> tuple[Document, frozenset[str]]:
        """What *hit* says, and its terms."""
        return self._text(hit.key)

    def hits(self, proposals: Sequence[Proposal]) -> list[Hit]:
        """Those of *proposals* that are current, visible and wanted, as hits with their priors."""
        self.read(one.place for one in proposals)
        return [
            _hit(one, known) for one in proposals if (known := self._known[one.place]) is not None
        ]


def _hit(found: Proposal, known: _Known) -> Hit:
    why = {"words": round(found.words, 4)}
    if found.meaning is not None:
        why["meaning"] = round(found.meaning, 4)
    why["fused"] = round(found.fused, 4)
    why |= known.factors
    score = round(found.fused * known.prior, 6)
    return Hit(
        known.row.record,
        known.row.repo,
        score,
        why,
        rate=known.rate,
        key=found.place,
        uses=known.uses,
    )


_stated_rate = lru_cache(1024)(parse_rate)  # There are few, and forty are read for every question.


def _rate(row: Row, feedback: Mapping[str, int]) -> Rate | None:
    stated = row.record.success_rate if isinstance(row.record, Lesson) else ""
    base = _stated_rate(stated) if stated else Rate(0, 0)
    tried = base.tried + feedback["worked"] + feedback["failed"]
    return Rate(base.worked + feedback["worked"], tried) if tried else None


def _newest(indexes: Sequence[Index]) -> datetime:
    times = [
        str(time)
        for index in indexes
        for (time,) in index.store.column("SELECT max(timestamp) FROM doc")
        if time
    ]
    return datetime.fromisoformat(max(times, default="1970-01-01T00:00:00Z"))
