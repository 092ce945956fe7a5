"""Append whole lines to one log file while other processes append to it or replace it."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager, suppress

from commonplace.errors import unusable
from commonplace.files import lock
from commonplace.files.plain import is_same_file, open_for_append, open_for_read, sync

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

CHUNK_BYTES = 1 << 20


class Appender:
    """One log file, open for appending. Threads may share it; a forked child opens it again."""

    def __init__(self, path: Path, *, fsync: str, wait_s_max: float = lock.LOCK_S_MAX) -> None:
        self.path = path
        self.fsync = fsync
        self.wait_s_max = wait_s_max
        self._descriptor = -1
        self._pid = 0
        self._unsynced = False
        self._threads = threading.Lock()

    def append(self, line: bytes) -> None:
        """Append one line with its newline. When this returns, the system has the line."""
        assert line.endswith(b"\n"), "a line ends with a newline"
        self.append_many([line])

    def append_many(self, lines: Iterable[bytes]) -> None:
        """Append *lines*, all or none, under one lock. Each write has whole lines, about 1 MiB."""
        with self.hold() as write:
            write(lines)

    @contextmanager
    def hold(self) -> Iterator[Callable[[Iterable[bytes]], None]]:
        """Hold the lock and yield the function that appends lines, all or none.

        For a line that depends on the lines before it: nobody else writes meanwhile.
        """
        with self._threads:
            if lock.BESIDE:
                # Windows: the log is open only while the lock is held, so that other processes can
                # replace it.
                with lock.hold(self.path, self.wait_s_max):
                    self._open()
                    try:
                        yield self._write
                    finally:
                        self._close()
                return
            descriptor = self._locked_descriptor()
            try:
                yield self._write
            finally:
                lock.release(descriptor)

    def flush(self) -> None:
        """Sync the appended lines to the disk, unless `fsync` is `never`."""
        with self._threads:
            if (
                self._unsynced
                and self.fsync != "never"
                and self._descriptor >= 0
                and self._pid == os.getpid()
            ):
                try:
                    sync(self._descriptor)
                except OSError as error:
                    raise unusable(self.path, error) from error
            self._unsynced = False

    def close(self) -> None:
        try:
            self.flush()
        finally:
            with self._threads:
                self._close()

    def _locked_descriptor(self) -> int:
        """Return a locked descriptor of the file that is at the path now.

        Another process may have replaced the file (rotation, `git merge`) since it was opened or
        while we waited for the lock. A line written to the old file would be lost.
        """
        while True:
            if self._descriptor < 0 or self._pid != os.getpid():
                self._open()
            lock.acquire(self._descriptor, self.path, self.wait_s_max)
            if is_same_file(self._descriptor, self.path):
                return self._descriptor
            lock.release(self._descriptor)
            self._close()

    def _open(self) -> None:
        # A descriptor inherited through a fork shares its lock with the parent, so it is not used.
        self._descriptor, self._pid = open_for_append(self.path), os.getpid()

    def _close(self) -> None:
        if self._descriptor >= 0 and self._pid == os.getpid():
            os.close(self._descriptor)
        self._descriptor = -1

    def _write(self, lines: Iterable[bytes]) -> None:
        descriptor = self._descriptor
        size = os.fstat(descriptor).st_size
        try:
            # If a writer died in the middle of a line, end that line first.
            missing_end = b"\n" if size and _last_byte(descriptor, size) != b"\n" else b""
            for chunk in _chunks(lines):
                _write_all(descriptor, missing_end + chunk)
                missing_end = b""
            if self.fsync == "always" or (lock.BESIDE and self.fsync == "batch"):
                sync(descriptor)
        except OSError as error:
            # We hold the lock, so all bytes after `size` are ours: remove them.
            with suppress(OSError):
                os.ftruncate(descriptor, size)
            raise unusable(self.path, error) from error
        self._unsynced = self.fsync == "batch"


def append_once(path: Path, lines: Iterable[bytes]) -> None:
    """Append *lines*, which can be read several times, unless the file ends with exactly these.

    Then a process appended them and was killed before it finished its work. Only the end of the
    file is compared: the same line may be elsewhere when a record returned to an older version.
    """
    if not _ends_with(path, lines):
        appender = Appender(path, fsync="always")
        appender.append_many(lines)
        appender.close()


def _ends_with(path: Path, lines: Iterable[bytes]) -> bool:
    """Whether the file ends with *lines*, as whole lines."""
    stream = open_for_read(path)
    if stream is None:
        return not any(lines)
    try:
        with stream:
            start = stream.seek(0, os.SEEK_END) - sum(map(len, lines))
            if start < 0:
                return False
            stream.seek(max(0, start - 1))
            if start and stream.read(1) != b"\n":
                return False
            return all(stream.read(len(line)) == line for line in lines)
    except OSError as error:
        raise unusable(path, error) from error


def _last_byte(descriptor: int, size: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, 1, size - 1)
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return os.read(descriptor, 1)


def _write_all(descriptor: int, data: bytes) -> None:
    written = os.write(descriptor, data)
    while written < len(data):
        # After a short write, mostly on a full disk, the next write raises the error.
        written += os.write(descriptor, data[written:])


def _chunks(lines: Iterable[bytes]) -> Iterable[bytes]:
    held: list[bytes] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= CHUNK_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
