"""Asking: one question from end to end. It owns what answers need and nothing else does: indexes, embedder, usage."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.compose.answer import answer, line
from commonplace.compose.tokens import BYTES_PER_TOKEN, cut
from commonplace.embed import embedder as embedders
from commonplace.errors import CommonplaceError, EmbedderUnavailable, UsageError
from commonplace.files.lock import try_hold
from commonplace.index import vectors as vector_counts
from commonplace.index.index import Index
from commonplace.index.terms import query_terms
from commonplace.recall.hits import Hit, Query
from commonplace.recall.overview import counted, explained, latest, selected
from commonplace.recall.priors import Weights
from commonplace.recall.search import QUERY_CHARS_MAX, Found, Fusion, search
from commonplace.recall.visibility import feedback_of
from commonplace.records import is_doubted, to_utc
from commonplace.settings import SETTINGS
from commonplace.usage import Answers, Usage
from commonplace.where.home import Home

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from commonplace.embed.embedder import Embedder
    from commonplace.index.index import Status
    from commonplace.records import Record
    from commonplace.settings import Settings

# So few new memories are embedded before the answer; more wait for the worker, and answers do not.
EMBED_NOW_MAX = 8
EMBED_BATCH = 64
# A service has so long for all an answer wants of it; one that fails is left alone for a while.
SERVICE_S_MAX = 2.0
SERVICE_PAUSE = timedelta(minutes=1)
# A worker that could not do its work is not started again by every answer.
WORKER_PAUSE_S = 30.0
LOWEST_PRIORITY = 19
LIMIT_MAX = 1000
LINE_TOKENS_MAX = 60
NOTHING = "No relevant memories."
# Both sides are counted, and where the count is an estimate it speaks against us: bytes beyond ASCII are worth more.
SAVINGS = (
    "saved = the logs that each recall searched, whole as they were at that moment (4 bytes a token), "
    "less the text it delivered; every recall that was asked for counts, also one that found nothing"
)
_AGO = re.compile(r"(\d+)\s*([hdwmy])", re.IGNORECASE)
_AGO_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}


@dataclass(frozen=True, slots=True)
class Recall:
    """An answer: the hits with their reasons, and the text an agent reads."""

    hits: list[Hit]
    text: str
    tokens: int
    considered: int = 0
    # What the reader should know about the answer itself, e.g. that meaning was not compared.
    notes: list[str] = field(default_factory=list)


class Asking:
    """What it takes to answer questions about some homes, the nearest first."""

    def __init__(
        self,
        homes: Sequence[Home],
        settings: Settings | Mapping[str, Any],
        *,
        clock: Callable[[], datetime],
        one_shot: bool = False,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._one_shot = (
            one_shot  # A process that asks once wants its model early rather than fast.
        )
        self.indexes = [Index(home) for home in homes]
        self._usage = [Usage(home.usage_file) for home in homes]
        self._embedder: Embedder | None = None
        self._reason = ""
        self._paused_until: datetime | None = None
        self._loading: threading.Thread | None = None
        self._worker: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._reader = ThreadPoolExecutor(1, "commonplace-reader")
        # One question at a time: SQLite connections and Tantivy readers are shared by the threads of a server.
        self._lock = threading.RLock()

    def close(self) -> None:
        self._closed = True
        with self._lock:
            loading = self._loading
        if loading is not None:
            loading.join()  # A process that ends in the middle of loading the model's libraries is aborted by them.
        with self._lock:
            for index in self.indexes:
                index.close()
            for usage in self._usage:
                usage.close()
        self._reader.shutdown()

    # --- Answers --------------------------------------------------------------------------------------------------

    def recall(
        self, query: Query, tokens_max: int, as_of: str | None = None, *, count: bool = True
    ) -> Recall:
        """What is known about *query*, in at most *tokens_max* tokens."""
        if not query.text.strip():
            raise UsageError(
                "there is nothing to look for", "give a few words about the task or the error"
            )
        if not 1 <= query.limit <= LIMIT_MAX:
            raise UsageError(f"the limit is {query.limit}, not between 1 and {LIMIT_MAX}")
        if tokens_max < 0:
            raise UsageError(f"the token bound is {tokens_max}, under 0")
        with self._lock:
            # The model reads the question on another core while this one catches up.
            reading = self._reader.submit(self._read, query.text) if self._has_model() else None
            indexes = (
                self.caught_up()
                if as_of is None
                else self._as_of(self.moment(as_of, end_of_day=True))
            )
            read = self._vector(query.text, indexes, reading)
            uses = self._uses() if as_of is None else _never_used
            weighing = (uses, self._weights(), self._fusion(query))
            ask: Callable[[], Found] = partial(search, indexes, query, read, *weighing, self._aside)
            for index in indexes:
                ask = partial(
                    index.repaired, ask
                )  # Whichever turns out to be broken is built again, and asked again.
            found = ask()
            wanted = query_terms(query.text[:QUERY_CHARS_MAX])
            best = max(found.statistics, key=lambda one: one.documents)
            told = answer(
                found.hits,
                wanted,
                cache(best.idf),
                tokens_max,
                NOTHING,
                choose=self._settings["recall.passages"],
            )
            if count and as_of is None:
                searched = sum(
                    index.store.log_bytes(query.repos, archived=query.archived) for index in indexes
                )
                cost = None if query.unasked else Answers(1, not told.hits, told.tokens, searched)
                self._count(told.hits, cost)
                self._wake_worker()
        hits = told.hits if query.cutoff else [*told.hits, *found.hits[len(told.hits) :]]
        return Recall(
            hits,
            told.text,
            told.tokens,
            found.considered,
            self._notes(indexes, by_words=read is None),
        )

    def recent(self, count: int, query: Query) -> list[Hit]:
        """The latest visible records that *query* lets through, each with a line of text; some with a `doubt`."""
        found: list[Hit] = []
        with self._lock:
            indexes = self.caught_up()
            for book, index in enumerate(indexes):
                rows = latest(indexes, book, count, query)
                feedback = feedback_of(index, [row.id for row in rows])
                for row in rows:
                    text = cut(line(row.record), LINE_TOKENS_MAX)
                    why = {"doubt": 0.5} if is_doubted(feedback.get(row.id, {})) else {}
                    found.append(
                        Hit(row.record, row.repo, 0.0, why, key=(book, row.key), text=text)
                    )
        found.sort(key=lambda hit: hit.timestamp, reverse=True)
        return found[:count]

    def select(self, query: Query, ids: Collection[str] | None = None) -> list[Record]:
        """What the filters of *query* let through of the nearest home, in the order of the lines; no ranking."""
        with self._lock:
            return [row.record for row in selected(self.caught_up(), 0, query, ids)]

    def stats(self, repos: Collection[str] | None) -> dict[str, Any]:
        """Counts over the homes."""
        with self._lock:
            return counted(self.caught_up(), repos)

    def why(self, query: Query, ident: str) -> dict[str, Any]:
        """Where the record stands among all candidates, and what decided."""
        with self._lock:
            indexes = self.caught_up()
            read = self._vector(query.text, indexes)
            ask = (indexes, read, self._uses(), self._weights(), self._fusion(query))
            plain = search(ask[0], query.with_(limit=LIMIT_MAX, cutoff=False), *ask[1:])
            final = self.recall(query, 500, count=False)
            return explained(indexes, query, ident, plain.hits, final.hits, self._fusion(query))

    def moment(self, text: str, *, end_of_day: bool = False) -> str:
        """A date, a time or an age (`7d`, `12h`) as a timestamp; a date is its whole day."""
        if ago := _AGO.fullmatch(text.strip()):
            try:
                return to_utc(
                    self._clock() - timedelta(days=int(ago[1]) * _AGO_DAYS[ago[2].lower()])
                )
            except (OverflowError, ValueError):
                raise UsageError(
                    "the age goes back to before the year 1", "give a date such as 2026-01-31"
                ) from None
        try:
            moment = to_utc(text.strip())
        except ValueError as error:
            raise UsageError(
                f"the date {error}", "give a date such as 2026-01-31, or an age such as 7d"
            ) from None
        return (
            f"{moment[:10]}T23:59:59Z"
            if end_of_day and len(text.strip()) == len("2026-01-31")
            else moment
        )

    def caught_up(self, progress: Callable[[int], None] = lambda _done: None) -> list[Index]:
        with self._lock:
            for index in self.indexes:
                index.catch_up(progress)
            return self.indexes

    def _as_of(self, moment: str) -> list[Index]:
        """The homes as they stood at *moment*: indexes in memory, of the lines written until then."""
        made = []
        for current in self.caught_up():
            index = Index(current.home, in_memory=True, until=moment)
            index.catch_up()
            index.take_vectors(current)
            made.append(index)
        return made

    # --- Usage ----------------------------------------------------------------------------------------------------

    def usage(self, ident: str) -> tuple[int, str]:
        """How often the record was delivered, and when last."""
        found = [usage.of(ident) for usage in self._usage]
        return sum(count for count, _last in found), max(last for _count, last in found)

    def _uses(self) -> Callable[[str], int]:
        """How often an id was delivered, over all homes."""
        counts = [usage.counts() for usage in self._usage]
        return lambda ident: sum(count.get(ident, 0) for count in counts)

    def _count(self, hits: Collection[Hit], answer: Answers | None) -> None:
        now = to_utc(self._clock())
        nearest = next(
            (book for book, index in enumerate(self.indexes) if index.home.path.is_dir()), None
        )
        for book, usage in enumerate(self._usage):
            ids = [hit.id for hit in hits if hit.key[0] == book]
            if ids or (answer and book == nearest):
                usage.add(ids, now, answer if book == nearest else None)

    def savings(self) -> dict[str, Any]:
        """What recalls cost so far, against reading the logs they searched; the figures of `stats --savings`."""
        with self._lock:
            logs = sum(index.store.log_bytes() for index in self.caught_up())
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

    # --- Meaning --------------------------------------------------------------------------------------------------

    def _has_model(self) -> bool:
        """Whether a model of our own is loaded; a service is asked once and in time, see `_of_service`."""
        return self._embedder is not None and not isinstance(self._embedder, embedders.HttpEmbedder)

    def _read(self, text: str) -> Any:  # noqa: ANN401 (a NumPy array)
        embedder = self._embedder
        assert embedder is not None
        return embedder.encode([text[:QUERY_CHARS_MAX]])[0]

    def _aside(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """Have *call* done on another core, behind the question the model is at."""
        return self._reader.submit(call).result

    def _vector(
        self,
        text: str,
        indexes: Sequence[Index],
        reading: Future[Any] | None = None,
    ) -> Callable[[], Any] | None:
        """What gives the question's vector, or nothing where vectors cannot help."""
        if self._settings["embedder.kind"] == "none" or not any(
            _has_documents(index) for index in indexes
        ):
            return None
        embedder = self.embedder()
        if isinstance(embedder, embedders.HttpEmbedder):
            return self._of_service(embedder.within(SERVICE_S_MAX), text, indexes)
        if embedder is None or not _embed_few(embedder, indexes):
            return None
        return (reading or self._reader.submit(self._read, text)).result

    def _of_service(
        self,
        service: embedders.HttpEmbedder,
        text: str,
        indexes: Sequence[Index],
    ) -> Callable[[], Any] | None:
        """The same of a service, which may fail or hang; then words answer, and the reader is told."""
        if self._is_paused():
            return None
        try:
            vector = service.encode([text[:QUERY_CHARS_MAX]])[0]
            self._reason = ""
            if not _embed_few(service, indexes):
                return None
            for index in indexes:
                index.vectors.check_length(len(vector))
        except EmbedderUnavailable as error:
            self._reason = str(error)
            self._paused_until = self._clock() + SERVICE_PAUSE
            return None
        return lambda: vector

    def _is_paused(self) -> bool:
        return self._paused_until is not None and self._clock() < self._paused_until

    def embedder(self) -> Embedder | None:
        """The embedder, loaded on first use; while a background load runs, nothing."""
        if self._embedder is None and not self._reason and self._loading is None:
            self._load()
        return self._embedder

    def load_in_background(self) -> None:
        """For a server: answers use words alone until the model is there."""
        with self._lock:
            if self._closed or self._embedder is not None or self._loading is not None:
                return
            if self._settings["embedder.kind"] != "none":
                self._loading = threading.Thread(target=self._load, daemon=True)
                self._loading.start()

    def _load(self) -> None:
        try:
            self._embedder = embedders.load(
                self._settings["embedder.kind"],
                url=self._settings["embedder.url"],
                model=self._settings["embedder.model"],
                key_variable=self._settings["embedder.key_variable"],
                for_one_query=self._one_shot,
            )
        except EmbedderUnavailable as error:
            self._reason = str(error)
        self._loading = None

    def embed_all(self, progress: Callable[[int], None] = lambda _done: None) -> int:
        """Give every memory its vectors; returns how many got theirs."""
        return sum(self._embed(index, progress) for index in self.caught_up())

    def _embed(self, index: Index, progress: Callable[[int], None] = lambda _done: None) -> int:
        embedder = self.embedder()
        if embedder is None:
            raise EmbedderUnavailable(
                self._reason or "the embedder is still loading", "see `commonplace index status`"
            )
        done = 0
        # An index that was removed or replaced needs no more vectors; whoever opens the new one sees to those.
        while index.store.is_current() and (some := index.vectors.embed(embedder, EMBED_BATCH)):
            done += some
            progress(some)
        return done

    def embed_alone(self) -> int | None:
        """What the worker does: embed all that is missing, unless another process is at it (then `None`)."""
        done, busy = 0, False
        for index in self.caught_up():
            if index.folder is None:
                continue  # Nothing can be kept there, or there is no home.
            with try_hold(index.home.embed_lock) as mine:
                if mine:
                    done += self._embed(index)
                busy = busy or not mine
        return None if busy and not done else done

    def wake_worker(self) -> None:
        """Have what came in since the last question taken in and embedded; nobody waits for it."""

        def wake() -> None:
            with self._lock, suppress(CommonplaceError):
                if not self._closed:
                    self.caught_up()
                    self._wake_worker()

        threading.Thread(target=wake, daemon=True).start()

    def _wake_worker(self) -> None:
        """Start a process that embeds what is missing and ends, where something is and none is at it."""
        if not self._settings["embedder.background"] or self._embedder is None or self._is_paused():
            return
        now_s = self._clock().timestamp()
        homes = [
            str(index.home.path.absolute())
            for index in self.indexes
            if index.folder is not None
            and vector_counts.missing(index.store)
            and _is_due(index.home, now_s)
        ]
        if homes:
            # The worker is told the settings: those that hold here may come from another home than its own.
            settings = {
                name: self._settings[name] for name in SETTINGS if name.startswith("embedder.")
            }
            self._worker = _start_worker({"homes": homes, "settings": settings})

    def stop_worker(self) -> None:
        """End the worker this process started, if it is still at it: a server leaves none behind."""
        if self._worker is not None:
            with suppress(OSError):
                self._worker.terminate()

    # --- What there is to say -------------------------------------------------------------------------------------

    def status(self) -> list[Status]:
        return [index.status() for index in self.caught_up()]

    def embedder_state(self) -> str:
        """In words: which model, or why none."""
        if self._settings["embedder.kind"] == "none":
            return "off (`embedder.kind` is none)"
        embedder = self.embedder()
        return embedder.name if embedder else f"not available: {self._reason or 'still loading'}"

    def _notes(self, indexes: Sequence[Index], *, by_words: bool) -> list[str]:
        notes = []
        if by_words and self._reason and self._settings["embedder.kind"] != "none":
            notes.append(f"by words only: {self._reason}")
        if any(
            index.folder is None
            for index in self.indexes
            if index in indexes and index.home.path.is_dir()
        ):
            notes.append("the home cannot be written; its index was made in memory")
        return notes

    def _weights(self) -> Weights:
        chosen = {
            name: self._settings[f"recall.{name}"]
            for name in ("half_life_days", "semantic", "episodic", "skills")
        }
        return (
            Weights(**chosen)
            if self._settings["recall.priors"]
            else Weights(*([180.0] + [0.0] * 8 + [1.0] * 3))
        )

    def _fusion(self, query: Query) -> Fusion:
        return Fusion(
            dense=self._settings["recall.dense"],
            relevance_min=max(self._settings["recall.relevance_min"], query.relevance_min),
            relevance_share_min=Fusion().relevance_share_min
            if self._settings["recall.relevance_min"]
            else 0.0,
            fold_same=self._settings["recall.same"],
        )


