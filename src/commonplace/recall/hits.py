"""The results of recall: records with their scores and the reasons for them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.foreign import UNTRUSTED
from commonplace.index.document import Document, document
from commonplace.records import Pattern

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commonplace.index.units import Unit
    from commonplace.records import Rate, Record

    # Which document: the number of its home, and its key there.
    Address = tuple[int, int]

__all__ = ["UNTRUSTED", "Address", "Explanation", "Hit"]


NO_NUMBERS_BY_UNIT: Mapping[int, float] = MappingProxyType({})
NO_NUMBERS: Mapping[str, float] = MappingProxyType({})


class Explanation(NamedTuple):
    """Why a hit has its score: what each engine found, and every prior that is not 1."""

    words: float
    meaning: float | None
    fused: float
    factors: Mapping[str, float] = NO_NUMBERS
    # How likely the hit is to answer the question; only the best candidates have it.
    relevance: float | None = None
    # What words, meaning and coverage add to the fused score.
    parts: Mapping[str, float] = NO_NUMBERS

    def as_dict(self) -> dict[str, float]:
        """Return the numbers by their names, as `--explain` and JSON show them."""
        found = {"words": self.words}
        if self.meaning is not None:
            found["meaning"] = self.meaning
        found |= {**self.parts, "fused": self.fused, **self.factors}
        if self.relevance is not None:
            found["relevance"] = self.relevance
        return found


class Hit(NamedTuple):
    """A recalled record."""

    record: Record
    repo: str
    score: float = 0.0
    why: Explanation | None = None
    # The lines an agent reads.
    text: str = ""
    rate: Rate | None = None
    # Warnings for the reader: a newer one is above, or a file that it names is gone.
    marks: tuple[str, ...] = ()
    # Rated wrong or stale more often than it worked.
    is_doubted: bool = False
    # Whether the answer names its repository, which is not the one that was asked from.
    names_repo: bool = False
    address: Address = (0, 0)
    uses: int = 0
    parsed: Document | None = None
    # The units of its text, if the index keeps them.
    units: Sequence[Unit] | None = None
    # How well units of a long text say the question by their meaning: number → cosine.
    likeness: Mapping[int, float] = NO_NUMBERS_BY_UNIT
    # The sentence of a long text that is a newer version of a rule below it.
    statement: str = ""

    @property
    def document(self) -> Document:
        """The record as text."""
        return self.parsed or document(self.record)

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def kind(self) -> str:
        return self.record.kind

    @property
    def timestamp(self) -> str:
        return self.record.timestamp

    @property
    def lesson(self) -> str | None:
        return self.content["lesson"]

    @property
    def context(self) -> str | None:
        return self.content["context"]

    @property
    def command(self) -> str | None:
        return self.content["command"]

    @property
    def success_rate(self) -> str | None:
        return str(self.rate) if self.rate else None

    @property
    def content(self) -> dict[str, str | None]:
        """What a lesson says, as it is stored; `None` for what the record lacks."""
        stored = {name: self.record.fields.get(name) for name in ("lesson", "context", "command")}
        return {name: text if isinstance(text, str) else None for name, text in stored.items()}

    def _count(self) -> dict[str, int]:
        # A pattern has its own count, which its record states.
        return {} if isinstance(self.record, Pattern) else {"usage_count": self.uses}

    def as_dict(self) -> dict[str, Any]:
        """Return the hit as JSON shows it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "repo": self.repo,
            "timestamp": self.timestamp,
            "score": self.score,
            "text": self.text,
            **self.content,
            "success_rate": str(self.rate) if self.rate else None,
            "marks": list(self.marks),
            "record": {**self.record.fields, **self._count()},
            "why": self.why.as_dict() if self.why else {},
        }
