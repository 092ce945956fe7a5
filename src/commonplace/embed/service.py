"""The embedder of one process: loads it on first use or in the background, and embeds questions.

Questions that arrive together are embedded together, which is cheaper than one by one. An HTTP
service that fails is not called again for some time; until then answers go by words.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from commonplace.embed import embedder as embedders
from commonplace.embed.early import EarlyQuestion
from commonplace.embed.http import HttpEmbedder
from commonplace.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from typing import Any

    from commonplace.embed.embedder import Embedder, Encoded
    from commonplace.embed.reranker import Reranker
    from commonplace.settings import Settings

# How long a service may take for one answer, and how long it is not called after a failure.
SERVICE_S_MAX = 2.0
SERVICE_PAUSE = timedelta(minutes=1)
BATCH_MAX = 16


class State(NamedTuple):
    """Whether there is an embedder: its name, or why there is none."""

    name: str = ""
    is_off: bool = False
    reason: str = ""

    @property
    def is_available(self) -> bool:
        return bool(self.name)

    def __str__(self) -> str:
        if self.is_off:
            return "off (`embedder.kind` is none)"
        return self.name or f"not available: {self.reason}"


class PendingQuestion:
    """The vectors of a question, which another thread makes.

    It is like a future of `concurrent.futures`, whose import takes 6 ms of a cold recall. A lock is
    held until it is done: to wait for that takes less time than to wait for an event.
    """

    def __init__(self) -> None:
        self._undone = threading.Lock()
        self._undone.acquire()
        self._encoded: Encoded | None = None
        self._error: BaseException | None = None

    def set(self, encoded: Encoded) -> None:
        self._encoded = encoded
        self._undone.release()

    def set_error(self, error: BaseException) -> None:
        self._error = error
        self._undone.release()

    def result(self) -> Encoded:
        """Wait for the vectors and return them; raise what the embedder raised."""
        with self._undone:
            pass
        if self._error is not None:
            raise self._error
        assert self._encoded is not None, "it is done, with vectors or an error"
        return self._encoded


class EmbeddingService:
    """The embedder that the settings name, for as long as a process lives."""

    def __init__(
        self,
        settings: Settings | Mapping[str, Any],
        clock: Callable[[], datetime],
        *,
        for_one_query: bool = False,
        early: EarlyQuestion | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._for_one_query = for_one_query  # Loads the model faster.
        self._early = early
        if early is not None and settings["embedder.kind"] != "minilm":
            early.close()
            self._early = None
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None
        self._reranker: Reranker | None = None
        self._reranker_reason = ""
        self._is_given = False  # Whether `use` has named another embedder.
        self._reason = ""
        self._paused_until: datetime | None = None
        self._loading: threading.Thread | None = None
        self._queue: SimpleQueue[tuple[str, PendingQuestion] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    # --- Loading ----------------------------------------------------------------------------------

    @property
    def is_off(self) -> bool:
        return bool(self._settings["embedder.kind"] == "none")

    def state(self) -> State:
        """Return which embedder there is, or why none; load it unless another thread does."""
        if self.is_off:
            return State(is_off=True)
        embedder = self.embedder()
        if embedder is None:
            return State(reason=self._reason or "still loading")
        return State(embedder.name)

    def embedder(self) -> Embedder | None:
        """Return the embedder, loaded on first use; `None` while another thread loads it."""
        if self.is_off:
            return None
        with self._lock:
            wanted = self._embedder is None and not self._reason and self._loading is None
            if wanted and not self._closed:
                self._load()
            return self._embedder

    def reranker(self) -> Reranker | None:
        """Return the model that reads the best memories again, once the embedder is loaded.

        A process that asks once does not load it: that would take longer than the answer.
        """
        if self._reranker is None and self._loading is None and self._wants_reranker():
            with self._lock:
                if self._reranker is None and self._wants_reranker():
                    self._reranker = self._open_reranker()
        return self._reranker

    def use(self, embedder: Embedder) -> None:
        """Use *embedder* instead of the one that the settings name."""
        with self._lock:
            self._embedder, self._reason = embedder, ""
            self._reranker, self._is_given = None, True

    def require(self) -> Embedder:
        """Return the embedder; raise `EmbedderUnavailable` if there is none."""
        embedder = self.embedder()
        if embedder is None:
            reason = self._reason or (
                "vectors are switched off" if self.is_off else "still loading"
            )
            raise EmbedderUnavailable(reason, "see `commonplace index status`")
        return embedder

    def load_in_background(self) -> None:
        """Load the model in another thread; until then a server's answers go by words."""
        with self._lock:
            done = self._closed or self._embedder is not None or self._loading is not None
            if not done and not self.is_off:
                self._loading = threading.Thread(target=self._load_and_notify, daemon=True)
                self._loading.start()

    def _load_and_notify(self) -> None:
        self._load()
        # So that no question of a server waits for it.
        reranker = self._open_reranker() if self._wants_reranker() else None
        with self._lock:
            if self._wants_reranker():
                self._reranker = reranker
            self._loading = None

    def _load(self) -> None:
        if self._early is not None:
            self._embedder = self._early.embedder(self._load_embedder)
        if self._embedder is None:
            try:
                self._embedder = self._load_embedder()
            except EmbedderUnavailable as error:
                self._reason = str(error)

    def _load_embedder(self) -> Embedder:
        return embedders.load(
            self._settings["embedder.kind"],
            url=self._settings["embedder.url"],
            model=self._settings["embedder.model"],
            key_variable=self._settings["embedder.key_variable"],
            for_one_query=self._for_one_query,
        )

    def _wants_reranker(self) -> bool:
        """Whether the reranker may be loaded: our own embedder is there, and the process stays."""
        has_own = self._embedder is not None and not self._is_given
        is_wanted = self._settings["recall.reading"] and not self._for_one_query
        is_ours = self._settings["embedder.kind"] == "minilm"
        is_open = not (self._closed or self._reranker_reason)
        return bool(has_own and is_wanted and is_ours and is_open)

    def _open_reranker(self) -> Reranker | None:
        from commonplace.embed.reranker import Reranker  # noqa: PLC0415 (not in a cold recall)

        try:
            return Reranker.load()
        except EmbedderUnavailable as error:
            self._reranker_reason = str(error)
            return None

    def is_loading(self) -> bool:
        """Whether it is being loaded in the background."""
        return self._loading is not None

    @property
    def reason(self) -> str:
        """Return why there are no vectors, if that is a fault; "" if they are switched off."""
        return "" if self.is_off else self._reason

    @property
    def reranker_reason(self) -> str:
        """Return why the best memories are not read again, if that is a fault."""
        return self._reranker_reason

    # --- Questions --------------------------------------------------------------------------------

    def is_ready(self) -> bool:
        """Whether our own model is loaded, so that a question can be started at once."""
        return self._embedder is not None and not isinstance(self._embedder, HttpEmbedder)

    def start(self, text: str) -> PendingQuestion:
        """Embed *text* with our own model in another thread; return what to wait for."""
        pending = PendingQuestion()
        with self._lock:
            if self._closed:
                pending.set_error(RuntimeError("the memory was closed"))
                return pending
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._embed_questions, name="commonplace-embed", daemon=True
                )
                self._thread.start()
            self._queue.put((text, pending))
        return pending

    def _embed_questions(self) -> None:
        while (first := self._queue.get()) is not None:
            waiting = [first]
            with suppress(Empty):
                while len(waiting) < BATCH_MAX:
                    another = self._queue.get_nowait()
                    if another is None:
                        self._queue.put(None)
                        break
                    waiting.append(another)
            try:
                embedder = self._embedder
                assert embedder is not None, "questions are started once it is loaded"
                encoded = embedders.encode(embedder, [text for text, _pending in waiting])
            except BaseException as error:  # noqa: BLE001 (`result` raises it)
                for _text, pending in waiting:
                    pending.set_error(error)
                continue
            for (_text, pending), one in zip(waiting, encoded, strict=True):
                pending.set(one)

    # --- An HTTP service --------------------------------------------------------------------------

    def is_paused(self) -> bool:
        return self._paused_until is not None and self._clock() < self._paused_until

    def pause(self, error: EmbedderUnavailable) -> None:
        """Stop calling a service that failed, for some time; answers go by words meanwhile."""
        self._reason = str(error)
        self._paused_until = self._clock() + SERVICE_PAUSE

    def resume(self) -> None:
        self._reason = ""

    # --- The end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """End the threads. Ending a process while the model's libraries load would abort it."""
        with self._lock:
            self._closed = True
            if self._early is not None:
                self._early.close()
            loading, thread = self._loading, self._thread
            self._queue.put(None)
        for one in (loading, thread):
            if one is not None:
                one.join()
