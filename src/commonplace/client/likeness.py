"""How near a node is to a question: by the vectors of an embedder, or by the words they share."""

from __future__ import annotations

import inspect
import math
from array import array
from operator import mul
from typing import TYPE_CHECKING, Any

from commonplace.foreign import flat
from commonplace.graph.scoring import DIGITS
from commonplace.index.terms import query_terms, term_set

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from commonplace.client.working_set import Hot
    from commonplace.records.nodes import GraphNode

    Embed = Callable[[str], Sequence[float] | Awaitable[Sequence[float]]]

# What of a node is compared: a model reads no more, and the words of a long text match anything.
TEXT_CHARS_MAX = 4000


class Likeness:
    """Compares nodes with one question."""

    def __init__(self, query: str, embed: Embed | None) -> None:
        self._terms = query_terms(query)
        self._query = query
        self._embed = embed
        self._vector = array("f")
        # Why the words are compared although there is an embedder.
        self.failure = ""

    @property
    def is_by_vectors(self) -> bool:
        """Whether vectors are compared, and not words."""
        return self._embed is not None and not self.failure

    async def of(self, hot: Mapping[str, Hot]) -> dict[str, float]:
        """Return from 0 to 1 how near each node is to the question."""
        if self._embed is not None and not self.failure:
            try:
                return await self._by_vectors(hot, self._embed)
            except Exception as error:  # noqa: BLE001 (the caller's own function: a model that is down)
                self.failure = f"{type(error).__name__}: {error}"
        return {ident: lexical(self._terms, one.node) for ident, one in hot.items()}

    async def _by_vectors(self, hot: Mapping[str, Hot], embed: Embed) -> dict[str, float]:
        if not self._vector:
            self._vector = await _vector(embed, self._query)
        model = model_of(embed)
        for one in hot.values():
            # A vector of another model says nothing about ours.
            if one.model != model or len(one.vector) != len(self._vector):
                one.vector = await _vector(embed, text_of(one.node))
                one.model = model
        return {ident: cosine(self._vector, one.vector) for ident, one in hot.items()}


def model_of(embed: Embed) -> str:
    """Return the name of the model behind *embed*: its attribute `model`, else its own name."""
    named = getattr(embed, "model", None) or getattr(embed, "__qualname__", "")
    return str(named or type(embed).__qualname__)


async def _vector(embed: Embed, text: str) -> array[float]:
    found: Any = embed(text)
    if inspect.isawaitable(found):
        found = await found
    # Kept in a file as they are compared: a restart changes no score.
    vector = array("f", found)
    if not all(map(math.isfinite, vector)):
        raise ValueError("a vector has a number that is not finite")
    return vector


def cosine(one: array[float], other: array[float]) -> float:
    """Return the cosine of two vectors; 0 if one has no direction."""
    if len(one) != len(other):
        return 0.0
    length = math.sqrt(sum(map(mul, one, one)) * sum(map(mul, other, other)))
    found = sum(map(mul, one, other)) / length if length else 0.0
    return round(found, DIGITS) if math.isfinite(found) else 0.0


def lexical(terms: Mapping[str, float], node: GraphNode) -> float:
    """Return which share of the weight of a question's *terms* the node has."""
    total = sum(terms.values())
    if not total:
        return 0.0
    there = term_set(text_of(node))
    return round(sum(weight for term, weight in terms.items() if term in there) / total, DIGITS)


def text_of(node: GraphNode) -> str:
    """Return what a node says, for comparing."""
    path = node.id.replace(".", " ")
    text = f"{node.label}\n{flat(node.payload)}\n{path} {' '.join(node.tags)}"
    return text[:TEXT_CHARS_MAX]
