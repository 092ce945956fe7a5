"""The engine answers questions about some homes. It owns the indexes and the embedder.

Questions run in parallel: each reads its own snapshot of every index. The model embeds the question
on another core while this one catches up with the files and searches for the words.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import ExitStack, contextmanager, suppress
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

from commonplace import backlog
from commonplace.background import Background
from commonplace.compose.answer import compose, latest_line
from commonplace.compose.unit_scores import Wanted, asks_why
from commonplace.errors import CommonplaceError
from commonplace.index.embedded.index import EmbeddedIndex
from commonplace.index.ports import Filter, no_progress
from commonplace.lookup import FoundRecord
from commonplace.recall import listing, overview
from commonplace.recall.consultation import (
    Consultation,
    are_better,
    from_elsewhere,
    may_be_elsewhere,
    name_others,
)
from commonplace.recall.priors import Weights
from commonplace.recall.query import TEXT_KINDS
from commonplace.recall.search import Found, Fusion, Search
from commonplace.recall.visibility import shown_cards
from commonplace.records import to_utc
from commonplace.usage import BEST_COUNT, Answers, UsageOfHomes
from commonplace.vectors import Vectors
from commonplace.vocabulary import LIMIT_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from commonplace.compose.answer import AnswerText
    from commonplace.embed.embedder import Encoded
    from commonplace.embed.service import EmbeddingService, State
    from commonplace.index.ports import Index, Reader, Status
    from commonplace.recall.hits import Hit
    from commonplace.recall.listing import Page
    from commonplace.recall.overview import Verdict
    from commonplace.recall.query import Query
    from commonplace.records import Record
    from commonplace.settings import Settings
    from commonplace.where.home import Home


class Closing(Protocol):
    """What is closed with the engine."""

    def close(self) -> None: ...


T = TypeVar("T")
F = TypeVar("F", bound=Closing)
LINE_TOKENS_MAX = 60
JOBS_MAX = 8
# A job waits this long, so that it does not share the processor with the answer before it.
ANSWER_S_MAX = 0.05
NOTHING = "No relevant memories."
_EMBED_HINT = "they are made in the background, or by `commonplace index embed`"


class Answer(NamedTuple):
    """An answer: the hits with their reasons, and the text for an agent."""

    hits: list[Hit]
    text: str
    tokens: int
    considered: int
    # Remarks about the answer itself, e.g. that meaning was not compared.
    notes: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as JSON shows it."""
        return {
            "hits": [hit.as_dict() for hit in self.hits],
            "text": self.text,
            "tokens": self.tokens,
            "considered": self.considered,
            "notes": self.notes,
        }


class Sizes(NamedTuple):
    """How many bytes an agent could read instead of an answer: the logs, or the best records."""

    logs: int
    best: int


