"""The text index: Tantivy for committed documents, the overlay for later ones.

Both score with the same formula and statistics, so a document's score is the same in either.
"""

from __future__ import annotations

import os
import threading
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

import tantivy

from commonplace.files.plain import make_folder
from commonplace.index import bm25
from commonplace.index.bm25 import Statistics
from commonplace.index.document import document
from commonplace.index.embedded.overlay import Overlay
from commonplace.index.embedded.tables import state
from commonplace.index.ports import kind_to_match
from commonplace.index.terms import term_hash, terms
from commonplace.records import from_line
from commonplace.rules.statements import STATEMENT_KINDS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from commonplace.index.embedded.tables import Tables
    from commonplace.index.ports import Filter

# How many documents wait in the overlay before they are committed.
FRESH_MAX = 256
HEAP_BYTES = 64 << 20
# The repository of documents without one, such as skills, which pass every filter.
ANYWHERE = "*"
# How many documents that are no longer current, but not deleted yet, a search skips.
GHOSTS_MAX = 1_000


class TextBroken(Exception):
    """The text index in the folder does not belong to these tables, or cannot be read."""


class TextSnapshot(NamedTuple):
    """The searchable text at one moment. Any number of threads may use it."""

    schema: tantivy.Schema
    searcher: tantivy.Searcher
    overlay: Overlay
    newest: int  # Keys after this one are not part of it.
    dropped: Mapping[int, int]  # What is in Tantivy and no longer current: key → terms.
    gone: frozenset[int]  # What is in the overlay and no longer current.
    documents: int
    length: int  # The terms of all documents together.

    def statistics(self, wanted: Collection[str]) -> Statistics:
        """Return the statistics of both parts, for the terms *wanted*."""
        try:
            frequencies = {term: self.searcher.doc_freq("body", term) for term in wanted}
        except ValueError as error:
            raise TextBroken(str(error)) from error
        for term in wanted:
            frequencies[term] += len(self._postings(term))
        documents, length = self.documents, self.length
        # Tantivy counts what was deleted until it merges; no term is in more documents than exist.
        frequencies = {term: min(count, documents) for term, count in frequencies.items()}
        return Statistics(max(documents, 1), max(length / max(documents, 1), 1.0), frequencies)

    def match(
        self, wanted: Mapping[str, float], statistics: Statistics, filter_: Filter, limit: int
    ) -> list[tuple[int, float]]:
        """Return the best *limit* documents with any of the terms, as (key, score), best first."""
        selective = bm25.selective_terms(wanted, statistics)
        ghosts = min(len(self.dropped), GHOSTS_MAX)
        found = {
            key: score
            for key, score in self.committed_matches(selective, filter_, limit + ghosts)
            if key not in self.dropped
        }
        found |= self._fresh_matches(selective, statistics, filter_)
        best = sorted((-score, key) for key, score in found.items())[:limit]
        return [(key, -rank) for rank, key in best]

    def committed_matches(
        self,
        wanted: Mapping[str, float],
        filter_: Filter,
        limit: int,
        until_micros: int | None = None,
    ) -> list[tuple[int, float]]:
        """Return the best committed documents; with *until_micros*, none later than that."""
        if not wanted:
            return []
        clauses = []
        for term, weight in wanted.items():
            query = self._term_query(term)
            weighted = query if weight == 1 else tantivy.Query.boost_query(query, weight)
            clauses.append((tantivy.Occur.Should, weighted))
        whole = self._apply_filter(tantivy.Query.boolean_query(clauses), filter_, until_micros)
        try:
            hits = self.searcher.search(whole, limit, count=False).hits
            keys = self.searcher.fast_field_values("key", [address for _score, address in hits])
        except ValueError as error:
            raise TextBroken(str(error)) from error
        return [(int(key or 0), score) for key, (score, _address) in zip(keys, hits, strict=True)]

    def count_until(self, term: str, until_micros: int) -> int:
        """Return how many committed documents hold *term* and are not later than *until_micros*."""
        filtered = self._apply_filter(self._term_query(term), None, until_micros)
        try:
            found: Any = self.searcher.search(filtered, 1, count=True)
        except ValueError as error:
            raise TextBroken(str(error)) from error
        return int(found.count or 0)  # Its type does not say that it has a count.

    def fresh(self) -> list[int]:
        """Return the keys of the overlay that are part of this snapshot."""
        return [
            key
            for key in list(self.overlay.documents)
            if key <= self.newest and key not in self.gone
        ]

    def is_large(self) -> bool:
        """Whether many documents wait to be committed or deleted."""
        return max(len(self.overlay.documents), len(self.dropped) + len(self.gone)) > FRESH_MAX

    def _term_query(self, term: str) -> tantivy.Query:
        return tantivy.Query.term_query(self.schema, "body", term, index_option="freq")

    def _apply_filter(
        self, query: tantivy.Query, filter_: Filter | None, until_micros: int | None
    ) -> tantivy.Query:
        """Return *query* limited to *filter_* and to a time, with the same scores."""
        conditions: list[tantivy.Query] = []
        if filter_ is not None and filter_.repos is not None:
            conditions.append(self._any_of("repo", {*filter_.repos, ANYWHERE}))
        kinds = None if filter_ is None else filter_.kinds_to_match()
        if kinds is not None:
            conditions.append(self._any_of("kind", kinds))
        if until_micros is not None:
            conditions.append(
                tantivy.Query.range_query(
                    self.schema, "micros", tantivy.FieldType.Integer, None, until_micros
                )
            )
        if not conditions:
            return query
        neutral = (tantivy.Query.const_score_query(one, 0.0) for one in conditions)
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, one) for one in (query, *neutral)])

    def _any_of(self, name: str, values: Collection[str]) -> tantivy.Query:
        return tantivy.Query.term_set_query(self.schema, name, sorted(values))

    def _postings(self, term: str) -> list[tuple[int, int]]:
        """Return the documents of the overlay that hold *term*: (key, how often)."""
        # They are in the order of their keys, and another thread may add to them.
        held = list(self.overlay.postings.get(term, ()))
        if held and (held[-1][0] > self.newest or self.gone):
            return [one for one in held if one[0] <= self.newest and one[0] not in self.gone]
        return held

    def _fresh_matches(
        self, wanted: Mapping[str, float], statistics: Statistics, filter_: Filter
    ) -> dict[int, float]:
        documents = self.overlay.documents
        if not documents:
            return {}
        found = bm25.scores(
            bm25.by_rarity(wanted, statistics),
            self._postings,
            lambda key: documents[key].length,
            statistics.average_terms,
        )
        if filter_.repos is not None:
            repos = {"", *filter_.repos}
            found = {key: score for key, score in found.items() if documents[key].repo in repos}
        kinds = filter_.kinds_to_match()
        if kinds is not None:
            found = {key: score for key, score in found.items() if documents[key].kind in kinds}
        return found


