"""Open files without following a symbolic link in any part of the path.

A home may have come with a repository, and git checks out links: `log/app.jsonl` could point to
`~/.bashrc`. The path of a home is resolved when it is found (`where/homes.py`), so no part of a
path in it is a link unless somebody put one there. Windows: no part may be a reparse point.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

_FOLDERS_MAX = 1000
# macOS refuses a link in any part of the path by itself.
_WHOLE_PATH = getattr(os, "O_NOFOLLOW_ANY", 0)
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# With O_PATH, a folder need not be readable to pass through it.
_FOLDER_FLAGS = _FLAGS | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", os.O_RDONLY)
# Device and inode of folders whose paths were found to have no link: they are opened in one step.
_checked: dict[str, tuple[int, int]] = {}


def open_file(path: Path | str, flags: int, mode: int = 0o600) -> int:
    """Open a file as `os.open` does. Raises `OSError` with ELOOP if part of its path is a link."""
    path = os.path.abspath(path)
    flags |= _FLAGS
    if os.name != "posix":
        _refuse_reparse_points(path)
        return os.open(path, flags, mode)
    if _WHOLE_PATH:
        return os.open(path, flags | _WHOLE_PATH, mode)
    folder, name = os.path.split(path)
    descriptor = open_folder(folder)
    try:
        return os.open(name, flags | os.O_NOFOLLOW, mode, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def open_folder(path: Path | str) -> int:
    """Open a folder (POSIX), for use as `dir_fd`. Raises `OSError` as `open_file` does."""
    path = os.path.abspath(path)
    if _WHOLE_PATH:
        return os.open(path, _FOLDER_FLAGS | _WHOLE_PATH)
    descriptor = os.open(path, _FOLDER_FLAGS)
    if _checked.get(path) == _identity(descriptor):
        return descriptor
    os.close(descriptor)
    descriptor = _walk(path)
    if len(_checked) >= _FOLDERS_MAX:
        _checked.clear()
    _checked[path] = _identity(descriptor)
    return descriptor


def _walk(path: str) -> int:
    descriptor = os.open(os.sep, _FOLDER_FLAGS)
    for part in path.split(os.sep):
        if not part:
            continue
        try:
            below = os.open(part, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=descriptor)
        except OSError:
            if _is_link(part, descriptor):
                raise _link_error(path) from None
            raise
        finally:
            os.close(descriptor)
        descriptor = below
    return descriptor


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _link_error(path: str) -> OSError:
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def make_folder(path: Path | str) -> None:
    """Create the folder and its missing parents, each for its owner only. No link is followed."""
    path = os.path.abspath(path)
    if os.name != "posix":
        _refuse_reparse_points(path)
        os.makedirs(path, 0o700, exist_ok=True)
        return
    try:
        os.close(open_folder(path))
    except FileNotFoundError:
        above, name = os.path.split(path)
        make_folder(above)
        descriptor = open_folder(above)
        try:
            os.mkdir(name, 0o700, dir_fd=descriptor)
        except FileExistsError:
            pass  # Another process created it at the same time.
        finally:
            os.close(descriptor)
        os.close(open_folder(path))


def is_link(path: Path | str) -> bool:
    """Whether *path* itself is a link, or on Windows another reparse point such as a junction."""
    try:
        return _is_reparse_point(os.lstat(path))
    except OSError:
        return False


def _is_reparse_point(found: os.stat_result) -> bool:
    reparse = getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0)
    return stat.S_ISLNK(found.st_mode) or bool(getattr(found, "st_file_attributes", 0) & reparse)


def _refuse_reparse_points(path: str) -> None:
    """Windows: raise if the last part of *path*, or the folder that holds it, is a reparse point.

    The folders above may be ones: OneDrive makes them.
    """
    for part in (path, os.path.dirname(path)):
        if is_link(part):
            raise _link_error(path)
