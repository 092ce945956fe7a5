"""Exclusive locks of the operating system on an open file. They end with the process.

Except on Windows, the data file itself is locked, so there is no lock file to delete by mistake.
After waiting, the inode shows whether the file was replaced meanwhile.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager

from commonplace.errors import HomeUnusable, LogBusy
from commonplace.files.plain import is_same_file, open_for_append

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK_S_MAX = 60.0
_WAIT_S_MIN = 0.0002
_WAIT_S_MAX = 0.02

# Windows cannot replace a file that a process has open, so there the lock is a file beside it.
BESIDE = os.name == "nt"

if sys.platform == "win32":
    import msvcrt

    def try_acquire(descriptor: int) -> bool:
        """Take the lock if it is free; return whether we hold it."""
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
        """Take the lock if it is free; return whether we hold it."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(descriptor: int) -> None:
        """Release the lock; closing the file does so, too."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def lock_file(path: Path) -> Path:
    """Return the file to lock for access to the file at *path*."""
    return path.with_name(f".{path.name}.lock") if BESIDE else path


def acquire(descriptor: int, path: Path, seconds_max: float = LOCK_S_MAX) -> None:
    """Take the lock. Raises `LogBusy` after *seconds_max*.

    It polls with growing pauses, because the blocking call has no time limit.
    """
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
    """Hold the lock of the file at *path*: no other process appends to it or replaces it."""
    locked = lock_file(path)
    while True:
        descriptor = open_for_append(locked)
        try:
            acquire(descriptor, path, wait_s_max)
            if is_same_file(descriptor, locked):
                yield
                return
        finally:
            os.close(descriptor)  # Closing also releases the lock.


@contextmanager
def try_hold(path: Path) -> Iterator[bool]:
    """Hold the lock of the file at *path* if it is free; yield whether we hold it."""
    descriptor = open_for_append(path)
    try:
        yield try_acquire(descriptor)
    finally:
        os.close(descriptor)
