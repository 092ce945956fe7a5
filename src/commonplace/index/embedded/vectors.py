"""Vectors of passages: stored as bytes, searched exactly if few, by their signs if many."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from commonplace.errors import EmbedderUnavailable
from commonplace.index.document import document
from commonplace.index.embedded.tables import select_in, state
from commonplace.index.passages import passages_to_embed
from commonplace.records import from_line
from commonplace.rules import Standing

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Sequence
    from threading import RLock

    from numpy.typing import NDArray

    from commonplace.embed.embedder import Embedder, Vector, Vectors
    from commonplace.index.embedded.tables import Tables

    Ints = NDArray[np.int64]
    Bytes = NDArray[np.int8]
    Words = NDArray[np.uint64]
    Distances = NDArray[np.unsignedinteger[Any]]
    # A word of the query's signs, its mask, and the same word of each row.
    Column = tuple[np.uint64, np.uint64, Words]

# Up to this number all vectors are compared; above it the sign bits choose some.
EXACT_MAX = 3_000
SHORTLIST = 800
# Dimensions below this share of the question's mean are ignored.
LARGE_VALUE_MIN = 0.5
SCALE = 127.0
SCAN_ROWS = 32_768
FETCHED_ROWS = 256
WORD_BITS = 64
# A byte can count the bits of this many words without overflow. It is half of 384 signs.
WORDS_A_BYTE = 3
# From this number on, half of the signs choose that many vectors, and all signs choose from those.
HALVES_MIN = 300_000
HALVES_CHOSEN = 30_000
# How many rows, or one in how many, are kept apart before their keys are sorted into the rest.
UNSORTED_MAX = 4096
UNSORTED_SHARE = 64
SAMPLE = 20_000
GONE_SHARE_MAX = 0.1
COUNTED_FROM = 1000


class VectorSnapshot(NamedTuple):
    """The vectors at one moment. Any number of threads may use it: the arrays are never changed.

    They have room at their end, in which later vectors are written; *size* says how far this
    snapshot goes.
    """

    size: int
    keys: Ints
    rows: Bytes
    # The rows as floats, while all of them are compared; their signs, when they are too many.
    floats: Vectors | None
    signs: Words | None
    # The keys in order, each with its row. Later vectors are apart, until they are many.
    sorted_keys: Ints
    sorted_rows: Ints
    later_keys: Ints
    later_rows: Ints

    def nearest(self, query: Vector, limit: int) -> dict[int, float]:
        """Return the documents with the most similar passages: key → cosine."""
        if not self.size:
            return {}
        # A search for many documents has a filter that few of them pass.
        chosen = max(SHORTLIST, 4 * limit)
        if self.signs is None or chosen >= self.size:
            keys = self.keys[: self.size]
            vectors = self.rows if self.floats is None else self.floats
            scores = cosines(vectors[: self.size], query)
        else:
            rows = self._shortlist(query, chosen)
            keys = self.keys[rows]
            scores = cosines(self.rows[rows], query)
        best = _top(scores, 4 * limit)  # A document may have several passages.
        return best_by_key(keys[best], scores[best], limit)

    def similarity(self, query: Vector, keys: Collection[int]) -> dict[int, float]:
        """Return the cosine of the best passage of each of *keys* that has a vector."""
        rows = self._rows_of(keys)
        if not len(rows):
            return {}
        return best_by_key(self.keys[rows], cosines(self.rows[rows], query), len(keys))

    def first(self, keys: Collection[int]) -> dict[int, Vector]:
        """Return the vector of each document's first passage."""
        rows = self._rows_of(keys)
        # Of several rows with one key, the first is set last and so stays.
        backwards = rows[::-1]
        return dict(
            zip(self.keys[backwards].tolist(), to_floats(self.rows[backwards]), strict=True)
        )

    def _rows_of(self, keys: Collection[int]) -> Ints:
        """Return the rows of the vectors of *keys*, in order."""
        if not self.size or not keys:
            return np.zeros(0, np.int64)
        wanted = np.fromiter(keys, np.int64, len(keys))
        found = np.concatenate(
            [
                _look_up(wanted, self.sorted_keys, self.sorted_rows),
                _look_up(wanted, self.later_keys, self.later_rows),
            ]
        )
        found.sort()
        return found

    def _shortlist(self, query: Vector, chosen: int) -> Ints:
        """Return about *chosen* rows whose signs differ least from the query's large values.

        It scans 48 bytes of each vector. Of many vectors it scans only half of the signs, those
        that matter most to the query, and the other half of the nearest ones.
        """
        assert self.signs is not None, "the caller checks this"
        sizes = np.abs(query)
        sure = np.where(sizes >= LARGE_VALUE_MIN * sizes.mean(), sizes, np.float32(0))
        wanted, masks = (signs_of(row.reshape(1, -1))[:, 0] for row in (query, sure))
        # How much each word of signs matters: the sum of the query's values in it.
        by_word = np.add.reduceat(sure, range(0, len(sure), WORD_BITS))
        order = np.argsort(-by_word, kind="stable")
        columns = [(wanted[at], masks[at], self.signs[: self.size, at]) for at in order]
        half, rest = columns[:WORDS_A_BYTE], columns[WORDS_A_BYTE:]
        distance = _distances(half, self.size)
        if self.size < HALVES_MIN:
            return _nearest_rows(_sum(distance, rest), chosen)
        rows = _nearest_rows(distance, HALVES_CHOSEN)
        rest = [(word, mask, column[rows]) for word, mask, column in rest]
        near: Ints = rows[_nearest_rows(_sum(distance[rows], rest), chosen)]
        return near


