"""The values recall works with: what is asked, what is found, and why."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from commonplace.records import Rate, Record


@dataclass(frozen=True, slots=True)
class Query:
    """What an agent asks, and what narrows it."""

    text: str
    repos: frozenset[str] | None = None
    kinds: frozenset[str] | None = None
    types: frozenset[str] | None = None
    tags: frozenset[str] = frozenset()
    agent: str | None = None
    files: tuple[str, ...] = ()
    since: str = ""
    archived: bool = False
    limit: int = 5
    cutoff: bool = True
    # Who asks unasked may want to be surer than the setting says, and nothing it was given before.
    relevance_min: float = 0.0
    without: frozenset[str] = frozenset()
    unasked: bool = False
    # Not what narrows but what is near: the repository and the agent that ask.
    here: str = ""
    asking: str = ""
    root: Path | None = None

    def with_(self, **changes: Any) -> Query:  # noqa: ANN401
        """The same question with *changes*."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Hit:
    """A recalled record with its score and the reasons for it."""

    record: Record
    repo: str
    score: float
    why: Mapping[str, float]
    text: str = ""
    rate: Rate | None = None
    marks: tuple[str, ...] = ()
    key: tuple[int, int] = (0, 0)
    uses: int = 0
    terms: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    vector: Any = field(default=None, compare=False, repr=False)

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def kind(self) -> str:
        return self.record.kind

    @property
    def timestamp(self) -> str:
        return self.record.timestamp
