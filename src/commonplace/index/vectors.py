"""Vectors of passages: stored as bytes in the index, searched exactly while few, by their signs first when many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.errors import EmbedderUnavailable
from commonplace.index.document import document
from commonplace.index.passages import to_embed
from commonplace.records import from_line

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy import float32
    from numpy.typing import NDArray

    from commonplace.embed.embedder import Embedder
    from commonplace.index.store import Store

    Floats = NDArray[float32]

# Up to here every vector is compared; beyond, the sign bits choose who is (bench/latency.py).
EXACT_MAX = 3_000
SHORTLIST = 800
# Dimensions in which the question is less than so much of its mean say little, and their signs even less.
TELLING_MIN = 0.5
SCALE = 127.0
SCAN_ROWS = 32_768
# A byte counts the bits of so many words of 64 without running over.
WORDS_A_BYTE = 3
# So many rows, or one in so many, are looked through before their keys are sorted in.
UNSORTED_MAX = 4096
UNSORTED_SHARE = 64
SAMPLE = 20_000
GONE_SHARE_MAX = 0.1
COUNTED_FROM = 1000


class Vectors:
    """The vectors of one home, in memory once something asks for similarity."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._model = ""
        self._seen = (-1, -1)
        self._clear()

    def _clear(self) -> None:
        self._last = 0
        self._size = 0
        self._counted = 0
        # Each with room to grow, so that one more vector does not mean copying all of them.
        self._keys: Any = None
        self._bytes: Any = None
        self._signs: Any = None
        # The keys in order, each with its row; what came since is behind them.
        self._sorted_keys: Any = None
        self._sorted_rows: Any = None

    # --- Making them ----------------------------------------------------------------------------------------------

    def embed(self, embedder: Embedder, documents_max: int) -> int:
        """Give up to *documents_max* documents, newest first, their vectors; returns how many got them."""
        self.use(embedder.name)
        waiting = self._store.connection.execute(
            "SELECT key, raw FROM unembedded JOIN doc USING (key) ORDER BY key DESC LIMIT ?",
            (documents_max,),
        ).fetchall()
        if not waiting:
            return 0
        owners: list[int] = []
        texts: list[str] = []
        for key, raw in waiting:
            found = document(from_line(raw))
            for text in to_embed(found.title, found.text):
                owners.append(key)
                texts.append(text)
        rows = _to_bytes(embedder.encode(texts))
        with self._store.writing():
            # Another process may have embedded or dropped some of them meanwhile.
            marks = ",".join("?" * len(waiting))
            keys = [key for key, _raw in waiting]
            query = f"SELECT key FROM unembedded WHERE key IN ({marks})"  # noqa: S608
            still = {key for (key,) in self._store.connection.execute(query, keys)}
            made = [(key, row) for key, row in zip(owners, rows, strict=True) if key in still]
            if self._store.state("model", "") != embedder.name:
                return 0  # Somebody wants another model: what is made now would be thrown away.
            if rows:
                self.check_length(len(rows[0]))
            self._store.connection.executemany("INSERT INTO vector (key, v) VALUES (?, ?)", made)
            self._store.connection.executemany(
                "DELETE FROM unembedded WHERE key = ?", [(key,) for key in still]
            )
        return len(waiting)

    def check_length(self, length: int) -> None:
        """Raise `EmbedderUnavailable` if the vectors here are not of *length* numbers."""
        row = self._store.connection.execute("SELECT length(v) FROM vector LIMIT 1").fetchone()
        if row and row[0] != length:
            raise EmbedderUnavailable(
                f"the embedder gives vectors of {length} numbers, and the index has some of {row[0]};"
                " `commonplace index rebuild` makes them anew",
                "if it is another model, give `embedder.model` its name",
            )

    def use(self, model: str) -> None:
        """Vectors of another model are never mixed in: all are made anew."""
        if self._store.state("model", "") == model:
            return
        with self._store.writing():
            if self._store.state("model", "") != model:
                self._store.connection.execute("DELETE FROM vector")
                self._store.connection.execute(
                    "INSERT OR IGNORE INTO unembedded SELECT doc.key FROM doc JOIN head ON head.key = doc.key"
                    " WHERE doc.kind NOT IN ('feedback', 'link', 'forget')",
                )
                self._store.set_state("model", model)

    # --- Searching them -------------------------------------------------------------------------------------------

    def nearest(self, query: Floats, limit: int) -> dict[int, float]:
        """The documents with the most similar passages: key → cosine."""
        self.load()
        return self.nearest_loaded(query, limit)

    def nearest_loaded(self, query: Floats, limit: int) -> dict[int, float]:
        """The same among what `load` took over; for another thread, since nothing is asked of the store."""
        import numpy as np  # noqa: PLC0415 (large; loaded with the first vector)

        if not self._size:
            return {}
        # Whoever asks for many has a filter that lets few through.
        chosen = max(SHORTLIST, 4 * limit)
        is_exact = self._signs is None or chosen >= self._size
        rows = np.arange(self._size) if is_exact else self._shortlist(query, chosen)
        scores = _cosines(self._bytes[rows], query)
        best = _top(scores, 4 * limit)  # A document may have several passages.
        return _best_by_key(self._keys[rows[best]], scores[best], limit)

    def similarity(self, query: Floats, keys: Collection[int]) -> dict[int, float]:
        """The cosine of each of *keys* that has a vector: its best passage's."""
        rows = self._rows(keys)
        if not len(rows):
            return {}
        return _best_by_key(self._keys[rows], _cosines(self._bytes[rows], query), len(keys))

    def first(self, keys: Collection[int]) -> dict[int, Floats]:
        """The vector of each document's first passage."""
        import numpy as np  # noqa: PLC0415

        found: dict[int, Floats] = {}
        rows = self._rows(keys)
        for key, row in zip(self._keys[rows].tolist() if len(rows) else (), rows, strict=True):
            if key not in found:
                found[key] = self._bytes[row].astype(np.float32) / np.float32(SCALE)
        return found

    def _rows(self, keys: Collection[int]) -> Any:  # noqa: ANN401
        """The rows of the vectors of *keys*, in their order."""
        import numpy as np  # noqa: PLC0415

        self.load()
        if not self._size or not keys:
            return np.zeros(0, np.intp)
        self._sort()
        wanted = np.fromiter(keys, np.int64, len(keys))
        start = np.searchsorted(self._sorted_keys, wanted)
        count = np.searchsorted(self._sorted_keys, wanted, "right") - start
        # One key after the other: as many places as it has vectors, counted on from where it starts.
        places = np.repeat(start - np.cumsum(count) + count, count) + np.arange(count.sum())
        found = self._sorted_rows[places]
        if self._size > len(self._sorted_keys):
            behind = np.flatnonzero(
                np.isin(self._keys[len(self._sorted_keys) : self._size], wanted)
            )
            found = np.concatenate([found, len(self._sorted_keys) + behind])
        return np.sort(found)

    def _sort(self) -> None:
        """Sort the keys anew when many came since; a few are found without."""
        import numpy as np  # noqa: PLC0415

        known = 0 if self._sorted_keys is None else len(self._sorted_keys)
        if known and self._size - known <= max(UNSORTED_MAX, known // UNSORTED_SHARE):
            return
        self._sorted_rows = np.argsort(self._keys[: self._size])
        self._sorted_keys = self._keys[self._sorted_rows]

    def load(self) -> None:
        """Take over what was embedded since, here or by another process."""
        import numpy as np  # noqa: PLC0415

        connection = self._store.connection
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        seen = (version, connection.total_changes)  # What others changed, and what we did.
        if seen == self._seen:
            return
        self._seen = seen
        model = str(self._store.state("model", ""))
        if model != self._model:
            self._clear()
            self._model = model
        rows = self._since(self._last)
        # What is gone does no harm but takes room, so a few of many may stay; and counting them takes time.
        if (
            self._size + len(rows) > self._counted * (1 + GONE_SHARE_MAX)
            or self._size < COUNTED_FROM
        ):
            (count,) = connection.execute("SELECT count(*) FROM vector").fetchone()
            if len(rows) + self._size - count > count * GONE_SHARE_MAX:
                self._clear()
                self._model = model
                rows = self._since(0)
            self._counted = count
        if not rows:
            return
        self._last = rows[-1][0]
        keys = np.array([key for _row, key, _v in rows], np.int64)
        found = np.frombuffer(b"".join(raw for _row, _key, raw in rows), np.int8).reshape(
            len(rows), -1
        )
        size = self._size
        self._keys = _grown(self._keys, size, keys)
        self._bytes = _grown(self._bytes, size, found)
        self._size += len(rows)
        if self._size > EXACT_MAX:
            fresh = found if self._signs is not None else self._bytes[: self._size]
            self._signs = _grown(
                self._signs, size if self._signs is not None else 0, _signs(fresh).T
            )

    def _since(self, row: int) -> list[tuple[int, int, bytes]]:
        query = "SELECT row, key, v FROM vector WHERE row > ? ORDER BY row"
        return self._store.connection.execute(query, (row,)).fetchall()

    def _shortlist(self, query: Floats, chosen: int) -> Any:  # noqa: ANN401
        """About *chosen* rows whose signs differ least from the query's where it is sure: a scan of 48 bytes each."""
        import numpy as np  # noqa: PLC0415

        sizes = np.abs(query)
        sure = np.where(sizes >= TELLING_MIN * sizes.mean(), np.float32(1), np.float32(0))
        wanted, telling = (_signs(row.reshape(1, -1))[:, 0] for row in (query, sure))
        columns = list(zip(wanted, telling, self._signs.T, strict=True))
        count = self._size
        distance = np.empty(count, np.uint16)
        differing, bits, sums = np.empty(SCAN_ROWS, np.uint64), *np.empty((2, SCAN_ROWS), np.uint8)
        for start in range(
            0, count, SCAN_ROWS
        ):  # So many rows at a time stay in the processor's cache.
            part = distance[start : start + SCAN_ROWS]
            part[:] = 0
            xor, ones, summed = differing[: len(part)], bits[: len(part)], sums[: len(part)]
            for at in range(
                0, len(columns), WORDS_A_BYTE
            ):  # Bytes are added several times as fast as anything wider.
                summed[:] = 0
                for word, mask, column in columns[at : at + WORDS_A_BYTE]:
                    np.bitwise_xor(column[start : start + len(part)], word, out=xor)
                    np.bitwise_and(xor, mask, out=xor)
                    np.bitwise_count(xor, out=ones)
                    np.add(summed, ones, out=summed)
                np.add(part, summed, out=part)
        # How near is near enough is read off a sample: exactly how many are compared does not matter.
        step = max(1, count // SAMPLE)
        sample = distance[::step]
        place = min(chosen // step, len(sample) - 1)
        nearest = np.searchsorted(np.cumsum(np.bincount(sample)), place, "right")
        return np.flatnonzero(distance <= nearest)[: 4 * chosen]


def _grown(held: Any, size: int, more: Any) -> Any:  # noqa: ANN401
    """*held*, of which *size* rows are used, with the rows of *more* behind them; column by column in memory."""
    import numpy as np  # noqa: PLC0415

    if held is None or size + len(more) > len(held):
        room = (int(1.3 * (size + len(more))) + 1024, *more.shape[1:])
        roomy = np.empty(room, more.dtype, order="F" if more.dtype == np.uint64 else "C")
        if held is not None:
            roomy[:size] = held[:size]
        held = roomy
    held[size : size + len(more)] = more
    return held


def _cosines(rows: Any, query: Floats) -> Any:  # noqa: ANN401
    """The cosine of each row, stored as bytes, and *query*.

    Not by `@`: the library behind it takes a thread of its own for it, which then keeps the other core busy waiting.
    """
    import numpy as np  # noqa: PLC0415

    return np.einsum("ij,j->i", rows.astype(np.float32), query) / np.float32(SCALE)


def _to_bytes(vectors: Floats) -> list[bytes]:
    import numpy as np  # noqa: PLC0415

    return [row.tobytes() for row in np.clip(np.rint(vectors * SCALE), -127, 127).astype(np.int8)]


def _signs(vectors: Any) -> Any:  # noqa: ANN401
    """The signs of each vector as 64-bit words, word by word, so that a scan reads memory in order."""
    import numpy as np  # noqa: PLC0415

    packed = np.packbits(vectors > 0, axis=1)
    padded = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))
    return np.ascontiguousarray(padded.view(np.uint64).T)


def _top(scores: Any, count: int) -> Any:  # noqa: ANN401
    import numpy as np  # noqa: PLC0415

    if count >= len(scores):
        return np.arange(len(scores))
    return np.argpartition(-scores, count - 1)[:count]


def _best_by_key(keys: Any, scores: Any, limit: int) -> dict[int, float]:  # noqa: ANN401
    import numpy as np  # noqa: PLC0415

    best: dict[int, float] = {}
    order = np.lexsort((keys, -scores))  # By score, and by key where scores are equal.
    for key, score in zip(keys[order].tolist(), scores[order].tolist(), strict=True):
        if key not in best:
            best[key] = score
            if len(best) >= limit:
                break
    return best


def missing(store: Store) -> int:
    (count,) = store.connection.execute("SELECT count(*) FROM unembedded").fetchone()
    return int(count)


def any_stored(store: Store) -> bool:
    return store.connection.execute("SELECT 1 FROM vector LIMIT 1").fetchone() is not None


def stored(store: Store) -> int:
    (count,) = store.connection.execute("SELECT count(DISTINCT key) FROM vector").fetchone()
    return int(count)
