"""The protocol of embedders, and the choice of one by the settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from commonplace.embed.http import HttpEmbedder
from commonplace.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy import float32
    from numpy.typing import NDArray

    Vector = NDArray[float32]
    Vectors = NDArray[float32]


class Embedder(Protocol):
    """Turns texts into vectors of one length. Vectors of different embedders are never mixed."""

    name: str

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 for each of *texts*, in their order."""
        ...


class Encoded(NamedTuple):
    """What an embedder makes of a text: its vector, and those of its word pieces if it has them."""

    vector: Vector
    # Each of length 1. Punctuation and the most frequent words of English are left out.
    pieces: Vectors | None = None


@runtime_checkable
class PieceEmbedder(Embedder, Protocol):
    """An embedder that also says what each word piece means where it stands."""

    def encode_pieces(self, texts: Sequence[str]) -> list[Encoded]:
        """Return the vector of each of *texts*, and those of its word pieces."""
        ...

    def count_pieces(self, text: str) -> int:
        """Return how many word pieces of *text* get a vector, if it is not too long."""
        ...


def encode(embedder: Embedder, texts: Sequence[str]) -> list[Encoded]:
    """Return what *embedder* makes of *texts*, with word pieces if it has them."""
    if isinstance(embedder, PieceEmbedder):
        return embedder.encode_pieces(texts)
    return [Encoded(vector) for vector in embedder.encode(texts)]


def load(
    kind: str,
    *,
    url: str = "",
    model: str = "",
    key_variable: str = "",
    for_one_query: bool = False,
) -> Embedder:
    """Return the embedder that the settings name; raise `EmbedderUnavailable` if there is none."""
    if kind == "http":
        if not url:
            raise EmbedderUnavailable(
                "`embedder.kind` is http but `embedder.url` is empty", "set both"
            )
        return HttpEmbedder(url, model, os.environ.get(key_variable, "") if key_variable else "")
    if kind == "none":
        raise EmbedderUnavailable(
            "vectors are switched off", 'set `embedder.kind = "minilm"` to have them'
        )
    from commonplace.embed.minilm import MiniLM  # noqa: PLC0415 (loads a model)

    return MiniLM.load(for_one_query=for_one_query)
