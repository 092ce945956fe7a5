"""The tar archive inside a pack: three plain files in a fixed order, and nothing else.

Each header has exactly the bytes that `header` makes. So there is nothing to interpret: no link, no
device, no path, no extension of the format, and no second way to write the same archive.
"""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

from commonplace.errors import PackRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

MANIFEST, SIGNATURE, NODES = "pack.json", "pack.sig", "nodes.jsonl"
_BLOCK = 512
END = bytes(2 * _BLOCK)
_SIZE = slice(124, 136)
_KINDS = {
    tarfile.LNKTYPE: "a link",
    tarfile.SYMTYPE: "a link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
    tarfile.DIRTYPE: "a folder",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
    tarfile.XHDTYPE: "an extended header",
    tarfile.XGLTYPE: "an extended header",
    tarfile.GNUTYPE_LONGNAME: "an extended header",
    tarfile.GNUTYPE_LONGLINK: "an extended header",
}


def header(name: str, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member.tobuf(tarfile.USTAR_FORMAT)


def padding(size: int) -> bytes:
    """Return the zeros that follow a file of *size* bytes."""
    return bytes(-size % _BLOCK)


class Reader:
    """Reads an archive from its pieces, in order. Raises `PackRefused` for anything unexpected."""

    def __init__(self, pack: str, pieces: Iterator[bytes]) -> None:
        self._pack = pack
        self._pieces = pieces
        self._rest = b""

    def begin(self, name: str, bytes_max: int) -> int:
        """Read the header of the file *name*, and return the size of its content."""
        raw = b"".join(self._read(_BLOCK, name))
        size = _octal(raw[_SIZE])
        if size is None or raw != header(name, size):
            raise PackRefused(self._pack, _describe(raw, name))
        if size > bytes_max:
            raise PackRefused(self._pack, f"has a `{name}` of over {bytes_max:,} bytes")
        return size

    def content(self, name: str, size: int) -> Iterator[bytes]:
        """Yield the content of the file *name*, and read the zeros after it."""
        yield from self._read(size, name)
        zeros = padding(size)
        if b"".join(self._read(len(zeros), name)) != zeros:
            raise PackRefused(self._pack, f"has other bytes than zeros after `{name}`")

    def small(self, name: str, bytes_max: int) -> bytes:
        """Return the whole content of the file *name*, which comes next."""
        return b"".join(self.content(name, self.begin(name, bytes_max)))

    def end(self) -> None:
        """Read the end of the archive. Raises if there is more."""
        raw = b"".join(self._read(len(END), "the end"))
        if raw != END:
            raise PackRefused(self._pack, _describe(raw[:_BLOCK], "the end"))
        if self._rest or any(self._pieces):
            raise PackRefused(self._pack, "has more bytes after its end")

    def _read(self, size: int, name: str) -> Iterator[bytes]:
        while size > 0:
            piece = self._rest or next(self._pieces, b"")
            if not piece:
                raise PackRefused(self._pack, f"is cut off in `{name}`")
            self._rest = piece[size:]
            piece = piece[:size]
            size -= len(piece)
            yield piece


def _octal(raw: bytes) -> int | None:
    """Return the number in a field of a header; `None` if it is written in another way."""
    digits = raw[:-1]
    return int(digits, 8) if raw[-1:] == b"\0" and not digits.strip(b"01234567") else None


def _describe(raw: bytes, expected: str) -> str:
    """Return what is wrong with a header."""
    try:
        found = tarfile.TarInfo.frombuf(raw, "ascii", "backslashreplace")
    except (tarfile.HeaderError, ValueError, OverflowError):
        return f"has no valid header of tar where `{expected}` must be"
    name = ascii(found.name)[1:-1][:80]
    if kind := _KINDS.get(found.type):
        return f"holds `{name}`, which is {kind}"
    if name != expected:
        return f"holds `{name}` where `{expected}` must be"
    return f"has a header of `{name}` that is not written as packs write it"
