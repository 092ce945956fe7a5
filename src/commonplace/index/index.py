"""One home's index: its tables, its text, its vectors. It repairs itself by being built again."""

from __future__ import annotations

import os
import shutil
import sqlite3
from typing import TYPE_CHECKING, NamedTuple

from commonplace.errors import HomeUnusable
from commonplace.index import vectors as vector_counts
from commonplace.index.store import SCHEMA_VERSION, Store
from commonplace.index.text import TextIndex
from commonplace.index.vectors import Vectors
from commonplace.log import rewrite
from commonplace.log.append import held

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TABLES = "tables.sqlite"
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_READ_ONLY = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)


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

    def __init__(self, home: Path, *, in_memory: bool = False, until: str = "") -> None:
        self.home = home
        self._until = until
        self.folder: Path | None = None if in_memory else home / ".index"
        self._store: Store | None = None
        self.text: TextIndex
        self.vectors: Vectors

    @property
    def store(self) -> Store:
        assert self._store is not None, "`catch_up` opens it"
        return self._store

    def catch_up(self, progress: Callable[[int], None] = lambda _done: None) -> None:
        """Be up to date with the files; build everything again if what is there cannot be used."""
        try:
            self._catch_up(progress)
        except (sqlite3.DatabaseError, ValueError, OSError) as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code in _BUSY:
                raise HomeUnusable(self.home, "its index has been busy for half a minute", "try again") from error
            if code in _READ_ONLY or isinstance(error, PermissionError):
                # A home that may only be read still answers: the index is made in memory, for this process.
                self.close()
                self.folder = None
            else:
                self._start_over()
            self._catch_up(progress)

    def rebuild(self, progress: Callable[[int], None] = lambda _done: None) -> None:
        """Throw the index away and make it from the files."""
        self._start_over()
        self._catch_up(progress)
        self.text.commit_if_due(at_once=True)
        self.text.refresh()

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
        size = sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file()) if self.folder else 0
        return Status(
            home=str(self.home),
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

    def _catch_up(self, progress: Callable[[int], None]) -> None:
        if self._store is None or not self._store.is_current() or not self.text.is_whole():
            self.close()
            self._open()
        self.store.catch_up(self.home, progress)
        self.text.commit_if_due()
        self.text.refresh()

    def _open(self) -> None:
        if self.folder is None:
            self._store = Store(None, until=self._until)
            self.text = TextIndex(None, self._store)
        else:
            if not self.home.is_dir():
                raise PermissionError(f"there is no home at `{self.home}` yet")
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self._store = Store(self.folder / TABLES)
            # The text belongs to these tables and no others: its folder carries their name.
            self.text = TextIndex(self.folder / f"text-{self._generation()}", self._store)
        self.vectors = Vectors(self._store)

    def _generation(self) -> str:
        store = self.store
        if not store.state("generation", ""):
            with store.writing():
                if not store.state("generation", ""):
                    store.set_state("generation", os.urandom(6).hex())
        return str(store.state("generation"))

    def _start_over(self) -> None:
        """Remove the index; of several processes that find it broken, the first does and the others see its new one."""
        self.close()
        if self.folder is None:
            return
        broken = _inode(self.folder / TABLES)
        with held(self.home / ".state" / "index.lock"):
            if broken == _inode(self.folder / TABLES):
                aside = self.folder.with_name(f".index.{os.getpid()}{rewrite.TEMPORARY_SUFFIX}")
                shutil.rmtree(aside, ignore_errors=True)
                if self.folder.exists():
                    self.folder.rename(aside)
                shutil.rmtree(aside, ignore_errors=True)


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
