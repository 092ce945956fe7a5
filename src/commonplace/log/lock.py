"""Exclusive locks on an open file, the platform's own: they end with the process that holds them.

The data file itself is locked, not a file beside it: there is nothing to go stale, and nothing to delete by mistake.
What is replaced while one waits is recognised by its inode (see `append.py`).
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

if sys.platform == "win32":
    import msvcrt

    # Windows refuses reads of a locked range, so the byte that stands for the lock lies far behind the data.
    _LOCK_BYTE = 1 << 62

    def _try_lock(descriptor: int) -> bool:
        os.lseek(descriptor, _LOCK_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, _LOCK_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


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


def release(descriptor: int) -> None:
    _unlock(descriptor)
