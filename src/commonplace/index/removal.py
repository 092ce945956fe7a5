"""Remove an index by renaming it first, so that no process ever opens part of one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from commonplace.errors import unusable
from commonplace.files.atomic import TEMPORARY_SUFFIX
from commonplace.files.lock import hold
from commonplace.files.nofollow import is_link

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from commonplace.where.home import Home


def remove(home: Home, wanted: Callable[[], bool] = lambda: True) -> None:
    """Remove the index of *home*, if it is still *wanted* under the lock for opening and removing.

    Processes that have it open keep it whole.
    """
    folder = home.index_folder
    if not any(folder.parent.glob(f"{folder.name}*")):
        return  # Without an index, no lock file is created either.
    with hold(home.index_lock):
        if wanted():
            try:
                folder.rename(
                    folder.with_name(f"{folder.name}.{os.urandom(4).hex()}{TEMPORARY_SUFFIX}")
                )
            except FileNotFoundError:
                pass
            except OSError as error:
                raise unusable(folder, error) from error
        _remove_all(set_aside(home))  # Ours, and those of killed processes.


def remove_set_aside(home: Home) -> None:
    """Remove what an interrupted removal has left."""
    if set_aside(home):
        with hold(home.index_lock):
            _remove_all(set_aside(home))


def set_aside(home: Home) -> list[Path]:
    """Return the indexes that were renamed to be removed, and are not removed yet."""
    return sorted(home.index_folder.parent.glob(f"{home.index_folder.name}.*{TEMPORARY_SUFFIX}"))


def _remove_all(paths: Iterable[Path]) -> None:
    import shutil  # noqa: PLC0415  (1.4 ms of every command, for what few need)

    for path in paths:
        if path.is_dir() and not is_link(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
