"""Replacing a whole file without losing a line to a writer that is appending at that moment.

Whoever rewrites holds the file's lock, writes a new file beside it and puts it in its place in one step. Appenders
that waited find another inode at the path and open that one. Killed half-way, the old file is still there.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import contextmanager, suppress

from commonplace.errors import unusable
from commonplace.log import lock, read
from commonplace.log.append import Appender, held, make_folder, open_for_append, sync

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

TEMPORARY_SUFFIX = ".rewriting"
_REPLACE_TRIES_MAX = 50


@contextmanager
def tried(path: Path) -> Iterator[bool]:
    """Hold the file at *path* if nobody else does; whether we do."""
    descriptor = open_for_append(path)
    try:
        yield lock.try_acquire(descriptor)
    finally:
        os.close(descriptor)


def replace(path: Path, chunks: Iterable[bytes]) -> None:
    """Put *chunks* in the place of the file at *path*, whole or not at all. A log must be `held` by the caller."""
    path = path.resolve()  # A link stays one: what it leads to is replaced.
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    try:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        make_folder(path.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(temporary, flags, mode), "wb") as stream:
            for chunk in chunks:
                stream.write(chunk)
            stream.flush()
            sync(stream.fileno())
        swap(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise unusable(path, error) from error


def index_lock(home: Path) -> Path:
    """The file that is held by whoever opens or removes the index of *home*."""
    return home / ".state" / "index.lock"


def remove_index(home: Path, wanted: Callable[[], bool] = lambda: True) -> None:
    """Remove the index of *home*, if that is still *wanted* once nobody else is opening or removing it.

    It goes out of the way in one step, so that those who have it open keep it whole and nobody opens half of it.
    """
    folder = home / ".index"
    if not any(home.glob(f"{folder.name}*")):
        return  # Nor is a lock left where there was nothing to remove.
    with held(index_lock(home)):
        if wanted():
            try:
                folder.rename(folder.with_name(f"{folder.name}.{os.urandom(4).hex()}{TEMPORARY_SUFFIX}"))
            except FileNotFoundError:
                pass
            except OSError as error:
                raise unusable(folder, error) from error
        for aside in home.glob(f"{folder.name}.*{TEMPORARY_SUFFIX}"):  # Ours, and what a killed process left.
            if aside.is_dir():
                shutil.rmtree(aside, ignore_errors=True)
            else:
                aside.unlink(missing_ok=True)


def append_once(path: Path, lines: list[bytes]) -> None:
    """Append *lines*, unless the file ends with just these: then a killed move brought them there already.

    A line that is merely somewhere in the file is no such sign: a record may come back to what it said before.
    """
    if not (b"\n" + read.content(path)).endswith(b"\n" + b"".join(lines)):
        appender = Appender(path, fsync="always")
        appender.append_many(lines)
        appender.close()


def in_progress(path: Path) -> bool:
    """Whether *path* is what another process is about to put in a file's place."""
    return path.name.endswith(TEMPORARY_SUFFIX) and _process_lives(path)


def _process_lives(temporary: Path) -> bool:
    pid = temporary.name.removesuffix(TEMPORARY_SUFFIX).rpartition(".")[2]
    try:
        if os.name == "nt":
            temporary.rename(temporary)  # Refused while somebody has it open; a signal 0 would end the process.
            return False
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except (ValueError, OverflowError, OSError):
        return False
    return True


def swap(temporary: Path, path: Path) -> None:
    for attempt in range(_REPLACE_TRIES_MAX):
        try:
            os.replace(temporary, path)
        except PermissionError:
            # Windows, while a reader has the file open; readers are brief.
            if os.name != "nt" or attempt == _REPLACE_TRIES_MAX - 1:
                raise
            time.sleep(0.02)
        else:
            return


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut as well (a folder cannot be opened so on Windows)."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
