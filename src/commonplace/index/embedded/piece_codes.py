"""Codes of word pieces: how much of a question each of the best passages says, piece by piece.

A vector stands for a whole passage, and blurs what only one of its words says. So each piece of a
passage is kept too, by the signs of half of its numbers: 24 bytes. They are read for the best
passages of a question only (docs/decisions/0040).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence

    from commonplace.embed.embedder import Vectors

# Every other number of a vector has its sign kept: all of them find no more.
STEP = 2
# More pieces of a passage than these are not kept, and more of a question not compared.
PIECES_MAX = 128
QUESTION_PIECES_MAX = 64
# OpenBLAS multiplies as much as this in the thread that asks. For more it wakes up others, which
# then keep a core busy while they wait.
PRODUCTS_MAX = 200_000


def to_codes(pieces: Vectors) -> bytes:
    """Return the codes of *pieces*, a vector each."""
    return np.packbits(pieces[:PIECES_MAX, ::STEP] > 0, axis=1).tobytes()


def store_codes(connection: sqlite3.Connection, codes: Iterable[tuple[int, bytes]]) -> None:
    """Store the codes of passages by the keys of their documents, which are in order."""
    passages: dict[int, int] = {}
    rows = []
    for key, code in codes:
        passage = passages.get(key, 0)
        passages[key] = passage + 1
        rows.append((key, passage, code))
    connection.executemany("INSERT INTO piece_code VALUES (?, ?, ?)", rows)


def read_codes(connection: sqlite3.Connection, passages: Mapping[int, int]) -> dict[int, bytes]:
    """Return the codes of one passage of each document: key → number of the passage."""
    query = "SELECT codes FROM piece_code WHERE key = ? AND passage = ?"
    found = ((key, connection.execute(query, (key, at)).fetchone()) for key, at in passages.items())
    return {key: row[0] for key, row in found if row is not None}


def similarities(question: Vectors, passages: Sequence[bytes]) -> list[float]:
    """Return for each of *passages*, by its codes, how well it says the pieces of *question*.

    That is the mean, over the pieces of the question, of the best cosine with a piece of the
    passage; about, since the passage has signs only. It is 0 for a passage without codes.
    """
    wanted = np.ascontiguousarray(question[:QUESTION_PIECES_MAX, ::STEP], np.float32)
    if not len(wanted):
        return [0.0] * len(passages)
    numbers = wanted.shape[1]
    code_bytes = (numbers + 7) // 8
    wanted /= np.maximum(np.linalg.norm(wanted, axis=1, keepdims=True), 1e-9)
    # The sign of a bit is twice the bit less 1, so the sum over the signs follows from the bits.
    sums = wanted.sum(axis=1)
    bits = np.unpackbits(
        np.frombuffer(b"".join(passages), np.uint8).reshape(-1, code_bytes), axis=1, count=numbers
    ).astype(np.float32)
    found = []
    start = 0
    for passage in passages:
        end = start + len(passage) // code_bytes
        found.append(_mean_of_best(wanted, sums, bits[start:end]) if end > start else 0.0)
        start = end
    return found


def _mean_of_best(wanted: Vectors, sums: Vectors, bits: Vectors) -> float:
    """Return the mean over *wanted* of the best cosine with the signs of one row of *bits*."""
    rows = max(1, PRODUCTS_MAX // bits.size)
    total = 0.0
    for start in range(0, len(wanted), rows):
        products = wanted[start : start + rows] @ bits.T
        total += float((2 * products.max(axis=1) - sums[start : start + rows]).sum())
    return total / (len(wanted) * math.sqrt(bits.shape[1]))