class Engine:
    """Answers questions about some homes, the nearest first."""

    def __init__(
        self,
        homes: Sequence[Home],
        settings: Settings | Mapping[str, Any],
        *,
        clock: Callable[[], datetime],
        embedding: EmbeddingService,
        for_one_query: bool = False,
        background: bool = True,
    ) -> None:
        self._settings = settings
        self._clock = clock
        # Whether other threads and processes may be started.
        self._may_start = background
        self.indexes: list[Index] = [
            EmbeddedIndex(home, for_one_query=for_one_query) for home in homes
        ]
        self.embedding = embedding
        self.vectors = Vectors(self.indexes, self.embedding, settings)
        self.usage = UsageOfHomes(homes)
        self._files: dict[Path, Closing] = {}
        self._background: Background | None = None
        self._is_catch_up_wanted = False
        self._jobs: deque[Callable[[], None]] = deque(maxlen=JOBS_MAX)

    def close(self) -> None:
        if self._background is not None:
            self._background.close()
        self.embedding.close()
        for index in self.indexes:
            index.close()
        self.usage.close()
        for file in self._files.values():
            file.close()

    def kept_open(self, path: Path, open_: Callable[[Path], F]) -> F:
        """Return the file of state at *path* as *open_* opened it, once; it is closed with this."""
        # If two threads come first, one of the two objects is dropped before it opened anything.
        return cast("F", self._files.setdefault(path, self._files.get(path) or open_(path)))

    # --- Answers ----------------------------------------------------------------------------------

    def recall(self, query: Query) -> Answer:
        """Return what is known about *query*, within its limit of tokens."""
        query.check()
        # The model reads the question on another core while this one catches up.
        started = self.vectors.start(query.text)
        self.catch_up()
        vector = self.vectors.of_question(query.text, started)
        search, found, sizes = self._search_with_others(query, vector)
        text = self._compose(query, search, found)
        if query.as_of_micros is None:
            self._count(query, text.hits, text.tokens, sizes)
            self._leave_work()
        hits = text.hits
        if not query.cutoff:
            hits = [*text.hits, *found.hits[len(text.hits) :]]
        notes = self._notes(
            compares_meaning=search.matching.compares_meaning, is_asked=vector is not None
        )
        return Answer(hits, text.text, text.tokens, found.considered, notes)

    def consult(
        self, query: Query, ask: Callable[[Consultation], T], delivered: Callable[[T], list[Hit]]
    ) -> tuple[T, list[str]]:
        """Return what *ask* makes of several questions about *query*, and remarks on that.

        All are answered from one state of the files, by one catch-up and one vector of the text.
        The use of what was *delivered* is counted.
        """
        query.check()
        started = self.vectors.start(query.text)
        self.catch_up()
        vector = self.vectors.of_question(query.text, started)

        def ask_once() -> T:
            with self._open_readers(None) as readers:
                return ask(
                    Consultation(
                        readers,
                        lambda one, by_words: self._make_search(
                            readers, one, None if by_words else vector, reads=False
                        ),
                    )
                )

        found = self._repairing(ask_once)
        self._count(query.with_(automatic=True), delivered(found), 0, Sizes(0, 0))
        self._leave_work()
        return found, self._notes(compares_meaning=True, is_asked=vector is not None)

    def preview(self, query: Query) -> Answer:
        """Return the answer to *query* without counting it, and leave no work: for a comparison."""
        query.check()
        vector = self.vectors.of_question(query.text)
        search, found, _sizes = self._search(query, vector)
        text = self._compose(query, search, found)
        return Answer(text.hits, text.text, text.tokens, found.considered, [])

    @contextmanager
    def with_home(self, home: Home) -> Iterator[Engine]:
        """Yield an engine that knows the records of *home* as well, in an index in memory."""
        other = copy(self)
        added = EmbeddedIndex(home, in_memory=True)
        other.indexes = [*self.indexes, added]
        other.vectors = Vectors(other.indexes, self.embedding, self._settings)
        try:
            added.catch_up()
            embedder = self.embedding.embedder()
            if embedder is not None:
                backlog.embed_all(added, embedder)
            yield other
        finally:
            added.close()

    @contextmanager
    def reading(self) -> Iterator[list[Reader]]:
        """Open a reader of each home, brought up to date, for those who learn from records."""
        self.catch_up()
        with self._open_readers(None) as readers:
            yield readers

    def rank(self, query: Query) -> list[Hit]:
        """Return the ranking for *query*, without composing a text or counting uses."""
        query.check()
        self.catch_up()
        vector = self.vectors.of_question(query.text)
        _search, found, _sizes = self._search(query.with_(cutoff=False), vector)
        return found.hits

    def recent(self, count: int, query: Query) -> list[Hit]:
        """Return the latest records that pass the filters of *query*, each with a line of text."""
        self.catch_up()
        with self._open_readers(query.as_of_micros) as readers:
            hits = overview.latest(readers, count, query)
        return [hit._replace(text=latest_line(hit, LINE_TOKENS_MAX)) for hit in hits]

    def select(self, query: Query, ids: Collection[str] | None = None) -> list[Record]:
        """Return the records of the nearest home that pass the filters, in the order of lines."""
        self.catch_up()
        with self._open_readers(query.as_of_micros) as readers:
            return overview.select(readers, query, ids)

    def select_everywhere(self, query: Query) -> Iterator[Record]:
        """Yield the current records of all homes that pass the filters of *query*."""
        self.catch_up()
        with self._open_readers(query.as_of_micros) as readers:
            yield from overview.select_everywhere(readers, query)

    def list_records(self, query: Query, sort: str, page: int) -> Page:
        """Return a page of the records that pass the filters of *query*, each with its text."""
        self.catch_up()
        with self._open_readers(query.as_of_micros) as readers:
            found = listing.list_records(readers, query, sort, page, self.usage.counter())
        hits = [
            hit._replace(text=latest_line(hit, LINE_TOKENS_MAX, names_origin=True))
            for hit in found.hits
        ]
        return found._replace(hits=hits)

    def tags(self, query: Query) -> dict[str, int]:
        """Return how many of the records that pass the filters of *query* have each tag."""
        self.catch_up()
        with self._open_readers(query.as_of_micros) as readers:
            return listing.count_tags(readers, query)

    def stats(self, query: Query) -> dict[str, Any]:
        """Return how many records the homes hold."""
        self.catch_up()
        with self._open_readers(query.as_of_micros) as readers:
            return overview.counts(readers, query)

    def why(self, query: Query, ident: str) -> Verdict:
        """Return the rank of the record among all candidates, and the reasons."""
        query.check()
        self.catch_up()
        vector = self.vectors.of_question(query.text)
        search, found, _sizes = self._search_with_others(query, vector)
        answer = self._compose(query, search, found).hits
        if query.elsewhere:
            query = query.with_(repos=None)  # Its place among all, wherever it is.
        with self._open_readers(query.as_of_micros) as readers:
            search = self._make_search(readers, query.with_(limit=LIMIT_MAX, cutoff=False), vector)
            ranking, floor = search.explain()
            verdict = overview.judge(query, ident, ranking, answer, floor)
            if verdict is not None:
                return verdict
            return overview.Verdict(
                ident, query.text, overview.absence(readers, query, ident), in_answer=False
            )

    def _compose(self, query: Query, search: Search, found: Found) -> AnswerText:
        best = max(found.statistics, key=lambda one: one.documents)
        # Who names a repository knows where the answer comes from.
        hits = found.hits if query.repos is not None else name_others(found.hits, query.here)
        return compose(
            hits,
            Wanted(search.matching.wanted, cache(best.idf), asks_why=asks_why(query.text)),
            query.tokens_max,
            NOTHING,
            choose=self._settings["recall.passages"],
        )

    def find(self, ident: str, untrusted: frozenset[int] = frozenset()) -> FoundRecord | None:
        """Return the record with that whole id, if one is current and not gone; for a server."""
        self.catch_up()
        with self._open_readers(None) as readers:
            for number, reader in enumerate(readers):
                keys = list(reader.keys([ident]).values())
                anything = Filter(archived=True, superseded=True, untrusted=untrusted)
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

    def _search_with_others(
        self, query: Query, vector: Callable[[], Encoded] | None
    ) -> tuple[Search, Found, Sizes]:
        """Search; if nothing here answers, return the best memory of another repository, marked."""
        first = self._search(query, vector)
        if not may_be_elsewhere(first[1].hits, query):
            return first
        search, found, sizes = self._search(query.with_(repos=None, limit=1), vector)
        if not are_better(found.hits, first[1].hits, query):
            return first
        hits = [from_elsewhere(hit) for hit in found.hits]
        return search, found._replace(hits=hits), sizes

    def _search(
        self, query: Query, vector: Callable[[], Encoded] | None
    ) -> tuple[Search, Found, Sizes]:
        """Return the search, what it found, and the sizes of what could be read instead.

        If part of an index is broken, it is rebuilt and the search is repeated.
        """
        return self._repairing(lambda: self._search_once(query, vector))

    def _repairing(self, ask: Callable[[], T]) -> T:
        for index in self.indexes:
            try:
                return ask()
            except BaseException as error:  # A panic of Tantivy is no `Exception`.
                if not index.repair(error):
                    raise
        return ask()

    def _search_once(
        self, query: Query, vector: Callable[[], Encoded] | None
    ) -> tuple[Search, Found, Sizes]:
        with self._open_readers(query.as_of_micros) as readers:
            search = self._make_search(readers, query, vector)
            searched = sum(
                reader.log_bytes(query.repos, archived=query.archived) for reader in readers
            )
            found = search.run()
            # Nobody reads the answers of hooks instead of something else.
            best = 0 if query.automatic else search.bytes_of_best(BEST_COUNT)
            return search, found, Sizes(searched, best)

    def _make_search(
        self,
        readers: Sequence[Reader],
        query: Query,
        vector: Callable[[], Encoded] | None,
        *,
        reads: bool = True,
    ) -> Search:
        uses = self.usage.counter() if query.as_of_micros is None else _no_uses
        if vector is not None and not any(reader.has_vectors() for reader in readers):
            vector = None
        weights = Weights.from_settings(self._settings)
        fusion = Fusion.from_settings(self._settings, query.relevance_min)
        # It takes too long for hooks, and for what asks several questions at once.
        reads = reads and bool(fusion.reading) and vector is not None and not query.automatic
        model = self.embedding.reranker() if reads else None
        read = None if model is None else model.scores
        return Search(readers, query, vector, uses, weights, fusion, read)

    def _notes(self, *, compares_meaning: bool, is_asked: bool) -> list[str]:
        """Return remarks on an answer: whether meaning was compared, and where the index is.

        *is_asked* says that the question has a vector. Nothing is said where the user has switched
        vectors off.
        """
        notes = []
        missing = sum(index.missing_vectors() for index in self.indexes)
        if not is_asked:
            reason = self.embedding.reason
            if not reason and self.embedding.is_loading():
                reason = "the model is still loading"
            if reason:
                notes.append(f"by words only: {reason}")
        elif not compares_meaning and missing:
            notes.append(f"by words only: no memory has vectors yet; {_EMBED_HINT}")
        elif missing:
            count = "1 memory has" if missing == 1 else f"{missing:,} memories have"
            notes.append(
                f"{count} no vectors yet, and only their words were compared; {_EMBED_HINT}"
            )
        if self.embedding.reranker_reason:
            notes.append(f"the best are not read again: {self.embedding.reranker_reason}")
        if any(index.in_memory and index.home.path.is_dir() for index in self.indexes):
            notes.append("the home cannot be written; its index is in memory")
        return notes

    # --- In the background ------------------------------------------------------------------------

    def run_in_background(self) -> None:
        """For a server: load the model, and merge and embed new documents in a thread."""
        self.embedding.load_in_background()
        if self._background is None and self._may_start:
            for index in self.indexes:
                index.commits_in_background = True
            self._background = Background(
                [
                    self._catch_up_if_wanted,
                    self._do_jobs,
                    self.merge,
                    self.vectors.embed_batch,
                    self.usage.flush_if_due,
                ]
            )
            self.vectors.background = self._background

    def merge(self) -> None:
        """Merge the new documents of the indexes, if there are many."""
        for index in self.indexes:
            with suppress(CommonplaceError):
                index.commit_if_due()

    def catch_up_soon(self) -> None:
        """Index and embed in the background what was written since the last question."""
        if self._background is not None:
            self._is_catch_up_wanted = True
            self._background.notify()

    def do_soon(self, job: Callable[[], None]) -> None:
        """Do *job* in the background, after the answer that is being given; without a thread, now.

        Of many jobs at once, the latest are done.
        """
        if self._background is None:
            job()
            return
        self._jobs.append(job)
        self._background.notify()

    def _do_jobs(self) -> None:
        if self._jobs:
            time.sleep(ANSWER_S_MAX)
        while self._jobs:
            self._jobs.popleft()()

    def _catch_up_if_wanted(self) -> None:
        if self._is_catch_up_wanted:
            self._is_catch_up_wanted = False
            with suppress(CommonplaceError):
                self.catch_up()

    def _leave_work(self) -> None:
        """Leave remaining work to our thread, or to a worker if there is much of it."""
        if self._background is not None and any(
            index.missing_vectors() or index.is_commit_due() for index in self.indexes
        ):
            self._background.notify()
        if self._may_start and self._settings["embedder.background"]:
            self.vectors.start_worker_if_due(self._clock().timestamp())

    # --- Usage ------------------------------------------------------------------------------------

    def _count(self, query: Query, hits: Sequence[Hit], tokens: int, sizes: Sizes) -> None:
        """Count the delivery of *hits*, and the cost of the answer unless nobody asked for it."""
        best = sizes.best if hits else 0  # No saving is claimed where nothing was found.
        cost = None
        if not query.automatic:
            cost = Answers(1, not hits, tokens, sizes.logs, best_bytes=best, compared=tokens)
        delivered = [(hit.address[0], hit.id) for hit in hits]
        self.usage.add(delivered, to_utc(self._clock()), cost)

    def trim_usage(self, ids_max: int) -> int:
        """Drop the counts of at most *ids_max* ids that no longer exist; return how many.

        With 0, drop none and return how many could be dropped.
        """
        self.catch_up()
        with self._open_readers(None) as readers:
            return self.usage.trim([reader.keys for reader in readers], ids_max)

    def savings(self) -> dict[str, Any]:
        """Return the figures of `stats --savings`: the cost of recalls and of reading the logs."""
        self.catch_up()
        with self._open_readers(None) as readers:
            logs = sum(reader.log_bytes(None, archived=False) for reader in readers)
        return self.usage.savings(logs)

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
