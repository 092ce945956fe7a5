"""The interface of the index for recall: values and protocols.

SQL and search engines are used only in the package that implements them. An engine is an `Index`; a
question reads from a `Reader`, which shows the home at one moment, now or in the past. Many readers
may be open at once, each used by one thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from commonplace.index.bm25 import Statistics
from commonplace.records.nodes import KINDS_OF_TYPE, NODE_KIND, NODE_TYPES
from commonplace.rules import NO_FEEDBACK, Facts, Standing, Tally, add_feedback, is_private
from commonplace.values import Values

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from contextlib import AbstractContextManager

    from commonplace.embed.embedder import Embedder, Encoded, Vector
    from commonplace.index.units import Unit
    from commonplace.records import Rate, Record
    from commonplace.rules import Edge
    from commonplace.where.home import Home


# The kinds of records that a home may have many of: those that are nodes.
COMMON_KINDS = frozenset(kind for kinds in KINDS_OF_TYPE.values() for kind in kinds)


def kind_to_match(kind: str, type_: str) -> str:
    """Return the name of a kind for searches: nodes that count as what they are have one each."""
    return f"{kind}.{type_}" if kind == NODE_KIND else kind


def no_progress(_done: int) -> None:
    """Ignore progress, for callers that do not show it."""


class Filter(Values):
    """Which records may be in an answer."""

    repos: frozenset[str] | None = None
    kinds: frozenset[str] | None = None
    # Nodes of these types pass besides: their kind is `node`, and they count as what they are.
    node_types: frozenset[str] = frozenset()
    types: frozenset[str] | None = None
    tags: frozenset[str] = frozenset()
    agent: str | None = None
    since_micros: int | None = None
    until_micros: int | None = None
    archived: bool = False
    superseded: bool = False
    without: frozenset[str] = frozenset()
    # The agent that asks: notes of other agents are hidden from it.
    reader: str = ""
    # Homes, by their numbers, whose records are left out.
    without_homes: frozenset[int] = frozenset()
    # Homes, by their numbers, that came with a repository which the user has not trusted.
    untrusted: frozenset[int] = frozenset()

    def admits(self, card: Card) -> bool:
        """Whether the record of *card* passes the filter, whatever its standing."""
        return not (
            (card.archived and not self.archived)
            # Skills and notes belong to the home, not to one repository in it.
            or (self.repos is not None and card.repo and card.repo not in self.repos)
            or not self.admits_kind(card)
            or (self.types is not None and card.lesson_type not in self.types)
            or (self.tags and self.tags.isdisjoint(card.tags))
            or (self.agent is not None and card.agent != self.agent)
            or (self.since_micros is not None and card.micros < self.since_micros)
            or (self.until_micros is not None and card.micros > self.until_micros)
            or card.id in self.without
            or is_private(card.kind, card.agent, self.agent or self.reader)
        )

    def admits_kind(self, card: Card) -> bool:
        """Whether a record of the kind of *card* passes."""
        return (
            self.kinds is None
            or card.kind in self.kinds
            or (card.kind == NODE_KIND and card.event_type in self.node_types)
        )

    def kinds_to_match(self) -> frozenset[str] | None:
        """Return the kinds that may pass, as `kind_to_match` names them.

        `None` is all of them, or nearly all: a search that need not look at the kinds is faster,
        and the few of another kind are dropped by their cards.
        """
        if self.kinds is None or self.kinds >= COMMON_KINDS:
            return None
        types = NODE_TYPES if NODE_KIND in self.kinds else self.node_types
        return self.kinds | {kind_to_match(NODE_KIND, one) for one in types}

    def shows(self, standing: Standing) -> bool:
        """Whether a record of this standing may be in the answer."""
        return standing is Standing.CURRENT or (self.superseded and standing is Standing.SUPERSEDED)


class Card(NamedTuple):
    """The fields of a record that ranking needs, without the record itself."""

    key: int
    id: str
    log: str
    repo: str
    kind: str
    timestamp: str
    micros: int
    agent: str
    # The type of a lesson, or of a record of the kind `node`.
    event_type: str
    tags: tuple[str, ...]  # In lower case.
    archived: bool
    standing: Standing
    # The success rate that the record states, and the feedback about it.
    stated: Rate | None = None
    feedback: Tally = NO_FEEDBACK
    # What a pattern says of itself: how sure it is, and how often it was used.
    confidence: float = 0.0
    used: int = 0

    @property
    def lesson_type(self) -> str:
        """The type of a lesson; "" of any other record."""
        return "" if self.kind == NODE_KIND else self.event_type

    @property
    def rate(self) -> Rate | None:
        """The success rate with the feedback counted in; `None` if nobody ever tried it."""
        return add_feedback(self.stated, self.feedback)


class FarEnd(NamedTuple):
    """The other end of an edge, its weight, and the key of the line that states the edge."""

    id: str
    w: float
    by: int


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
    """A home at one moment. It is also the `Facts` of the rules about records."""

    def cards(self, keys: Collection[int]) -> dict[int, Card]:
        """Return the cards of the lines that are current at this moment among *keys*."""

    def units(self, keys: Collection[int]) -> dict[int, list[Unit]]:
        """Return the units of the texts that have markup, of the lines with *keys*."""

    def keys(self, ids: Collection[str]) -> dict[str, int]:
        """Return the key of the current line of each of *ids*, whatever its standing."""

    def first_keys(self, ids: Collection[str]) -> dict[str, int]:
        """Return the lowest key of the lines of each of *ids*, whatever their standing."""

    def ids_beside(self, ident: str) -> list[str]:
        """Return the ids just before and after *ident* in their order, of lines of any standing."""

    def records(self, keys: Collection[int]) -> dict[int, Record]: ...

    def record_bytes(self, keys: Collection[int]) -> int:
        """Return the size of the lines of *keys* together."""

    def select(self, filter_: Filter, *, newest: int | None = None) -> list[Card]:
        """Return the shown records that pass, in the order of their lines; or only the *newest*."""

    def pages(self, filter_: Filter) -> Iterator[list[Card]]:
        """Yield what `select` returns, some at a time: there may be a million of them."""

    def records_after(self, key: int, kinds: Collection[str]) -> Iterator[tuple[int, str, Record]]:
        """Yield the current records of *kinds* with a key over *key*: key, log, record."""

    def versions(self, ids: Collection[str]) -> dict[str, list[tuple[str, Record]]]:
        """Return every version of each of *ids*, the oldest first, with the log that has it."""

    def newest_versions(self, ident: str, limit: int, without_type: str = "") -> list[Record]:
        """Return the last *limit* versions of a record, the newest first.

        Those with that `event_type` are left out.
        """

    def newest_of_topic(self, name: str, limit: int, *, versions: bool = False) -> list[int]:
        """Return the keys of the last *limit* records of a topic (`topics.py`), the newest first.

        With *versions*, those of all their versions.
        """

    def build(self) -> str:
        """Return what tells this index from one that was built again, whose keys are others."""

    def counts(self, filter_: Filter) -> list[Count]:
        """Count the shown records that pass, by repository, kind and event type.

        Statements are not counted.
        """

    def edges(self, ids: Collection[str], rel: str | None = None) -> list[Edge]:
        """Return the edges at either end of *ids* that current lines state, with their weights."""

    def heaviest_edges(self, ids: Collection[str], limit: int) -> dict[str, list[FarEnd]]:
        """Return the heaviest edges of each of *ids* in either direction, at most *limit* of each.

        The cost depends on *limit*, not on how many edges a record has. Lines that are no longer
        current are among those that state them.
        """

    def feedback(self, ids: Collection[str]) -> dict[str, dict[str, str]]:
        """Return the feedback about each of *ids*: feedback id → outcome."""

    def has_statements(self) -> bool:
        """Whether any record is about another one; most homes have no such record."""

    def newest_micros(self) -> int | None:
        """Return the time of the newest line."""

    def log_bytes(self, repos: Collection[str] | None, *, archived: bool) -> int:
        """Return the size of the logs of *repos*, or of all; with *archived* their archives too."""

    # --- Words ------------------------------------------------------------------------------------

    def statistics(self, terms: Collection[str]) -> Statistics: ...

    def match(
        self,
        terms: Mapping[str, float],
        statistics: Statistics,
        filter_: Filter,
        limit: int,
    ) -> list[tuple[int, float]]:
        """Return the best *limit* documents with any of the weighted *terms*: (key, BM25 score).

        Of *filter_*, only repositories and kinds are applied here.
        """

    def term_sets(self, keys: Collection[int]) -> dict[int, frozenset[int]]:
        """Return the terms each document holds, as `terms.term_hash` numbers."""

    # --- Meaning ----------------------------------------------------------------------------------

    def has_vectors(self) -> bool: ...

    def nearest(self, vector: Vector, limit: int) -> dict[int, float]:
        """Return the documents with the most similar passages: key → cosine."""

    def begin_nearest(
        self, question: Callable[[], Encoded], limit: int
    ) -> Callable[[], dict[int, float]]:
        """Begin what `nearest` does, beside other work if it takes long; return what ends it."""
        ...

    def similarity(self, vector: Vector, keys: Collection[int]) -> dict[int, float]:
        """Return the cosine of the best passage of each of *keys* that has a vector."""

    def best_passages(self, vector: Vector, keys: Collection[int]) -> dict[int, int]:
        """Return which passage of each of *keys* is most like *vector*, counted from 0."""

    def unit_similarity(self, question: Encoded, key: int) -> dict[int, float]:
        """Return how well each unit of a long document says the question, as `piece_similarity`.

        Empty for a short one, and without codes of pieces.
        """
        ...

    def piece_similarity(self, question: Encoded, keys: Collection[int]) -> dict[int, float]:
        """Return how well the best passage of each of *keys* says the question, piece by piece.

        Those whose word pieces the index does not have are not in it.
        """

    def first_vectors(self, keys: Collection[int]) -> dict[int, Vector]:
        """Return the vector of the first passage of each of *keys* that has one."""


class Index(Protocol):
    """One home's index. It repairs itself by a rebuild from the files."""

    home: Home
    # Whether the owner calls `commit_if_due`, so that no question waits for a commit.
    commits_in_background: bool

    @property
    def in_memory(self) -> bool:
        """Whether it is in the memory of this process, because the home cannot hold it."""

    def catch_up(self, progress: Callable[[int], None] = no_progress) -> None:
        """Bring it up to date with the files."""

    def is_commit_due(self) -> bool:
        """Whether much postponed work is left, such as merging new documents."""

    def commit_if_due(self) -> None:
        """Do postponed work, if there is much of it; for a background thread."""

    def reading(self, as_of_micros: int | None = None) -> AbstractContextManager[Reader]:
        """Open a reader of the index as it is now, or as it was at that time."""

    def rebuild(self, progress: Callable[[int], None] = no_progress) -> None:
        """Delete it and build it again from the files."""

    def repair(self, error: BaseException) -> bool:
        """Build it again if *error* came from a broken part of it; return whether it did."""

    def missing_vectors(self) -> int:
        """Return how many documents have no vectors yet."""

    def is_empty(self) -> bool: ...

    def use_model(self, name: str) -> None:
        """Keep vectors of the embedder *name*; drop those of another one, to make them again."""

    def embed(self, embedder: Embedder, documents_max: int) -> int:
        """Give up to *documents_max* documents their vectors; return how many got them."""

    def check_vector_length(self, length: int) -> None:
        """Raise `EmbedderUnavailable` if its vectors do not have *length* numbers."""

    def is_replaced(self) -> bool:
        """Whether another process has removed or replaced it."""

    def status(self) -> Status: ...

    def close(self) -> None: ...
