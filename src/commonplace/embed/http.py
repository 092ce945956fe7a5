"""An embedder over HTTP. Only the user's settings can turn it on, as texts leave the machine."""

from __future__ import annotations

import json
import math
import threading
import time
from typing import TYPE_CHECKING, Any

from commonplace.errors import EmbedderUnavailable

if TYPE_CHECKING:
    import urllib.request
    from collections.abc import Sequence
    from concurrent.futures import Future

    from commonplace.embed.embedder import Vectors

HTTP_SECONDS_MAX = 20.0
HTTP_BATCH_MAX = 64
HTTP_BYTES_MAX = 64 << 20


class HttpEmbedder:
    """An OpenAI-compatible endpoint."""

    def __init__(self, url: str, model: str, key: str = "", *, deadline: float = math.inf) -> None:
        self.name = f"http:{url}:{model}"
        self._url = url
        self._model = model
        self._key = key
        self._deadline = deadline

    def within(self, seconds: float) -> HttpEmbedder:
        """Return the same service with a deadline for all its calls: *seconds* from now."""
        return HttpEmbedder(self._url, self._model, self._key, deadline=time.monotonic() + seconds)

    def encode(self, texts: Sequence[str]) -> Vectors:
        import numpy as np  # noqa: PLC0415 (large; loaded with the first vector)

        if not texts:
            return np.zeros((0, 0), np.float32)
        rows: list[Any] = []
        for start in range(0, len(texts), HTTP_BATCH_MAX):
            rows += self._ask(list(texts[start : start + HTTP_BATCH_MAX]))
        try:
            vectors = np.asarray(rows, np.float32)
        except (ValueError, TypeError) as error:
            raise self._unavailable(error) from error
        if (
            vectors.ndim != 2
            or len(vectors) != len(texts)
            or not vectors.size
            or not np.isfinite(vectors).all()
        ):
            raise self._unavailable(f"not one list of numbers for each of {len(texts)} texts")
        normalised: Vectors = vectors / np.maximum(
            np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-9)
        )
        return normalised

    def _ask(self, texts: list[str]) -> list[Any]:
        import http.client  # noqa: PLC0415 (slow to load, and rarely needed)
        import urllib.request  # noqa: PLC0415
        from concurrent.futures import Future  # noqa: PLC0415

        headers = {
            "Content-Type": "application/json",
            **({"Authorization": f"Bearer {self._key}"} if self._key else {}),
        }
        body = json.dumps({"model": self._model, "input": texts}).encode()
        seconds = min(HTTP_SECONDS_MAX, self._deadline - time.monotonic())
        answer: Future[bytes] = Future()
        try:
            request = urllib.request.Request(self._url, body, headers)  # noqa: S310 (the user's own setting)
            # A socket's timeout limits neither a name lookup nor an answer that comes byte by byte.
            threading.Thread(target=_fetch, args=(request, seconds, answer), daemon=True).start()
            data = json.loads(answer.result(seconds))
            return [
                item["embedding"]
                for item in sorted(data["data"], key=lambda item: item.get("index", 0))
            ]
        except (
            OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError,
            http.client.HTTPException,
        ) as error:  # fmt: skip
            raise self._unavailable(error) from error

    def _unavailable(self, reason: Exception | str) -> EmbedderUnavailable:
        text = str(reason) or type(reason).__name__
        return EmbedderUnavailable(
            f"`{self._url}` gave no embeddings ({text})", "see `embedder.url`"
        )


def _fetch(request: urllib.request.Request, seconds: float, answer: Future[bytes]) -> None:
    import http.client  # noqa: PLC0415
    import urllib.error  # noqa: PLC0415
    import urllib.request  # noqa: PLC0415

    try:
        with urllib.request.urlopen(request, timeout=seconds) as stream:  # noqa: S310
            answer.set_result(stream.read(HTTP_BYTES_MAX))
    except (OSError, ValueError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        answer.set_exception(error)
