"""The tables: one SQLite file with a row for every line, shared by any number of processes.

One connection writes. Each question reads with its own connection and transaction, so that
questions neither wait for one another nor see part of a change.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from commonplace.files.plain import ensure
from commonplace.index import terms

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

# Increase this when the tables change, which lines can be read, how records stand, or the text of a
# document. An old index is rebuilt, as it is when the terms change.
SCHEMA_VERSION = 2800 + terms.VERSION
BUSY_MS_MAX = 30_000
# SQLite maps its shared memory in pieces of this size; reading a truncated one kills the process.
SHARED_BYTES_MIN = 32_768
CACHE_KIB = 4000
READERS_KEPT_MAX = 4
VALUES_AT_ONCE = 512
FOREVER = (1 << 63) - 1
_SWITCH_TRIES_MAX = 100

# `line` has a row for every line of the logs and for every note and skill, current or not.
# `type` is that of a lesson, or of a record of the kind `node`.
# `written` orders the lines of several logs: an edit keeps the `micros` of its record. `until` is
# the time of the later line of its log that replaced it. `confidence` and `used` are what a pattern
# says of itself. `standing` is a `rules.Standing`; the four counts are feedback. `term_set` has the
# terms of documents. `dropped` are documents that are no longer current and must be deleted from
# the text index; `terms` is NULL for those that are not in it. `sign_block` has the signs of many
# vectors (`sign_blocks.py`), `piece_code` the codes of the word pieces of a document's passages, in
# the order of its vectors (`piece_codes.py`). `old_term` and `old_vector` keep
# replaced lines for questions about the past. The edges of a record are read from their indexes
# alone, the heaviest first; those that hide records have indexes of their own. A record may have
# thousands of versions, so its current line has an index, too. `topic` is what records are found by
# besides their words (`index/topics.py`).
SCHEMA = """
CREATE TABLE file (
    path TEXT PRIMARY KEY, inode INTEGER, size INTEGER, mtime INTEGER, "end" INTEGER, tail BLOB);
