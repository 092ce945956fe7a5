"""BM25: how well a document matches some terms. Every part that scores words uses these numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

# The constants of Lucene and Tantivy.
K1 = 1.2
B = 0.75
QUERY_TERMS_MAX = 64
IDF_MIN = 0.3
PRUNED_FROM = 10_000


class Statistics(NamedTuple):
    """The numbers that BM25 needs of all documents together."""

    documents: int
    average_terms: float
    frequencies: Mapping[str, int]

    def idf(self, term: str) -> float:
        """Return the weight of *term*: the rarer it is, the higher."""
        n = self.frequencies.get(term, 0)
        return math.log(1 + (self.documents - n + 0.5) / (n + 0.5))


def by_rarity(terms: Mapping[str, float], statistics: Statistics) -> dict[str, float]:
    """Return the question's terms with their weights, the highest for terms in no document."""
    return {term: weight * statistics.idf(term) for term, weight in terms.items()}


def score(
    counts: Mapping[str, int], length: int, weighted: Mapping[str, float], average: float
) -> float:
    """Return the BM25 score of one document.

    *counts* says how often it holds each term, *length* how many terms it has, *weighted* is the
    question `by_rarity`, *average* the average length.
    """
    norm = _norm(length, average)
    return sum(
        weight * count * (K1 + 1) / (count + norm)
        for term, weight in weighted.items()
        if (count := counts.get(term, 0))
    )


def scores(
    weighted: Mapping[str, float],
    postings: Callable[[str], Iterable[tuple[int, int]]],
    length_of: Callable[[int], int],
    average: float,
) -> dict[int, float]:
    """Return the score of every document that holds a term: key → score.

    *postings* returns the documents that hold a term, as (key, how often); *length_of* returns how
    many terms a document has.
    """
    norms: dict[int, float] = {}
    found: dict[int, float] = {}
    for term, weight in weighted.items():
        for key, count in postings(term):
            if key not in norms:
                norms[key] = _norm(length_of(key), average)
                found[key] = 0.0
            found[key] += weight * count * (K1 + 1) / (count + norms[key])
    return found


def _norm(length: int, average: float) -> float:
    return K1 * (1 - B + B * length / average)


def selective_terms(terms: Mapping[str, float], statistics: Statistics) -> Mapping[str, float]:
    """Return the terms that distinguish documents, at most `QUERY_TERMS_MAX` of them.

    In a large store, terms that nearly every document holds are left out: they do not help, and
    reading every posting of theirs would take most of the time.
    """
    if statistics.documents >= PRUNED_FROM:
        kept = {term: weight for term, weight in terms.items() if statistics.idf(term) >= IDF_MIN}
        terms = kept if any(statistics.frequencies.get(term) for term in kept) else terms
    if len(terms) <= QUERY_TERMS_MAX:
        return terms
    ranked = sorted(terms.items(), key=lambda item: -item[1] * statistics.idf(item[0]))
    return dict(ranked[:QUERY_TERMS_MAX])
