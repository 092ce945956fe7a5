"""The vectors of passages in memory, and the search: exact if they are few, by signs if many."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray

    from commonplace.embed.embedder import Encoded, Vector, Vectors
    from commonplace.index.embedded.sign_blocks import StoredRows

    Ints = NDArray[np.int64]
    Bytes = NDArray[np.int8]
    Words = NDArray[np.uint64]
    # Vectors by their positions: loaded, or read when they are needed.
    Rows: TypeAlias = Bytes | StoredRows
    Distances = NDArray[np.unsignedinteger[Any]]
    # A word of the query's signs, its mask, and the same word of each row.
    Column = tuple[np.uint64, np.uint64, Words]

# Up to this number all vectors are compared; above it the sign bits choose some.
EXACT_MAX = 3_000
SHORTLIST = 800
# Dimensions below this share of the question's mean are ignored.
LARGE_VALUE_MIN = 0.5
SCALE = 127.0
SCAN_ROWS = 65_536
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


class VectorSnapshot(NamedTuple):
    """The vectors at one moment. Any number of threads may use it: the arrays are never changed.

    They have room at their end, in which later vectors are written; *size* says how far this
    snapshot goes.
    """

    size: int
    keys: Ints
    rows: Rows
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

    @property
    def is_slow(self) -> bool:
        """Whether a search takes so long that a thread for it is worth its start."""
        return self.size >= HALVES_MIN and isinstance(self.rows, np.ndarray)

    def similarity(self, query: Vector, keys: Collection[int]) -> dict[int, float]:
        """Return the cosine of the best passage of each of *keys* that has a vector."""
        rows = self._rows_of(keys)
        if not len(rows):
            return {}
        return best_by_key(self.keys[rows], cosines(self.rows[rows], query), len(keys))

    def best_passages(self, query: Vector, keys: Collection[int]) -> dict[int, int]:
        """Return which passage of each of *keys* is most like *query*, counted from 0."""
        rows = self._rows_of(keys)
        if not len(rows):
            return {}
        return best_places(self.keys[rows].tolist(), cosines(self.rows[rows], query).tolist())

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


class Nearest(threading.Thread):
    """A search for the nearest in another thread, beside the search by words."""

    def __init__(
        self, snapshot: VectorSnapshot, question: Callable[[], Encoded], limit: int
    ) -> None:
        super().__init__(name="commonplace-nearest", daemon=True)
        self._snapshot = snapshot
        self._question = question
        self._limit = limit
        self._found: dict[int, float] = {}
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._found = self._snapshot.nearest(self._question().vector, self._limit)
        except BaseException as error:  # noqa: BLE001 (`result` raises it)
            self._error = error

    def result(self) -> dict[int, float]:
        """Wait for what was found and return it; raise what the search raised."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._found


_NONE = np.zeros(0, np.int64)
EMPTY = VectorSnapshot(0, _NONE, np.zeros((0, 0), np.int8), None, None, _NONE, _NONE, _NONE, _NONE)


def with_rows(
    old: VectorSnapshot, their_keys: Sequence[int], their_rows: Sequence[bytes], total: int
) -> VectorSnapshot:
    """Return *old* with more rows at its end, in the same arrays if they have room.

    New arrays have room for *total* rows, and some more.
    """
    keys, vectors = np.array(their_keys, np.int64), from_bytes(their_rows)
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


def with_order(found: VectorSnapshot) -> VectorSnapshot:
    """Return *found* with the order of the keys that were added."""
    keys, known = found.keys[: found.size], len(found.sorted_keys)
    if not known or len(keys) - known > max(UNSORTED_MAX, known // UNSORTED_SHARE):
        sorted_keys, sorted_rows = sort(keys)
        found = found._replace(sorted_keys=sorted_keys, sorted_rows=sorted_rows)
        known = len(keys)
    later_keys, later_rows = sort(keys[known:])
    return found._replace(later_keys=later_keys, later_rows=known + later_rows)


def sort(keys: Ints) -> tuple[Ints, Ints]:
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


def to_bytes(vectors: Sequence[Vector]) -> list[bytes]:
    rounded = np.clip(np.rint(np.asarray(vectors) * SCALE), -127, 127).astype(np.int8)
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


def best_places(keys: Sequence[int], scores: Sequence[float]) -> dict[int, int]:
    """Return for each key the place of its best score among its own, which are in order."""
    counts: dict[int, int] = {}
    best: dict[int, tuple[float, int]] = {}
    for key, score in zip(keys, scores, strict=True):
        place = counts.get(key, 0)
        counts[key] = place + 1
        if key not in best or score > best[key][0]:
            best[key] = score, place
    return {key: place for key, (_score, place) in best.items()}


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
