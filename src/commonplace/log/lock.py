"""Exclusive locks on an open file, the platform's own: they end with the process that holds them.

But on Windows the data file itself is locked, not a file beside it: there is nothing to delete by mistake. What is
replaced while one waits is recognised by its inode (see `append.py`).
"""

from __future__ import annotations

import os
import sys
import time

from commonplace.errors import HomeUnusable, LogBusy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

LOCK_S_MAX = 60.0
_WAIT_S_MIN = 0.0002
_WAIT_S_MAX = 0.02

# Windows replaces no file that somebody holds open, so there the lock is a file beside the log, which stays.
BESIDE = os.name == "nt"

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def release(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
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
    """Take the lock; short naps that grow, since a blocking call could not be bounded in time."""
    try:
        if _try_lock(descriptor):
            return
        deadline = time.monotonic() + seconds_max
        wait_s = _WAIT_S_MIN
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise LogBusy(path, seconds_max)
            time.sleep(wait_s)
            wait_s = min(wait_s * 1.5, _WAIT_S_MAX)
    except OSError as error:
        raise HomeUnusable(path, f"it cannot be locked ({error.strerror})") from error


def try_acquire(descriptor: int) -> bool:
    """Take the lock if it is free; whether we have it."""
    return _try_lock(descriptor)
