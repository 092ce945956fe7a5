"""Resonance: which nodes of a home are lit, and how strongly. The working set of its agents.

It is state of this machine, in one SQLite file of the home: never in a log, never exported, shared
by all agents and processes that use the home. A value is kept as a strength: its logarithm, brought
back to tick 0. All strengths decay alike, so they stay in order, and a tick changes one number,
whatever the size of the set. If the file is damaged, a new one begins; if it cannot be written,
contexts are built without it, and say so.
"""

from __future__ import annotations

import math
import sqlite3
import threading
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from commonplace.files.database import Database
from commonplace.graph.bloom import NODES_MAX
from commonplace.graph.scoring import DIGITS, decayed, mean
from commonplace.records import to_utc

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path
    from typing import Any

    from commonplace.recaller import Recaller

# What clients say about the use of nodes is kept for this many of them, the latest used.
SEEDED_MAX = 20_000
# Rows of nodes that have left the set are removed every so many ticks.
TRIM_EVERY = 16
VERSION = 3
# What counts as 0, of which there is no logarithm.
VALUE_TINY = 1e-12
TABLES = """
DROP TABLE IF EXISTS clock;
DROP TABLE IF EXISTS lit;
CREATE TABLE clock (one INTEGER PRIMARY KEY, tick INTEGER, rate REAL);
CREATE TABLE lit (id TEXT PRIMARY KEY, strength REAL, lit_at TEXT, shown_at TEXT) WITHOUT ROWID;
CREATE INDEX lit_strength ON lit (strength DESC, id, lit_at, shown_at);
CREATE TABLE IF NOT EXISTS seeded (id TEXT PRIMARY KEY, uses INTEGER, last TEXT) WITHOUT ROWID
"""

# The nodes of the working set, the strongest first.
_KEPT = (
    "SELECT id, strength, lit_at, shown_at FROM lit WHERE lit_at >= ? AND strength >= ?"
    " ORDER BY strength DESC, id LIMIT ?"
)


class Lit(NamedTuple):
    """A node of the working set: its value now, and when it was lit and shown last."""

    value: float
    lit_at: str = ""
    shown_at: str = ""


class Use(NamedTuple):
    """What clients said about the use of a node: how often, and when last."""

    uses: int = 0
    last: str = ""


@dataclass(frozen=True)
class State:
    """The working set of a home at one tick."""

    tick: int = 0
    # The strongest first: id, strength, and when it was lit and shown last.
    rows: Sequence[tuple[str, float, str, str]] = ()
    # The logarithm of what is left of a value that was set at tick 0.
    left: float = 0.0
    # Whether clients said anything about the use of nodes.
    has_seeded: bool = False
    # Why there is no state, in words; "" if there is.
    problem: str = ""

    @cached_property
    def lit(self) -> dict[str, Lit]:
        """The nodes, those with the highest values first."""
        left = self.left
        return {
            ident: Lit(round(math.exp(strength + left), DIGITS), lit_at, shown_at)
            for ident, strength, lit_at, shown_at in self.rows
        }

    @cached_property
    def shown_at(self) -> dict[str, str]:
        """When each node was shown last; "" if it never was."""
        return {row[0]: row[3] for row in self.rows}

    def values(self) -> dict[str, float]:
        """Return the value of each node, the highest first."""
        return {ident: one.value for ident, one in self.lit.items()}

    def values_without(self, ids: Container[str]) -> list[float]:
        """Return the values of the nodes that are not among *ids*."""
        left = self.left
        return [math.exp(row[1] + left) for row in self.rows if row[0] not in ids]

    def mean_value(self) -> float:
        """Return the mean of all values."""
        return mean(self.values().values())


class Limits(NamedTuple):
    """When a node leaves the working set."""

    decay: float
    value_min: float
    size_max: int
    ttl: timedelta

    @classmethod
    def of(cls, memory: Recaller) -> Limits:
        """Return the limits that the settings ask for."""
        settings = memory.settings
        return cls(
            float(settings["context.decay"]),
            float(settings["context.value_min"]),
            min(NODES_MAX, settings["context.nodes_max"]),
            timedelta(hours=float(settings["context.ttl_hours"])),
        )

    @property
    def rate(self) -> float:
        """The logarithm of what a tick leaves of a value."""
        return math.log(max(self.decay, VALUE_TINY))

    def after(self, before: Iterable[float], lit: Iterable[float]) -> list[float]:
        """Return the values of the working set, in any order, after a tick that lit some nodes.

        *before* are the values of the other nodes.
        """
        left = decayed(1.0, self.decay, 1)
        least = self.value_min
        values = [value for value in [*(one * left for one in before), *lit] if value >= least]
        if len(values) <= self.size_max:
            return values
        return sorted(values, reverse=True)[: self.size_max]


