"""One open file with several readers, each of which begins at the start.

The file stays the same one, even if another takes its name meanwhile.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO


class SharedFile:
    """Keeps the file open for its readers, which may be in several threads."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = Lock()

    def reader(self) -> Reader:
        return Reader(self._stream, self._lock)


class Reader:
    """Reads a shared file from its start, at a position of its own."""

    def __init__(self, stream: BinaryIO, lock: Lock) -> None:
        self._stream = stream
        self._lock = lock
        self._at = 0

    def read(self, size: int) -> bytes:
        with self._lock:
            self._stream.seek(self._at)
            found = self._stream.read(size)
        self._at += len(found)
        return found
