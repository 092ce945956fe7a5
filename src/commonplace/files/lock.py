"""Exclusive locks on an open file, the platform's own: they end with the process that holds them.

Except on Windows, the data file itself is locked, not a file beside it: there is nothing to delete by mistake. A file
that was replaced while we waited is recognised by its inode.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager

from commonplace.errors import HomeUnusable, LogBusy
from commonplace.files.plain import open_for_append, same_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK_S_MAX = 60.0
_WAIT_S_MIN = 0.0002
_WAIT_S_MAX = 0.02

# Windows does not replace a file that a process has open, so there the lock is a file beside it, which stays.
BESIDE = os.name == "nt"

if sys.platform == "win32":
    import msvcrt

    def try_acquire(descriptor: int) -> bool:
        """Take the lock if it is free; return whether we have it."""
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def release(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def try_acquire(descriptor: int) -> bool:
        """Take the lock if it is free; return whether we have it."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(descriptor: int) -> None:
        """Give the lock up; closing the file does as well."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def file_for(path: Path) -> Path:
    """The file whose lock stands for the file at *path*."""
    return path.with_name(f".{path.name}.lock") if BESIDE else path


def acquire(descriptor: int, path: Path, seconds_max: float = LOCK_S_MAX) -> None:
    """Take the lock. It is polled with growing pauses, since a blocking call could not be bounded in time."""
    try:
        if try_acquire(descriptor):
            return
        deadline = time.monotonic() + seconds_max
        wait_s = _WAIT_S_MIN
        while not try_acquire(descriptor):
            if time.monotonic() > deadline:
                raise LogBusy(path, seconds_max)
            time.sleep(wait_s)
            wait_s = min(wait_s * 1.5, _WAIT_S_MAX)
    except OSError as error:
        raise HomeUnusable(path, f"it cannot be locked ({error.strerror})") from error


@contextmanager
def hold(path: Path, wait_s_max: float = LOCK_S_MAX) -> Iterator[None]:
    """Hold the file at *path* alone: meanwhile no other process appends to it or replaces it."""
    locked = file_for(path)
    while True:
        descriptor = open_for_append(locked)
        try:
            acquire(descriptor, path, wait_s_max)
            if same_file(descriptor, locked):
                yield
                return
        finally:
            os.close(descriptor)  # Closing ends the lock too.


@contextmanager
def try_hold(path: Path) -> Iterator[bool]:
    """Hold the file at *path* if no other process does; yields whether we do."""
    descriptor = open_for_append(path)
    try:
        yield try_acquire(descriptor)
    finally:
        os.close(descriptor)
