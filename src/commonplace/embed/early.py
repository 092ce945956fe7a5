"""The only question of a process, embedded by a copy of that process while it opens the index.

To load NumPy, onnxruntime and the model takes half of the time that a cold question takes, and no
thread can do it beside others, since imports hold Python's lock. So, where Linux has a second core
free, a forked child does it, sends the vectors through a pipe, and ends. If anything goes wrong
there, this process loads the model itself, and says what is wrong.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from commonplace.embed import embedder as embedders
from commonplace.embed.embedder import Encoded, PieceEmbedder, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commonplace.embed.embedder import Embedder, Vectors


def load_packaged() -> Embedder:
    """Load the model in the package, as a process does that embeds one text and ends."""
    return embedders.load("minilm", for_one_query=True)


class EarlyQuestion:
    """A question that a child process embeds."""

    def __init__(self, text: str, pid: int, pipe: int) -> None:
        self._text = text
        self._pid = pid
        self._pipe = pipe

    @classmethod
    def start(cls, text: str, load: Callable[[], Embedder] = load_packaged) -> EarlyQuestion | None:
        """Have a child process *load* the model and embed *text*; `None` where that gains nothing.

        A process with threads is not forked: the child could wait for a lock of theirs for ever.
        Nor is it on macOS, whose own libraries do not allow it.
        """
        if sys.platform != "linux" or threading.active_count() > 1:
            return None
        if len(os.sched_getaffinity(0)) < 2:  # One for each.
            return None
        try:
            ours, theirs = os.pipe()
            pid = os.fork()
        except OSError:
            return None
        if pid == 0:
            _embed_and_end(text, load, theirs)
        os.close(theirs)
        return cls(text, pid, ours)

    def embedder(self, load: Callable[[], Embedder]) -> EarlyEmbedder | None:
        """Wait for the child and return an embedder that knows the question, or `None`."""
        from commonplace.embed.minilm import import_numpy_for_one_query  # noqa: PLC0415

        import_numpy_for_one_query()  # The child is loading it as well.
        import numpy as np  # noqa: PLC0415

        with os.fdopen(self._pipe, "rb") as pipe:
            self._pipe = -1
            head, body = pipe.readline(), pipe.read()
        self.close()
        try:
            name, dimensions, pieces = json.loads(head)
            rows = np.frombuffer(body, np.float32).reshape(1 + pieces, dimensions)
        except ValueError:  # It was killed, or could not load the model.
            return None
        return EarlyEmbedder(name, self._text, Encoded(rows[0], rows[1:]), load)

    def close(self) -> None:
        """End the child, if it still runs."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        if self._pid:
            with suppress(OSError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
            self._pid = 0


class EarlyEmbedder:
    """The packaged model, of which one answer is there already; it is loaded for any other text."""

    def __init__(
        self, name: str, text: str, encoded: Encoded, load: Callable[[], Embedder]
    ) -> None:
        self.name = name
        self.dimensions = len(encoded.vector)
        self._known = {text: encoded}
        self._load = load
        self._model: Embedder | None = None

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 for each of *texts*, in their order."""
        return self._loaded().encode(texts)

    def encode_pieces(self, texts: Sequence[str]) -> list[Encoded]:
        """Return the vector of each text, and those of its word pieces that say something."""
        if all(text in self._known for text in texts):
            return [self._known[text] for text in texts]
        return encode(self._loaded(), texts)

    def count_pieces(self, text: str) -> int:
        """Return how many word pieces of *text* say something."""
        model = self._loaded()
        return model.count_pieces(text) if isinstance(model, PieceEmbedder) else 0

    def _loaded(self) -> Embedder:
        if self._model is None:
            self._model = self._load()
        return self._model


def _embed_and_end(text: str, load: Callable[[], Embedder], pipe: int) -> None:
    """In the child: send the vectors of *text*, and end without anything that the parent does."""
    try:
        # What goes wrong here is said by the parent, which then tries it itself.
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123
            os.dup2(nowhere.fileno(), 2)
        model = load()
        (encoded,) = encode(model, [text])
        pieces = encoded.pieces
        rows = 0 if pieces is None else len(pieces)
        with os.fdopen(pipe, "wb") as out:
            out.write(json.dumps([model.name, len(encoded.vector), rows]).encode() + b"\n")
            out.write(encoded.vector.tobytes())
            if pieces is not None:
                out.write(pieces.tobytes())
    finally:
        os._exit(0)
