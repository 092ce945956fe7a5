"""Read the index as it was at some time: only the lines that are not later.

The tables keep replaced lines with the time at which a later line of their log replaced them, so
no second index is needed. Standings, feedback and statistics, which are stored for current lines,
are computed here for the few lines that matter.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from commonplace.index import bm25
from commonplace.index.bm25 import Statistics
from commonplace.index.document import document
from commonplace.index.embedded.facts import at
from commonplace.index.embedded.reader import CARD_COLUMNS, Reader, card_of, condition
from commonplace.index.embedded.tables import select_in
from commonplace.index.ports import Card, Count
from commonplace.index.terms import term_hash, terms
from commonplace.rules import NO_FEEDBACK, Standing, Standings, tally
from commonplace.rules.statements import STATEMENT_KINDS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from typing import Any

    from commonplace.embed.embedder import Encoded, Vector
    from commonplace.index.embedded.snapshot import Snapshot
    from commonplace.index.embedded.vector_search import VectorSnapshot
    from commonplace.index.ports import Filter

# Documents are scored again with the statistics of that time; this many times the number wanted.
RESCORED = 2


class PastReader(Reader):
    """`ports.Reader` of the home as it was at *micros*."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        snapshot: Snapshot,
        vectors: Callable[[], VectorSnapshot],
        micros: int,
    ) -> None:
        super().__init__(connection, snapshot, vectors, at(micros))
        self.micros = micros
        self._counts: dict[int, Counter[str]] = {}
        self._standings = Standings(self)

    # --- Records ----------------------------------------------------------------------------------

    def keys(self, ids: Collection[str]) -> dict[str, int]:
        return self._read_keys(ids)

    def cards(self, keys: Collection[int]) -> dict[int, Card]:
        rows = select_in(
            self.connection,
            f"SELECT {CARD_COLUMNS} FROM line WHERE key IN ({{}}) AND {self.moment.condition}",
            keys,
            self.moment.arguments,
        )
        return {card.key: card for card in self._cards_at_moment(rows)}

    def select(self, filter_: Filter, *, newest: int | None = None) -> list[Card]:
        where, arguments = condition(filter_)
        order = "micros DESC, position DESC" if newest is not None else "log, position"
        rows = self.connection.execute(
            f"SELECT {CARD_COLUMNS} FROM line WHERE {where} AND kind != 'forget'"
            f" AND {self.moment.condition} ORDER BY {order}",
            (*arguments, *self.moment.arguments),
        )
        shown = [card for card in self._cards_at_moment(rows) if filter_.shows(card.standing)]
        return shown[:newest] if newest is not None else shown

    def pages(self, filter_: Filter) -> Iterator[list[Card]]:
        yield self.select(filter_)

    def counts(self, filter_: Filter) -> list[Count]:
        shown = (c for c in self.select(filter_) if c.kind not in STATEMENT_KINDS)
        counted = Counter((c.repo, c.kind, c.event_type, c.archived) for c in shown)
        return [Count(*what, records) for what, records in counted.items()]

    def _cards_at_moment(self, rows: Iterable[tuple[Any, ...]]) -> list[Card]:
        """Return the cards of *rows* with the standings of that time, in their order."""
        given = list(rows)
        ids = {row[1] for row in given}
        keys = self.keys(ids)
        lines = [row for row in given if keys[row[1]] == row[0]]
        if not self.has_statements():
            return [card_of(row, Standing.CURRENT, NO_FEEDBACK) for row in lines]
        standing, feedback = self._standings.of(ids), self.feedback(ids)
        return [
            card_of(row, standing[row[1]], tally(feedback.get(row[1], {}).values()))
            for row in lines
        ]

    def newest_micros(self) -> int | None:
        (newest,) = self.connection.execute(
            "SELECT max(micros) FROM line WHERE micros <= ?", (self.micros,)
        ).fetchone()
        return None if newest is None else int(newest)

    # --- Words ------------------------------------------------------------------------------------

    def statistics(self, terms: Collection[str]) -> Statistics:
        documents, length = self._documents()
        fresh = [
            key
            for key in self._text.fresh()
            if self._text.overlay.documents[key].micros <= self.micros
        ]
        frequencies = {
            term: self._text.count_until(term, self.micros) - self._count_dropped(term)
            for term in terms
        }
        for term in terms:
            held = {key for key, _count in self._text.overlay.postings.get(term, ())}
            frequencies[term] += len(held.intersection(fresh))
            frequencies[term] += len(self._old_postings(term))
        return Statistics(max(documents, 1), max(length / max(documents, 1), 1.0), frequencies)

    def _documents(self) -> tuple[int, int]:
        """Return how many documents there were, and how many terms in all."""
        marks = ",".join("?" * len(STATEMENT_KINDS))
        count, length = self.connection.execute(
            "SELECT count(*), coalesce(sum(term_set.terms), 0)"
            " FROM line LEFT JOIN term_set USING (key)"
            f" WHERE kind NOT IN ({marks}) AND {self.moment.condition}",
            (*sorted(STATEMENT_KINDS), *self.moment.arguments),
        ).fetchone()
        waiting = self._text.overlay.documents
        fresh = (waiting[key] for key in self._text.fresh())
        return count, length + sum(one.length for one in fresh if one.micros <= self.micros)

    def _count_dropped(self, term: str) -> int:
        """Return how many replaced documents that Tantivy has not deleted yet hold *term*."""
        if not self._text.dropped:
            return 0
        rows = select_in(
            self.connection,
            "SELECT count(*) FROM old_term JOIN line USING (key)"
            " WHERE key IN ({}) AND hash = ? AND micros <= ?",
            self._text.dropped,
            (term_hash(term), self.micros),
        )
        return sum(count for (count,) in rows)

    def _old_postings(self, term: str) -> dict[int, int]:
        rows = self.connection.execute(
            "SELECT key, count FROM old_term JOIN line USING (key)"
            f" WHERE hash = ? AND {self.moment.condition}",
            (term_hash(term), *self.moment.arguments),
        )
        return dict(rows.fetchall())

    def match(
        self, terms: Mapping[str, float], statistics: Statistics, filter_: Filter, limit: int
    ) -> list[tuple[int, float]]:
        selective = bm25.selective_terms(terms, statistics)
        keys = {
            key
            for key, _score in self._text.committed_matches(
                selective, filter_, RESCORED * limit + len(self._text.dropped), self.micros
            )
        }
        for term in selective:
            keys.update(key for key, _count in self._text.overlay.postings.get(term, ()))
            keys.update(self._old_postings(term))
        cards = self.cards(keys)
        wanted = [
            key
            for key, card in cards.items()
            if (filter_.repos is None or not card.repo or card.repo in filter_.repos)
            and filter_.admits_kind(card)
        ]
        weighted = bm25.by_rarity(selective, statistics)
        found = []
        for key, counts in self._term_counts(wanted).items():
            score = bm25.score(counts, counts.total(), weighted, statistics.average_terms)
            if score > 0:
                found.append((key, score))
        return sorted(found, key=lambda item: (-item[1], item[0]))[:limit]

    def _term_counts(self, keys: Collection[int]) -> dict[int, Counter[str]]:
        missing = [key for key in keys if key not in self._counts]
        for key, record in self.records(missing).items():
            self._counts[key] = Counter(terms(document(record).text))
        return {key: self._counts[key] for key in keys if key in self._counts}

    def term_sets(self, keys: Collection[int]) -> dict[int, frozenset[int]]:
        counts = self._term_counts(keys)
        return {key: frozenset(map(term_hash, held)) for key, held in counts.items()}

    # --- Meaning ----------------------------------------------------------------------------------

    def has_vectors(self) -> bool:
        row = self.connection.execute(
            "SELECT EXISTS (SELECT 1 FROM vector) OR EXISTS (SELECT 1 FROM old_vector)"
        ).fetchone()
        return bool(row[0])

    def nearest(self, vector: Vector, limit: int) -> dict[int, float]:
        rows = self.connection.execute(
            f"SELECT key FROM line WHERE {self.moment.condition}",
            self.moment.arguments,
        )
        keys = [key for (key,) in rows]
        found = self.similarity(vector, keys)
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))[:limit])

    def begin_nearest(
        self, question: Callable[[], Encoded], limit: int
    ) -> Callable[[], dict[int, float]]:
        return lambda: self.nearest(question().vector, limit)

    def similarity(self, vector: Vector, keys: Collection[int]) -> dict[int, float]:
        return super().similarity(vector, keys) | self._old_similarity(vector, keys)

    def _old_similarity(self, vector: Vector, keys: Collection[int]) -> dict[int, float]:
        from commonplace.index.embedded import vector_search  # noqa: PLC0415 (loads NumPy)

        rows = select_in(self.connection, "SELECT key, v FROM old_vector WHERE key IN ({})", keys)
        if not rows:
            return {}
        scores = vector_search.cosines(vector_search.from_bytes([v for _key, v in rows]), vector)
        return vector_search.best_by_key(
            vector_search.as_keys(key for key, _v in rows), scores, len(rows)
        )

    def best_passages(self, vector: Vector, keys: Collection[int]) -> dict[int, int]:
        from commonplace.index.embedded import vector_search  # noqa: PLC0415 (loads NumPy)

        found = super().best_passages(vector, keys)
        query = "SELECT key, v FROM old_vector WHERE key IN ({}) ORDER BY row"
        rows = select_in(self.connection, query, keys)
        if rows:
            scores = vector_search.cosines(vector_search.from_bytes([v for _k, v in rows]), vector)
            found |= vector_search.best_places([key for key, _v in rows], scores.tolist())
        return found

    def first_vectors(self, keys: Collection[int]) -> dict[int, Vector]:
        from commonplace.index.embedded import vector_search  # noqa: PLC0415 (loads NumPy)

        found = super().first_vectors(keys)
        query = "SELECT key, v FROM old_vector WHERE key IN ({}) ORDER BY row DESC"
        rows = select_in(self.connection, query, keys)
        if rows:
            floats = vector_search.to_floats(vector_search.from_bytes([v for _key, v in rows]))
            found |= {key: one for (key, _v), one in zip(rows, floats, strict=True)}
        return found