class Text:
    """The text index of one home, kept in *folder*, or in memory."""

    def __init__(self, folder: Path | None, tables: Tables) -> None:
        self._tables = tables
        self._folder = folder
        self._committing = threading.Lock()
        # Counted before opening: a commit of another process meanwhile only adds to it.
        documents = int(tables.state("documents")) - len(self._read_dropped(tables.connection))
        if folder is not None:
            make_folder(folder)
            self._index = tantivy.Index(_schema(), path=str(folder))
        else:
            self._index = tantivy.Index(_schema())
        self._searcher = self._index.searcher()
        if self._searcher.num_docs < documents:
            raise TextBroken(f"{self._searcher.num_docs} documents, not {documents}")
        self._commits = -1
        self._overlay = Overlay()
        self._read = 0
        self._sizes: dict[str, int] = {}
        self.snapshot: TextSnapshot = self._make_snapshot()

    def refresh(self) -> None:
        """Load what any process has committed, and what was added to the tables since."""
        connection = self._tables.connection
        commits = int(self._tables.state("commits"))
        if commits != self._commits:
            self._index.reload()
            self._searcher = self._index.searcher()
            self._commits = commits
            # What is committed leaves the overlay; the rest is read again.
            self._overlay, self._read = Overlay(), int(self._tables.state("committed"))
            self._sizes = self._file_sizes()
        for key, repo, kind, micros, raw in _searchable(connection, self._read):
            words = terms(document(from_line(raw)).text)
            self._overlay.add(key, repo, kind, micros, words)
            self._read = key
        self.snapshot = self._make_snapshot()

    def _make_snapshot(self) -> TextSnapshot:
        connection = self._tables.connection
        gone: frozenset[int] = frozenset()
        if self._overlay.documents:
            rows = connection.execute("SELECT key FROM dropped WHERE terms IS NULL")
            gone = frozenset(key for (key,) in rows)
        dropped = self._read_dropped(connection)
        waiting = [one for key, one in self._overlay.documents.items() if key not in gone]
        length = int(self._tables.state("terms")) - sum(dropped.values())
        return TextSnapshot(
            schema=self._index.schema,
            searcher=self._searcher,
            overlay=self._overlay,
            newest=self._read,
            dropped=dropped,
            gone=gone,
            documents=self._searcher.num_docs - len(dropped) + len(waiting),
            length=length + sum(one.length for one in waiting),
        )

    @staticmethod
    def _read_dropped(connection: sqlite3.Connection) -> dict[int, int]:
        """Return the keys in Tantivy that are no longer current, with their numbers of terms."""
        query = "SELECT key, terms FROM dropped WHERE terms IS NOT NULL"
        return dict(connection.execute(query).fetchall())

    def is_whole(self) -> bool:
        """Whether Tantivy's mapped files are as long as before; a shorter one is fatal."""
        found = self._file_sizes()
        if "meta.json" in self._sizes and "meta.json" not in found:
            return False
        # A missing file was merged into another; its mapping stays valid.
        return all(
            found.get(name, size) >= size
            for name, size in self._sizes.items()
            if name != "meta.json"
        )

    def is_commit_due(self, *, at_once: bool = False) -> bool:
        """Whether enough documents wait in the overlay, or wait to be deleted."""
        waiting, dropped = self._tables.connection.execute(
            "SELECT (SELECT count(*) FROM line WHERE key > ?), (SELECT count(*) FROM dropped)",
            (self._tables.state("committed"),),
        ).fetchone()
        return bool(max(waiting, dropped) > (0 if at_once else FRESH_MAX))

    def commit(self, lock: threading.RLock) -> None:
        """Move the overlay into Tantivy, unless another thread or process is doing so.

        *lock* guards the tables' connection. It is held only to record what was done, so that
        questions are answered meanwhile.
        """
        if not self._committing.acquire(blocking=False):
            return
        try:
            if self._folder is not None and not self._folder.is_dir():
                raise TextBroken(f"`{self._folder}` is gone")
            try:
                writer = self._index.writer(HEAP_BYTES, 1)
            except ValueError:
                return  # Another process holds the writer.
            self._commit(writer, lock)
            writer.wait_merging_threads()
        finally:
            self._committing.release()

    def _commit(self, writer: tantivy.IndexWriter, lock: threading.RLock) -> None:
        lengths: list[tuple[int, int, bytes]] = []
        with self._tables.reading() as connection:
            committed = int(state(connection, "committed"))
            (newest,) = connection.execute(
                "SELECT seq FROM sqlite_sequence WHERE name = 'line'"
            ).fetchone()
            dropped = connection.execute(
                "SELECT key, terms FROM dropped WHERE key <= ?", (newest,)
            ).fetchall()
            self._index.reload()
            if self._index.searcher().num_docs:
                # The newer ones are from a commit that was killed before it was recorded.
                gone = [*(key for key, _terms in dropped), *range(committed + 1, newest + 1)]
                keys = tantivy.Query.term_set_query(self._index.schema, "key", gone)
                writer.delete_documents_by_query(keys)
            for key, repo, kind, micros, raw in _searchable(connection, committed, newest):
                words = terms(document(from_line(raw)).text)
                hashes = array("I", sorted(set(map(term_hash, words)))).tobytes()
                lengths.append((key, len(words), hashes))
                writer.add_document(_document(key, repo, kind, micros, words))
        writer.commit()
        # Recorded before the writer is released, so that no process commits the same again.
        tables = self._tables
        with lock, tables.writing():
            tables.connection.executemany(
                # Some may have been replaced or removed meanwhile, but they are in Tantivy.
                "UPDATE dropped SET terms = ? WHERE key = ?",
                [(row[1], row[0]) for row in lengths],
            )
            tables.connection.executemany(
                "INSERT OR REPLACE INTO term_set SELECT key, ?, ? FROM line WHERE key = ?",
                [(count, hashes, key) for key, count, hashes in lengths],
            )
            removed = [(key, count) for key, count in dropped if count is not None]
            tables.connection.executemany(
                "DELETE FROM dropped WHERE key = ?", [(key,) for key, _terms in dropped]
            )
            documents = int(tables.state("documents")) + len(lengths) - len(removed)
            total = int(tables.state("terms")) + sum(row[1] for row in lengths)
            tables.set_state("documents", documents)
            tables.set_state("terms", total - sum(count for _key, count in removed))
            tables.set_state("committed", newest)
            tables.set_state("commits", int(tables.state("commits")) + 1)

    def _file_sizes(self) -> dict[str, int]:
        if self._folder is None:
            return {}
        try:
            with os.scandir(self._folder) as entries:
                return {e.name: e.stat().st_size for e in entries if not e.name.startswith(".")}
        except OSError:
            return {}


