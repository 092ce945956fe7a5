"""Blocks of signs: what a process that asks once reads instead of every vector."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.index.embedded import sign_blocks, vector_search
from commonplace.index.embedded.index import EmbeddedIndex
from commonplace.index.embedded.reader import Reader
from commonplace.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from commonplace.index.embedded.vector_search import VectorSnapshot

VECTORS = """
CREATE TABLE vector (row INTEGER PRIMARY KEY AUTOINCREMENT, key INTEGER NOT NULL, v BLOB NOT NULL);
CREATE TABLE sign_block (
    last_row INTEGER PRIMARY KEY, rows INTEGER, numbers BLOB, keys BLOB, signs BLOB);
"""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few vectors are many here."""
    monkeypatch.setattr(vector_search, "EXACT_MAX", 20)
    monkeypatch.setattr(vector_search, "SHORTLIST", 40)
    monkeypatch.setattr(sign_blocks, "BLOCK_ROWS", 16)


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(":memory:")
    opened.executescript(VECTORS)
    yield opened
    opened.close()


def draw_rows(count: int, seed: int = 7) -> NDArray[np.int8]:
    return np.random.default_rng(seed).integers(-40, 41, (count, 384), np.int8)


def put(connection: sqlite3.Connection, rows: NDArray[np.int8], first_key: int = 0) -> None:
    # Two passages of each document.
    pairs = [(first_key + place // 2, row.tobytes()) for place, row in enumerate(rows)]
    connection.executemany("INSERT INTO vector (key, v) VALUES (?, ?)", pairs)


def load_all(connection: sqlite3.Connection) -> VectorSnapshot:
    """The snapshot of a process that loads every vector."""
    keys, rows = zip(*connection.execute("SELECT key, v FROM vector ORDER BY row"), strict=True)
    empty = vector_search.EMPTY
    return vector_search.with_order(vector_search.with_rows(empty, keys, rows, len(keys)))


def blocks(connection: sqlite3.Connection) -> int:
    (found,) = connection.execute("SELECT count(*) FROM sign_block").fetchone()
    return int(found)


@given(
    steps=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    removed=st.sets(st.integers(0, 40), max_size=2),
)
def test_what_is_read_by_blocks_equals_what_is_loaded(steps: list[int], removed: set[int]) -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(VECTORS)
    rows = draw_rows(sum(steps))
    for number, step in enumerate(steps):
        start = sum(steps[:number])
        put(connection, rows[start : start + step], first_key=start)
        sign_blocks.pack(connection)
    connection.executemany("DELETE FROM vector WHERE key = ?", [(key,) for key in removed])
    query = np.random.default_rng(8).standard_normal(384).astype(np.float32)

    read = sign_blocks.read(connection)

    (count,) = connection.execute("SELECT count(*) FROM vector").fetchone()
    if read is not None:
        loaded, keys = load_all(connection), range(sum(steps))
        gone = dict.fromkeys(removed & set(read.keys.tolist()), 0.0)
        assert read.similarity(query, keys) == pytest.approx(gone | loaded.similarity(query, keys))
        wanted = np.asarray(rows[-1], np.float32) / np.linalg.norm(rows[-1])
        assert next(iter(read.nearest(wanted, 3))) == next(iter(loaded.nearest(wanted, 3)))
    else:
        assert count <= vector_search.EXACT_MAX or removed
    connection.close()


def test_few_vectors_are_loaded_whole(connection: sqlite3.Connection) -> None:
    put(connection, draw_rows(20))
    sign_blocks.pack(connection)

    assert sign_blocks.read(connection) is None
    assert blocks(connection) == 1


def test_blocks_are_written_again_when_too_many_of_their_vectors_are_gone(
    connection: sqlite3.Connection,
) -> None:
    put(connection, draw_rows(64))
    sign_blocks.pack(connection)
    connection.execute("DELETE FROM vector WHERE row <= 16")

    assert sign_blocks.read(connection) is None, "a quarter of what it would scan is gone"

    sign_blocks.pack(connection)
    read = sign_blocks.read(connection)

    assert blocks(connection) == 3
    assert read is not None
    assert read.size == 48
    assert set(read.keys.tolist()) == set(range(8, 32))


def test_a_vector_that_is_gone_is_like_nothing(connection: sqlite3.Connection) -> None:
    rows = draw_rows(64)
    put(connection, rows)
    sign_blocks.pack(connection)
    connection.execute("DELETE FROM vector WHERE row = 8")
    wanted = np.asarray(rows[7], np.float32) / np.linalg.norm(rows[7])

    read = sign_blocks.read(connection)

    assert read is not None
    assert max(read.nearest(wanted, 5).values()) < 0.5
    assert read.similarity(wanted, [3])[3] < 0.5


def test_a_process_that_asks_once_finds_what_the_others_find(memory: Memory) -> None:
    for number in range(48):
        memory.log(repo="app", event_type="error", lesson=f"kettle rule {number}")
    memory.engine().catch_up()
    (index,) = memory.engine().indexes
    assert isinstance(index, EmbeddedIndex)
    index.use_model("random")
    tables, rows = index._parts().tables, draw_rows(48)
    with tables.writing():
        put(tables.connection, rows)
        sign_blocks.pack(tables.connection)
    wanted = np.asarray(rows[30], np.float32) / np.linalg.norm(rows[30])

    once = EmbeddedIndex(memory.home, for_one_query=True)
    once.catch_up()
    with once.reading() as one, index.reading() as other:
        assert isinstance(one, Reader)
        assert isinstance(one.vectors.rows, sign_blocks.StoredRows)
        assert one.nearest(wanted, 3) == pytest.approx(other.nearest(wanted, 3))
        assert one.first_vectors([4]).keys() == other.first_vectors([4]).keys() == {4}
    once.close()


def test_another_model_has_blocks_of_its_own(memory: Memory) -> None:
    memory.engine().catch_up()
    (index,) = memory.engine().indexes
    assert isinstance(index, EmbeddedIndex)
    index.use_model("one")
    tables = index._parts().tables
    with tables.writing():
        put(tables.connection, draw_rows(32))
        sign_blocks.pack(tables.connection)

    index.use_model("two")

    assert blocks(tables.connection) == 0
