"""The vectors of some homes: of each question, and of what was just written.

A server embeds new documents in its background thread; a command embeds a few before it answers.
Many documents are left to a worker, a process of its own (`backlog`).
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from commonplace import backlog
from commonplace.embed.embedder import Encoded
from commonplace.embed.http import HttpEmbedder
from commonplace.embed.service import SERVICE_S_MAX
from commonplace.errors import CommonplaceError, EmbedderUnavailable
from commonplace.index.ports import no_progress
from commonplace.settings import SETTINGS
from commonplace.vocabulary import QUERY_CHARS_MAX

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping, Sequence

    from commonplace.background import Background
    from commonplace.embed.embedder import Embedder
    from commonplace.embed.service import EmbeddingService, PendingQuestion
    from commonplace.index.ports import Index
    from commonplace.settings import Settings

# How long an answer of a server waits for new memories to be embedded.
FRESH_S_MAX = 0.05
# How often `wait` checks whether another process has finished.
READY_POLL_S = 0.05


class Vectors:
    """Has the embedder make the vectors that questions to *indexes* need."""

    def __init__(
        self,
        indexes: Sequence[Index],
        embedding: EmbeddingService,
        settings: Settings | Mapping[str, Any],
    ) -> None:
        self._indexes = indexes
        self._embedding = embedding
        self._settings = settings
        self._worker: subprocess.Popen[bytes] | None = None
        # The thread of a server, which embeds new documents; a command has none.
        self.background: Background | None = None

    # --- Questions --------------------------------------------------------------------------------

    def start(self, text: str) -> PendingQuestion | None:
        """Start embedding the question *text* on another core, if the model is loaded."""
        if not self._embedding.is_ready():
            return None
        return self._embedding.start(text[:QUERY_CHARS_MAX])

    def of_question(
        self, text: str, started: PendingQuestion | None = None
    ) -> Callable[[], Encoded] | None:
        """Return a function that returns the question's vectors, `None` if there can be none."""
        if self._embedding.is_off or all(index.is_empty() for index in self._indexes):
            return None
        embedder = self._embedding.embedder()
        if embedder is None:
            return None
        if isinstance(embedder, HttpEmbedder):
            return self._ask_service(embedder.within(SERVICE_S_MAX), text)
        pending = started or self._embedding.start(text[:QUERY_CHARS_MAX])
        self._embed_new(embedder)
        return pending.result

    def _ask_service(self, service: HttpEmbedder, text: str) -> Callable[[], Encoded] | None:
        """Return the vector from a service. If it fails or hangs, words answer with a note."""
        if self._embedding.is_paused():
            return None
        try:
            vector = service.encode([text[:QUERY_CHARS_MAX]])[0]
            self._embedding.resume()
            for index in self._indexes:
                backlog.embed_few(index, service)
                index.check_vector_length(len(vector))
        except EmbedderUnavailable as error:
            self._embedding.pause(error)
            return None
        return lambda: Encoded(vector)

    # --- Documents --------------------------------------------------------------------------------

    def _embed_new(self, embedder: Embedder) -> None:
        """Embed what was just written, if there is little of it."""
        for index in self._indexes:
            index.use_model(embedder.name)
        missing = [index.missing_vectors() for index in self._indexes]
        if not any(0 < count <= backlog.EMBED_NOW_MAX for count in missing):
            return
        if self.background is not None:
            self.background.wait(self.background.notify(), FRESH_S_MAX)
        else:
            for index in self._indexes:
                backlog.embed_few(index, embedder)

    def embed_batch(self) -> None:
        """Embed what is missing, unless it is much; for the background thread."""
        if not self._embedding.is_ready():
            return
        embedder = self._embedding.require()
        for index in self._indexes:
            with suppress(CommonplaceError):
                if index.missing_vectors() <= backlog.EMBED_BATCH:
                    index.embed(embedder, backlog.EMBED_BATCH)

    def embed_all(self, progress: Callable[[int], None] = no_progress) -> int:
        """Embed every memory that has no vectors; return how many."""
        embedder = self._embedding.require()
        self._catch_up()
        return sum(backlog.embed_all(index, embedder, progress=progress) for index in self._indexes)

    def embed_alone(
        self,
        until: Callable[[], bool] = lambda: False,
        progress: Callable[[int], None] = no_progress,
    ) -> int | None:
        """Embed like `embed_all`, or return `None` if another process is embedding."""
        embedder = self._embedding.require()
        self._catch_up()
        return backlog.embed_alone(self._indexes, embedder, until, progress)

    def missing(self) -> int:
        """Return how many documents have no vectors yet."""
        self._catch_up()
        return sum(index.missing_vectors() for index in self._indexes)

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until every memory has its vectors, or can get none; return whether that is so."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s

        def is_over() -> bool:
            return deadline is not None and time.monotonic() >= deadline

        while not is_over():
            if self._embedding.is_off or not self.missing():
                return True
            try:
                done = self.embed_alone(is_over)
            except EmbedderUnavailable:
                if not self._embedding.is_loading():
                    return True
                done = None
            if not done:
                time.sleep(READY_POLL_S)  # Another process embeds, or the model is being loaded.
        return False

    def _catch_up(self) -> None:
        for index in self._indexes:
            index.catch_up()

    # --- The worker -------------------------------------------------------------------------------

    def start_worker_if_due(self, now_s: float) -> None:
        """Start a worker for homes where more is missing than the background thread embeds."""
        if self._embedding.is_off or self._embedding.is_paused():
            return
        if self._embedding.embedder() is None:
            return
        left_to_thread = backlog.EMBED_BATCH if self.background is not None else 0
        homes = [
            index.home
            for index in self._indexes
            if not index.in_memory
            and index.missing_vectors() > left_to_thread
            and backlog.is_worker_due(index.home, now_s)
        ]
        if homes:
            names = [name for name in SETTINGS if name.startswith("embedder.")]
            settings = {name: self._settings[name] for name in names}
            self._worker = backlog.start_worker(homes, settings)

    def stop_worker(self) -> None:
        """End the worker that was started here, if it still runs, when a server ends."""
        if self._worker is not None:
            with suppress(OSError):
                self._worker.terminate()
