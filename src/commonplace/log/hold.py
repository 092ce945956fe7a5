"""Hold the locks of all logs of a home at once, to read or replace its files together."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from commonplace.files.lock import BESIDE, acquire, hold
from commonplace.files.plain import is_ours, is_same_file, open_for_read
from commonplace.log.logs import log_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from commonplace.where.home import Home


@contextmanager
def hold_logs(home: Home) -> Iterator[list[Path]]:
    """Hold the locks of all logs, archives and aliases, and yield them; a missing one is not made.

    While a lock is waited for, another process may rename a log: then all are listed again.
    """
    while True:
        with ExitStack() as locks:
            paths = _paths(home)
            if all(_hold(path, locks) for path in paths) and _paths(home) == paths:
                yield paths
                return


def _paths(home: Home) -> list[Path]:
    # Every process that takes two of these locks takes that of the log before that of the archive.
    return [*log_files(home), *([home.repos_file] if is_ours(home.repos_file) else [])]


def _hold(path: Path, locks: ExitStack) -> bool:
    """Take the lock of the file at *path* and return whether the file is still there."""
    if BESIDE:
        locks.enter_context(hold(path))
        return path.exists()
    stream = open_for_read(path)
    if stream is None:
        return False
    locks.enter_context(stream)  # Closing it also releases the lock.
    acquire(stream.fileno(), path)
    return is_same_file(stream.fileno(), path)