def _searchable(
    connection: sqlite3.Connection, after: int, until: int = 1 << 62
) -> Iterator[tuple[int, str, str, int, bytes]]:
    """Yield the current searchable lines with a key in that range."""
    marks = ",".join("?" * len(STATEMENT_KINDS))
    rows = connection.execute(
        "SELECT key, repo, kind, type, micros, raw FROM line JOIN body USING (key)"
        f" WHERE key > ? AND key <= ? AND standing > 0 AND kind NOT IN ({marks}) ORDER BY key",
        (after, until, *sorted(STATEMENT_KINDS)),
    )
    for key, repo, kind, type_, micros, raw in rows:
        yield key, repo, kind_to_match(kind, type_), micros, raw


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", stored=False, tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("repo", stored=False, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("kind", stored=False, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("key", stored=False, indexed=True, fast=True)
    builder.add_integer_field("micros", stored=False, indexed=False, fast=True)
    return builder.build()


def _document(key: int, repo: str, kind: str, micros: int, words: list[str]) -> tantivy.Document:
    tantivy_document = tantivy.Document()
    tantivy_document.add_text("body", " ".join(words))
    tantivy_document.add_text("repo", repo or ANYWHERE)
    tantivy_document.add_text("kind", kind)
    tantivy_document.add_unsigned("key", key)
    tantivy_document.add_integer("micros", micros)
    return tantivy_document
