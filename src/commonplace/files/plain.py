"""Open the files of a home: plain files of this user only, and never through a link.

Data written to a pipe would be lost, and reading one may never end. A file of another user may
change while it is read.
"""

from __future__ import annotations

import errno
import os
import stat
import sys

from commonplace.errors import HomeUnusable, unusable
from commonplace.files import nofollow

if sys.platform == "darwin":
    import fcntl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

READ_BUFFER_BYTES = 1 << 20
# A log is rotated long before it has this size; a larger file would be read for minutes.
FILE_BYTES_MAX = 1 << 30

# Owners whose files are read and written besides this user: root, who could change all files
# anyway, and the owners of homes that the user trusts.
_owners = {0}


def allow_owner(owner: int) -> None:
    _owners.add(owner)


def is_allowed_owner(owner: int) -> bool:
    return os.name != "posix" or owner in _owners or owner == os.geteuid()


def is_ours(path: Path | str) -> bool:
    """Whether there is a plain file at *path*, no link, of an owner whose files are used."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    return is_ours_by(found)


def is_ours_by(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and is_allowed_owner(found.st_uid)


def open_for_append(path: Path) -> int:
    """Return a descriptor to append to the file at *path*.

    If the file or its folder is missing, create it for its owner only.
    """
    try:
        return _open_for_append(path)
    except OSError as error:
        raise unusable(path, error) from error


def ensure(path: Path) -> None:
    """Create the file at *path* if it is missing. Raises `OSError` if it is no plain file of ours.

    For libraries that open a file by its name, and would follow a link. It may have any size: a
    database is not read as a whole.
    """
    os.close(_open_for_append(path, any_size=True))


def _open_for_append(path: Path, *, any_size: bool = False) -> int:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = nofollow.open_file(path, flags)
    except FileNotFoundError:
        make_folder(path.parent)
        descriptor = nofollow.open_file(path, flags)
    return require_plain(descriptor, path, any_size=any_size)


def open_for_read(path: Path) -> BinaryIO | None:
    """Return the file at *path*, open for reading; `None` if it does not exist."""
    try:
        return open(path, "rb", buffering=READ_BUFFER_BYTES, opener=_opener)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unusable(path, error) from error


def read_all(path: Path, bytes_max: int = FILE_BYTES_MAX) -> bytes:
    """Return all bytes of the file at *path*; none if it does not exist."""
    stream = open_for_read(path)
    if stream is None:
        return b""
    try:
        with stream:
            content = stream.read(bytes_max + 1)
    except OSError as error:
        raise unusable(path, error) from error
    if len(content) > bytes_max:
        raise HomeUnusable(path, f"it is over {bytes_max:,} bytes")
    return content


def read_start(path: Path | str, bytes_max: int) -> bytes:
    """Return the first bytes of the file at *path*. Raises `OSError`."""
    with open(path, "rb", opener=_opener) as stream:
        return stream.read(bytes_max)


def read_small(path: Path | str, bytes_max: int) -> bytes:
    """Return all bytes of the file at *path*. Raises `OSError`, also if they are too many."""
    content = read_start(path, bytes_max + 1)
    if len(content) > bytes_max:
        raise OSError(errno.EINVAL, f"it is over {bytes_max:,} bytes", str(path))
    return content


def touch(path: Path, when_s: float | None = None) -> None:
    """Create the file at *path* if it is missing, and set its time to *when_s* or now."""
    descriptor = open_for_append(path)
    try:
        os.utime(
            descriptor if os.utime in os.supports_fd else path,
            None if when_s is None else (when_s, when_s),
        )
    finally:
        os.close(descriptor)


def open_named(path: Path) -> BinaryIO | None:
    """Return a file that the user named, outside of any home; `None` if it does not exist.

    It must be a plain file, but a link to one is followed, and it may be anyone's.
    """
    try:
        return open(path, "rb", buffering=READ_BUFFER_BYTES, opener=_opener_of_named)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unusable(path, error) from error


def read_named(path: Path, bytes_max: int) -> bytes:
    """Return the bytes of a file outside of any home. Raises `OSError`, also if it is larger."""
    with open(path, "rb", opener=_opener_of_named) as stream:
        content = stream.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise OSError(errno.EINVAL, f"it is over {bytes_max:,} bytes", str(path))
    return content


def _opener(path: str, flags: int) -> int:
    # Opening a pipe would wait until another process writes to it.
    descriptor = nofollow.open_file(path, flags | getattr(os, "O_NONBLOCK", 0))
    return require_plain(descriptor, path)


def _opener_of_named(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    return _require_plain(descriptor, os.fstat(descriptor))


def require_plain(descriptor: int, path: Path | str, *, any_size: bool = False) -> int:
    """Return *descriptor* if it is of a plain file of ours; otherwise close it and raise."""
    found = os.fstat(descriptor)
    _require_plain(descriptor, found)
    if not is_allowed_owner(found.st_uid):
        os.close(descriptor)
        raise PermissionError(errno.EPERM, "it belongs to another user", str(path))
    if found.st_size > FILE_BYTES_MAX and not any_size:
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"it is over {FILE_BYTES_MAX:,} bytes", str(path))
    return descriptor


def _require_plain(descriptor: int, found: os.stat_result) -> int:
    if stat.S_ISREG(found.st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a plain file")


def make_folder(path: Path) -> None:
    """Create the folder and its missing parents, each for its owner only. Raises `OSError`."""
    nofollow.make_folder(path)


def has_odd_files(folder: Path | str) -> bool:
    """Whether *folder* holds anything, at any depth, but plain files and folders.

    Libraries that open files by name would follow a link there, or wait for a pipe.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if nofollow.is_link(entry.path):
                return True
            if entry.is_dir(follow_symlinks=False):
                if has_odd_files(entry.path):
                    return True
            elif not entry.is_file(follow_symlinks=False):
                return True
    return False


def first_existing(folder: Path) -> Path:
    """Return *folder*, or the nearest folder above it that exists."""
    return next((one for one in (folder, *folder.parents) if one.is_dir()), folder)


def is_same_file(descriptor: int, path: Path) -> bool:
    """Whether the file at *path* is still the one that is open as *descriptor*."""
    try:
        at_path = os.stat(path, follow_symlinks=False)
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
