"""The spool: what hooks saw and nobody has taken in yet, one small file an event, in `.state/spool/` of a home.

A file appears whole or not at all, so whoever drains never meets half an event, and a hook killed at its work leaves
only a temporary file. The names sort in the order of the events, even when the clock goes backwards.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import Any

from commonplace.files import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILES_MAX = 20_000
FILE_BYTES_MAX = 256 << 10
SUFFIX = ".json"


def put(folder: Path, event: Mapping[str, Any]) -> bool:
    """Keep *event* for whoever drains next; whether there was room. Raises `OSError` where nothing can be written."""
    raw = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    if len(raw) > FILE_BYTES_MAX:
        return False
    there = waiting(folder)
    if len(there) >= FILES_MAX:
        return False
    stamp = max(time.time_ns(), int(there[-1].partition("-")[0]) + 1) if there else time.time_ns()
    name = f"{stamp:020d}-{os.getpid()}-{os.urandom(4).hex()}{SUFFIX}"
    atomic.write(folder / name, [raw], durable=False)
    return True


def waiting(folder: Path) -> list[str]:
    """The names of what waits, in the order of the events."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(
        name for name in names if name.endswith(SUFFIX) and name.partition("-")[0].isdecimal()
    )


def read(folder: Path, name: str) -> dict[str, Any] | None:
    """The event in a file; `None` if a power cut or somebody else left no whole one there."""
    try:
        with (folder / name).open("rb") as stream:
            value = json.loads(stream.read(FILE_BYTES_MAX + 1))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def remove(folder: Path, name: str) -> None:
    with suppress(OSError):
        (folder / name).unlink()


def sweep(folder: Path) -> None:
    """Remove the half-written files of hooks that were killed."""
    with suppress(OSError):
        for path in folder.iterdir():
            if atomic.is_leftover(path):
                path.unlink(missing_ok=True)
