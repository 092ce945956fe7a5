"""A snapshot: what all readers of one moment share, read from the tables once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from commonplace.index.embedded.tables import state

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Mapping
    from typing import TypeAlias

    from commonplace.index.embedded.text import TextSnapshot
    from commonplace.index.ports import Card
    from commonplace.records import Record

K = TypeVar("K")
T = TypeVar("T")
if TYPE_CHECKING:
    _Read: TypeAlias = Callable[[Collection[int]], dict[int, T]]

# How many cards, records and sets of terms are kept: a few megabytes.
CACHED_MAX = 8192


class Totals(NamedTuple):
    """Facts about all lines together."""

    is_empty: bool
    # Whether any record is about another one.
    has_statements: bool
    newest_micros: int | None
    has_vectors: bool
    # How many documents have no vectors yet.
    missing_vectors: int
    # The embedder that made the vectors.
    model: str


class Cache:
    """A cache of what the readers of one snapshot have read.

    A new snapshot gets a copy of the cache without what changed, so that a reader of the old one
    cannot put it back.
    """

    def __init__(
        self,
        cards: dict[int, Card] | None = None,
        records: dict[int, Record] | None = None,
        terms: dict[int, bytes] | None = None,
        keys: dict[str, int] | None = None,
        ids: dict[int, str] | None = None,
    ) -> None:
        self._cards = {} if cards is None else cards
        self._records = {} if records is None else records
        # As they are stored: a set of them takes twenty times as much memory.
        self._terms = {} if terms is None else terms
        # The key of the current line of an id, and the id of each such key.
        self._keys = {} if keys is None else keys
        self._ids = {} if ids is None else ids

    def without(self, keys: Collection[int]) -> Cache:
        """Return a copy without the entries of *keys*."""
        cards, records, terms = self._cards.copy(), self._records.copy(), self._terms.copy()
        current, ids = self._keys.copy(), self._ids.copy()
        for key in keys:
            for copy in (cards, records, terms):
                copy.pop(key, None)
            if key in ids:
                current.pop(ids.pop(key), None)
        if len(ids) < len(current):  # Another thread has just emptied one of the two.
            current, ids = {}, {}
        return Cache(cards, records, terms, current, ids)

    def keys(
        self, ids: Collection[str], read: Callable[[Collection[str]], list[Card]]
    ) -> dict[str, int]:
        """Return the key of each of *ids*; *read* returns cards, which are kept as well."""

        def read_keys(missing: Collection[str]) -> dict[str, int]:
            cards = read(missing)
            _hold(self._cards, {card.key: card for card in cards})
            if len(self._keys) + len(cards) > CACHED_MAX:  # Both are emptied together.
                self._ids.clear()
            self._ids.update((card.key, card.id) for card in cards)
            return {card.id: card.key for card in cards}

        return _look_up(self._keys, ids, read_keys)

    def cards(self, keys: Collection[int], read: _Read[Card]) -> dict[int, Card]:
        return _look_up(self._cards, keys, read)

    def records(self, keys: Collection[int], read: _Read[Record]) -> dict[int, Record]:
        return _look_up(self._records, keys, read)

    def terms(self, keys: Collection[int], read: _Read[bytes]) -> dict[int, bytes]:
        return _look_up(self._terms, keys, read)


def _look_up(
    held: dict[K, T], keys: Collection[K], read: Callable[[Collection[K]], dict[K, T]]
) -> dict[K, T]:
    found = {key: value for key in keys if (value := held.get(key)) is not None}
    if len(found) < len(keys):
        more = read([key for key in keys if key not in found])
        _hold(held, more)
        found |= more
    return found


def _hold(held: dict[K, T], more: Mapping[K, T]) -> None:
    if len(held) + len(more) > CACHED_MAX:
        held.clear()
    held.update(more)


class Snapshot(NamedTuple):
    """An index at one moment. It never changes; a new one replaces it when the tables change."""

    # `Tables.changes` when it was made.
    version: tuple[int, int]
    # How many transactions had written the tables.
    writes: int
    text: TextSnapshot
    # How many bytes each log, and each archive, has: (repository, archived) → bytes.
    log_sizes: Mapping[tuple[str, bool], int]
    totals: Totals
    cache: Cache

    def cache_for(self, connection: sqlite3.Connection) -> Cache:
        """Return the cache, if *connection* sees the tables of this snapshot; else `None`."""
        return self.cache if state(connection, "writes") == self.writes else Cache()


def read_totals(connection: sqlite3.Connection) -> Totals:
    filled, statements, newest, vectors, missing, model = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM line),"
        " EXISTS (SELECT 1 FROM line WHERE of IS NOT NULL) OR EXISTS (SELECT 1 FROM edge),"
        " (SELECT max(micros) FROM line),"
        " EXISTS (SELECT 1 FROM vector),"
        " (SELECT count(*) FROM unembedded),"
        " (SELECT value FROM state WHERE name = 'model')"
    ).fetchone()
    return Totals(not filled, bool(statements), newest, bool(vectors), missing, model or "")
