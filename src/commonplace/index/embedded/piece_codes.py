"""Codes of word pieces: how much of a question each of the best passages says, piece by piece.

A vector stands for a whole passage, and blurs what only one of its words says. So each piece of a
passage is kept too, by the signs of half of its numbers: 24 bytes. They are read for the best
passages of a question only (docs/decisions/0040).
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commonplace.index.vector_passages import NO_UNIT

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from commonplace.embed.embedder import Vectors
    from commonplace.index.vector_passages import Passage

# Every other number of a vector has its sign kept: all of them find no more.
STEP = 2
# More pieces of a passage than these are not kept, and more of a question not compared.
PIECES_MAX = 256
QUESTION_PIECES_MAX = 64
# Of a passage that is compared with others: with more, long ones would be nearer to any question.
RANKED_MAX = 128
# OpenBLAS multiplies as much as this in the thread that asks. For more it wakes up others, which
# then keep a core busy while they wait.
PRODUCTS_MAX = 200_000
# Numbers of units are kept in 16 bits.
NUMBER_MAX = 0xFFFF


def to_codes(pieces: Vectors) -> bytes:
    """Return the codes of *pieces*, a vector each."""
    return np.packbits(pieces[:PIECES_MAX, ::STEP] > 0, axis=1).tobytes()


class Codes(NamedTuple):
    """The codes of the pieces of one passage, and which of them are of which unit."""

    codes: bytes
    # Pairs of numbers: a unit, and how many of the next pieces are of it.
    places: bytes = b""


def places_of(passage: Passage, count_pieces: Callable[[str], int]) -> bytes:
    """Return the `places` of a passage; *count_pieces* says how many pieces of a text are kept."""
    pairs = ((unit & NUMBER_MAX, count_pieces(text)) for unit, text in passage.parts)
    return array("H", [number for pair in pairs for number in pair]).tobytes()


def store_codes(connection: sqlite3.Connection, codes: Iterable[tuple[int, Codes]]) -> None:
    """Store the codes of passages by the keys of their documents, which are in order."""
    passages: dict[int, int] = {}
    rows = []
    for key, one in codes:
        passage = passages.get(key, 0)
        passages[key] = passage + 1
        rows.append((key, passage, *one))
    connection.executemany("INSERT INTO piece_code VALUES (?, ?, ?, ?)", rows)


def _code_bytes(vectors: Vectors) -> int:
    return (len(range(0, vectors.shape[1], STEP)) + 7) // 8


def read_codes(connection: sqlite3.Connection, passages: Mapping[int, int]) -> dict[int, bytes]:
    """Return the codes of one passage of each document: key → number of the passage."""
    # One statement takes half the time that one for each of them takes.
    query = (
        "WITH wanted (key, passage) AS (VALUES {}) SELECT key, codes FROM wanted"
        " JOIN piece_code USING (key, passage)"
    )
    if not passages:
        return {}
    rows = ",".join(["(?, ?)"] * len(passages))
    numbers = [number for pair in passages.items() for number in pair]
    return dict(connection.execute(query.format(rows), numbers).fetchall())


def unit_similarities(
    connection: sqlite3.Connection, question: Vectors, key: int
) -> dict[int, float]:
    """Return how well each unit of a long document says the pieces of *question*."""
    query = "SELECT codes, places FROM piece_code WHERE key = ? ORDER BY passage"
    code_bytes = _code_bytes(question)
    found: dict[int, list[bytes]] = {}
    for codes, places in connection.execute(query, (key,)):
        numbers = iter(array("H", places))
        start = 0
        for unit, count in zip(numbers, numbers, strict=True):
            end = start + count * code_bytes
            if unit != NO_UNIT & NUMBER_MAX and codes[start:end]:
                found.setdefault(unit, []).append(codes[start:end])
            start = end
    joined = [b"".join(parts) for parts in found.values()]
    return dict(zip(found, similarities(question, joined), strict=True))


def similarities(
    question: Vectors, passages: Sequence[bytes], pieces_max: int = PIECES_MAX
) -> list[float]:
    """Return for each of *passages*, by its codes, how well it says the pieces of *question*.

    That is the mean, over the pieces of the question, of the best cosine with one of the first
    *pieces_max* pieces of the passage; about, since the passage has signs only. It is 0 for a
    passage without codes.
    """
    wanted = np.ascontiguousarray(question[:QUESTION_PIECES_MAX, ::STEP], np.float32)
    code_bytes = _code_bytes(question)
    passages = [passage[: pieces_max * code_bytes] for passage in passages]
    lengths = [len(passage) // code_bytes for passage in passages]
    if not len(wanted) or not any(lengths):
        return [0.0] * len(passages)
    wanted /= np.maximum(np.linalg.norm(wanted, axis=1, keepdims=True), 1e-9)
    bits = np.unpackbits(
        np.frombuffer(b"".join(passages), np.uint8).reshape(-1, code_bytes),
        axis=1,
        count=wanted.shape[1],
    ).astype(np.float32)
    products = np.empty((len(bits), len(wanted)), np.float32)
    rows = max(1, PRODUCTS_MAX // wanted.size)
    for start in range(0, len(bits), rows):
        np.matmul(bits[start : start + rows], wanted.T, out=products[start : start + rows])
    starts = np.cumsum([0, *(length for length in lengths if length)])[:-1]
    best = np.maximum.reduceat(products, starts, axis=0)
    # The sign of a bit is twice the bit less 1, so the sum over the signs follows from the bits.
    said = (2 * best - wanted.sum(axis=1)).sum(axis=1) / (len(wanted) * math.sqrt(wanted.shape[1]))
    found = iter(said.tolist())
    return [next(found) if length else 0.0 for length in lengths]
