"""Open plain files only. Data written to a pipe would be lost, and reading one may never end."""

from __future__ import annotations

import os
import stat
import sys

from commonplace.errors import HomeUnusable, unusable

if sys.platform == "darwin":
    import fcntl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

READ_BUFFER_BYTES = 1 << 20


def open_for_append(path: Path) -> int:
    """Return a descriptor to append to the file at *path*.

    If the file or its folder is missing, create it for its owner only.
    """
    flags = (
        os.O_RDWR
        | os.O_APPEND
        | os.O_CREAT
        | getattr(os, "O_CLOEXEC", 0)
        | getattr(os, "O_BINARY", 0)
    )
    try:
        try:
            descriptor = os.open(path, flags, 0o600)
        except FileNotFoundError:
            make_folder(path.parent)
            descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise unusable(path, error) from error
    return require_plain(descriptor, path)


def open_for_read(path: Path) -> BinaryIO | None:
    """Return the file at *path*, open for reading; `None` if it does not exist."""
    try:
        return open(path, "rb", buffering=READ_BUFFER_BYTES, opener=_opener)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unusable(path, error) from error


def read_all(path: Path) -> bytes:
    """Return all bytes of the file at *path*; none if it does not exist."""
    stream = open_for_read(path)
    if stream is None:
        return b""
    try:
        with stream:
            return stream.read()
    except OSError as error:
        raise unusable(path, error) from error


def _opener(path: str, flags: int) -> int:
    # Opening a pipe would wait until another process writes to it.
    return require_plain(os.open(path, flags | getattr(os, "O_NONBLOCK", 0)), path)


def require_plain(descriptor: int, path: Path | str) -> int:
    """Return *descriptor* if it is of a plain file; otherwise close it and raise `HomeUnusable`."""
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise HomeUnusable(path, "it is not a plain file")


def make_folder(path: Path) -> None:
    """Create the folder and its missing parents, each for its owner only.

    `os.makedirs` applies its mode only to the last of them.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.is_dir()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)


def is_same_file(descriptor: int, path: Path) -> bool:
    """Whether the file at *path* is still the one that is open as *descriptor*."""
    try:
        at_path = os.stat(path)
    except OSError:
        return False  # Opening it again raises the error.
    opened = os.fstat(descriptor)
    return (at_path.st_ino, at_path.st_dev) == (opened.st_ino, opened.st_dev)


def sync(descriptor: int) -> None:
    """Write the file's data to the disk itself."""
    if sys.platform == "darwin":
        # On macOS fsync leaves the data in the drive's cache. F_FULLFSYNC does not, but not every
        # file system supports it.
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError:
            os.fsync(descriptor)
    elif sys.platform == "win32":
        os.fsync(descriptor)
    else:
        os.fdatasync(descriptor)


def sync_folder(folder: Path) -> None:
    """Sync the names in *folder*, so that a rename survives a power cut (not on Windows)."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