CREATE TABLE line (
    key INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB NOT NULL, log TEXT NOT NULL,
    position INTEGER NOT NULL, archived INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL,
    repo TEXT NOT NULL, timestamp TEXT NOT NULL, micros INTEGER NOT NULL, written INTEGER NOT NULL,
    until INTEGER NOT NULL,
    agent TEXT NOT NULL, type TEXT NOT NULL, tags TEXT NOT NULL, of TEXT, "to" TEXT, outcome TEXT,
    stated_worked INTEGER, stated_tried INTEGER, confidence REAL NOT NULL DEFAULT 0,
    used INTEGER NOT NULL DEFAULT 0, standing INTEGER NOT NULL,
    worked INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,
    wrong INTEGER NOT NULL DEFAULT 0, stale INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX line_digest ON line (log, digest);
CREATE INDEX line_id ON line (id, log, position);
CREATE INDEX line_current ON line (id) WHERE standing > 0;
CREATE INDEX line_of ON line (of) WHERE of IS NOT NULL;
CREATE INDEX line_to ON line ("to") WHERE "to" IS NOT NULL;
CREATE INDEX line_micros ON line (micros);
CREATE INDEX line_position ON line (log, position);
CREATE TABLE body (key INTEGER PRIMARY KEY, raw BLOB NOT NULL);
CREATE TABLE units (key INTEGER PRIMARY KEY, found TEXT NOT NULL);
CREATE TABLE edge (key INTEGER, of TEXT, rel TEXT, "to" TEXT, w REAL, by TEXT);
CREATE INDEX edge_of ON edge (of, w DESC, "to", key);
CREATE INDEX edge_to ON edge ("to", w DESC, of, key);
CREATE INDEX edge_derived_of ON edge (of) WHERE rel = 'derived_from';
CREATE INDEX edge_derived_to ON edge ("to") WHERE rel = 'derived_from';
CREATE INDEX edge_supersedes_of ON edge (of) WHERE rel = 'supersedes';
CREATE INDEX edge_supersedes_to ON edge ("to") WHERE rel = 'supersedes';
CREATE INDEX edge_key ON edge (key);
CREATE TABLE term_set (key INTEGER PRIMARY KEY, terms INTEGER NOT NULL, hashes BLOB NOT NULL);
CREATE TABLE dropped (key INTEGER PRIMARY KEY, terms INTEGER);
CREATE TABLE old_term (
    hash INTEGER, key INTEGER, count INTEGER, PRIMARY KEY (hash, key)) WITHOUT ROWID;
CREATE INDEX old_term_key ON old_term (key);
CREATE TABLE vector (row INTEGER PRIMARY KEY AUTOINCREMENT, key INTEGER NOT NULL, v BLOB NOT NULL);
CREATE INDEX vector_key ON vector (key);
CREATE TABLE sign_block (
    last_row INTEGER PRIMARY KEY, rows INTEGER, numbers BLOB, keys BLOB, signs BLOB);
CREATE TABLE piece_code (
    key INTEGER NOT NULL, passage INTEGER NOT NULL, codes BLOB NOT NULL, places BLOB NOT NULL);
CREATE INDEX piece_code_key ON piece_code (key, passage);
CREATE TABLE old_vector (row INTEGER PRIMARY KEY, key INTEGER NOT NULL, v BLOB NOT NULL);
CREATE INDEX old_vector_key ON old_vector (key);
CREATE TABLE topic (name TEXT, micros INTEGER, key INTEGER, PRIMARY KEY (name, micros, key))
    WITHOUT ROWID;
CREATE INDEX topic_key ON topic (key);
CREATE TABLE unembedded (key INTEGER PRIMARY KEY);
CREATE TABLE state (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""


class TablesClosed(Exception):
    """The tables were closed, because another process has replaced them."""


class Tables:
    """The open tables of one home; in memory if *path* is `None`."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        if path is not None:
            ensure(path)  # SQLite would create it readable by everyone.
        self.connection = self._connect()
        self._readers: list[sqlite3.Connection] = []
        # In memory there is only one connection, and readers wait for one another.
        self._alone = threading.RLock() if path is None else None
        self._pool = threading.Lock()
        self._closed = False
        try:
            self._shares_memory = self._switch_to_wal()
            # The index can be built again; what must not be lost is in the logs.
            self.connection.execute("PRAGMA synchronous = OFF")
            self.inode = path.stat().st_ino if path else 0
            self._create()
        except BaseException:
            self.connection.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            str(self.path) if self.path else ":memory:",
            timeout=BUSY_MS_MAX / 1000,
            isolation_level=None,
            check_same_thread=False,
        )
        # Small: the system keeps the file's pages anyway, and a larger cache was no faster.
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        return connection

    def _switch_to_wal(self) -> bool:
        for left in reversed(range(_SWITCH_TRIES_MAX)):
            try:
                (mode,) = self.connection.execute("PRAGMA journal_mode = WAL").fetchone()
            except sqlite3.OperationalError as error:
                if not is_busy(error) or not left:
                    raise
                time.sleep(0.02)  # SQLite does not always wait for this one.
            else:
                return bool(mode == "wal")
        raise AssertionError("the last try returns or raises")

    def _create(self) -> None:
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        if version == SCHEMA_VERSION:
            return
        if version:
            raise sqlite3.DatabaseError(f"the index has schema {version}, not {SCHEMA_VERSION}")
        with self.writing():
            (version,) = self.connection.execute("PRAGMA user_version").fetchone()
            if not version:
                for statement in SCHEMA.split(";"):
                    self.connection.execute(statement)
                # Keys start again in a new index: those who keep one must notice.
                self.connection.execute(
                    "INSERT INTO state VALUES ('build', ?)", (os.urandom(8).hex(),)
                )
                self.connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def close(self) -> None:
        """Close the connections that are not in use; others are closed when their reader ends."""
        with self._pool:
            self._closed = True
            readers, self._readers = self._readers, []
        if self._is_cut():
            with suppress(OSError):
                os.truncate(f"{self.path}-shm", SHARED_BYTES_MIN)  # Closing reads it.
        for connection in (*readers, self.connection):
            connection.close()

    def is_current(self) -> bool:
        """Whether the open file is still at its path: another process may have replaced it."""
        try:
            return self.path is None or (
                os.stat(self.path).st_ino == self.inode and not self._is_cut()
            )
        except (FileNotFoundError, NotADirectoryError):
            return False  # Something else may even stand in the place of its folder.

    def _is_cut(self) -> bool:
        try:
            return self._shares_memory and os.stat(f"{self.path}-shm").st_size < SHARED_BYTES_MIN
        except OSError:
            return False

    # --- Transactions -----------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection that sees the tables as they are now, without later writes."""
        if self._alone is not None:
            with self._alone:
                yield self.connection
            return
        connection = self._reader()
        whole = False
        try:
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
            whole = True
        finally:
            with self._pool:
                keep = whole and not self._closed and len(self._readers) < READERS_KEPT_MAX
                if keep:
                    self._readers.append(connection)
            if not keep:
                connection.close()

    def _reader(self) -> sqlite3.Connection:
        with self._pool:
            if self._closed:
                raise TablesClosed
            if self._readers:
                return self._readers.pop()
        try:
            connection = self._connect()
        except sqlite3.OperationalError as error:
            if self.is_current():
                raise
            raise TablesClosed from error
        # SQLite opens files by name, and these may belong to another index by now.
        if not self.is_current():
            connection.close()
            raise TablesClosed
        return connection

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the only write transaction; other processes wait instead of failing."""
        with self._alone or nullcontext():
            if self._closed:
                raise TablesClosed
            self._begin()
            try:
                yield
                self.set_state("writes", int(self.state("writes")) + 1)
                self.connection.execute("COMMIT")
            except BaseException:
                # A full disk makes SQLite roll back by itself.
                with suppress(sqlite3.OperationalError):
                    self.connection.execute("ROLLBACK")
                raise

    def _begin(self) -> None:
        while True:
            before = self.version()
            try:
                self.connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                # Another process builds a large index in batches: wait while it makes progress.
                if not is_busy(error) or self.version() == before:
                    raise
            else:
                return

    def version(self) -> int:
        """Return a number that changes when another connection commits."""
        return int(self.connection.execute("PRAGMA data_version").fetchone()[0])

    def changes(self) -> tuple[int, int]:
        """Return a value that changes with every commit, of this connection or another."""
        return self.version(), self.connection.total_changes

    # --- State ------------------------------------------------------------------------------------

    def state(self, name: str, default: int | str = 0) -> int | str:
        return state(self.connection, name, default)

    def set_state(self, name: str, value: int | str) -> None:
        self.connection.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (name, value))


def state(connection: sqlite3.Connection, name: str, default: int | str = 0) -> int | str:
    row = connection.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
    return row[0] if row else default


def select_in(
    connection: sqlite3.Connection,
    query: str,
    values: Collection[object],
    more: Iterable[object] = (),
) -> list[tuple[Any, ...]]:
    """Return the rows of *query*, whose `{}` stands for the placeholders of *values*.

    *more* are the arguments after them. SQLite takes a limited number of values at once.
    """
    wanted, rest = list(values), tuple(more)
    found: list[tuple[Any, ...]] = []
    for start in range(0, len(wanted), VALUES_AT_ONCE):
        some = wanted[start : start + VALUES_AT_ONCE]
        # The last value is repeated up to a power of two, so that there are few different
        # statements and most of them are already prepared.
        count = 1 << (len(some) - 1).bit_length()
        some += some[-1:] * (count - len(some))
        marks = ",".join("?" * count)
        found += connection.execute(query.format(marks), (*some, *rest)).fetchall()
    return found


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another process holds a lock; the first byte of SQLite's code says so."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
