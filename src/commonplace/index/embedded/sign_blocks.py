"""Blocks of signs: what a process that asks once reads instead of every vector.

A vector is 384 bytes in a row of its own, and its signs are 48. Blocks of a thousand signs are read
twenty times as fast as the vectors; they choose some hundred vectors, and only those are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commonplace.index.embedded import vector_search
from commonplace.index.embedded.tables import select_in
from commonplace.index.embedded.vector_search import VectorSnapshot, from_bytes, signs_of, sort

if TYPE_CHECKING:
    import sqlite3

    from commonplace.index.embedded.vector_search import Bytes, Ints, Words

BLOCK_ROWS = 1024
# Vectors that were removed do no harm, so this share of them may stay in blocks and in memory.
GONE_SHARE_MAX = 0.1


class StoredRows:
    """The vectors in the tables, by their positions among *numbers*, read when they are needed."""

    def __init__(self, connection: sqlite3.Connection, numbers: Ints) -> None:
        self._connection = connection
        self._numbers = numbers
        (self._length,) = connection.execute("SELECT length(v) FROM vector LIMIT 1").fetchone()

    def __getitem__(self, positions: Ints | slice) -> Bytes:
        wanted = self._numbers[positions].tolist()
        query = "SELECT row, v FROM vector WHERE row IN ({})"
        found = dict(select_in(self._connection, query, wanted))
        # One that was removed since is like nothing.
        nothing = bytes(self._length)
        return from_bytes([found.get(number, nothing) for number in wanted])


class _Rows(NamedTuple):
    """Some rows of the table of vectors: their numbers, keys and signs."""

    numbers: Ints
    keys: Ints
    signs: Words


def pack(connection: sqlite3.Connection) -> None:
    """Write blocks for the vectors that are in none, as far as they fill one."""
    packed, last = _packed(connection)
    (count,) = connection.execute("SELECT count(*) FROM vector").fetchone()
    waiting = _count_after(connection, last)
    if packed + waiting - count > count * GONE_SHARE_MAX:
        connection.execute("DELETE FROM sign_block")
        waiting, last = count, 0
    while waiting >= BLOCK_ROWS:
        rows = _read_after(connection, last, BLOCK_ROWS)
        last = int(rows.numbers[-1])
        waiting -= BLOCK_ROWS
        connection.execute(
            "INSERT INTO sign_block VALUES (?, ?, ?, ?, ?)",
            (last, BLOCK_ROWS, *(part.tobytes() for part in rows)),
        )


def read(connection: sqlite3.Connection) -> VectorSnapshot | None:
    """Return a snapshot that reads vectors when it needs them.

    `None` if the vectors are few, or too many of those in the blocks are gone.
    """
    packed, last = _packed(connection)
    (count,) = connection.execute("SELECT count(*) FROM vector").fetchone()
    loose = _count_after(connection, last)
    if count <= vector_search.EXACT_MAX or packed + loose - count > count * GONE_SHARE_MAX:
        return None
    blocks = connection.execute("SELECT numbers, keys, signs FROM sign_block ORDER BY last_row")
    parts = [
        _Rows(
            np.frombuffer(numbers, np.int64),
            np.frombuffer(keys, np.int64),
            np.frombuffer(signs, np.uint64).reshape(-1, len(numbers) // 8),
        )
        for numbers, keys, signs in blocks
    ]
    if loose:
        parts.append(_read_after(connection, last, loose))
    numbers, keys = (np.concatenate([part[at] for part in parts]) for at in (0, 1))
    signs = np.concatenate([part.signs for part in parts], axis=1)
    sorted_keys, sorted_rows = sort(keys)
    none = np.zeros(0, np.int64)
    rows = StoredRows(connection, numbers)
    return VectorSnapshot(
        len(keys), keys, rows, None, signs.T, sorted_keys, sorted_rows, none, none
    )


def _packed(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return how many vectors are in blocks, and the number of the last one."""
    query = "SELECT ifnull(sum(rows), 0), ifnull(max(last_row), 0) FROM sign_block"
    packed, last = connection.execute(query).fetchone()
    return int(packed), int(last)


def _count_after(connection: sqlite3.Connection, row: int) -> int:
    query = "SELECT count(*) FROM vector WHERE row > ?"
    return int(connection.execute(query, (row,)).fetchone()[0])


def _read_after(connection: sqlite3.Connection, row: int, limit: int) -> _Rows:
    query = "SELECT row, key, v FROM vector WHERE row > ? ORDER BY row LIMIT ?"
    numbers, keys, vectors = zip(*connection.execute(query, (row, limit)), strict=True)
    return _Rows(
        np.array(numbers, np.int64), np.array(keys, np.int64), signs_of(from_bytes(vectors))
    )
