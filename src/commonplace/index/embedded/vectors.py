"""Vectors of passages: made by the embedder, stored as bytes, loaded when they are needed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from commonplace.embed.embedder import PieceEmbedder, encode
from commonplace.errors import EmbedderUnavailable
from commonplace.index.document import document
from commonplace.index.embedded import sign_blocks
from commonplace.index.embedded.piece_codes import Codes, places_of, store_codes, to_codes
from commonplace.index.embedded.tables import select_in, state
from commonplace.index.embedded.vector_search import EMPTY, to_bytes, with_order, with_rows
from commonplace.index.vector_passages import passages_to_embed
from commonplace.records import from_line
from commonplace.rules import Standing

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection
    from threading import RLock

    from commonplace.embed.embedder import Embedder
    from commonplace.index.embedded.tables import Tables
    from commonplace.index.embedded.vector_search import VectorSnapshot
    from commonplace.index.vector_passages import Passage

FETCHED_ROWS = 256
COUNTED_FROM = 1000


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
        passages: list[Passage] = []
        for key, raw in waiting:
            for passage in passages_to_embed(document(from_line(raw))):
                owners.append(key)
                passages.append(passage)
        encoded = encode(embedder, [one.text for one in passages])
        rows = to_bytes([one.vector for one in encoded])
        codes = []
        if isinstance(embedder, PieceEmbedder):
            codes = [
                Codes(to_codes(one.pieces), places_of(passage, embedder.count_pieces))
                for one, passage in zip(encoded, passages, strict=True)
                if one.pieces is not None
            ]
        with self._lock, self._tables.writing():
            return self._store(embedder.name, [key for key, _raw in waiting], owners, rows, codes)

    def _store(
        self,
        model: str,
        keys: Collection[int],
        owners: list[int],
        rows: list[bytes],
        codes: list[Codes],
    ) -> int:
        """Store the vectors of *owners*, a row each, and the codes of their pieces, if any."""
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
        if codes:
            store_codes(
                connection, [(k, c) for k, c in zip(owners, codes, strict=True) if k in standing]
            )
        connection.executemany("DELETE FROM unembedded WHERE key = ?", [(key,) for key in standing])
        sign_blocks.pack(connection)
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
        if size + fresh > self._counted * (1 + sign_blocks.GONE_SHARE_MAX) or size < COUNTED_FROM:
            (count,) = connection.execute("SELECT count(*) FROM vector").fetchone()
            if fresh + size - count > count * sign_blocks.GONE_SHARE_MAX:
                self._clear()
                size, fresh = 0, count
            self._counted = count
        if fresh:
            self._add_rows(connection, size + fresh)

    def _add_rows(self, connection: sqlite3.Connection, total: int) -> None:
        """Read the rows after the last one, some at a time: a million are 400 MB.

        Few at a time stay in the processor's cache, and in memory that was used before.
        """
        rows = connection.execute(
            "SELECT row, key, v FROM vector WHERE row > ? ORDER BY row", (self._last_row,)
        )
        snapshot, last = self._snapshot, self._last_row
        while some := rows.fetchmany(FETCHED_ROWS):
            numbers, keys, vectors = zip(*some, strict=True)
            snapshot = with_rows(snapshot, keys, vectors, total)
            last = numbers[-1]
        self._snapshot, self._last_row = with_order(snapshot), last

    def _clear(self) -> None:
        self._last_row = self._counted = 0
        self._snapshot = EMPTY


def _count_after(connection: sqlite3.Connection, row: int) -> int:
    # Without a condition SQLite counts in an index, and reads no vectors.
    query = "SELECT count(*) FROM vector" + (f" WHERE row > {row}" if row else "")
    return int(connection.execute(query).fetchone()[0])
