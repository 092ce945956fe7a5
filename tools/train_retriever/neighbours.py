"""Hard negatives: answers of other pairs that words, or a model, find for a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NEIGHBOURS = 4
K1, B = 1.2, 0.75
QUERY_PIECES = 12  # The rarest ones; the others cost time and change little.
POSTINGS_MAX = 3_000  # A piece in more answers than this says little.
TOO_CLOSE = 0.97  # Of the own answer's score: such an answer may well be right too.


def bm25_neighbours(
    queries: Sequence[NDArray[np.uint16]],
    positives: Sequence[NDArray[np.uint16]],
    words: int = 30_522,
) -> NDArray[np.int32]:
    """For each query, the answers of other pairs that BM25 over word pieces ranks highest, below its own answer."""
    count = len(positives)
    lengths = np.array([len(text) for text in positives], np.float32)
    norm = K1 * (1 - B + B * lengths / lengths.mean())
    rows = np.repeat(np.arange(count, dtype=np.int64), [len(text) for text in positives])
    pairs, frequencies = np.unique(
        np.concatenate(positives).astype(np.int64) * count + rows, return_counts=True
    )
    terms, documents = pairs // count, (pairs % count).astype(np.int32)
    starts = np.searchsorted(terms, np.arange(words + 1))
    found_in = np.diff(starts)
    idf = np.log(1 + (count - found_in + 0.5) / (found_in + 0.5)).astype(np.float32)
    weights = (idf[terms] * frequencies * (K1 + 1) / (frequencies + norm[documents])).astype(
        np.float32
    )
    result = np.full((count, NEIGHBOURS), -1, np.int32)
    scores = np.zeros(count, np.float32)
    for number, query in enumerate(queries):
        pieces = [p for p in np.unique(query[1:-1]) if 0 < found_in[p] <= POSTINGS_MAX]
        pieces.sort(key=lambda p: found_in[p])
        spans = [slice(starts[p], starts[p + 1]) for p in pieces[:QUERY_PIECES]]
        if not spans:
            continue
        hits = np.concatenate([documents[s] for s in spans])
        for span in spans:
            scores[documents[span]] += weights[span]  # No document is twice in a span.
        limit = TOO_CLOSE * (scores[number] or scores[hits].max())
        found = np.where(scores[hits] < limit, scores[hits], 0)
        # A document is as often among the hits as it has pieces of the query.
        most = min(len(hits), NEIGHBOURS * len(spans))
        best = np.unique(hits[np.argpartition(-found, most - 1)[:most]])
        best = best[scores[best] < limit]
        best = best[np.argsort(-scores[best], kind="stable")][:NEIGHBOURS]
        scores[hits] = 0
        result[number, : len(best)] = best
    return result
