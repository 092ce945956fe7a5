"""Embed texts with the MiniLM model in the package. It never uses the network.

Importing this module is cheap: NumPy and onnxruntime are imported when a model is loaded.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

from commonplace.embed.embedder import Encoded
from commonplace.embed.wordpiece import WordPiece
from commonplace.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy import float32, int64
    from numpy.typing import NDArray

    Floats = NDArray[float32]

FOLDER = Path(__file__).parent / "models" / "minilm"
PIECES_MAX = 256  # The length of its training texts; the rest of a text is cut.
BATCH_PIECES_MAX = 256  # A batch of this size, with padding, fits in a core's cache.
THREADS_MAX = 2
# Ours is the second that was fine-tuned for Commonplace. The checksum in the full name tells builds
# apart: vectors of another one are made anew.
NAME = "all-MiniLM-L6-v2-commonplace-2-int8"
# In its vocabulary the pieces of one ASCII character stand in the order of ASCII, then the words,
# the most frequent first.
LETTERS_AND_DIGITS = frozenset([*range(1014, 1024), *range(1037, 1063)])
FREQUENT_END = 2096
# Modules of NumPy that only attach docstrings. A version without them is not affected.
_NUMPY_DOCSTRINGS = ("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars")
MODEL = "model.onnx"
VOCABULARY = "vocab.txt"


class Session(Protocol):
    """The one method of onnxruntime's session that is used."""

    def run(self, outputs: list[str], feed: dict[str, NDArray[int64]], /) -> list[Floats]: ...


class MiniLM:
    """The loaded model, in int8. A text's vector does not depend on its batch."""

    dimensions = 384

    def __init__(
        self, folder: Path, checksums: Mapping[str, str], pieces: WordPiece, session: Session
    ) -> None:
        self.name = f"{NAME}-{checksums[MODEL][:8]}"
        self._folder = folder
        self._checksums = checksums
        self._pieces = pieces
        self._session = session

    @classmethod
    def load(cls, folder: Path | None = None, *, for_one_query: bool = False) -> MiniLM:
        """Open the model in *folder*, or the package's own.

        *for_one_query* loads it about 10 ms faster, for a process that embeds one text and ends.
        """
        folder = folder or FOLDER
        checksums = read_checksums(folder, MODEL)
        pieces = WordPiece.load(folder / VOCABULARY)
        return cls(
            folder, checksums, pieces, open_session(folder / MODEL, for_one_query=for_one_query)
        )

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return one vector of length 1 for each of *texts*, in their order."""
        import numpy as np  # noqa: PLC0415  (an extra)

        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for positions, (output,) in self._runs(["embedding"], self._ids(texts)):
            vectors[positions] = output
        return vectors

    def encode_pieces(self, texts: Sequence[str]) -> list[Encoded]:
        """Return the vector of each text, and those of its word pieces that say something."""
        found: dict[int, Encoded] = {}
        ids = self._ids(texts)
        for positions, (vectors, pieces) in self._runs(["embedding", "tokens"], ids):
            for position, vector, rows in zip(positions, vectors, pieces, strict=True):
                kept = [place for place, piece in enumerate(ids[position]) if _says_much(piece)]
                found[position] = Encoded(vector, rows[kept])
        return [found[position] for position in range(len(texts))]

    def count_pieces(self, text: str) -> int:
        """Return how many word pieces of *text* say something."""
        return sum(map(_says_much, self._pieces.encode(text, PIECES_MAX)[1:-1]))

    def verify(self) -> None:
        """Compare every file with its checksum; raise `EmbedderUnavailable` if one differs."""
        import hashlib  # noqa: PLC0415  (kept out of a cold start)

        for name, checksum in self._checksums.items():
            path = self._folder / name
            if hashlib.sha256(path.read_bytes()).hexdigest() != checksum:
                raise _damaged_error(path)

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._pieces.encode(text, PIECES_MAX) for text in texts]

    def _runs(
        self, outputs: list[str], ids: Sequence[list[int]]
    ) -> Iterator[tuple[list[int], list[Floats]]]:
        """Yield the positions of texts of similar length, and the model's outputs for them."""
        found = batches([len(pieces) for pieces in ids])
        run = partial(self._run, outputs)
        together = [[ids[position] for position in positions] for positions in found]
        if len(found) == 1:
            return iter([(found[0], run(together[0]))])
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  (2 ms of a cold recall)

        # Two runs in parallel, each on one core, are faster than one run on both, whose threads
        # would wait for each other.
        with ThreadPoolExecutor(min(THREADS_MAX, os.cpu_count() or 1)) as threads:
            return zip(found, threads.map(run, together), strict=True)

    def _run(self, outputs: list[str], batch: Sequence[Sequence[int]]) -> list[Floats]:
        import numpy as np  # noqa: PLC0415  (an extra)

        ids = np.zeros((len(batch), max(map(len, batch))), np.int64)
        mask = np.zeros_like(ids)
        for row, pieces in enumerate(batch):
            ids[row, : len(pieces)] = pieces
            mask[row, : len(pieces)] = 1
        return self._session.run(outputs, {"input_ids": ids, "attention_mask": mask})


