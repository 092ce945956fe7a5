"""Carry vectors over from an index that is removed to the one that is built in its place.

An erasure removes the whole index, because SQLite and Tantivy keep parts of what was deleted from
them. Vectors take the longest to make, and those of other lines can stay: the same line of the same
log gets its vectors back.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from commonplace.errors import CommonplaceError
from commonplace.files.lock import hold
from commonplace.files.plain import has_odd_files
from commonplace.index.embedded.parts import TABLES
from commonplace.index.embedded.tables import BUSY_MS_MAX, SCHEMA_VERSION, state
from commonplace.rules import Standing

if TYPE_CHECKING:
    from collections.abc import Collection

    from commonplace.index.embedded.tables import Tables
    from commonplace.where.home import Home

    # The codes of the pieces of a passage, and of which units they are (`piece_codes.Codes`).
    Codes = tuple[bytes, bytes]


class KeptVectors(NamedTuple):
    """Vectors by log and digest of their line, and the model that made them."""

    model: str
    by_line: dict[tuple[str, bytes], list[bytes]]
    # The codes of the word pieces of their passages (`piece_codes.py`).
    codes_by_line: dict[tuple[str, bytes], list[Codes]]


def read(home: Home, without: Collection[str]) -> KeptVectors | None:
    """Return the vectors in the index of *home* of all lines but those with an id in *without*.

    `None` if there are none: no index, none of this version, a damaged one.
    """
    path = home.index_folder / TABLES
    if not path.is_file():
        return None
    try:
        # SQLite opens several files by name: all of them must belong to this index.
        with hold(home.index_lock):
            if has_odd_files(home.index_folder):
                return None
            with closing(sqlite3.connect(path, timeout=BUSY_MS_MAX / 1000)) as connection:
                return _read(connection, without)
    except (sqlite3.Error, OSError, CommonplaceError):
        return None


def _read(connection: sqlite3.Connection, without: Collection[str]) -> KeptVectors | None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    model = str(state(connection, "model", "")) if version == SCHEMA_VERSION else ""
    if not model:
        return None
    lines = {
        key: (log, digest)
        for key, log, digest, ident in connection.execute(
            "SELECT key, log, digest, id FROM line WHERE key NOT IN (SELECT key FROM unembedded)"
        )
        if ident not in without
    }
    # A document without words has no vectors, and needs none.
    by_line: dict[tuple[str, bytes], list[bytes]] = {line: [] for line in lines.values()}
    for table in ("vector", "old_vector"):
        for key, vector in connection.execute(f"SELECT key, v FROM {table} ORDER BY row"):
            if key in lines:
                by_line[lines[key]].append(vector)
    codes_by_line: dict[tuple[str, bytes], list[Codes]] = {}
    query = "SELECT key, codes, places FROM piece_code ORDER BY key, passage"
    for key, codes, places in connection.execute(query):
        if key in lines:
            codes_by_line.setdefault(lines[key], []).append((codes, places))
    return KeptVectors(model, by_line, codes_by_line)


def restore(tables: Tables, kept: KeptVectors) -> None:
    """Give the lines in *tables* that have no vectors those in *kept*."""
    from commonplace.index.embedded import piece_codes, sign_blocks  # noqa: PLC0415 (load NumPy)

    with tables.writing():
        if tables.state("model", "") not in ("", kept.model):
            return
        tables.set_state("model", kept.model)
        found = tables.connection.execute(
            "SELECT key, log, digest, standing FROM unembedded JOIN line USING (key) ORDER BY key"
        ).fetchall()
        for key, log, digest, standing in found:
            vectors = kept.by_line.get((log, digest))
            if vectors is not None:
                table = "old_vector" if standing == Standing.REPLACED else "vector"
                tables.connection.executemany(
                    f"INSERT INTO {table} (key, v) VALUES (?, ?)",
                    [(key, vector) for vector in vectors],
                )
                codes = kept.codes_by_line.get((log, digest), [])
                piece_codes.store_codes(
                    tables.connection, [(key, piece_codes.Codes(*one)) for one in codes]
                )
                tables.connection.execute("DELETE FROM unembedded WHERE key = ?", (key,))
        sign_blocks.pack(tables.connection)
