"""Usage: how often each record was delivered, and what the answers cost.

The counts are in `.state/` and belong to this machine.

A recall never writes to the log.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import suppress
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.compose.tokens import BYTES_PER_TOKEN
from commonplace.files.database import Database

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from pathlib import Path

    from commonplace.where.home import Home

# Both sides are counted. Where a number is an estimate, it makes the savings smaller: bytes beyond
# ASCII are worth more than a quarter of a token.
SAVINGS = (
    "saved = the ten best records of each recall, unshortened (4 bytes a token), less the text it"
    " delivered; and the logs that it searched, whole as they were at that moment, less that text;"
    " every explicit recall is counted, and one that found nothing saves nothing"
)
# A plain search would deliver this many records, each from start to end.
BEST_COUNT = 10
# How long counts stay in memory before they are written.
FLUSH_S = 1.0
TABLES = """
CREATE TABLE IF NOT EXISTS use (id TEXT PRIMARY KEY, count INTEGER, last TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (
    one INTEGER PRIMARY KEY, since TEXT, recalls INTEGER, empty INTEGER, tokens INTEGER,
    log_bytes INTEGER, best_bytes INTEGER DEFAULT 0, compared INTEGER DEFAULT 0);
CREATE TABLE IF NOT EXISTS injection (
    key INTEGER PRIMARY KEY, at TEXT, source TEXT, agent TEXT, repo TEXT, task TEXT,
    tokens INTEGER, frames TEXT, covered INTEGER, drift REAL, nodes INTEGER, resonance REAL,
    ids BLOB)
"""
# Files from before these columns get them.
ADDED_COLUMNS = ("best_bytes", "compared")


class Answers(NamedTuple):
    """The cost of recalls: how many, how many found nothing, and the tokens of their texts.

    *log_bytes* is the sum of the sizes of the logs that each of them searched, at that time,
    *best_bytes* that of their ten best records, and *compared* the tokens of the answers for which
    these were counted: older counts lack them.
    """

    recalls: int = 0
    empty: int = 0
    tokens: int = 0
    log_bytes: int = 0
    since: str = ""
    best_bytes: int = 0
    compared: int = 0

    def plus(self, other: Answers) -> Answers:
        """Both together."""
        return Answers(
            self.recalls + other.recalls,
            self.empty + other.empty,
            self.tokens + other.tokens,
            self.log_bytes + other.log_bytes,
            min(filter(None, (self.since, other.since)), default=""),
            self.best_bytes + other.best_bytes,
            self.compared + other.compared,
        )


class Usage:
    """The counts of one home. If they cannot be written they are lost, and no answer fails.

    New counts are kept in memory until `flush`; reading includes them.
    """

    def __init__(self, path: Path) -> None:
        self._file = Database(path, _prepare)
        self._lock = threading.Lock()
        self._counts: dict[str, int] | None = None
        # Which connection they were read from, and what changes it had seen.
        self._counts_from: tuple[sqlite3.Connection, int] | None = None
        # What was added since the last flush: id → (count, last), and the cost of answers.
        self._added: dict[str, tuple[int, str]] = {}
        self._cost = Answers()
        self._later: list[tuple[str, Sequence[Any]]] = []
        self._flushed_at = 0.0

    def counter(self) -> Callable[[str], int]:
        """Return a function that returns how often an id was delivered."""
        with self._lock:
            stored, added = self._stored_counts(), self._added

        def count(ident: str) -> int:
            more = added.get(ident)
            return stored.get(ident, 0) + (more[0] if more else 0)

        return count

    def _stored_counts(self) -> dict[str, int]:
        if not self._file.exists():
            return {}
        with suppress(sqlite3.DatabaseError, OSError):
            connection = self._file.connection()
            (version,) = connection.execute("PRAGMA data_version").fetchone()
            if self._counts is None or self._counts_from != (connection, version):
                self._counts = dict(connection.execute("SELECT id, count FROM use"))
                self._counts_from = connection, version
            return self._counts
        self._file.remove()  # It is damaged.
        self._counts = None
        return {}

    def of(self, ident: str) -> tuple[int, str]:
        """Return (count, last used) of one id."""
        with self._lock:
            added, last = self._added.get(ident, (0, ""))
            if self._file.exists():
                with suppress(sqlite3.DatabaseError, OSError):
                    query = "SELECT count, last FROM use WHERE id = ?"
                    row = self._file.connection().execute(query, (ident,)).fetchone()
                    if row:
                        return row[0] + added, max(row[1], last)
            return added, last

    def answers(self) -> Answers:
        """Return the cost of all recalls for which this home was the nearest."""
        with self._lock:
            if self._file.exists():
                with suppress(sqlite3.DatabaseError, OSError):
                    query = (
                        "SELECT recalls, empty, tokens, log_bytes, since, best_bytes, compared"
                        " FROM answers"
                    )
                    row = self._file.connection().execute(query).fetchone()
                    return self._cost.plus(Answers(*row)) if row else self._cost
            return self._cost

    def add(self, ids: Iterable[str], now: str, cost: Answers | None = None) -> None:
        """Count one delivery of each of *ids*, and the *cost* of the answer they were in."""
        with self._lock:
            for ident in ids:
                count, _last = self._added.get(ident, (0, ""))
                self._added[ident] = (count + 1, now)
            if cost is not None:
                self._cost = self._cost.plus(cost._replace(since=now))
        self.flush_if_due()

    def flush_if_due(self) -> None:
        """Write the new counts, at most once in `FLUSH_S`."""
        if time.monotonic() - self._flushed_at > FLUSH_S:
            self.flush()

    def flush(self) -> None:
        """Write the new counts."""
        with self._lock:
            self._flushed_at = time.monotonic()
            added, cost, later = self._added, self._cost, self._later
            self._added, self._cost, self._later = {}, Answers(), []
            if not added and not cost.recalls and not later:
                return
            with suppress(sqlite3.DatabaseError, OSError):
                with self._file.transaction() as connection:
                    self._write(connection, added, cost)
                    for statement, row in later:
                        connection.execute(statement, row)
                if self._counts is not None:
                    for ident, (count, _last) in added.items():
                        self._counts[ident] = self._counts.get(ident, 0) + count

    @staticmethod
    def _write(
        connection: sqlite3.Connection, added: dict[str, tuple[int, str]], cost: Answers
    ) -> None:
        connection.executemany(
            "INSERT INTO use VALUES (?, ?, ?) ON CONFLICT (id)"
            " DO UPDATE SET count = count + excluded.count, last = excluded.last",
            [(ident, count, last) for ident, (count, last) in added.items()],
        )
        if cost.recalls:
            connection.execute(
                "INSERT INTO answers VALUES (1, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (one) DO UPDATE SET"
                " recalls = recalls + excluded.recalls, empty = empty + excluded.empty,"
                " tokens = tokens + excluded.tokens, log_bytes = log_bytes + excluded.log_bytes,"
                " best_bytes = best_bytes + excluded.best_bytes,"
                " compared = compared + excluded.compared",
                (cost.since, *cost[:4], cost.best_bytes, cost.compared),
            )

    def forget(self, ids: Iterable[str]) -> None:
        """Drop the counts of *ids*; an id may contain words of its record."""
        gone = list(ids)
        with self._lock:
            for ident in gone:
                self._added.pop(ident, None)
            self._counts = None
            if self._file.exists():
                rows = [(ident,) for ident in gone]
                with (
                    suppress(sqlite3.DatabaseError, OSError),
                    self._file.transaction() as connection,
                ):
                    connection.executemany("DELETE FROM use WHERE id = ?", rows)

    def write_later(self, statement: str, row: Sequence[Any]) -> None:
        """Have *statement* run with *row* when the counts are written."""
        with self._lock:
            self._later.append((statement, row))
        self.flush_if_due()

    def read(self, query: str, arguments: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of *query*; none if the file is missing or damaged."""
        self.flush()
        with self._lock:
            if self._file.exists():
                with suppress(sqlite3.DatabaseError, OSError):
                    return self._file.connection().execute(query, arguments).fetchall()
        return []

    def trim(self, known: Callable[[Collection[str]], Collection[str]], ids_max: int) -> int:
        """Drop the counts of ids that are no longer *known*, *ids_max* of them at most.

        Return how many were dropped; with 0, how many could be.
        """
        with self._lock:
            ids = list(self._stored_counts())
        existing = set(known(ids)) if ids else set[str]()
        gone = [ident for ident in ids if ident not in existing]
        if ids_max and gone:
            self.forget(gone[:ids_max])
        return len(gone[:ids_max]) if ids_max else len(gone)

    def close(self) -> None:
        self.flush()
        with self._lock:
            self._file.close()


def _prepare(connection: sqlite3.Connection) -> None:
    for table in TABLES.split(";"):
        connection.execute(table)
    rows = connection.execute("SELECT name FROM pragma_table_info('answers')")
    known = {name for (name,) in rows}
    for name in ADDED_COLUMNS:
        if name not in known:
            with suppress(sqlite3.OperationalError):  # Another process has just added it.
                connection.execute(f"ALTER TABLE answers ADD COLUMN {name} INTEGER DEFAULT 0")


class UsageOfHomes:
    """The counts of several homes, the nearest first."""

    def __init__(self, homes: Sequence[Home]) -> None:
        self._homes = homes
        self._usages = [Usage(home.usage_file) for home in homes]

    @property
    def nearest(self) -> Usage | None:
        """The counts of the nearest home that exists."""
        return next(
            (
                one
                for home, one in zip(self._homes, self._usages, strict=True)
                if home.path.is_dir()
            ),
            None,
        )

    def of(self, ident: str) -> tuple[int, str]:
        """Return how often the record was delivered, and when last."""
        found = [usage.of(ident) for usage in self._usages]
        return sum(count for count, _last in found), max(last for _count, last in found)

    def counter(self) -> Callable[[str], int]:
        """Return a function: how often an id was delivered, over all homes."""
        counters = [usage.counter() for usage in self._usages]
        if len(counters) == 1:
            return counters[0]
        return lambda ident: sum(count(ident) for count in counters)

    def add(self, delivered: Sequence[tuple[int, str]], now: str, cost: Answers | None) -> None:
        """Count what was *delivered*, as (number of its home, id), each in its home.

        The *cost* of the answer is counted in the nearest home that exists.
        """
        nearest = self.nearest
        for number, usage in enumerate(self._usages):
            ids = [ident for home, ident in delivered if home == number]
            its_cost = cost if usage is nearest else None
            if ids or its_cost is not None:
                usage.add(ids, now, its_cost)

    def flush_if_due(self) -> None:
        for usage in self._usages:
            usage.flush_if_due()

    def trim(
        self, known: Sequence[Callable[[Collection[str]], Collection[str]]], ids_max: int
    ) -> int:
        """Drop the counts of ids that the function in *known* for their home does not know."""
        return sum(
            usage.trim(is_known, ids_max)
            for usage, is_known in zip(self._usages, known, strict=True)
        )

    def savings(self, logs_bytes_now: int) -> dict[str, Any]:
        """Return the figures of `stats --savings`; *logs_bytes_now* is the size of the logs."""
        answers = reduce(Answers.plus, (usage.answers() for usage in self._usages))
        instead = answers.log_bytes // BYTES_PER_TOKEN
        best = answers.best_bytes // BYTES_PER_TOKEN
        return {
            "recalls": answers.recalls,
            "empty": answers.empty,
            "since": answers.since,
            "tokens_delivered": answers.tokens,
            "tokens_logs": instead,
            "tokens_saved": instead - answers.tokens,
            "share_saved": round(1 - answers.tokens / instead, 4) if instead else None,
            "tokens_best": best,
            "tokens_delivered_instead_of_best": answers.compared,
            "tokens_saved_of_best": best - answers.compared,
            "share_saved_of_best": round(1 - answers.compared / best, 4) if best else None,
            "tokens_logs_now": logs_bytes_now // BYTES_PER_TOKEN,
            "definition": SAVINGS,
        }

    def close(self) -> None:
        for usage in self._usages:
            usage.close()