def _says_much(piece: int) -> bool:
    """Whether the word piece with this id is neither punctuation nor very frequent."""
    return piece in LETTERS_AND_DIGITS or piece >= FREQUENT_END


def batches(lengths: Sequence[int]) -> list[list[int]]:
    """Return batches of positions of texts of similar length, the longest first.

    So there is little padding, and no thread has the longest batch left at the end.
    """
    found: list[list[int]] = []
    for position in sorted(range(len(lengths)), key=lambda position: -lengths[position]):
        if found and (len(found[-1]) + 1) * lengths[found[-1][0]] <= BATCH_PIECES_MAX:
            found[-1].append(position)
        else:
            found.append([position])
    return found


def _damaged_error(path: Path) -> EmbedderUnavailable:
    return EmbedderUnavailable(f"`{path}` is missing or damaged", "install `commonplace` again")


def read_checksums(folder: Path, model: str) -> dict[str, str]:
    """Return the checksum of each file in *folder*, after checking the files' sizes.

    *model* is the graph that must be among them.
    """
    listing = folder / "checksums.txt"
    checksums = {}
    try:
        for line in listing.read_text(encoding="utf-8").splitlines():
            checksum, size_bytes, name = line.split()
            if (folder / name).stat().st_size != int(size_bytes):
                raise _damaged_error(folder / name)
            checksums[name] = checksum
    except OSError as error:
        raise _damaged_error(Path(error.filename or listing)) from error
    except ValueError as error:
        raise _damaged_error(listing) from error
    if not {model, VOCABULARY} <= checksums.keys():
        raise _damaged_error(listing)
    return checksums


def open_session(path: Path, *, for_one_query: bool) -> Session:
    """Open the graph at *path*; raise `EmbedderUnavailable` if that is not possible."""
    # Without this, importing it writes a device id below ~/.cache and looks up a telemetry host.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        # First by itself: onnxruntime would take an interrupt (Ctrl-C) in it for a missing library.
        if for_one_query:
            import_numpy_for_one_query()
        import numpy as np  # noqa: F401, PLC0415
        import onnxruntime  # noqa: PLC0415  (an extra, and 80 ms with NumPy)
        from onnxruntime.capi import onnxruntime_pybind11_state as errors  # noqa: PLC0415
    except ImportError as error:
        raise EmbedderUnavailable(
            f"no embedder: {error}", "install `numpy` and `onnxruntime`"
        ) from error
    options = onnxruntime.SessionOptions()
    # One thread embeds a short question faster than two, which wait for each other all the time.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The arena doubles the memory. So does a memory pattern: it is kept for every shape that was
    # seen, and texts have many lengths. Neither is faster here.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    # The graph in the package is optimised already.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.add_session_config_entry("session.disable_prepacking", "1" if for_one_query else "0")
    try:
        session: Session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except (
        errors.Fail,
        errors.InvalidGraph,
        errors.InvalidProtobuf,
        errors.NotImplemented,
    ) as error:
        raise EmbedderUnavailable(
            f"onnxruntime cannot load `{path}`: {error}", "it needs 1.17 or later"
        ) from error
    return session


def import_numpy_for_one_query() -> None:
    """Import NumPy in about three quarters of the usual time, for a process that ends soon.

    Its OpenBLAS would start threads that spin; elsewhere, without them, others' products would be
    slower. And two of its modules do nothing but attach docstrings, which nobody reads here.
    """
    name = "OPENBLAS_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = "1"
    empty = {one: ModuleType(one) for one in _NUMPY_DOCSTRINGS if "numpy" not in sys.modules}
    sys.modules.update(empty)
    try:
        import numpy as np  # noqa: F401, PLC0415
    finally:
        for one in empty:
            del sys.modules[one]
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