def _never_used(_ident: str) -> int:
    return 0


def _has_documents(index: Index) -> bool:
    return bool(index.store.column("SELECT 1 FROM head LIMIT 1"))


def _embed_few(embedder: Embedder, indexes: Sequence[Index]) -> bool:
    """Embed what is missing where that is little; whether there are any vectors then."""
    for index in indexes:
        index.vectors.use(embedder.name)
        if 0 < vector_counts.missing(index.store) <= EMBED_NOW_MAX:
            with suppress(
                EmbedderUnavailable
            ):  # A service may be too slow for an answer; the worker has more time.
                index.vectors.embed(embedder, EMBED_NOW_MAX)
    return any(vector_counts.any_stored(index.store) for index in indexes)


# --- The worker ---------------------------------------------------------------------------------------------------


def work() -> None:
    """The worker: embed what the job on stdin names, and end. Whatever goes wrong ends it too."""
    with suppress(
        OSError
    ):  # Linux may weigh sessions against each other first, and then what is within one.
        Path("/proc/self/autogroup").write_text(str(LOWEST_PRIORITY), "ascii")
    job = json.load(sys.stdin)
    homes = [Home(Path(home)) for home in job["homes"]]
    Asking(homes, job["settings"], clock=lambda: datetime.now(UTC)).embed_alone()


