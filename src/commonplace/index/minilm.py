"""Texts as vectors, by the MiniLM that ships with the package. It never asks the network for anything.

Importing this module is cheap: NumPy and onnxruntime, which are extras, are imported when a model is loaded.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from commonplace.errors import EmbedderUnavailable
from commonplace.index.wordpiece import WordPiece

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy import float32, int64
    from numpy.typing import NDArray

    Floats = NDArray[float32]

FOLDER = Path(__file__).parent / "models" / "minilm"
PIECES_MAX = 256  # What the model was trained with; the rest of a text is cut.
BATCH_TEXTS_MAX = 8
THREADS_MAX = 2
MODEL = "model.onnx"
VOCABULARY = "vocab.txt"


class Session(Protocol):
    """The one method of onnxruntime's session that is used."""

    def run(self, outputs: list[str], feed: dict[str, NDArray[int64]], /) -> list[Floats]: ...


class MiniLM:
    """all-MiniLM-L6-v2 in int8, loaded. A text's vector is the same alone and in any batch."""

    dimensions = 384

    def __init__(self, folder: Path, checksums: Mapping[str, str], pieces: WordPiece, session: Session) -> None:
        self.name = f"all-MiniLM-L6-v2-int8-{checksums[MODEL][:8]}"
        self._folder = folder
        self._checksums = checksums
        self._pieces = pieces
        self._session = session

    @classmethod
    def load(cls, folder: Path | None = None, *, for_one_query: bool = False) -> MiniLM:
        """Open the model in *folder*, or the package's own.

        *for_one_query* has it some 10 ms earlier, on one thread: right for a process that embeds one text and ends.
        """
        folder = folder or FOLDER
        checksums = _checksums_of_complete_files(folder)
        pieces = WordPiece.load(folder / VOCABULARY)
        return cls(folder, checksums, pieces, _session(folder / MODEL, for_one_query=for_one_query))

    def encode(self, texts: Sequence[str]) -> Floats:
        """One vector of length 1 for each of *texts*, in their order."""
        import numpy as np  # noqa: PLC0415  (an extra)

        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for places, batch in self._batches(texts):
            vectors[places] = self._run("embedding", batch)
        return vectors

    def encode_tokens(self, texts: Sequence[str]) -> list[tuple[list[int], Floats]]:
        """For each of *texts*, its piece ids and a vector of length 1 for each piece, for late interaction."""
        found: dict[int, tuple[list[int], Floats]] = {}
        for places, batch in self._batches(texts):
            for place, ids, rows in zip(places, batch, self._run("tokens", batch), strict=True):
                found[place] = (ids, rows[: len(ids)].copy())
        return [found[place] for place in range(len(texts))]

    def verify(self) -> None:
        """Compare every file with its checksum; raise `EmbedderUnavailable` if one differs."""
        import hashlib  # noqa: PLC0415  (kept out of a cold start)

        for name, checksum in self._checksums.items():
            path = self._folder / name
            if hashlib.sha256(path.read_bytes()).hexdigest() != checksum:
                raise _damaged(path)

    def _batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], list[list[int]]]]:
        """Places and piece ids, texts of like length together so that little is padded."""
        ids = [self._pieces.encode(text, PIECES_MAX) for text in texts]
        order = sorted(range(len(ids)), key=lambda place: len(ids[place]))
        for start in range(0, len(order), BATCH_TEXTS_MAX):
            places = order[start : start + BATCH_TEXTS_MAX]
            yield places, [ids[place] for place in places]

    def _run(self, output: str, batch: Sequence[Sequence[int]]) -> Floats:
        import numpy as np  # noqa: PLC0415  (an extra)

        ids = np.zeros((len(batch), max(map(len, batch))), np.int64)
        mask = np.zeros_like(ids)
        for row, pieces in enumerate(batch):
            ids[row, : len(pieces)] = pieces
            mask[row, : len(pieces)] = 1
        [result] = self._session.run([output], {"input_ids": ids, "attention_mask": mask})
        return result


def _damaged(path: Path) -> EmbedderUnavailable:
    return EmbedderUnavailable(f"`{path}` is missing or damaged", "install `commonplace` again")


def _checksums_of_complete_files(folder: Path) -> dict[str, str]:
    """The checksum of each file of the model, all of which have the size they should."""
    listing = folder / "checksums.txt"
    checksums = {}
    try:
        for line in listing.read_text(encoding="utf-8").splitlines():
            checksum, size_bytes, name = line.split()
            if (folder / name).stat().st_size != int(size_bytes):
                raise _damaged(folder / name)
            checksums[name] = checksum
    except OSError as error:
        raise _damaged(Path(error.filename or listing)) from error
    except ValueError as error:
        raise _damaged(listing) from error
    if not {MODEL, VOCABULARY} <= checksums.keys():
        raise _damaged(listing)
    return checksums


def _session(path: Path, *, for_one_query: bool) -> Session:
    try:
        import onnxruntime  # noqa: PLC0415  (an extra, and 80 ms with NumPy)
        from onnxruntime.capi import onnxruntime_pybind11_state as errors  # noqa: PLC0415
    except ImportError as error:
        raise EmbedderUnavailable(f"no embedder: {error}", "install `numpy` and `onnxruntime`") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1 if for_one_query else min(THREADS_MAX, os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    # The arena doubles the memory, and the graph was written as the optimiser would leave it.
    options.enable_cpu_mem_arena = False
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    # Waiting threads sleep: our own thread catches up meanwhile, and someone else's build is running on this machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.disable_prepacking", "1" if for_one_query else "0")
    try:
        session: Session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except (errors.Fail, errors.InvalidGraph, errors.InvalidProtobuf, errors.NotImplemented) as error:
        raise EmbedderUnavailable(f"onnxruntime cannot load `{path}`: {error}", "it needs 1.17 or later") from error
    return session
