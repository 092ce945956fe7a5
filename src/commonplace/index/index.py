"""One home's index: its tables, its text, its vectors. It repairs itself by being built again."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from commonplace.errors import DiskFull, HomeUnusable
from commonplace.files.lock import hold
from commonplace.index import removal
from commonplace.index import vectors as vector_counts
from commonplace.index.store import SCHEMA_VERSION, Store, is_busy
from commonplace.index.text import TextBroken, TextIndex
from commonplace.index.vectors import Vectors

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from commonplace.where.home import Home

TABLES = "tables.sqlite"
# How often an index is made anew before one in memory has to do, and for how long it then does.
STARTS_MAX = 2
TURNS_MAX = 100
MEMORY_S = 60.0
_REFUSED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_FULL)
_REFUSED_OS = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOSPC,
    errno.EFBIG,
    getattr(errno, "EDQUOT", errno.ENOSPC),
)

T = TypeVar("T")


class Status(NamedTuple):
    """What there is to say about an index."""

    home: str
    schema: int
    records: int
    waiting: int
    vectors: int
    vectors_missing: int
    model: str
    bytes: int
    in_memory: bool


class Index:
    """The index of the home at *home*, kept in its `.index/`, or in memory where nothing may be written."""

    def __init__(self, home: Home, *, in_memory: bool = False, until: str = "") -> None:
        self.home = home
        self._until = until
        self._place = None if in_memory else home.index_folder
        # Where it is now: `None` while it is in memory.
        self.folder: Path | None = self._place
        self._in_memory_until = 0.0
        self._store: Store | None = None
        self.text: TextIndex
        self.vectors: Vectors

    @property
    def store(self) -> Store:
        assert self._store is not None, "`catch_up` opens it"
        return self._store

    def catch_up(self, progress: Callable[[int], None] = lambda _done: None) -> None:
        """Be up to date with the files; build everything again if what is there cannot be used."""
        if (
            self.folder is None
            and self._place
            and time.monotonic() >= self._in_memory_until
            and self._may_write()
        ):
            self.close()
            self.folder = self._place
        self._mended(lambda: self._catch_up(progress))

    def rebuild(self, progress: Callable[[int], None] = lambda _done: None) -> None:
        """Throw the index away and make it from the files."""
        self._start_over()
        self.catch_up(progress)
        self._mended(self._commit)

    def repaired(self, call: Callable[[], T]) -> T:
        """What the search *call* answers; if an engine turns out to be broken, it is built again and asked again."""
        try:
            return call()
        except BaseException as error:
            if not _is_broken(error):
                raise
        self._start_over()
        self.catch_up()
        return call()

    def take_vectors(self, other: Index) -> None:
        """Take over the vectors *other* has for the same lines: they do not depend on when one asks."""
        model = str(other.store.state("model", ""))
        if not model:
            return
        self.store.set_state("model", model)
        mine = self.store.connection.execute("SELECT log, digest, key FROM doc").fetchall()
        for log, digest, key in mine:
            query = "SELECT v FROM vector JOIN doc USING (key) WHERE log = ? AND digest = ? ORDER BY row"
            found = other.store.connection.execute(query, (log, digest)).fetchall()
            if found:
                self.store.connection.executemany(
                    "INSERT INTO vector (key, v) VALUES (?, ?)", [(key, v) for (v,) in found]
                )
                self.store.connection.execute("DELETE FROM unembedded WHERE key = ?", (key,))

    def status(self) -> Status:
        store = self.store
        ((records,),) = store.connection.execute("SELECT count(*) FROM head").fetchall()
        ((waiting,),) = store.connection.execute(
            "SELECT count(*) FROM doc WHERE key > ?", (store.state("committed"),)
        ).fetchall()
        size = 0
        for folder, _folders, names in os.walk(self.folder) if self.folder else ():
            for name in names:
                with suppress(FileNotFoundError):  # Another process merges, or starts over.
                    size += os.stat(f"{folder}/{name}").st_size
        return Status(
            home=str(self.home.path),
            schema=SCHEMA_VERSION,
            records=records,
            waiting=waiting,
            vectors=vector_counts.stored(store),
            vectors_missing=vector_counts.missing(store),
            model=str(store.state("model", "")),
            bytes=size,
            in_memory=self.folder is None,
        )

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def _mended(self, work: Callable[[], None]) -> None:
        """Do *work* on an index that is made anew if it cannot be used, or in memory where it cannot be written."""
        starts = 0
        for _turn in range(TURNS_MAX):
            try:
                work()
            except BaseException as error:
                if isinstance(error, sqlite3.Error) and is_busy(error):
                    raise HomeUnusable(
                        self.home.path, "its index has been busy for half a minute", "try again"
                    ) from error
                if not (
                    _is_broken(error)
                    or _is_refused(error)
                    or isinstance(error, (OSError, ValueError))
                ):
                    raise
                if self._store is not None and not self._store.is_current():
                    continue  # Another process started over while we were at it.
                if starts > STARTS_MAX or (self.folder is None and starts):
                    raise
                starts += 1
                if self.folder and (
                    _is_refused(error) or starts > STARTS_MAX or not self._may_write()
                ):
                    # A home that may only be read still answers: the index is made in memory, for this process.
                    self.close()
                    self.folder, starts = None, 0
                    self._in_memory_until = time.monotonic() + MEMORY_S
                else:
                    self._start_over()
            else:
                return
        raise HomeUnusable(self.home.path, "its index is being removed all the time", "try again")

    def _catch_up(self, progress: Callable[[int], None]) -> None:
        if self._store is None or not self._store.is_current() or not self.text.is_whole():
            self.close()
            try:
                self._open()
            except BaseException:
                self.close()  # Open altogether or not at all.
                raise
        self.store.catch_up(self.home, progress)
        self.text.commit_if_due()
        self.text.refresh()

    def _commit(self) -> None:
        self._catch_up(lambda _done: None)
        self.text.commit_if_due(at_once=True)
        self.text.refresh()

    def _may_write(self) -> bool:
        """Whether an index can be kept in the home, as far as permissions tell."""
        folders = (self.home.index_folder, self.home.state_folder)
        return self.home.path.is_dir() and all(
            os.access(folder if folder.is_dir() else self.home.path, os.W_OK | os.X_OK)
            for folder in folders
        )

    def _open(self) -> None:
        if self.folder is not None and not self._may_write():
            self.folder = None  # For now; the next catching up looks again.
        if self.folder is None:
            self._store = Store(None, until=self._until)
            self.text = TextIndex(None, self._store)
        else:
            # SQLite opens several files by name: none of them may be another index's.
            with hold(self.home.index_lock):
                self.folder.mkdir(mode=0o700, exist_ok=True)
                self._store = Store(self.folder / TABLES)
                # The text belongs to these tables and no others: its folder carries their name.
                self.text = TextIndex(self.folder / f"text-{self._generation()}", self._store)
        self.vectors = Vectors(self.store)

    def _generation(self) -> str:
        store = self.store
        if not store.state("generation", ""):
            with store.writing():
                if not store.state("generation", ""):
                    store.set_state("generation", os.urandom(6).hex())
        return str(store.state("generation"))

    def _start_over(self) -> None:
        """Remove the index; of several processes that find it broken, the first does and the others see its new one."""
        if self.folder is None:
            self.close()
            return
        tables = self.folder / TABLES
        broken = self._store.inode if self._store else _inode(tables)
        self.close()
        removal.remove(self.home, lambda: _inode(tables) == broken)


def _is_broken(error: BaseException) -> bool:
    """Whether an engine could not read what it wrote. Tantivy's panics have a type that cannot be imported."""
    if isinstance(error, sqlite3.DatabaseError):
        return not is_busy(error) and not isinstance(error, sqlite3.ProgrammingError)
    return isinstance(error, TextBroken) or type(error).__module__ == "pyo3_runtime"


def _is_refused(error: BaseException) -> bool:
    """Whether the home may not be written, or is full."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in _REFUSED
    if isinstance(error, OSError):
        return error.errno in _REFUSED_OS
    return isinstance(error, (HomeUnusable, DiskFull))


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