def _sum(distance: Distances, columns: Sequence[Column]) -> Distances:
    """Return *distance* with that of other words added, in numbers that can hold the sum."""
    found: Distances = distance.astype(np.uint16)
    for at in range(0, len(columns), WORDS_A_BYTE):
        np.add(found, _distances(columns[at : at + WORDS_A_BYTE], len(found)), out=found)
    return found


def _distances(columns: Sequence[Column], count: int) -> Distances:
    """Return for each row how many of its signs under the masks differ from those wanted.

    Bytes are added several times as fast as anything wider.
    """
    assert len(columns) <= WORDS_A_BYTE, "more would not fit in a byte"
    found = np.zeros(count, np.uint8)
    differing, bits = np.empty(SCAN_ROWS, np.uint64), np.empty(SCAN_ROWS, np.uint8)
    for start in range(0, count, SCAN_ROWS):  # These rows fit in the processor's cache.
        part = found[start : start + SCAN_ROWS]
        rows = len(part)
        xor, ones = differing[:rows], bits[:rows]
        for word, mask, column in columns:
            np.bitwise_xor(column[start : start + rows], word, out=xor)
            np.bitwise_and(xor, mask, out=xor)
            np.bitwise_count(xor, out=ones)
            np.add(part, ones, out=part)
    return found


