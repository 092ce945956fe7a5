"""Removing an index: it is moved out of the way in one step, so that no process ever opens half of one."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from commonplace.errors import unusable
from commonplace.files.atomic import TEMPORARY_SUFFIX
from commonplace.files.lock import hold

if TYPE_CHECKING:
    from collections.abc import Callable

    from commonplace.where.home import Home


def remove(home: Home, wanted: Callable[[], bool] = lambda: True) -> None:
    """Remove the index of *home*, if that is still *wanted* once no other process is opening or removing it.

    Processes that have it open keep it whole.
    """
    folder = home.index_folder
    if not any(home.path.glob(f"{folder.name}*")):
        return  # Nor is a lock left where there was nothing to remove.
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
        for aside in home.path.glob(
            f"{folder.name}.*{TEMPORARY_SUFFIX}"
        ):  # Ours, and what a killed process left.
            if aside.is_dir():
                shutil.rmtree(aside, ignore_errors=True)
            else:
                aside.unlink(missing_ok=True)
