"""Usage: how often each record was delivered, and what the answers cost. This machine's own, in `.state/`.

A recall never writes to the log.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

BUSY_S_MAX = 2.0
TABLES = """
CREATE TABLE IF NOT EXISTS use (id TEXT PRIMARY KEY, count INTEGER, last TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (
    one INTEGER PRIMARY KEY, since TEXT, recalls INTEGER, empty INTEGER, tokens INTEGER, log_bytes INTEGER)
"""


class Answers(NamedTuple):
    """What recalls have cost: how many, how many of them found nothing, the tokens of their texts.

    *log_bytes* adds up what the logs held that each of them searched, at the moment it was asked.
    """

    recalls: int = 0
    empty: int = 0
    tokens: int = 0
    log_bytes: int = 0
    since: str = ""

    def plus(self, other: Answers) -> Answers:
        """Both together."""
        return Answers(
            self.recalls + other.recalls,
            self.empty + other.empty,
            self.tokens + other.tokens,
            self.log_bytes + other.log_bytes,
            min(filter(None, (self.since, other.since)), default=""),
        )


class Usage:
    """The counts of one home. What cannot be written is not counted: no answer fails over a statistic."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._cached: dict[str, int] | None = None
        self._version = -1
        self._inode = 0

    def counts(self) -> dict[str, int]:
        """Every id that was ever delivered, with how often."""
        if not self._path.exists():
            return {}
        with suppress(sqlite3.DatabaseError, OSError):
            connection = self._open()
            (version,) = connection.execute("PRAGMA data_version").fetchone()
            if self._cached is None or version != self._version:
                self._cached = dict(connection.execute("SELECT id, count FROM use"))
                self._version = version
            return self._cached
        self._start_over()
        return {}

    def of(self, ident: str) -> tuple[int, str]:
        """(count, last used) of one id."""
        if self._path.exists():
            with suppress(sqlite3.DatabaseError, OSError):
                row = (
                    self._open()
                    .execute("SELECT count, last FROM use WHERE id = ?", (ident,))
                    .fetchone()
                )
                return (row[0], row[1]) if row else (0, "")
        return 0, ""

    def answers(self) -> Answers:
        """All recalls that were answered with this home the nearest."""
        if self._path.exists():
            with suppress(sqlite3.DatabaseError, OSError):
                query = "SELECT recalls, empty, tokens, log_bytes, since FROM answers"
                row = self._open().execute(query).fetchone()
                return Answers(*row) if row else Answers()
        return Answers()

    def add(self, ids: Iterable[str], now: str, answer: Answers | None = None) -> None:
        """Count one delivery of each of *ids*, and the *answer* they were delivered in."""
        rows = [(ident, now) for ident in ids]
        with suppress(sqlite3.DatabaseError, OSError):
            connection = self._open()
            with connection:
                connection.executemany(
                    "INSERT INTO use VALUES (?, 1, ?)"
                    " ON CONFLICT (id) DO UPDATE SET count = count + 1, last = excluded.last",
                    rows,
                )
                if answer is not None:
                    connection.execute(
                        "INSERT INTO answers VALUES (1, ?, ?, ?, ?, ?) ON CONFLICT (one) DO UPDATE SET"
                        " recalls = recalls + excluded.recalls, empty = empty + excluded.empty,"
                        " tokens = tokens + excluded.tokens, log_bytes = log_bytes + excluded.log_bytes",
                        (now, *answer[:4]),
                    )
            if self._cached is not None:
                for ident, _now in rows:
                    self._cached[ident] = self._cached.get(ident, 0) + 1

    def forget(self, ids: Iterable[str]) -> None:
        """Drop the counts of *ids*; an id may hold words of what it names."""
        if self._path.exists():
            with suppress(sqlite3.DatabaseError, OSError):
                connection = self._open()
                with connection:
                    connection.executemany(
                        "DELETE FROM use WHERE id = ?", [(ident,) for ident in ids]
                    )

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._inode != _inode(self._path):
            self.close()  # The file was removed or replaced; counts in the old one would be lost.
            self._cached = None
        if self._connection is None:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            self._connection = sqlite3.connect(
                self._path, timeout=BUSY_S_MAX, check_same_thread=False
            )
            self._path.chmod(0o600)
            # An id may hold words of what it names; what is erased must not live on in a journal or a free page.
            self._connection.execute("PRAGMA secure_delete = ON")
            # Counts are not worth a journal file for every answer; a damaged file is started over.
            self._connection.execute("PRAGMA journal_mode = MEMORY")
            self._connection.execute("PRAGMA synchronous = OFF")
            for table in TABLES.split(";"):
                self._connection.execute(table)
            self._inode = _inode(self._path)
        return self._connection

    def _start_over(self) -> None:
        """A damaged file of counts is worth nothing: away with it."""
        self.close()
        self._cached = None
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
