"""What the index offers to recall: values and protocols, whatever engine keeps them.

No SQL and nothing of a search engine outside the engine that implements these. An engine is an
`Index`; a question reads from a `Reader`, which shows the home at one moment, now or in the past.
Many readers may be open at once, each used by one thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from commonplace.index.bm25 import Statistics
from commonplace.rules import NO_FEEDBACK, Facts, Standing, Tally, is_private

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from contextlib import AbstractContextManager

    from commonplace.embed.embedder import Embedder, Vector
    from commonplace.records import Rate, Record
    from commonplace.rules import Edge
    from commonplace.where.home import Home


def no_progress(_done: int) -> None:
    """For callers that do not show how far a long piece of work is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which records may be in an answer."""

    repos: frozenset[str] | None = None
    kinds: frozenset[str] | None = None
    types: frozenset[str] | None = None
    tags: frozenset[str] = frozenset()
    agent: str | None = None
    since_micros: int | None = None
    archived: bool = False
    superseded: bool = False
    without: frozenset[str] = frozenset()
    # The agent that asks: notes of other agents are hidden from it.
    reader: str = ""

    def admits(self, card: Card) -> bool:
        """Whether the record behind *card* passes, whatever its standing."""
        return not (
            (card.archived and not self.archived)
            # Skills and notes belong to the home, not to one repository in it.
            or (self.repos is not None and card.repo and card.repo not in self.repos)
            or (self.kinds is not None and card.kind not in self.kinds)
            or (self.types is not None and card.event_type not in self.types)
            or (self.tags and self.tags.isdisjoint(card.tags))
            or (self.agent is not None and card.agent != self.agent)
            or (self.since_micros is not None and card.micros < self.since_micros)
            or card.id in self.without
            or is_private(card.kind, card.agent, self.agent or self.reader)
        )

    def shows(self, standing: Standing) -> bool:
        """Whether a record of this standing may be in the answer."""
        return standing is Standing.CURRENT or (self.superseded and standing is Standing.SUPERSEDED)


class Card(NamedTuple):
    """What ranking needs to know of a record, without reading the record itself."""

    key: int
    id: str
    log: str
    repo: str
    kind: str
    timestamp: str
    micros: int
    agent: str
    event_type: str
    tags: tuple[str, ...]  # In lower case.
    archived: bool
    standing: Standing
    rate: Rate | None = None
    feedback: Tally = NO_FEEDBACK


class Count(NamedTuple):
    """How many records of one repository, kind and event type there are."""

    repo: str
    kind: str
    event_type: str
    archived: bool
    records: int


class Status(NamedTuple):
    """The state of an index, for `commonplace index status`."""

    home: str
    schema: int
    records: int
    waiting: int
    vectors: int
    vectors_missing: int
    model: str
    bytes: int
    in_memory: bool


class Reader(Facts, Protocol):
    """What a home holds at one moment. It also answers the rules about records (`Facts`)."""

    def cards(self, keys: Collection[int]) -> dict[int, Card]:
        """The cards of the lines that are current at this moment among *keys*."""

    def keys(self, ids: Collection[str]) -> dict[str, int]:
        """The key of the current line of each of *ids*, whatever its standing."""

    def records(self, keys: Collection[int]) -> dict[int, Record]: ...

    def select(self, filter_: Filter, *, newest: int | None = None) -> list[Card]:
        """The shown records that pass, in the order of their lines; or the *newest* so many."""

    def counts(self, filter_: Filter) -> list[Count]:
        """How many shown records pass, by repository, kind and event type. Statements are none."""

    def edges(self, ids: Collection[str], rel: str | None = None) -> list[Edge]:
        """The edges at either end of *ids* that current lines state, with their weights."""

    def feedback(self, ids: Collection[str]) -> dict[str, dict[str, str]]:
        """The feedback about each of *ids*: feedback id → outcome."""

    def has_statements(self) -> bool:
        """Whether any record speaks about another; most homes have none, and need not be asked."""

    def newest_micros(self) -> int | None:
        """The time of the newest line."""

    def log_bytes(self, repos: Collection[str] | None, *, archived: bool) -> int:
        """How many bytes the logs of *repos* hold, or all logs; with *archived* their archives too."""

    # --- Words ------------------------------------------------------------------------------------

    def statistics(self, terms: Collection[str]) -> Statistics: ...

    def match(
        self,
        terms: Mapping[str, float],
        statistics: Statistics,
        filter_: Filter,
        limit: int,
    ) -> list[tuple[int, float]]:
        """The best *limit* documents that hold any of the weighted *terms*: (key, BM25 score).

        Of *filter_*, only repositories and kinds are applied here.
        """

    def term_sets(self, keys: Collection[int]) -> dict[int, frozenset[int]]:
        """The terms each document holds, as `terms.term_hash` numbers."""

    # --- Meaning ----------------------------------------------------------------------------------

    def has_vectors(self) -> bool: ...

    def nearest(self, vector: Vector, limit: int) -> dict[int, float]:
        """The documents with the most similar passages: key → cosine."""

    def similarity(self, vector: Vector, keys: Collection[int]) -> dict[int, float]:
        """The cosine of the best passage of each of *keys* that has a vector."""

    def first_vectors(self, keys: Collection[int]) -> dict[int, Vector]:
        """The vector of the first passage of each of *keys* that has one."""


class Index(Protocol):
    """One home's index. It is derived: it repairs itself by being built again."""

    home: Home
    # Whether the owner calls `commit_if_due`, so that no question waits for a commit.
    commits_in_background: bool

    @property
    def in_memory(self) -> bool:
        """Whether it could not be kept in the home, and lives in this process."""

    def catch_up(self, progress: Callable[[int], None] = no_progress) -> None:
        """Bring it up to date with the files."""

    def is_commit_due(self) -> bool:
        """Whether much work was put off, such as merging what is new."""

    def commit_if_due(self) -> None:
        """Do work that was put off, if it is much; for a background thread."""

    def reading(self, as_of_micros: int | None = None) -> AbstractContextManager[Reader]:
        """A reader of what it holds now, or of what it held at that time."""

    def rebuild(self, progress: Callable[[int], None] = no_progress) -> None:
        """Throw it away and make it again from the files."""

    def repair(self, error: BaseException) -> bool:
        """Build it again if *error* came from a broken part of it; returns whether it did."""

    def missing_vectors(self) -> int:
        """How many documents have no vectors yet."""

    def is_empty(self) -> bool: ...

    def use_model(self, name: str) -> None:
        """Keep vectors of the embedder *name*; those of another one are dropped and made again."""

    def embed(self, embedder: Embedder, documents_max: int) -> int:
        """Give up to *documents_max* documents their vectors; returns how many got them."""

    def check_vector_length(self, length: int) -> None:
        """Raise `EmbedderUnavailable` if its vectors do not have *length* numbers."""

    def is_replaced(self) -> bool:
        """Whether another process has removed or replaced it."""

    def status(self) -> Status: ...

    def close(self) -> None: ...
