"""One home's index: its tables, text and vectors. It repairs itself by a rebuild."""

from __future__ import annotations

import errno
import math
import os
import sqlite3
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from commonplace.errors import DiskFull, HomeUnusable
from commonplace.files.lock import hold
from commonplace.files.plain import first_existing, has_odd_files, make_folder
from commonplace.index import removal
from commonplace.index.embedded import backlog, kept_vectors
from commonplace.index.embedded.parts import TABLES, OpenParts
from commonplace.index.embedded.past import PastReader
from commonplace.index.embedded.reader import Reader
from commonplace.index.embedded.tables import SCHEMA_VERSION, TablesClosed, is_busy
from commonplace.index.embedded.text import TextBroken
from commonplace.index.ports import Status, no_progress
from commonplace.rules import Standing
from commonplace.rules.statements import STATEMENT_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from commonplace.embed.embedder import Embedder
    from commonplace.index.embedded.kept_vectors import KeptVectors
    from commonplace.index.embedded.snapshot import Totals
    from commonplace.index.embedded.vector_search import VectorSnapshot
    from commonplace.where.home import Home

# How often an index is rebuilt before one in memory is used, and for how long that one is used.
STARTS_MAX = 2
TURNS_MAX = 100
MEMORY_S = 60.0
# More lines than this at once are not left to a background thread.
BACKGROUND_MAX = 2_000
_REFUSED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_FULL)
_REFUSED_OS = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOSPC,
    errno.EFBIG,
    getattr(errno, "EDQUOT", errno.ENOSPC),
)