class WorkingSetFile:
    """The file of a working set, which the threads of one process use in turn."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, _prepare)
        self._lock = threading.Lock()

    def exists(self) -> bool:
        """Whether there is such a file."""
        return self._database.exists()

    def do(
        self, action: Callable[[sqlite3.Connection], State], *, is_writing: bool = False
    ) -> State:
        """Return what *action* returns. A damaged file is removed once, and begun again."""
        with self._lock:
            for is_last in (False, True):
                try:
                    with self._database.transaction(is_writing=is_writing) as connection:
                        return action(connection)
                except sqlite3.OperationalError as error:  # Busy, read-only, full: no damage.
                    self._database.close()
                    return State(problem=f"the working set cannot be used ({error})")
                except (sqlite3.DatabaseError, OSError, TypeError, ValueError) as error:
                    self._database.close()
                    if is_last or isinstance(error, OSError):
                        return State(problem=f"the working set cannot be used ({error})")
                    self._database.remove()
        raise AssertionError  # The loop returns.

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            self._database.close()


class Resonance:
    """The working set in one file."""

    def __init__(self, file: WorkingSetFile, limits: Limits) -> None:
        self._file = file
        self._limits = limits

    def read(self, now: datetime) -> State:
        """Return the working set as it is."""
        if not self._file.exists():
            return State()
        return self._file.do(lambda connection: self._state(connection, now))

    def light(self, scores: Mapping[str, float], shown: Collection[str], now: datetime) -> State:
        """Begin the next tick with the nodes in *scores* lit; those in *shown* were delivered.

        All other values decay. Return the tick, without the nodes.
        """
        moment = to_utc(now)
        chosen = frozenset(shown)

        def write(connection: sqlite3.Connection) -> State:
            clock = self._clock(connection)
            clock = clock._replace(tick=clock.tick + 1)
            connection.execute("INSERT OR REPLACE INTO clock VALUES (1, ?, ?)", clock)
            connection.executemany(
                "INSERT INTO lit VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE SET"
                " strength = ?2, lit_at = ?3, shown_at = max(shown_at, ?4)",
                [
                    (ident, clock.strength(value), moment, moment if ident in chosen else "")
                    for ident, value in scores.items()
                ],
            )
            (count,) = connection.execute("SELECT count(*) FROM lit").fetchone()
            # What left the set is not read any more; its rows are removed now and then.
            if count > 2 * self._limits.size_max or clock.tick % TRIM_EVERY == 0:
                self._trim(connection, clock, now)
            return State(clock.tick)

        return self._file.do(write, is_writing=True)

    def seeded(self, ids: Collection[str]) -> dict[str, Use]:
        """Return what clients said about the use of *ids*."""
        found: dict[str, Use] = {}

        def read(connection: sqlite3.Connection) -> State:
            for ident in ids:
                row = connection.execute(
                    "SELECT uses, last FROM seeded WHERE id = ?", (ident,)
                ).fetchone()
                if row:
                    found[ident] = Use(*row)
            return State()

        self._file.do(read)
        return found

    def seed(self, seeds: Mapping[str, Mapping[str, Any]], now: datetime) -> State:
        """Take over what a client says of nodes: how strongly each was lit, and how it was used.

        All agents of the home share this state, so what is known to be higher, more frequent or
        later stays. A value that was lit before the time to live is over. Return the tick, or the
        problem.
        """
        moment = to_utc(now)
        values = [
            (ident, _share(one.get("value")), _time(one.get("last_activated_at"), moment) or moment)
            for ident, one in seeds.items()
        ]
        uses = [
            (ident, _count(one.get("uses")), _time(one.get("last_used_at"), moment))
            for ident, one in seeds.items()
        ]

        def write(connection: sqlite3.Connection) -> State:
            clock = self._clock(connection)
            connection.execute("INSERT OR REPLACE INTO clock VALUES (1, ?, ?)", clock)
            # What has left the set must not come back by a seed.
            self._trim(connection, clock, now)
            since, _least, _size = self._kept(clock, now)
            connection.executemany(
                "INSERT INTO lit VALUES (?1, ?2, ?3, '') ON CONFLICT (id) DO UPDATE SET"
                " strength = max(strength, ?2), lit_at = max(lit_at, ?3)",
                [
                    (ident, clock.strength(value), lit_at)
                    for ident, value, lit_at in values
                    if value and lit_at >= since
                ],
            )
            connection.executemany(
                "INSERT INTO seeded VALUES (?1, ?2, ?3) ON CONFLICT (id) DO UPDATE SET"
                " uses = max(uses, ?2), last = max(last, ?3)",
                [one for one in uses if one[1] or one[2]],
            )
            connection.execute(
                "DELETE FROM seeded WHERE id NOT IN"
                " (SELECT id FROM seeded ORDER BY last DESC, uses DESC, id LIMIT ?)",
                (SEEDED_MAX,),
            )
            self._trim(connection, clock, now)
            return State(clock.tick)

        return self._file.do(write, is_writing=True)

    def _state(self, connection: sqlite3.Connection, now: datetime) -> State:
        clock = _read_clock(connection) or _Clock(0, self._limits.rate)
        rows = connection.execute(_KEPT, self._kept(clock, now)).fetchall()
        (has_seeded,) = connection.execute("SELECT EXISTS (SELECT 1 FROM seeded)").fetchone()
        return State(clock.tick, rows, clock.tick * clock.rate, bool(has_seeded))

    def _trim(self, connection: sqlite3.Connection, clock: _Clock, now: datetime) -> None:
        """Remove the rows of what is no longer in the working set."""
        kept = connection.execute(_KEPT, self._kept(clock, now)).fetchall()
        rows = connection.execute("SELECT id FROM lit").fetchall()
        gone = {row[0] for row in rows} - {row[0] for row in kept}
        connection.executemany("DELETE FROM lit WHERE id = ?", [(ident,) for ident in gone])

    def _kept(self, clock: _Clock, now: datetime) -> tuple[str, float, int]:
        """Return the arguments of `_KEPT`: since when, how strong, and how many."""
        limits = self._limits
        # As much less as rounding may take from a value that is just enough.
        least = clock.strength(limits.value_min) - VALUE_TINY
        return to_utc(now - limits.ttl), least, limits.size_max

    def _clock(self, connection: sqlite3.Connection) -> _Clock:
        """Return the clock; if the setting of the decay has changed, all strengths are adapted."""
        known = _read_clock(connection)
        rate = self._limits.rate
        if known is None:
            return _Clock(0, rate)
        if known.rate != rate:
            connection.execute(
                "UPDATE lit SET strength = strength + ?", (known.tick * (known.rate - rate),)
            )
        return _Clock(known.tick, rate)


def of_memory(memory: Recaller) -> Resonance:
    """Return the working set of the nearest home that the user trusts."""
    path = memory.homes[memory.trusted_home()].resonance_file
    file = memory.engine().kept_open(path, WorkingSetFile)
    return Resonance(file, Limits.of(memory))


def read(memory: Recaller) -> State:
    """Return the working set of *memory*."""
    return of_memory(memory).read(memory.now())


def seed(memory: Recaller, seeds: Mapping[str, Mapping[str, Any]]) -> str:
    """Take over what a client says of nodes, by id: see `Resonance.seed`.

    Return why that was not possible; "" if it was.
    """
    return of_memory(memory).seed(seeds, memory.now()).problem if seeds else ""


class _Clock(NamedTuple):
    """The number of ticks so far, and the logarithm of what a tick leaves of a value."""

    tick: int
    rate: float

    def strength(self, value: float) -> float:
        """Return the strength of a node that has *value* now."""
        return math.log(max(value, VALUE_TINY)) - self.tick * self.rate


def _prepare(connection: sqlite3.Connection) -> None:
    if not _has_tables(connection):
        connection.execute("BEGIN IMMEDIATE")
        if not _has_tables(connection):  # Another process may have made them meanwhile.
            for table in TABLES.split(";"):
                connection.execute(table)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")


def _has_tables(connection: sqlite3.Connection) -> bool:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return bool(version == VERSION)


def _read_clock(connection: sqlite3.Connection) -> _Clock | None:
    row = connection.execute("SELECT tick, rate FROM clock").fetchone()
    return _Clock(int(row[0]), float(row[1])) if row else None


def _share(value: object) -> float:
    return min(1.0, _number(value))


def _count(value: object) -> int:
    return int(min(_number(value), 1 << 31))


def _number(value: object) -> float:
    """Return a number that is not below 0; what is no number is 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return max(0.0, value)  # Of NaN and 0.0, this returns 0.0.


def _time(value: object, latest: str) -> str:
    """Return a time in UTC, not after *latest*; "" for what is no time."""
    if not isinstance(value, str) or not value:
        return ""
    try:
        return min(to_utc(value), latest)
    except ValueError:
        return ""
