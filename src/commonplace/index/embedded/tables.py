"""The tables: what the index knows of every line, in one SQLite file that any number of processes share.

One connection writes. Each question reads with a connection of its own, in a transaction of its own, so that questions
neither wait for one another nor see half of a change.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from commonplace.index import terms

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

# Bump when the tables change; an old index is thrown away and built again. So it is when the terms change.
SCHEMA_VERSION = 400 + terms.VERSION
BUSY_MS_MAX = 30_000
# SQLite maps its shared memory in pieces of this size; touching one that was cut off would end the process.
SHARED_BYTES_MIN = 32_768
CACHE_KIB = 4000
READERS_KEPT_MAX = 4
VALUES_AT_ONCE = 500
FOREVER = (1 << 63) - 1
_SWITCH_TRIES_MAX = 100

# `line` has a row for every line of the logs and for every note and skill, current or not. `until` is when a later line
# of its log replaced it, in the time that lines carry. `standing` is a `rules.Standing`; the four counts are feedback.
# `dropped` are documents that are no longer current and have to leave the text index; `terms` is NULL for those that
# never came there. `old_term` and `old_vector` hold what questions about the past need of replaced lines.
SCHEMA = """
CREATE TABLE file (
    path TEXT PRIMARY KEY, inode INTEGER, size INTEGER, mtime INTEGER, "end" INTEGER, tail BLOB);
CREATE TABLE line (
    key INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB NOT NULL, log TEXT NOT NULL, position INTEGER NOT NULL,
    archived INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, repo TEXT NOT NULL, timestamp TEXT NOT NULL,
    micros INTEGER NOT NULL, until INTEGER NOT NULL, agent TEXT NOT NULL, type TEXT NOT NULL, tags TEXT NOT NULL,
    of TEXT, "to" TEXT, outcome TEXT, stated_worked INTEGER, stated_tried INTEGER, standing INTEGER NOT NULL,
    worked INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0, wrong INTEGER NOT NULL DEFAULT 0,
    stale INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX line_digest ON line (log, digest);
CREATE INDEX line_id ON line (id, log, position);
CREATE INDEX line_of ON line (of) WHERE of IS NOT NULL;
CREATE INDEX line_to ON line ("to") WHERE "to" IS NOT NULL;
CREATE INDEX line_micros ON line (micros);
CREATE TABLE body (key INTEGER PRIMARY KEY, raw BLOB NOT NULL);
CREATE TABLE edge (key INTEGER, of TEXT, rel TEXT, "to" TEXT, w REAL, by TEXT);
CREATE INDEX edge_of ON edge (of);
CREATE INDEX edge_to ON edge ("to");
CREATE INDEX edge_key ON edge (key);
CREATE TABLE said (key INTEGER PRIMARY KEY, terms INTEGER NOT NULL, hashes BLOB NOT NULL);
CREATE TABLE dropped (key INTEGER PRIMARY KEY, terms INTEGER);
CREATE TABLE old_term (hash INTEGER, key INTEGER, count INTEGER, PRIMARY KEY (hash, key)) WITHOUT ROWID;
CREATE INDEX old_term_key ON old_term (key);
CREATE TABLE vector (row INTEGER PRIMARY KEY AUTOINCREMENT, key INTEGER NOT NULL, v BLOB NOT NULL);
CREATE INDEX vector_key ON vector (key);
CREATE TABLE old_vector (row INTEGER PRIMARY KEY, key INTEGER NOT NULL, v BLOB NOT NULL);
CREATE INDEX old_vector_key ON old_vector (key);
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
            os.close(
                os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            )  # SQLite would make it for everybody to read.
        self.connection = self._connect()
        self._readers: list[sqlite3.Connection] = []
        # In memory there is one connection only, and those who read wait for one another.
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
                time.sleep(0.02)  # For this statement SQLite does not always wait by itself.
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
                self.connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def close(self) -> None:
        """Close every connection that is not in use; those in use are closed when they are given back."""
        with self._pool:
            self._closed = True
            readers, self._readers = self._readers, []
        if self._is_cut():
            with suppress(OSError):
                os.truncate(f"{self.path}-shm", SHARED_BYTES_MIN)  # Closing reads it.
        for connection in (*readers, self.connection):
            connection.close()

    def is_current(self) -> bool:
        """Whether the file at the path is still the one that is open: another process may have replaced it."""
        try:
            return self.path is None or (
                os.stat(self.path).st_ino == self.inode and not self._is_cut()
            )
        except FileNotFoundError:
            return False

    def _is_cut(self) -> bool:
        try:
            return self._shares_memory and os.stat(f"{self.path}-shm").st_size < SHARED_BYTES_MIN
        except OSError:
            return False

    # --- Transactions -----------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees the tables as they are now, whatever is written meanwhile."""
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
        connection = self._connect()
        # SQLite opens files by their names, and by now these may be another index's.
        if not self.is_current():
            connection.close()
            raise TablesClosed
        return connection

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction, alone; other processes wait their turn instead of failing."""
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
                # Another process builds a large index, batch by batch: as long as it gets on, it is worth waiting.
                if not is_busy(error) or self.version() == before:
                    raise
            else:
                return

    def version(self) -> int:
        """A number that changes when another connection commits."""
        return int(self.connection.execute("PRAGMA data_version").fetchone()[0])

    def changes(self) -> tuple[int, int]:
        """A value that changes whenever the tables do: by others' commits, and by what this connection wrote."""
        return self.version(), self.connection.total_changes

    # --- State ------------------------------------------------------------------------------------------------------

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
    """The rows of *query*, whose `{}` stands for the placeholders of *values*.

    *more* are the arguments after them. SQLite takes a limited number of values at once.
    """
    wanted, rest = list(values), tuple(more)
    found: list[tuple[Any, ...]] = []
    for start in range(0, len(wanted), VALUES_AT_ONCE):
        some = wanted[start : start + VALUES_AT_ONCE]
        marks = ",".join("?" * len(some))
        found += connection.execute(query.format(marks), (*some, *rest)).fetchall()
    return found


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another process was in the way (SQLite's codes carry details above their first byte)."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
