"""The parts of an index that are open together: tables, text and vectors from one set of files."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from commonplace.index.embedded.catch_up import CatchUp
from commonplace.index.embedded.snapshot import Cache, Snapshot, read_totals
from commonplace.index.embedded.tables import Tables
from commonplace.index.embedded.text import Text

if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.index.embedded.vectors import VectorStore
    from commonplace.where.home import Home

TABLES = "tables.sqlite"


class OpenParts:
    """The parts of an index that are open together, from one set of files."""

    def __init__(self, home: Home, folder: Path | None, lock: threading.RLock) -> None:
        self.tables = Tables(folder / TABLES if folder else None)
        try:
            # The text belongs to these tables only: its folder has their name.
            text_folder = folder / f"text-{self._generation()}" if folder else None
            self.text = Text(text_folder, self.tables)
        except BaseException:
            self.tables.close()
            raise
        self.catch_up = CatchUp(self.tables, home)
        self.snapshot: Snapshot | None = None
        self._lock = lock
        self._loading = threading.Lock()
        self._vectors: VectorStore | None = None

    def refresh(self) -> None:
        """Make the current content of the tables visible to new readers."""
        # Another process may write meanwhile: then the version is too old, and the next catch-up
        # refreshes again.
        writes, version = int(self.tables.state("writes")), self.tables.changes()
        before, changed = self.snapshot, self.catch_up.take_changed_keys()
        # What another process changed is not known.
        only_we_wrote = before is not None and before.version[0] == version[0]
        cache = before.cache.without(changed) if before and only_we_wrote else Cache()
        self.text.refresh()
        self.snapshot = Snapshot(
            version,
            writes,
            self.text.snapshot,
            self.catch_up.log_sizes(),
            read_totals(self.tables.connection),
            cache,
        )

    def is_fresh(self) -> bool:
        """Whether the tables hold nothing that readers do not see."""
        return self.snapshot is not None and self.snapshot.version == self.tables.changes()

    def _generation(self) -> str:
        tables = self.tables
        if not tables.state("generation", ""):
            with tables.writing():
                if not tables.state("generation", ""):
                    tables.set_state("generation", os.urandom(6).hex())
        return str(tables.state("generation"))

    @property
    def vectors(self) -> VectorStore:
        if self._vectors is None:
            # Loads NumPy, which a home without an embedder does not need.
            from commonplace.index.embedded.vectors import VectorStore  # noqa: PLC0415

            # Not the index's lock: its holder may wait for tables that a reader in memory holds.
            with self._loading:
                self._vectors = self._vectors or VectorStore(self.tables, self._lock)
        return self._vectors

    def is_usable(self) -> bool:
        return self.tables.is_current() and self.text.is_whole()
