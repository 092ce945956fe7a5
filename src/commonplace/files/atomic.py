"""Atomic writes: a file is replaced as a whole, in one step, or stays as it was.

The new content is written to a temporary file beside the old one, which is then renamed. If the
process is killed before that, the old file stays, and `commonplace doctor` finds the temporary one.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import contextmanager, suppress

from commonplace.errors import unusable
from commonplace.files import nofollow
from commonplace.files.plain import make_folder, sync, sync_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import BinaryIO

TEMPORARY_SUFFIX = ".rewriting"
_REPLACE_TRIES_MAX = 50


def replace(path: Path, chunks: Iterable[bytes]) -> None:
    """Call `write`, and raise our error for an `OSError`. The caller holds the lock of a log."""
    try:
        write(path, chunks)
    except OSError as error:
        raise unusable(path, error) from error


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield the stream of `writing`, and raise our error for an `OSError`."""
    try:
        with writing(path) as stream:
            yield stream
    except OSError as error:
        raise unusable(path, error) from error


def write(path: Path, chunks: Iterable[bytes], *, mode: int = 0o600, durable: bool = True) -> None:
    """Replace the content of the file at *path* with *chunks* in one step. Raises `OSError`.

    An existing file keeps its mode, and its owner where the system allows it; a new one gets
    *mode*. With *durable*, the content is synced before the rename, so that a power cut leaves
    the old file or the new one. A link at *path*, or a folder above it that is one, is an error.
    """
    with writing(path, mode=mode, durable=durable) as stream:
        for chunk in chunks:
            stream.write(chunk)


@contextmanager
def writing(path: Path, *, mode: int = 0o600, durable: bool = True) -> Iterator[BinaryIO]:
    """Yield a stream. What is written to it replaces the file at *path*, as `write` does.

    If the block raises, the old file stays.
    """
    temporary = path.with_name(
        f".{path.name}.{os.urandom(8).hex()}.{os.getpid()}{TEMPORARY_SUFFIX}"
    )
    try:
        found = _stat(path)
        make_folder(path.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(
            nofollow.open_file(temporary, flags, found.st_mode & 0o777 if found else mode), "wb"
        ) as stream:
            yield stream
            stream.flush()
            if found is not None:
                _keep_mode_and_owner(stream.fileno(), found)
            if durable:
                sync(stream.fileno())
        rename(temporary, path)
        if durable:
            sync_folder(path.parent)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _stat(path: Path) -> os.stat_result | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode) or nofollow.is_link(path):
        # What we replace is ours: a link or a pipe was put there by somebody else.
        raise OSError(errno.EINVAL, "it is not a plain file", str(path))
    return found


def _keep_mode_and_owner(descriptor: int, found: os.stat_result) -> None:
    if os.name != "posix":
        return
    os.fchmod(descriptor, found.st_mode & 0o777)  # The umask may have cleared bits.
    if (os.geteuid(), os.getegid()) != (found.st_uid, found.st_gid):
        # Only root may change the owner; other users may only set a group they belong to.
        with suppress(PermissionError):
            os.fchown(descriptor, found.st_uid, found.st_gid)


def rename(temporary: Path, path: Path) -> None:
    """Rename *temporary* to *path*, replacing what is there in one step."""
    for attempt in range(_REPLACE_TRIES_MAX):
        try:
            os.replace(temporary, path)
        except PermissionError:
            # Windows refuses while a reader has the file open; readers are brief.
            if os.name != "nt" or attempt == _REPLACE_TRIES_MAX - 1:
                raise
            time.sleep(0.02)
        else:
            return


def temporaries_of(path: Path) -> list[Path]:
    """Return the temporary files for the content of the file at *path*."""
    path = path.resolve()
    start = f".{path.name}."
    return [
        found
        for found in path.parent.iterdir()
        if found.name.startswith(start) and found.name.endswith(TEMPORARY_SUFFIX)
    ]


def in_progress(path: Path) -> bool:
    """Whether *path* is a temporary file that a running process is about to rename."""
    return path.name.endswith(TEMPORARY_SUFFIX) and _process_lives(path)


def is_leftover(path: Path) -> bool:
    """Whether *path* is a temporary file of a process that is gone."""
    return path.name.endswith(TEMPORARY_SUFFIX) and not _process_lives(path)


def _process_lives(temporary: Path) -> bool:
    pid = temporary.name.removesuffix(TEMPORARY_SUFFIX).rpartition(".")[2]
    try:
        if os.name == "nt":
            # Windows refuses to rename an open file; there `os.kill` would end the process.
            temporary.rename(temporary)
            return False
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except (ValueError, OverflowError, OSError):
        return False
    return True
