"""The spool: events that hooks have seen and no process has applied yet.

One small file for each event, in `.state/spool/` of a home. A file appears as a whole or not at
all, so a reader never meets half an event, and a hook that is killed leaves only a temporary file.
The names sort in the order of the events, even when the clock goes backwards.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import Any

from commonplace.files import atomic
from commonplace.files.plain import make_folder, read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILES_MAX = 20_000
FILE_BYTES_MAX = 256 << 10
FAILED_MAX = 100
SUFFIX = ".json"


def add(folder: Path, event: Mapping[str, Any]) -> bool:
    """Write *event* to the spool; `False` if it or the spool is too large. Raises `OSError`."""
    raw = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    if len(raw) > FILE_BYTES_MAX:
        return False
    names = list_names(folder)
    if len(names) >= FILES_MAX:
        return False
    stamp = max(time.time_ns(), int(names[-1].partition("-")[0]) + 1) if names else time.time_ns()
    name = f"{stamp:020d}-{os.getpid()}-{os.urandom(4).hex()}{SUFFIX}"
    atomic.write(folder / name, [raw], durable=False)
    return True


def list_names(folder: Path) -> list[str]:
    """Return the names of the files in the spool, in the order of the events."""
    try:
        with os.scandir(folder) as entries:
            # A pipe would be waited for, and a folder could not be removed.
            return sorted(
                entry.name
                for entry in entries
                if entry.name.endswith(SUFFIX)
                and entry.name.partition("-")[0].isdecimal()
                and entry.is_file(follow_symlinks=False)
            )
    except OSError:
        return []


def read(folder: Path, name: str) -> dict[str, Any] | None:
    """Return the event in a file; `None` if the file is damaged."""
    try:
        value = json.loads(read_small(folder / name, FILE_BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def remove(folder: Path, name: str) -> bool:
    """Remove the file of an event; return whether it is gone."""
    try:
        (folder / name).unlink(missing_ok=True)
    except OSError:
        return False
    return True


def set_aside(folder: Path, name: str, failed: Path) -> bool:
    """Move the file of an event to the folder *failed*; return whether it is gone.

    Of the files there, the latest `FAILED_MAX` are kept.
    """
    try:
        make_folder(failed)
        atomic.rename(folder / name, failed / name)
    except OSError:
        return False
    for surplus in list_names(failed)[:-FAILED_MAX]:
        remove(failed, surplus)
    return True


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of processes that were killed."""
    with suppress(OSError):
        for path in folder.iterdir():
            if atomic.is_leftover(path):
                path.unlink(missing_ok=True)
