"""The overlay: documents added since the last commit of the text index, searched in memory.

A commit of the text index costs tens of milliseconds, so a few documents wait here until there are
enough of them. Readers of an older moment share it: it only grows, and they skip the keys
that are newer than theirs.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.terms import term_hash

if TYPE_CHECKING:
    from collections.abc import Sequence


class Waiting(NamedTuple):
    """A document in the overlay."""

    repo: str
    kind: str
    micros: int
    length: int
    hashes: frozenset[int]


class Overlay:
    """An inverted index of a few hundred documents."""

    def __init__(self) -> None:
        self.documents: dict[int, Waiting] = {}
        # For each term, (key, how often the document holds it), in the order of the keys.
        self.postings: dict[str, list[tuple[int, int]]] = {}

    def add(self, key: int, repo: str, kind: str, micros: int, terms: Sequence[str]) -> None:
        """Add a document by its terms."""
        counts = Counter(terms)
        for term, count in counts.items():
            self.postings.setdefault(term, []).append((key, count))
        hashes = frozenset(map(term_hash, counts))
        self.documents[key] = Waiting(repo, kind, micros, len(terms), hashes)
