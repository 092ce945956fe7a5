"""Compress with zstd, and decompress with bounded memory.

A hash of the compressed bytes follows them, in a frame that other programs skip: zstd itself would
not notice a change of every bit.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from commonplace.errors import PackRefused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BEGINNING = b"\x28\xb5\x2f\xfd"
# A skippable frame of zstd: its number, and the length of what it holds.
_HASH_FRAME = b"\x50\x2a\x4d\x18" + (32).to_bytes(4, "little")
_HASH_FRAME_BYTES = len(_HASH_FRAME) + 32
_LEVEL = 6
_WINDOW_LOG = 22
# Others may compress with a larger window. Reading takes as much memory: 8 MiB.
_WINDOW_LOG_MAX = 23
_PIECE_BYTES = 1 << 20
# Text rarely shrinks to a tenth. What shrinks to a five hundredth was made to fill memory or time.
_RATIO_MAX = 500
_BYTES_ALWAYS_ALLOWED = 64 << 20


def is_too_dense(bytes_plain: int, bytes_compressed: int) -> bool:
    """Whether so much may not come out of so few bytes."""
    return bytes_plain > _BYTES_ALWAYS_ALLOWED + _RATIO_MAX * bytes_compressed


def compress(pack: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield *pieces* compressed as one frame, and the frame with the hash."""
    zstd = _zstd()
    parameter = zstd.CompressionParameter
    coder = zstd.ZstdCompressor(
        options={
            parameter.compression_level: _LEVEL,
            parameter.window_log: _WINDOW_LOG,
            parameter.checksum_flag: 1,
        }
    )
    digest = sha256()
    plain = compressed = 0
    for piece in pieces:
        plain += len(piece)
        if coded := coder.compress(piece):
            compressed += len(coded)
            digest.update(coded)
            yield coded
    coded = coder.flush()
    digest.update(coded)
    if is_too_dense(plain, compressed + len(coded)):
        raise PackRefused(
            pack, "would be too dense: almost all of it is the same text", "select less"
        )
    yield coded
    yield _HASH_FRAME + digest.digest()


def decompress(pack: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what `compress` was given. Raises `PackRefused` if the bytes are others."""
    zstd = _zstd()
    decoder = zstd.ZstdDecompressor(
        options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG_MAX}
    )
    digest = sha256()
    made = taken = 0
    after = b""
    for piece in pieces:
        if decoder.eof:
            after += piece
            if len(after) > _HASH_FRAME_BYTES:
                break
            continue
        taken += len(piece)
        for plain in _decode(pack, zstd, decoder, piece):
            made += len(plain)
            if is_too_dense(made, taken):
                raise PackRefused(pack, f"is too dense: {taken:,} bytes become over {made:,}")
            yield plain
        after = decoder.unused_data if decoder.eof else b""
        digest.update(piece[: len(piece) - len(after)])
    if not decoder.eof or len(after) < _HASH_FRAME_BYTES:
        raise PackRefused(pack, "is cut off")
    if len(after) > _HASH_FRAME_BYTES:
        raise PackRefused(pack, "has more bytes after its end")
    if after != _HASH_FRAME + digest.digest():
        raise PackRefused(pack, "is damaged: its bytes do not have the hash at its end")


def _decode(pack: str, zstd: Any, decoder: Any, piece: bytes) -> Iterator[bytes]:  # noqa: ANN401
    """Yield what *piece* becomes, never much at a time."""
    while True:
        try:
            plain = decoder.decompress(piece, _PIECE_BYTES)
        except zstd.ZstdError:
            raise PackRefused(pack, "is damaged: it cannot be decompressed") from None
        if plain:
            yield plain
        if decoder.eof or decoder.needs_input:
            return
        piece = b""


def _zstd() -> Any:  # noqa: ANN401 (one module or the other)
    # Loaded when it is needed: most commands never read a pack.
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415
    else:
        from backports import zstd  # noqa: PLC0415
    return zstd
