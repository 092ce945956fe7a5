"""The meaning of short texts, as vectors, for comparing them with one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.embed.embedder import Embedder, Vectors

# More different texts than this are compared by their words alone: embedding them would take
# longer than everything else.
TEXTS_MAX = 4000
NEAREST_MAX = 8
# Leaders below this cosine are of no use to the caller, whatever its bar.
COSINE_MIN = 0.6


class Meaning:
    """Turns texts into vectors with *embedder*; without one, no two texts are alike by meaning."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder

    def vectors(self, texts: Sequence[str]) -> TextVectors:
        """Return the vectors of *texts*, by their numbers."""
        if self._embedder is None or not 1 < len(texts) <= TEXTS_MAX:
            return TextVectors(None)
        try:
            return TextVectors(self._embedder.encode(texts))
        except EmbedderUnavailable:
            return TextVectors(None)  # A service that fails; the words are there.


class TextVectors:
    """Vectors of numbered texts, or none."""

    def __init__(self, vectors: Vectors | None) -> None:
        self._cosines = None if vectors is None else vectors @ vectors.T

    @property
    def are_known(self) -> bool:
        return self._cosines is not None

    def cosine(self, one: int, other: int) -> float:
        """Return how alike the two texts are, 0 if that is not known."""
        return 0.0 if self._cosines is None else float(self._cosines[one, other])

    def nearest(self, number: int, among: Sequence[int]) -> list[int]:
        """Return the most similar texts among those numbers."""
        if self._cosines is None or not among:
            return []
        cosines = self._cosines[number, among]
        order = cosines.argsort()[::-1][:NEAREST_MAX]
        return [among[int(place)] for place in order if cosines[place] >= COSINE_MIN]
