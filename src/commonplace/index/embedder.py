"""What turns a text into a vector: the model in the package, an HTTP service if the user says so, or none."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Protocol

from commonplace.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy import float32
    from numpy.typing import NDArray

    Floats = NDArray[float32]

HTTP_SECONDS_MAX = 20.0
HTTP_BATCH_MAX = 64


class Embedder(Protocol):
    """Vectors of one length for texts. Vectors of embedders with different names are never mixed."""

    name: str

    def encode(self, texts: Sequence[str]) -> Floats:
        """One vector of length 1 for each of *texts*."""
        ...


class HttpEmbedder:
    """An OpenAI-compatible endpoint. Off unless the user's own settings name one: texts leave the machine."""

    def __init__(self, url: str, model: str, key: str = "") -> None:
        self.name = f"http:{url}:{model}"
        self._url = url
        self._model = model
        self._key = key

    def encode(self, texts: Sequence[str]) -> Floats:
        import numpy as np  # noqa: PLC0415 (large; loaded with the first vector)

        rows: list[list[float]] = []
        for start in range(0, len(texts), HTTP_BATCH_MAX):
            rows += self._ask(list(texts[start : start + HTTP_BATCH_MAX]))
        vectors = np.asarray(rows, np.float32).reshape(len(texts), -1)
        normalised: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-9))
        return normalised

    def _ask(self, texts: list[str]) -> list[list[float]]:
        import urllib.request  # noqa: PLC0415 (slow to load, and hardly anybody asks a service)

        headers = {
            "Content-Type": "application/json",
            **({"Authorization": f"Bearer {self._key}"} if self._key else {}),
        }
        body = json.dumps({"model": self._model, "input": texts}).encode()
        request = urllib.request.Request(self._url, body, headers)  # noqa: S310 (the user's own setting)
        try:
            with urllib.request.urlopen(request, timeout=HTTP_SECONDS_MAX) as answer:  # noqa: S310
                data: dict[str, Any] = json.load(answer)
            return [item["embedding"] for item in sorted(data["data"], key=lambda item: item.get("index", 0))]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise EmbedderUnavailable(f"`{self._url}` gave no embeddings ({error})", "see `embedder.url`") from error


def load(kind: str, *, url: str = "", model: str = "", key_variable: str = "", for_one_query: bool = False) -> Embedder:
    """The embedder the settings name. `EmbedderUnavailable` says why there is none."""
    if kind == "http":
        if not url:
            raise EmbedderUnavailable("`embedder.kind` is http but `embedder.url` is empty", "set both")
        return HttpEmbedder(url, model, os.environ.get(key_variable, "") if key_variable else "")
    if kind == "none":
        raise EmbedderUnavailable("vectors are switched off", 'set `embedder.kind = "minilm"` to have them')
    from commonplace.index.minilm import MiniLM  # noqa: PLC0415 (loads a model)

    return MiniLM.load(for_one_query=for_one_query)
