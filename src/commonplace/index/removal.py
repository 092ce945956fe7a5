"""Remove an index by renaming it first, so that no process ever opens part of one."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from commonplace.errors import unusable
from commonplace.files.atomic import TEMPORARY_SUFFIX
from commonplace.files.lock import hold
from commonplace.files.nofollow import is_link

if TYPE_CHECKING:
    from collections.abc import Callable

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
        for aside in folder.parent.glob(
            f"{folder.name}.*{TEMPORARY_SUFFIX}"
        ):  # Ours, and those of killed processes.
            if aside.is_dir() and not is_link(aside):
                shutil.rmtree(aside, ignore_errors=True)
            else:
                aside.unlink(missing_ok=True)