class EmbeddedIndex:
    """The index of *home*, kept in its index folder, or in memory where nothing may be written.

    Any number of threads may read at once. One lock guards changes; a question holds it
    only to catch up with the files, and questions that come at the same time catch up together.
    """

    def __init__(self, home: Home, *, in_memory: bool = False, for_one_query: bool = False) -> None:
        self.home = home
        self._for_one_query = for_one_query  # Loads no vectors that it does not need.
        # Where it is kept now: `None` while it is in memory.
        self.folder: Path | None = None if in_memory else home.index_folder
        self.commits_in_background = False
        self._in_memory_until = math.inf if in_memory else 0.0
        self._lock = threading.RLock()
        self._open: OpenParts | None = None
        self._last_totals: Totals | None = None
        self._catch_ups_begun = 0
        self._last_complete = 0

    # --- Keeping it up to date --------------------------------------------------------------------

    def catch_up(self, progress: Callable[[int], None] = no_progress) -> None:
        came = self._catch_ups_begun
        with self._lock:
            if self._last_complete > came and self._open is not None:
                return  # A catch-up that began after this call did the work.
            self._catch_ups_begun += 1
            if self.folder is None and self._may_return_to_disk():
                self._close()
                self.folder = self.home.index_folder
            self._run_with_repair(lambda: self._catch_up(progress))
            self._last_complete = self._catch_ups_begun

    def is_commit_due(self) -> bool:
        parts = self._open
        return parts is not None and parts.snapshot is not None and parts.snapshot.text.is_large()

    def commit_if_due(self) -> None:
        """Move the overlay into the text index, if it is large; for a background thread."""
        with self._lock:
            parts = self._open
            due = parts is not None and parts.text.is_commit_due()
        if parts is not None and due:
            with suppress(TablesClosed):  # Another process replaced them.
                parts.text.commit(self._lock)

    def commit(self) -> None:
        """Move the whole overlay into the text index."""
        with self._lock:
            self._run_with_repair(self._commit)

    def rebuild(self, progress: Callable[[int], None] = no_progress) -> None:
        with self._lock:
            self._remove_index()
            self.catch_up(progress)
            self.commit()

    def restore_vectors(
        self, kept: KeptVectors, progress: Callable[[int], None] = no_progress
    ) -> None:
        """Build what is missing, and give each line the vectors that *kept* has of it."""
        with self._lock:
            self.catch_up(progress)
            kept_vectors.restore(self._parts().tables, kept)
            self.commit()

    def repair(self, error: BaseException) -> bool:
        if not _is_broken(error):
            return False
        with self._lock:
            self._remove_index()
            self.catch_up()
        return True

    def _catch_up(self, progress: Callable[[int], None]) -> None:
        parts = self._ensure_open()
        changes = parts.catch_up.run(progress)
        if parts.is_fresh():
            return
        many = changes.added + changes.removed > BACKGROUND_MAX
        if parts.text.is_commit_due() and (many or not self.commits_in_background):
            parts.text.commit(self._lock)
        parts.refresh()

    def _commit(self) -> None:
        self._catch_up(no_progress)
        parts = self._ensure_open()
        if parts.text.is_commit_due(at_once=True):
            parts.text.commit(self._lock)
        parts.refresh()

    def _ensure_open(self) -> OpenParts:
        """Return the open parts, opened again if another process replaced or broke the files."""
        if self._open is None or not self._open.is_usable():
            self._close()
            if self.folder is not None and not self._may_write():
                self.folder = None  # For now; the next catch-up checks again.
            if self.folder is None:
                self._open = OpenParts(self.home, None, self._lock)
            else:
                # SQLite opens several files by name: all of them must belong to this index.
                with hold(self.home.index_lock):
                    make_folder(self.folder)
                    if has_odd_files(self.folder):
                        raise TextBroken("there is a link or a special file in its folder")
                    self._open = OpenParts(self.home, self.folder, self._lock)
        return self._open

    def _run_with_repair(self, work: Callable[[], None]) -> None:
        """Do *work*; if the index is broken, rebuild it, or in memory if it cannot be written."""
        starts = 0
        for _turn in range(TURNS_MAX):
            try:
                work()
            except BaseException as error:
                if isinstance(error, sqlite3.Error) and is_busy(error):
                    raise HomeUnusable(
                        self.home.path, "its index has been busy for half a minute", "try again"
                    ) from error
                if not _is_repairable(error):
                    raise
                if self._open is not None and not self._open.tables.is_current():
                    continue  # Another process removed it meanwhile.
                if starts > STARTS_MAX or (self.folder is None and starts):
                    raise
                starts += 1
                if self.folder and (
                    _is_write_denied(error) or starts > STARTS_MAX or not self._may_write()
                ):
                    # A read-only home still answers, from an index in memory.
                    self._close()
                    self.folder, starts = None, 0
                    self._in_memory_until = time.monotonic() + MEMORY_S
                else:
                    self._remove_index()
            else:
                return
        raise HomeUnusable(self.home.path, "other processes keep removing its index", "try again")

    def _may_return_to_disk(self) -> bool:
        return time.monotonic() >= self._in_memory_until and self._may_write()

    def _may_write(self) -> bool:
        """Whether an index can be kept in the home, as far as permissions say."""
        folders = (self.home.index_folder, self.home.state_folder)
        return self.home.path.is_dir() and all(
            os.access(first_existing(folder), os.W_OK | os.X_OK) for folder in folders
        )

    def _remove_index(self) -> None:
        """Remove the index. If several processes find it broken, only the first one removes it."""
        if self.folder is None:
            self._close()
            return
        tables = self.folder / TABLES
        broken = self._open.tables.inode if self._open else _inode(tables)
        self._close()
        removal.remove(self.home, lambda: _inode(tables) == broken)

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._open is not None:
            if self._open.snapshot is not None:
                self._last_totals = self._open.snapshot.totals
            self._open.tables.close()
            self._open = None

    # --- Reading it -------------------------------------------------------------------------------

    @contextmanager
    def reading(self, as_of_micros: int | None = None) -> Iterator[Reader]:
        with ExitStack() as stack:
            parts, connection = self._begin_reading(stack)
            snapshot = parts.snapshot
            assert snapshot is not None, "`catch_up` makes one"

            def vectors() -> VectorSnapshot:
                if self._for_one_query:
                    from commonplace.index.embedded import sign_blocks  # noqa: PLC0415

                    if (found := sign_blocks.read(connection)) is not None:
                        return found
                return parts.vectors.snapshot(connection, snapshot.version)

            if as_of_micros is None:
                yield Reader(connection, snapshot, vectors)
            else:
                yield PastReader(connection, snapshot, vectors, as_of_micros)

    def _begin_reading(self, stack: ExitStack) -> tuple[OpenParts, sqlite3.Connection]:
        for _turn in range(TURNS_MAX):
            parts = self._open
            if parts is not None and parts.snapshot is not None:
                with suppress(TablesClosed):
                    return parts, stack.enter_context(parts.tables.reading())
            self.catch_up()  # Another process replaced the files.
        raise HomeUnusable(self.home.path, "other processes keep removing its index", "try again")

    def _totals(self) -> Totals:
        parts = self._open
        if parts is not None and parts.snapshot is not None:
            return parts.snapshot.totals
        # Another thread opens what another process has replaced.
        assert self._last_totals is not None, "`catch_up` makes a snapshot"
        return self._last_totals

    def _parts(self) -> OpenParts:
        assert self._open is not None, "`catch_up` opens it"
        return self._open

    @property
    def in_memory(self) -> bool:
        return self.folder is None

    def is_replaced(self) -> bool:
        with self._lock:
            return self._open is None or not self._open.tables.is_current()

    def is_empty(self) -> bool:
        return self._totals().is_empty

    def status(self) -> Status:
        with self._lock:
            tables = self._parts().tables
            connection = tables.connection
            marks = ",".join("?" * len(STATEMENT_KINDS))
            (records,) = connection.execute(
                f"SELECT count(*) FROM line WHERE standing = ? AND kind NOT IN ({marks})",
                (Standing.CURRENT, *STATEMENT_KINDS),
            ).fetchone()
            (waiting,) = connection.execute(
                "SELECT count(*) FROM line WHERE key > ?", (tables.state("committed"),)
            ).fetchone()
            return Status(
                home=str(self.home.path),
                schema=SCHEMA_VERSION,
                records=records,
                waiting=waiting,
                vectors=backlog.count_embedded(connection),
                vectors_missing=backlog.count_missing(connection),
                model=str(tables.state("model", "")),
                bytes=_size(self.folder),
                in_memory=self.in_memory,
            )

    # --- Vectors ----------------------------------------------------------------------------------

    def missing_vectors(self) -> int:
        return self._totals().missing_vectors

    def use_model(self, name: str) -> None:
        if self._totals().model == name:
            return
        with self._lock:
            parts = self._parts()
            backlog.use_model(parts.tables, name)
            parts.refresh()

    def embed(self, embedder: Embedder, documents_max: int) -> int:
        self.use_model(embedder.name)
        with self._lock:
            parts = self._parts()
        try:
            done = parts.vectors.embed(embedder, documents_max)
            with self._lock:
                if done and parts is self._open:
                    parts.refresh()
        except TablesClosed:
            return 0  # Another process replaced the index.
        return done

    def check_vector_length(self, length: int) -> None:
        with self._lock:
            self._parts().vectors.check_length(length)


def _is_repairable(error: BaseException) -> bool:
    is_replaced = isinstance(error, TablesClosed)
    usual = isinstance(error, (OSError, ValueError))
    return is_replaced or usual or _is_broken(error) or _is_write_denied(error)


def _is_broken(error: BaseException) -> bool:
    """Whether the index is damaged: SQLite or Tantivy cannot read it.

    Tantivy's panics have a type that cannot be imported.
    """
    if isinstance(error, sqlite3.DatabaseError):
        return not is_busy(error) and not isinstance(error, sqlite3.ProgrammingError)
    return isinstance(error, TextBroken) or type(error).__module__ == "pyo3_runtime"


def _is_write_denied(error: BaseException) -> bool:
    """Whether the home cannot be written: read-only, or its disk is full."""
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


def _size(folder: Path | None) -> int:
    """Return how many bytes the files in *folder* have."""
    size = 0
    for place, _folders, names in os.walk(folder) if folder else ():
        for name in names:
            with suppress(FileNotFoundError):  # Another process merges or removes.
                size += os.stat(f"{place}/{name}").st_size
    return size
