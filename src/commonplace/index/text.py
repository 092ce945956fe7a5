"""The lexical engine: Tantivy for what was committed, a small overlay in memory for what came since.

A Tantivy commit costs tens of milliseconds, so new documents are scored by the overlay, with the same formula and
the same statistics, until there are enough of them to be worth one.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import tantivy

from commonplace.index.document import document
from commonplace.index.terms import terms
from commonplace.records import from_line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from commonplace.index.store import Store

# Tantivy's own constants, so that both halves score alike.
K1 = 1.2
B = 0.75
FRESH_MAX = 256
HEAP_BYTES = 64 << 20
QUERY_TERMS_MAX = 64
IDF_MIN = 0.3
PRUNED_FROM = 10_000
# The repository of what belongs to none, such as a skill: it passes every filter.
ANYWHERE = "*"
# How many documents that are no more, but not yet deleted, a search looks past.
GHOSTS_MAX = 1_000


class TextBroken(Exception):
    """What lies in the folder is not the text of these tables, or cannot be read."""


class Statistics(NamedTuple):
    """What BM25 needs to know of the whole."""

    documents: int
    average_terms: float
    frequencies: Mapping[str, int]

    def idf(self, term: str) -> float:
        n = self.frequencies.get(term, 0)
        return math.log(1 + (self.documents - n + 0.5) / (n + 0.5))


class Fresh(NamedTuple):
    """A document of the overlay."""

    repo: str
    kind: str
    counts: Counter[str]
    length: int


class TextIndex:
    """The searchable text of one home. `folder` is `None` for an index in memory."""

    def __init__(self, folder: Path | None, store: Store) -> None:
        self._store = store
        self._folder = folder
        # Counted before it is opened: a commit of another process meanwhile may only make it more.
        documents = int(store.state("documents")) - len(self._ghosts())
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._index = tantivy.Index(_schema(), path=str(folder))
        else:
            self._index = tantivy.Index(_schema())
        self._searcher = self._index.searcher()
        if self._searcher.num_docs < documents:
            raise TextBroken(f"{self._searcher.num_docs} documents, not {documents}")
        self._commits = -1
        self._fresh: dict[int, Fresh] = {}
        self._fresh_read = 0
        self._dropped: dict[int, int] = {}
        self._sizes: dict[str, int] = {}

    def refresh(self) -> None:
        """See what other processes committed and what the store took in since."""
        commits = int(self._store.state("commits"))
        if commits != self._commits:
            self._index.reload()
            self._searcher = self._index.searcher()
            self._commits = commits
            committed = int(self._store.state("committed"))
            self._fresh = {key: fresh for key, fresh in self._fresh.items() if key > committed}
            self._fresh_read = max(self._fresh_read, committed)
            self._sizes = self._file_sizes()
        for key, repo, kind, raw in self._store.searchable(self._fresh_read):
            counts = Counter(terms(document(from_line(raw)).text))
            self._fresh[key] = Fresh(repo, kind, counts, sum(counts.values()))
            self._fresh_read = key
        self._dropped = self._ghosts()
        for (key,) in (
            self._store.connection.execute("SELECT key FROM dropped") if self._fresh else ()
        ):
            self._fresh.pop(key, None)

    def _ghosts(self) -> dict[int, int]:
        """What is in Tantivy and no longer current, each with its number of terms."""
        return dict(
            self._store.connection.execute(
                "SELECT key, terms FROM dropped JOIN length USING (key)"
            ).fetchall()
        )

    def is_whole(self) -> bool:
        """Whether the files Tantivy has mapped are still as long as they were; a shorter one would crash us."""
        found = self._file_sizes()
        if "meta.json" in self._sizes and "meta.json" not in found:
            return False
        # A file that is gone was merged into another; what is mapped of it stays.
        return all(
            found.get(name, size) >= size
            for name, size in self._sizes.items()
            if name != "meta.json"
        )

    def commit_if_due(
        self, progress: Callable[[int], None] = lambda _done: None, *, at_once: bool = False
    ) -> None:
        """Move the overlay into Tantivy when it has grown enough; leave it to whoever is at it already."""
        waiting, dropped = self._store.connection.execute(
            "SELECT (SELECT count(*) FROM doc WHERE key > ?), (SELECT count(*) FROM dropped)",
            (self._store.state("committed"),),
        ).fetchone()
        if max(waiting, dropped) <= (0 if at_once else FRESH_MAX):
            return
        if self._folder is not None and not self._folder.is_dir():
            raise TextBroken(f"`{self._folder}` is gone")
        try:
            writer = self._index.writer(HEAP_BYTES, 1)
        except ValueError:
            return  # Another process holds the writer.
        self._commit(writer, progress)
        writer.wait_merging_threads()

    def _commit(self, writer: tantivy.IndexWriter, progress: Callable[[int], None]) -> None:
        store, schema = self._store, self._index.schema
        committed = int(store.state("committed"))
        (newest,) = store.connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'doc'"
        ).fetchone()
        dropped = store.connection.execute(
            "SELECT key FROM dropped WHERE key <= ?", (newest,)
        ).fetchall()
        self._index.reload()
        if self._index.searcher().num_docs:
            # The newer ones are from a commit whose note in the store was cut short.
            gone = [*(key for (key,) in dropped), *range(committed + 1, newest + 1)]
            writer.delete_documents_by_query(tantivy.Query.term_set_query(schema, "key", gone))
        lengths = []
        for key, repo, kind, raw in store.searchable(committed, newest):
            found = terms(document(from_line(raw)).text)
            lengths.append((key, len(found)))
            writer.add_document(_document(key, repo, kind, found))
            progress(1)
        writer.commit()
        # Noted before the writer is given up, so that nobody commits the same again.
        with store.writing():
            store.connection.executemany("INSERT INTO length VALUES (?, ?)", lengths)
            query = "SELECT terms FROM length WHERE key = ?"
            shorter = [
                row[0]
                for key in dropped
                if (row := store.connection.execute(query, key).fetchone())
            ]
            store.connection.executemany("DELETE FROM length WHERE key = ?", dropped)
            store.connection.executemany("DELETE FROM dropped WHERE key = ?", dropped)
            count = (
                int(store.state("terms")) + sum(length for _key, length in lengths) - sum(shorter)
            )
            store.set_state(
                "documents", int(store.state("documents")) + len(lengths) - len(shorter)
            )
            store.set_state("terms", count)
            store.set_state("committed", newest)
            store.set_state("commits", int(store.state("commits")) + 1)

    def statistics(self, wanted: Collection[str]) -> Statistics:
        """Over both halves, for the terms *wanted*."""
        try:
            frequencies = {term: self._searcher.doc_freq("body", term) for term in wanted}
        except ValueError as error:
            raise TextBroken(str(error)) from error
        for fresh in self._fresh.values():
            for term in wanted:
                if term in fresh.counts:
                    frequencies[term] += 1
        documents = self._searcher.num_docs - len(self._dropped) + len(self._fresh)
        length = int(self._store.state("terms")) - sum(self._dropped.values())
        length += sum(fresh.length for fresh in self._fresh.values())
        # Tantivy counts what was deleted until it merges, and no term is in more documents than there are.
        frequencies = {term: min(count, documents) for term, count in frequencies.items()}
        return Statistics(max(documents, 1), max(length / max(documents, 1), 1.0), frequencies)

    def match(
        self,
        wanted: Mapping[str, float],
        statistics: Statistics,
        *,
        repos: Collection[str] | None,
        kinds: Collection[str] | None,
        limit: int,
    ) -> list[tuple[int, float]]:
        """The best *limit* documents that hold any of the terms, as (key, score), best first."""
        telling = _telling(wanted, statistics)
        ghosts = min(len(self._dropped), GHOSTS_MAX)
        try:
            found = self._committed_matches(telling, repos, kinds, limit + ghosts)
        except ValueError as error:
            raise TextBroken(str(error)) from error
        found = {key: score for key, score in found.items() if key not in self._dropped}
        found |= self._fresh_matches(telling, statistics, repos, kinds)
        return sorted(found.items(), key=lambda item: (-item[1], item[0]))[:limit]

    def _committed_matches(
        self,
        wanted: Mapping[str, float],
        repos: Collection[str] | None,
        kinds: Collection[str] | None,
        limit: int,
    ) -> dict[int, float]:
        schema = self._index.schema
        clauses = []
        for term, weight in wanted.items():
            query = tantivy.Query.term_query(schema, "body", term, index_option="freq")
            weighted = query if weight == 1 else tantivy.Query.boost_query(query, weight)
            clauses.append((tantivy.Occur.Should, weighted))
        if not clauses:
            return {}
        whole = tantivy.Query.boolean_query(clauses)
        anywhere = None if repos is None else {*repos, ANYWHERE}
        filters = [
            (name, values)
            for name, values in (("repo", anywhere), ("kind", kinds))
            if values is not None
        ]
        if filters:
            musts = [(tantivy.Occur.Must, whole)]
            for name, values in filters:
                either = tantivy.Query.term_set_query(schema, name, sorted(values))
                musts.append((tantivy.Occur.Must, tantivy.Query.const_score_query(either, 0.0)))
            whole = tantivy.Query.boolean_query(musts)
        hits = self._searcher.search(whole, limit, count=False).hits
        keys = self._searcher.fast_field_values("key", [address for _score, address in hits])
        return {
            int(str(key)): float(score) for key, (score, _address) in zip(keys, hits, strict=True)
        }

    def _fresh_matches(
        self,
        wanted: Mapping[str, float],
        statistics: Statistics,
        repos: Collection[str] | None,
        kinds: Collection[str] | None,
    ) -> dict[int, float]:
        idf = {term: statistics.idf(term) * weight for term, weight in wanted.items()}
        found: dict[int, float] = {}
        for key, fresh in self._fresh.items():
            if fresh.repo and repos is not None and fresh.repo not in repos:
                continue
            if kinds is not None and fresh.kind not in kinds:
                continue
            norm = K1 * (1 - B + B * fresh.length / statistics.average_terms)
            score = sum(
                weight * count * (K1 + 1) / (count + norm)
                for term, weight in idf.items()
                if (count := fresh.counts.get(term, 0))
            )
            if score > 0:
                found[key] = score
        return found

    def _file_sizes(self) -> dict[str, int]:
        if self._folder is None:
            return {}
        try:
            with os.scandir(self._folder) as entries:
                return {e.name: e.stat().st_size for e in entries if not e.name.startswith(".")}
        except OSError:
            return {}


def _telling(wanted: Mapping[str, float], statistics: Statistics) -> Mapping[str, float]:
    """The terms that tell most, not too many; in a large store without what nearly every record says.

    Such a term tells none apart, and every posting would be read.
    """
    if statistics.documents >= PRUNED_FROM:
        kept = {term: weight for term, weight in wanted.items() if statistics.idf(term) >= IDF_MIN}
        wanted = kept if any(statistics.frequencies.get(term) for term in kept) else wanted
    if len(wanted) <= QUERY_TERMS_MAX:
        return wanted
    return dict(
        sorted(wanted.items(), key=lambda item: -item[1] * statistics.idf(item[0]))[
            :QUERY_TERMS_MAX
        ]
    )


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", stored=False, tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("repo", stored=False, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("kind", stored=False, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("key", stored=False, indexed=True, fast=True)
    return builder.build()


def _document(key: int, repo: str, kind: str, found: list[str]) -> tantivy.Document:
    made = tantivy.Document()
    made.add_text("body", " ".join(found))
    made.add_text("repo", repo or ANYWHERE)
    made.add_text("kind", kind)
    made.add_unsigned("key", key)
    return made