def _is_due(home: Home, now_s: float) -> bool:
    """Whether a worker should be started for *home*: none was in the last while, by anybody, and none is at it."""
    started = home.embed_mark

    def lately() -> bool:
        return started.exists() and abs(now_s - started.stat().st_mtime) < WORKER_PAUSE_S

    with suppress(
        OSError, CommonplaceError
    ):  # A home whose `.state` cannot be written does without.
        if lately():
            return False
        with try_hold(home.embed_lock) as free:
            if free and not lately():
                started.touch(mode=0o600)
                os.utime(started, (now_s, now_s))
                return True
    return False


def _start_worker(job: dict[str, Any]) -> subprocess.Popen[bytes] | None:
    """A worker of its own session, at the lowest priority from its start: it must not slow down whoever asked."""
    # Without `-P`, a file in the working folder could pass for a module.
    command = [sys.executable, "-P", "-c", "from commonplace.engine import work; work()"]
    flags: dict[str, Any] = (
        {"start_new_session": True} if os.name == "posix" else {"creationflags": 0x00000248}
    )
    try:
        worker = subprocess.Popen(  # noqa: S603 (our own command)
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=job["homes"][0],
            **flags,
        )
        if os.name == "posix":
            os.setpriority(os.PRIO_PROCESS, worker.pid, LOWEST_PRIORITY)
        threading.Thread(target=worker.wait, daemon=True).start()  # It leaves no zombie.
        assert worker.stdin is not None
        with worker.stdin:
            worker.stdin.write(json.dumps(job).encode())
    except OSError:
        return None  # A later answer tries again; vectors are never needed for one.
    return worker
