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
from commonplace.index.tokens import terms
from commonplace.records import from_line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from commonplace.index.store import Store

# Tantivy's own constants, so that both halves score alike.
K1 = 1.2
B = 0.75
FRESH_MAX = 256
COMMIT_DOCS_MAX = 50_000
HEAP_BYTES = 64 << 20
QUERY_TERMS_MAX = 64
IDF_MIN = 0.3
PRUNED_FROM = 10_000


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
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._index = tantivy.Index(_schema(), path=str(folder))
        else:
            self._index = tantivy.Index(_schema())
        self._committed = -1
        self._searcher = self._index.searcher()
        self._fresh: dict[int, Fresh] = {}
        self._fresh_read = 0
        self._sizes: frozenset[tuple[str, int]] = frozenset()

    def refresh(self) -> None:
        """See what other processes committed and what the store took in since."""
        committed = int(self._store.state("committed"))
        if committed != self._committed:
            self._index.reload()
            self._searcher = self._index.searcher()
            self._committed = committed
            self._fresh = {key: fresh for key, fresh in self._fresh.items() if key > committed}
            self._fresh_read = max(self._fresh_read, committed)
            self._sizes = self._file_sizes()
        for key, repo, kind, raw in self._store.searchable(self._fresh_read):
            counts = Counter(terms(document(from_line(raw)).text))
            self._fresh[key] = Fresh(repo, kind, counts, sum(counts.values()))
            self._fresh_read = key

    def is_whole(self) -> bool:
        """Whether the files Tantivy has mapped are still as long as they were; a shorter one would crash us."""
        return self._sizes <= self._file_sizes()

    def commit_if_due(self, progress: Callable[[int], None] = lambda _done: None, *, at_once: bool = False) -> None:
        """Move the overlay into Tantivy when it has grown enough; leave it to whoever is at it already."""
        committed = int(self._store.state("committed"))
        (waiting,) = self._store.connection.execute("SELECT count(*) FROM doc WHERE key > ?", (committed,)).fetchone()
        if waiting <= (0 if at_once else FRESH_MAX):
            return
        try:
            writer = self._index.writer(HEAP_BYTES, 1)
        except ValueError:
            return  # Another process holds the writer.
        committed = int(self._store.state("committed"))
        (newest,) = self._store.connection.execute("SELECT coalesce(max(key), 0) FROM doc").fetchone()
        total = int(self._store.state("terms"))
        dropped = [key for (key,) in self._store.connection.execute("SELECT key FROM dropped")]
        for key in dropped:
            writer.delete_documents_by_term("key", key)
        for key, repo, kind, raw in self._store.searchable(committed, newest):
            found = terms(document(from_line(raw)).text)
            total += len(found)
            writer.delete_documents_by_term("key", key)  # From a commit whose note in the store was cut short.
            writer.add_document(_document(key, repo, kind, found))
            progress(1)
        writer.commit()
        writer.wait_merging_threads()
        with self._store.writing():
            self._store.set_state("committed", newest)
            self._store.set_state("terms", total)
            self._store.connection.executemany("DELETE FROM dropped WHERE key = ?", [(key,) for key in dropped])

    def statistics(self, wanted: Collection[str]) -> Statistics:
        """Over both halves, for the terms *wanted*."""
        frequencies = {term: self._searcher.doc_freq("body", term) for term in wanted}
        for fresh in self._fresh.values():
            for term in wanted:
                if term in fresh.counts:
                    frequencies[term] += 1
        documents = self._searcher.num_docs + len(self._fresh)
        length = int(self._store.state("terms")) + sum(fresh.length for fresh in self._fresh.values())
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
        found = self._committed_matches(telling, repos, kinds, limit)
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
        for term, weight in list(wanted.items())[:QUERY_TERMS_MAX]:
            query = tantivy.Query.term_query(schema, "body", term, index_option="freq")
            weighted = query if weight == 1 else tantivy.Query.boost_query(query, weight)
            clauses.append((tantivy.Occur.Should, weighted))
        if not clauses:
            return {}
        whole = tantivy.Query.boolean_query(clauses)
        filters = [(name, values) for name, values in (("repo", repos), ("kind", kinds)) if values is not None]
        if filters:
            musts = [(tantivy.Occur.Must, whole)]
            for name, values in filters:
                either = tantivy.Query.term_set_query(schema, name, sorted(values))
                musts.append((tantivy.Occur.Must, tantivy.Query.const_score_query(either, 0.0)))
            whole = tantivy.Query.boolean_query(musts)
        hits = self._searcher.search(whole, limit, count=False).hits
        keys = self._searcher.fast_field_values("key", [address for _score, address in hits])
        return {int(str(key)): float(score) for key, (score, _address) in zip(keys, hits, strict=True)}

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
            if (repos is not None and fresh.repo not in repos) or (kinds is not None and fresh.kind not in kinds):
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

    def _file_sizes(self) -> frozenset[tuple[str, int]]:
        if self._folder is None:
            return frozenset()
        try:
            with os.scandir(self._folder) as entries:
                return frozenset(
                    (e.name, e.stat().st_size) for e in entries if "." in e.name and not e.name.startswith((".", "m"))
                )
        except OSError:
            return frozenset({("", -1)})


def _telling(wanted: Mapping[str, float], statistics: Statistics) -> Mapping[str, float]:
    """Without what nearly every record of a large store says: it tells none apart, and every posting would be read."""
    if statistics.documents < PRUNED_FROM:
        return wanted
    kept = {term: weight for term, weight in wanted.items() if statistics.idf(term) >= IDF_MIN}
    return kept if any(statistics.frequencies.get(term) for term in kept) else wanted


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
    made.add_text("repo", repo)
    made.add_text("kind", kind)
    made.add_unsigned("key", key)
    return made
