"""Read a question and a text together, with the small model beside the embedder.

A vector is made of a text before anyone asks; this model sees both, and so tells better which of
some likely texts answers. It takes a millisecond and more for each, so it reads a few only.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from commonplace.embed.minilm import (
    FOLDER,
    THREADS_MAX,
    VOCABULARY,
    batches,
    open_session,
    read_checksums,
)
from commonplace.embed.wordpiece import WordPiece

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from commonplace.embed.minilm import Session

MODEL = "reranker.onnx"
# Of a question, and of both together: more of a text takes longer, and finds hardly more.
QUESTION_PIECES_MAX, PIECES_MAX = 48, 150


class Reranker:
    """The loaded model, in int8."""

    def __init__(self, pieces: WordPiece, session: Session) -> None:
        self._pieces = pieces
        self._session = session

    @classmethod
    def load(cls, folder: Path = FOLDER) -> Reranker:
        """Open the model in *folder*; raise `EmbedderUnavailable` if it is missing or damaged."""
        read_checksums(folder, MODEL)
        pieces = WordPiece.load(folder / VOCABULARY)
        return cls(pieces, open_session(folder / MODEL, for_one_query=False))

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return how well each of *texts* answers *question*: above 0 if rather so, else below."""
        asked = self._pieces.encode(question, QUESTION_PIECES_MAX)
        rows = [self._pieces.encode(text, PIECES_MAX + 1 - len(asked))[1:] for text in texts]
        parts = batches([len(asked) + len(row) for row in rows])
        if len(parts) == 1:
            results = [self._run(asked, rows, parts[0])]
        else:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 (6 ms)

            with ThreadPoolExecutor(min(THREADS_MAX, os.cpu_count() or 1)) as threads:
                results = list(threads.map(lambda part: self._run(asked, rows, part), parts))
        found = [0.0] * len(texts)
        for part, scores in zip(parts, results, strict=True):
            for row, score in zip(part, scores, strict=True):
                found[row] = score
        return found

    def _run(
        self, asked: Sequence[int], rows: Sequence[Sequence[int]], part: Sequence[int]
    ) -> list[float]:
        import numpy as np  # noqa: PLC0415 (an extra)

        start = len(asked)
        ids = np.zeros((len(part), start + max(len(rows[row]) for row in part)), np.int64)
        mask, is_text = np.zeros_like(ids), np.zeros_like(ids)
        ids[:, :start] = asked
        for place, row in enumerate(part):
            ids[place, start : start + len(rows[row])] = rows[row]
            mask[place, : start + len(rows[row])] = 1
        is_text[:, start:] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "is_text": is_text}
        (scores,) = self._session.run(["score"], feed)
        return [float(score) for score in scores.tolist()]
