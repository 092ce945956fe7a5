"""Pairs as word pieces, compressed, in one folder: all that training needs besides PyTorch and the weights.

A machine with a GPU may have no network and no tokeniser. The folder is written in files of some 15 MB, so that it can be
carried there in several goes.
"""

from __future__ import annotations

import json
import lzma
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from tools.train_retriever.pair import Pair

    Pieces = NDArray[np.uint16]

PIECES_MAX, QUERY_PIECES_MAX = 256, 96
PART_PAIRS = 100_000


@dataclass
class Packed:
    queries: list[Pieces]
    positives: list[Pieces]
    kinds: list[str]
    sources: list[str]
    neighbours: NDArray[
        np.int32
    ]  # Of each pair, others whose answer words find for its query; -1: none.

    def __len__(self) -> int:
        return len(self.queries)


def tokenise(texts: Sequence[str], vocabulary: Path, pieces_max: int) -> list[Pieces]:
    from tokenizers import BertWordPieceTokenizer  # noqa: PLC0415  (not where only training runs)

    tokenizer = BertWordPieceTokenizer(str(vocabulary), lowercase=True)
    tokenizer.enable_truncation(pieces_max)
    return [np.array(found.ids, np.uint16) for found in tokenizer.encode_batch(list(texts))]


def write_packed(
    pairs: list[Pair], vocabulary: Path, folder: Path, *, neighbours: bool = True
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    parts = [pairs[start : start + PART_PAIRS] for start in range(0, len(pairs), PART_PAIRS)]
    paths = [folder / f"pairs-{number:03}.xz" for number in range(len(parts))]
    write = partial(_write_part, vocabulary=vocabulary, neighbours=neighbours)
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(write, parts, paths))


def _write_part(part: list[Pair], path: Path, vocabulary: Path, *, neighbours: bool) -> None:
    from tools.train_retriever.neighbours import bm25_neighbours  # noqa: PLC0415

    queries = tokenise([one.query for one in part], vocabulary, QUERY_PIECES_MAX)
    positives = tokenise([one.positive for one in part], vocabulary, PIECES_MAX)
    # Neighbours are looked for within a part, which is a random sample: so many are enough, and it stays quick.
    found = (
        bm25_neighbours(queries, positives) if neighbours else np.zeros((len(part), 0), np.int32)
    )
    arrays: list[NDArray[Any]] = [
        np.concatenate(queries),
        _lengths(queries),
        np.concatenate(positives),
        _lengths(positives),
        found.ravel(),
    ]
    head = {
        "count": len(part),
        "kinds": [one.kind for one in part],
        "sources": [one.source for one in part],
        "sizes": [a.nbytes for a in arrays],
        "width": found.shape[1],
    }
    content = json.dumps(head).encode()
    raw = len(content).to_bytes(8, "little") + content + b"".join(a.tobytes() for a in arrays)
    path.write_bytes(lzma.compress(raw, preset=4))


def _lengths(texts: list[Pieces]) -> NDArray[np.uint16]:
    return np.array([len(text) for text in texts], np.uint16)


def read_packed(folder: Path, parts: int | None = None) -> Packed:
    paths = sorted(folder.glob("pairs-*.xz"))[:parts]
    whole = Packed([], [], [], [], np.zeros((0, 0), np.int32))
    neighbours = []
    with ThreadPoolExecutor(8) as threads:
        contents = threads.map(lambda path: lzma.decompress(path.read_bytes()), paths)
        for raw in contents:
            start = 8 + int.from_bytes(raw[:8], "little")
            head = json.loads(raw[8:start])
            arrays = []
            for size, kind in zip(
                head["sizes"], (np.uint16, np.uint16, np.uint16, np.uint16, np.int32), strict=True
            ):
                arrays.append(np.frombuffer(raw[start : start + size], kind))
                start += size
            found = arrays[4].reshape(head["count"], head["width"]).copy()
            found[found >= 0] += len(whole)
            neighbours.append(found)
            whole.queries += np.split(arrays[0], np.cumsum(arrays[1])[:-1])
            whole.positives += np.split(arrays[2], np.cumsum(arrays[3])[:-1])
            whole.kinds += head["kinds"]
            whole.sources += head["sources"]
    whole.neighbours = np.concatenate(neighbours)
    return whole
