"""An SQLite file with state of this machine, which stays open between calls.

To open and close such a file for every call takes longer than what is read or written.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from commonplace.files.plain import ensure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BUSY_S_MAX = 2.0
# What SQLite keeps beside a file: the journal, and what there was when the file had another one.
BESIDE = ("-journal", "-wal", "-shm")


class Database:
    """The file at *path*; *prepare* makes the tables of a connection that was just opened.

    It is opened when it is used first, and again when it was removed or replaced: an erasure does
    that, and what is written to the old file would be lost. The caller sees to it that one thread
    at a time uses it.
    """

    def __init__(self, path: Path, prepare: Callable[[sqlite3.Connection], None]) -> None:
        self.path = path
        self._prepare = prepare
        self._connection: sqlite3.Connection | None = None
        self._inode = 0

    def exists(self) -> bool:
        """Whether there is such a file."""
        return self.path.exists()

    def connection(self) -> sqlite3.Connection:
        """Return the open connection, without automatic transactions."""
        if self._connection is not None and self._inode != _inode(self.path):
            self.close()
        if self._connection is None:
            ensure(self.path)  # SQLite would create it readable by everyone.
            connection = sqlite3.connect(
                self.path, timeout=BUSY_S_MAX, isolation_level=None, check_same_thread=False
            )
            try:
                # An id may contain words of its record; erased ones must not stay in a free page.
                connection.execute("PRAGMA secure_delete = ON")
                # Not WAL: a connection to a file that was removed would remove, when it is closed,
                # the write-ahead log of the file that took its place.
                connection.execute("PRAGMA journal_mode = TRUNCATE")
                # A killed process damages nothing. If the power fails, a damaged file is removed.
                connection.execute("PRAGMA synchronous = OFF")
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection, self._inode = connection, _inode(self.path)
        return self._connection

    @contextmanager
    def transaction(self, *, is_writing: bool = True) -> Iterator[sqlite3.Connection]:
        """Yield the connection in a transaction, which an error undoes. Writers wait for others."""
        connection = self.connection()
        connection.execute("BEGIN IMMEDIATE" if is_writing else "BEGIN")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # Some errors have ended it already.
                connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close it; the next use opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def remove(self) -> None:
        """Remove the file, with what SQLite keeps beside it: it is damaged, or not wanted."""
        self.close()
        for name in files_of(self.path):
            with suppress(OSError):
                name.unlink(missing_ok=True)


def files_of(path: Path) -> list[Path]:
    """Return the file of a database, and those that SQLite may keep beside it."""
    return [path, *(path.with_name(path.name + end) for end in BESIDE)]


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
