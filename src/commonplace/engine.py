"""The engine answers questions about some homes. It owns the indexes and the embedder.

Questions run in parallel: each reads its own snapshot of every index. The model embeds the question
on another core while this one catches up with the files and searches for the words.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from typing import TYPE_CHECKING, Any

from commonplace import backlog
from commonplace.background import Background
from commonplace.compose.answer import compose, summary_line
from commonplace.compose.tokens import BYTES_PER_TOKEN, cut
from commonplace.embed.http import HttpEmbedder
from commonplace.embed.service import SERVICE_S_MAX, EmbeddingService, State
from commonplace.errors import CommonplaceError, EmbedderUnavailable
from commonplace.index.embedded.index import EmbeddedIndex
from commonplace.index.ports import Filter, no_progress
from commonplace.lookup import FoundRecord
from commonplace.recall import overview
from commonplace.recall.priors import NO_PRIORS, Weights
from commonplace.recall.query import LIMIT_MAX, TEXT_KINDS
from commonplace.recall.search import QUERY_CHARS_MAX, Found, Fusion, Search
from commonplace.recall.visibility import shown_cards
from commonplace.records import to_utc
from commonplace.settings import SETTINGS
from commonplace.usage import Answers, Usage

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Collection, Mapping, Sequence
    from concurrent.futures import Future
    from datetime import datetime

    from commonplace.embed.embedder import Embedder, Vector
    from commonplace.index.ports import Index, Reader, Status
    from commonplace.recall.hits import Hit
    from commonplace.recall.overview import Verdict
    from commonplace.recall.query import Query
    from commonplace.records import Record
    from commonplace.settings import Settings
    from commonplace.where.home import Home

LINE_TOKENS_MAX = 60
# How long an answer of a server waits for new memories to be embedded.
FRESH_S_MAX = 0.05
NOTHING = "No relevant memories."
# Both sides are counted. Where a number is an estimate, it makes the savings smaller: bytes beyond
# ASCII are worth more than a quarter of a token.
SAVINGS = (
    "saved = the logs that each recall searched, whole as they were at that moment"
    " (4 bytes a token),"
    " less the text it delivered; every explicit recall is counted, also one that found nothing"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: the hits with their reasons, and the text for an agent."""

    hits: list[Hit]
    text: str
    tokens: int
    considered: int = 0
    # Remarks about the answer itself, e.g. that meaning was not compared.
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as JSON shows it."""
        return {
            "hits": [hit.as_dict() for hit in self.hits],
            "text": self.text,
            "tokens": self.tokens,
            "considered": self.considered,
            "notes": self.notes,
        }


class Engine:
    """Answers questions about some homes, the nearest first."""

    def __init__(
        self,
        homes: Sequence[Home],
        settings: Settings | Mapping[str, Any],
        *,
        clock: Callable[[], datetime],
        for_one_query: bool = False,
        background: bool = True,
    ) -> None:
        self._settings = settings
        self._clock = clock
        # Whether other threads and processes may be started.
        self._may_start = background
        self.indexes: list[Index] = [EmbeddedIndex(home) for home in homes]
        self.embedding = EmbeddingService(settings, clock, for_one_query=for_one_query)
        self._usage = [Usage(home.usage_file) for home in homes]
        self._worker: subprocess.Popen[bytes] | None = None
        self._background: Background | None = None

    def close(self) -> None:
        if self._background is not None:
            self._background.close()
        self.embedding.close()
        for index in self.indexes:
            index.close()
        for usage in self._usage:
            usage.close()

    # --- Answers ----------------------------------------------------------------------------------

    def recall(self, query: Query) -> Answer:
        """Return what is known about *query*, within its limit of tokens."""
        query.check()
        # The model reads the question on another core while this one catches up.
        early = self._start_embedding(query) if self.embedding.is_ready() else None
        self.catch_up()
        vector = self._vector(query, early)
        search, found, searched = self._search(query, vector)
        best = max(found.statistics, key=lambda one: one.documents)
        text = compose(
            found.hits,
            search.wanted,
            cache(best.idf),
            query.tokens_max,
            NOTHING,
            choose=self._settings["recall.passages"],
        )
        if query.as_of_micros is None:
            self._count(query, text.hits, text.tokens, searched)
            self._wake()
        hits = text.hits
        if not query.cutoff:
            hits = [*text.hits, *found.hits[len(text.hits) :]]
        notes = self._notes(by_words=vector is None)
        return Answer(hits, text.text, text.tokens, found.considered, notes)

    def rank(self, query: Query) -> list[Hit]:
        """Return the ranking for *query*, without composing a text or counting uses."""
        query.check()
        self.catch_up()
        _search, found, _searched = self._search(query.with_(cutoff=False), self._vector(query))
        return found.hits

    def recent(self, count: int, query: Query) -> list[Hit]:
        """Return the latest records that pass the filters of *query*, each with a line of text."""
        self.catch_up()
        with self._open_readers(query.as_of_micros) as readers:
            hits = overview.latest(readers, count, query)
        return [replace(hit, text=cut(summary_line(hit.record), LINE_TOKENS_MAX)) for hit in hits]

    def select(self, query: Query, ids: Collection[str] | None = None) -> list[Record]:
        """Return the records of the nearest home that pass the filters, in the order of lines."""
        self.catch_up()
        with self._open_readers(query.as_of_micros) as readers:
            return overview.select(readers, query, ids)

    def stats(self, query: Query) -> dict[str, Any]:
        """Return how many records the homes hold."""
        self.catch_up()
        with self._open_readers(query.as_of_micros) as readers:
            return overview.counts(readers, query)

    def why(self, query: Query, ident: str) -> Verdict:
        """Return the rank of the record among all candidates, and the reasons."""
        self.catch_up()
        vector = self._vector(query)
        answer = self._answer_only(query, vector)
        with self._open_readers(query.as_of_micros) as readers:
            search = self._make_search(readers, query.with_(limit=LIMIT_MAX, cutoff=False), vector)
            ranking, floor = search.explain()
            verdict = overview.judge(query, ident, ranking, answer, floor)
            if verdict is not None:
                return verdict
            return overview.Verdict(
                ident, query.text, overview.absence(readers, query, ident), in_answer=False
            )

    def _answer_only(self, query: Query, vector: Callable[[], Vector] | None) -> list[Hit]:
        search, found, _searched = self._search(query, vector)
        best = max(found.statistics, key=lambda one: one.documents)
        return compose(found.hits, search.wanted, cache(best.idf), query.tokens_max).hits

    def find(self, ident: str) -> FoundRecord | None:
        """Return the record with that whole id, if one is current and not gone; for a server."""
        self.catch_up()
        with self._open_readers(None) as readers:
            for number, reader in enumerate(readers):
                keys = list(reader.keys([ident]).values())
                anything = Filter(archived=True, superseded=True)
                for card in shown_cards(readers, number, reader.cards(keys).values(), anything):
                    if card.kind in TEXT_KINDS:
                        continue
                    record = reader.records([card.key])[card.key]
                    return FoundRecord(
                        record, number, card.log, card.standing, card.rate, card.feedback
                    )
        return None

    # --- Searching --------------------------------------------------------------------------------

    def catch_up(self, progress: Callable[[int], None] = no_progress) -> None:
        """Bring every index up to date with its files."""
        for index in self.indexes:
            index.catch_up(progress)

    def _open_readers(self, as_of_micros: int | None) -> _Readers:
        return _Readers(self.indexes, as_of_micros)

    def _search(
        self, query: Query, vector: Callable[[], Vector] | None
    ) -> tuple[Search, Found, int]:
        """Return the search, what it found, and how many bytes the searched logs have.

        If part of an index is broken, it is rebuilt and the search is repeated.
        """
        for index in self.indexes:
            try:
                return self._search_once(query, vector)
            except BaseException as error:
                if not index.repair(error):
                    raise
        return self._search_once(query, vector)

    def _search_once(
        self, query: Query, vector: Callable[[], Vector] | None
    ) -> tuple[Search, Found, int]:
        with self._open_readers(query.as_of_micros) as readers:
            search = self._make_search(readers, query, vector)
            searched = sum(
                reader.log_bytes(query.repos, archived=query.archived) for reader in readers
            )
            return search, search.run(), searched

    def _make_search(
        self, readers: Sequence[Reader], query: Query, vector: Callable[[], Vector] | None
    ) -> Search:
        uses = self._uses() if query.as_of_micros is None else _no_uses
        if vector is not None and not any(reader.has_vectors() for reader in readers):
            vector = None
        return Search(readers, query, vector, uses, self._weights(), self._fusion(query))

    def _weights(self) -> Weights:
        if not self._settings["recall.priors"]:
            return NO_PRIORS
        return Weights(
            half_life_days=self._settings["recall.half_life_days"],
            semantic=self._settings["recall.semantic"],
            episodic=self._settings["recall.episodic"],
            skills=self._settings["recall.skills"],
        )

    def _fusion(self, query: Query) -> Fusion:
        least = self._settings["recall.relevance_min"]
        return Fusion(
            dense=self._settings["recall.dense"],
            relevance_min=max(least, query.relevance_min),
            relevance_share_min=Fusion().relevance_share_min if least else 0.0,
            dedupe=self._settings["recall.same"],
        )

    def _notes(self, *, by_words: bool) -> list[str]:
        notes = []
        if by_words and self.embedding.reason:
            notes.append(f"by words only: {self.embedding.reason}")
        if any(index.in_memory for index in self.indexes if index.home.path.is_dir()):
            notes.append("the home cannot be written; its index is in memory")
        return notes

    # --- Meaning ----------------------------------------------------------------------------------

    def _start_embedding(self, query: Query) -> Future[Vector]:
        return self.embedding.start(query.text[:QUERY_CHARS_MAX])

    def _vector(
        self, query: Query, early: Future[Vector] | None = None
    ) -> Callable[[], Vector] | None:
        """Return a function that returns the question's vector, `None` if there can be none."""
        if self.embedding.is_off or all(index.is_empty() for index in self.indexes):
            return None
        embedder = self.embedding.embedder()
        if embedder is None:
            return None
        if isinstance(embedder, HttpEmbedder):
            return self._vector_of_service(embedder.within(SERVICE_S_MAX), query)
        future = early or self._start_embedding(query)
        self._embed_new(embedder)
        return future.result

    def _embed_new(self, embedder: Embedder) -> None:
        """Embed what was just written, if there is little of it."""
        for index in self.indexes:
            index.use_model(embedder.name)
        missing = [index.missing_vectors() for index in self.indexes]
        if not any(0 < count <= backlog.EMBED_NOW_MAX for count in missing):
            return
        if self._background is not None:
            self._background.wait(self._background.notify(), FRESH_S_MAX)
        else:
            for index in self.indexes:
                backlog.embed_few(index, embedder)

    def _vector_of_service(
        self, service: HttpEmbedder, query: Query
    ) -> Callable[[], Vector] | None:
        """Return the vector from a service. If it fails or hangs, words answer with a note."""
        if self.embedding.is_paused():
            return None
        try:
            vector = service.encode([query.text[:QUERY_CHARS_MAX]])[0]
            self.embedding.resume()
            for index in self.indexes:
                backlog.embed_few(index, service)
                index.check_vector_length(len(vector))
        except EmbedderUnavailable as error:
            self.embedding.pause(error)
            return None
        return lambda: vector

    def embed_all(self, progress: Callable[[int], None] = no_progress) -> int:
        """Embed every memory that has no vectors; return how many."""
        embedder = self.embedding.require()
        self.catch_up()
        return sum(backlog.embed_all(index, embedder, progress=progress) for index in self.indexes)

    def embed_alone(self, until: Callable[[], bool] = lambda: False) -> int | None:
        """Embed like `embed_all`, or return `None` if another process is embedding."""
        embedder = self.embedding.require()
        self.catch_up()
        return backlog.embed_alone(self.indexes, embedder, until)

    def missing_vectors(self) -> int:
        """Return how many documents have no vectors yet."""
        self.catch_up()
        return sum(index.missing_vectors() for index in self.indexes)

    # --- In the background ------------------------------------------------------------------------

    def run_in_background(self) -> None:
        """For a server: load the model, and merge and embed new documents in a thread."""
        self.embedding.load_in_background()
        if self._background is None and self._may_start:
            for index in self.indexes:
                index.commits_in_background = True
            self._background = Background([self.merge, self._embed_pass, self._flush_usage])

    def merge(self) -> None:
        """Merge the new documents of the indexes, if there are many."""
        for index in self.indexes:
            with suppress(CommonplaceError):
                index.commit_if_due()

    def _embed_pass(self) -> None:
        if not self.embedding.is_ready():
            return
        embedder = self.embedding.require()
        for index in self.indexes:
            with suppress(CommonplaceError):
                if index.missing_vectors() <= backlog.EMBED_BATCH:
                    index.embed(embedder, backlog.EMBED_BATCH)

    def _flush_usage(self) -> None:
        for usage in self._usage:
            usage.flush_if_due()

    def catch_up_soon(self) -> None:
        """Index and embed in the background what was written since the last question."""
        if self._background is not None:
            self._background.notify()

    def _wake(self) -> None:
        """Leave remaining work to our thread, or to a worker if there is much of it."""
        if self._background is not None and any(
            index.missing_vectors() or index.is_commit_due() for index in self.indexes
        ):
            self._background.notify()
        if not self._may_start or not self._settings["embedder.background"]:
            return
        if self.embedding.is_off or self.embedding.is_paused():
            return
        if self.embedding.embedder() is None:
            return
        now_s = self._clock().timestamp()
        left_to_thread = backlog.EMBED_BATCH if self._background is not None else 0
        homes = [
            index.home
            for index in self.indexes
            if not index.in_memory
            and index.missing_vectors() > left_to_thread
            and backlog.is_worker_due(index.home, now_s)
        ]
        if homes:
            names = [name for name in SETTINGS if name.startswith("embedder.")]
            settings = {name: self._settings[name] for name in names}
            self._worker = backlog.start_worker(homes, settings)

    def stop_worker(self) -> None:
        """End the worker that this engine started, if it still runs, when a server ends."""
        if self._worker is not None:
            with suppress(OSError):
                self._worker.terminate()

    # --- Usage ------------------------------------------------------------------------------------

    def usage(self, ident: str) -> tuple[int, str]:
        """Return how often the record was delivered, and when last."""
        found = [usage.of(ident) for usage in self._usage]
        return sum(count for count, _last in found), max(last for _count, last in found)

    def _uses(self) -> Callable[[str], int]:
        """Return a function: how often an id was delivered, over all homes."""
        counters = [usage.counter() for usage in self._usage]
        if len(counters) == 1:
            return counters[0]
        return lambda ident: sum(count(ident) for count in counters)

    def _count(self, query: Query, hits: Sequence[Hit], tokens: int, searched: int) -> None:
        """Count the delivery of *hits*, and the answer itself in the nearest home there is."""
        cost = None if query.automatic else Answers(1, not hits, tokens, searched)
        now = to_utc(self._clock())
        existing = [number for number, i in enumerate(self.indexes) if i.home.path.is_dir()]
        for number, usage in enumerate(self._usage):
            ids = [hit.id for hit in hits if hit.address[0] == number]
            its_cost = cost if existing[:1] == [number] else None
            if ids or its_cost is not None:
                usage.add(ids, now, its_cost)

    def trim_usage(self, ids_max: int) -> int:
        """Drop the counts of at most *ids_max* ids that no longer exist; return how many.

        With 0, drop none and return how many could be dropped.
        """
        self.catch_up()
        dropped = 0
        for usage, index in zip(self._usage, self.indexes, strict=True):
            with index.reading() as reader:
                dropped += usage.trim(reader.keys, ids_max)
        return dropped

    def savings(self) -> dict[str, Any]:
        """Return the figures of `stats --savings`: the cost of recalls and of reading the logs."""
        self.catch_up()
        with self._open_readers(None) as readers:
            logs = sum(reader.log_bytes(None, archived=False) for reader in readers)
        answers = reduce(Answers.plus, (usage.answers() for usage in self._usage))
        instead = answers.log_bytes // BYTES_PER_TOKEN
        return {
            "recalls": answers.recalls,
            "empty": answers.empty,
            "since": answers.since,
            "tokens_delivered": answers.tokens,
            "tokens_logs": instead,
            "tokens_saved": instead - answers.tokens,
            "share_saved": round(1 - answers.tokens / instead, 4) if instead else None,
            "tokens_logs_now": logs // BYTES_PER_TOKEN,
            "definition": SAVINGS,
        }

    # --- Status -----------------------------------------------------------------------------------

    def status(self) -> list[Status]:
        self.catch_up()
        return [index.status() for index in self.indexes]

    def embedder_state(self) -> State:
        return self.embedding.state()


class _Readers:
    """A reader of each index, open together."""

    def __init__(self, indexes: Sequence[Index], as_of_micros: int | None) -> None:
        self._indexes = indexes
        self._as_of_micros = as_of_micros
        self._stack = ExitStack()

    def __enter__(self) -> list[Reader]:
        with ExitStack() as stack:
            readers = [
                stack.enter_context(index.reading(self._as_of_micros)) for index in self._indexes
            ]
            self._stack = stack.pop_all()
        return readers

    def __exit__(self, *error: object) -> None:
        self._stack.close()


def _no_uses(_ident: str) -> int:
    return 0