def _nearest_rows(distance: Distances, chosen: int) -> Ints:
    """Return about *chosen* rows with the least distance, in order."""
    # The distance limit is estimated from a sample: the exact number does not matter.
    step = max(1, len(distance) // SAMPLE)
    sample = distance[::step]
    place = min(chosen // step, len(sample) - 1)
    limit = np.searchsorted(np.cumsum(np.bincount(sample)), place, "right")
    rows: Ints = np.flatnonzero(distance <= limit)[: 4 * chosen]
    return rows


_NONE = np.zeros(0, np.int64)
EMPTY = VectorSnapshot(0, _NONE, np.zeros((0, 0), np.int8), None, None, _NONE, _NONE, _NONE, _NONE)


class VectorStore:
    """The vectors of one home: makes, stores, and loads them when they are first needed."""

    def __init__(self, tables: Tables, lock: RLock) -> None:
        self._tables = tables
        self._lock = lock  # It guards the tables' connection.
        self._loading = threading.Lock()
        self._model = ""
        self._loaded_at: tuple[int, int] | None = None
        self._last_row = 0
        self._counted = 0
        self._snapshot = EMPTY

    # --- Making them ------------------------------------------------------------------------------

    def embed(self, embedder: Embedder, documents_max: int) -> int:
        """Give up to *documents_max* documents their vectors; return how many got them.

        The current ones go first, and of these the newest. The model works outside the lock.
        """
        with self._tables.reading() as connection:
            waiting = connection.execute(
                "SELECT key, raw FROM unembedded JOIN line USING (key) JOIN body USING (key)"
                " ORDER BY standing > 0 DESC, key DESC LIMIT ?",
                (documents_max,),
            ).fetchall()
        if not waiting:
            return 0
        owners: list[int] = []
        texts: list[str] = []
        for key, raw in waiting:
            found = document(from_line(raw))
            for text in passages_to_embed(found.title, found.text):
                owners.append(key)
                texts.append(text)
        rows = to_bytes(embedder.encode(texts))
        with self._lock, self._tables.writing():
            return self._store(embedder.name, [key for key, _raw in waiting], owners, rows)

    def _store(
        self, model: str, keys: Collection[int], owners: list[int], rows: list[bytes]
    ) -> int:
        connection = self._tables.connection
        if self._tables.state("model", "") != model:
            return 0  # Another process has changed the model.
        if rows:
            self.check_length(len(rows[0]))
        # Another process may have embedded, replaced or removed some of them meanwhile.
        query = "SELECT key, standing FROM unembedded JOIN line USING (key) WHERE key IN ({})"
        standing = dict(select_in(connection, query, keys))
        for table, is_old in (("vector", False), ("old_vector", True)):
            new_rows = [
                (key, row)
                for key, row in zip(owners, rows, strict=True)
                if key in standing and (standing[key] == Standing.REPLACED) is is_old
            ]
            connection.executemany(f"INSERT INTO {table} (key, v) VALUES (?, ?)", new_rows)
        connection.executemany("DELETE FROM unembedded WHERE key = ?", [(key,) for key in standing])
        return len(keys)

    def check_length(self, length: int) -> None:
        """Raise `EmbedderUnavailable` if the vectors here do not have *length* numbers."""
        query = "SELECT length(v) FROM vector LIMIT 1"
        row = self._tables.connection.execute(query).fetchone()
        if row and row[0] != length:
            raise EmbedderUnavailable(
                f"the embedder gives vectors of {length} numbers, and the index has some of"
                f" {row[0]}; `commonplace index rebuild` makes them again",
                "if it is another model, give `embedder.model` its name",
            )

    # --- Loading them -----------------------------------------------------------------------------

    def snapshot(self, connection: sqlite3.Connection, version: tuple[int, int]) -> VectorSnapshot:
        """Return the vectors that the tables held at *version*, or later.

        It is read with the reader's own *connection*, which stays open when another process
        replaces the tables.
        """
        if version != self._loaded_at:
            with self._loading:
                if version != self._loaded_at:
                    self._load(connection)
                    self._loaded_at = version
        return self._snapshot

    def _load(self, connection: sqlite3.Connection) -> None:
        model = str(state(connection, "model", ""))
        if model != self._model:
            self._clear()
            self._model = model
        size, fresh = self._snapshot.size, _count_after(connection, self._last_row)
        # Removed vectors do no harm but use memory, so a few may stay; counting takes time.
        if size + fresh > self._counted * (1 + GONE_SHARE_MAX) or size < COUNTED_FROM:
            (count,) = connection.execute("SELECT count(*) FROM vector").fetchone()
            if fresh + size - count > count * GONE_SHARE_MAX:
                self._clear()
                size, fresh = 0, count
            self._counted = count
        if fresh:
            self._add_rows(connection, size + fresh)

    def _add_rows(self, connection: sqlite3.Connection, total: int) -> None:
        """Read the rows after the last one, some at a time: a million are 400 MB."""
        rows = connection.execute(
            "SELECT row, key, v FROM vector WHERE row > ? ORDER BY row", (self._last_row,)
        )
        snapshot, last = self._snapshot, self._last_row
        while (page := _fetch(rows)).numbers:
            snapshot = _with_rows(snapshot, page, total)
            last = page.numbers[-1]
        self._snapshot, self._last_row = _with_order(snapshot), last

    def _clear(self) -> None:
        self._last_row = self._counted = 0
        self._snapshot = EMPTY


def _count_after(connection: sqlite3.Connection, row: int) -> int:
    # Without a condition SQLite counts in an index, and reads no vectors.
    query = "SELECT count(*) FROM vector" + (f" WHERE row > {row}" if row else "")
    return int(connection.execute(query).fetchone()[0])


class _Page(NamedTuple):
    """Some rows of the table: their numbers, keys and vectors."""

    numbers: list[int]
    keys: list[int]
    vectors: list[bytes]


def _fetch(rows: sqlite3.Cursor) -> _Page:
    """Return the next rows; several vectors are one piece of bytes."""
    page = _Page([], [], [])
    # Few at a time: their objects then stay in the processor's cache, which saves a quarter.
    while len(page.numbers) < SCAN_ROWS and (some := rows.fetchmany(FETCHED_ROWS)):
        numbers, keys, vectors = zip(*some, strict=True)
        page.numbers.extend(numbers)
        page.keys.extend(keys)
        page.vectors.append(b"".join(vectors))
    return page


def _with_rows(old: VectorSnapshot, page: _Page, total: int) -> VectorSnapshot:
    """Return *old* with more rows at its end, in the same arrays if they have room.

    New arrays have room for *total* rows, and some more.
    """
    keys = np.array(page.keys, np.int64)
    vectors = np.frombuffer(b"".join(page.vectors), np.int8).reshape(len(keys), -1)
    size, end = old.size, old.size + len(keys)
    all_rows = _grow(old.rows if size else None, size, vectors, total)
    floats, signs = old.floats, old.signs
    if total <= EXACT_MAX:
        floats = _grow(floats, size, vectors.astype(np.float32), total)
    else:
        floats = None
        fresh = vectors if signs is not None else all_rows[:end]
        signs = _grow(signs, size if signs is not None else 0, signs_of(fresh).T, total)
    all_keys = _grow(old.keys if size else None, size, keys, total)
    return old._replace(size=end, keys=all_keys, rows=all_rows, floats=floats, signs=signs)


def _with_order(found: VectorSnapshot) -> VectorSnapshot:
    """Return *found* with the order of the keys that were added."""
    keys, known = found.keys[: found.size], len(found.sorted_keys)
    if not known or len(keys) - known > max(UNSORTED_MAX, known // UNSORTED_SHARE):
        sorted_keys, sorted_rows = _sort(keys)
        found = found._replace(sorted_keys=sorted_keys, sorted_rows=sorted_rows)
        known = len(keys)
    later_keys, later_rows = _sort(keys[known:])
    return found._replace(later_keys=later_keys, later_rows=known + later_rows)


def _sort(keys: Ints) -> tuple[Ints, Ints]:
    """Return *keys* in order, and the position that each of them had."""
    order = np.argsort(keys, kind="stable")
    return keys[order], order


def _look_up(wanted: Ints, keys: Ints, rows: Ints) -> Ints:
    """Return those of *rows* whose key, at the same index of the sorted *keys*, is *wanted*."""
    if not len(keys):
        return rows
    start = keys.searchsorted(wanted)
    count = keys.searchsorted(wanted, "right") - start
    # For each key in turn, as many indexes as it has vectors, from where it starts.
    places = np.repeat(start - np.cumsum(count) + count, count) + np.arange(count.sum())
    found: Ints = rows[places]
    return found


def _grow(held: Any, size: int, more: Any, total: int) -> Any:  # noqa: ANN401 (any array)
    """Return *held*, of which *size* rows are used, with the rows of *more* after them."""
    if held is None or size + len(more) > len(held):
        room = (int(1.3 * max(total, size + len(more))) + 1024, *more.shape[1:])
        # The signs are scanned column by column.
        roomy = np.empty(room, more.dtype, order="F" if more.dtype == np.uint64 else "C")
        if held is not None:
            roomy[:size] = held[:size]
        held = roomy
    held[size : size + len(more)] = more
    return held


def cosines(rows: Bytes | Vectors, query: Vector) -> Vector:
    """Return the cosine of each row, as it is stored or as floats, and *query*.

    `@` is not used: its library starts a thread, which then keeps a core busy while it waits.
    """
    found: Vector = np.einsum("ij,j->i", rows.astype(np.float32, copy=False), query) / np.float32(
        SCALE
    )
    return found


def to_bytes(vectors: Vectors) -> list[bytes]:
    rounded = np.clip(np.rint(vectors * SCALE), -127, 127).astype(np.int8)
    return [row.tobytes() for row in rounded]


def from_bytes(rows: Collection[bytes]) -> Bytes:
    found: Bytes = np.frombuffer(b"".join(rows), np.int8).reshape(len(rows), -1)
    return found


def to_floats(rows: Bytes) -> Vectors:
    found: Vectors = rows.astype(np.float32) / np.float32(SCALE)
    return found


def as_keys(keys: Iterable[int]) -> Ints:
    return np.array(list(keys), np.int64)


def signs_of(vectors: Any) -> Words:  # noqa: ANN401 (floats or bytes)
    """Return the signs of each vector as 64-bit words, in the order in which a scan reads them."""
    packed = np.packbits(vectors > 0, axis=1)
    if packed.shape[1] % 8:
        packed = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))
    words: Words = np.ascontiguousarray(packed.view(np.uint64).T)
    return words


def _top(scores: Vector, count: int) -> Ints:
    if count >= len(scores):
        return np.arange(len(scores))
    best: Ints = np.argpartition(-scores, count - 1)[:count]
    return best


def best_by_key(keys: Ints, scores: Vector, limit: int) -> dict[int, float]:
    """Return the best score of each key, the best *limit* of them, best first."""
    best: dict[int, float] = {}
    order = np.lexsort((keys, -scores))  # By score, and by key where scores are equal.
    for key, score in zip(keys[order].tolist(), scores[order].tolist(), strict=True):
        if key not in best:
            best[key] = score
            if len(best) >= limit:
                break
    return best
