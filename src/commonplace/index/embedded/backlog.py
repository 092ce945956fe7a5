"""The documents in the tables that have no vectors yet. This module needs no NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.index.document import BUILT_CONTEXT
from commonplace.rules.statements import STATEMENT_KINDS

if TYPE_CHECKING:
    import sqlite3

    from commonplace.index.embedded.tables import Tables


def count_missing(connection: sqlite3.Connection) -> int:
    """Return how many documents have no vectors yet."""
    (count,) = connection.execute("SELECT count(*) FROM unembedded").fetchone()
    return int(count)


def count_embedded(connection: sqlite3.Connection) -> int:
    """Return how many current documents have vectors."""
    (count,) = connection.execute("SELECT count(DISTINCT key) FROM vector").fetchone()
    return int(count)


def use_model(tables: Tables, model: str) -> None:
    """Keep vectors of *model*. If they are of another one, drop them all, to make them again."""
    with tables.writing():
        if tables.state("model", "") == model:
            return
        for table in ("vector", "old_vector", "sign_block", "piece_code"):
            tables.connection.execute(f"DELETE FROM {table}")
        marks = ",".join("?" * len(STATEMENT_KINDS))
        # What has nothing to search gets none (`has_nothing_to_search`).
        tables.connection.execute(
            f"INSERT OR IGNORE INTO unembedded SELECT key FROM line WHERE kind NOT IN ({marks})"
            " AND NOT (kind = 'context' AND type = ?)",
            (*sorted(STATEMENT_KINDS), BUILT_CONTEXT),
        )
        tables.set_state("model", model)
