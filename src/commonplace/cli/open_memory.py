"""Opening the memory for a command, with everything in it that hooks have captured so far."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from commonplace.memory import Memory

if TYPE_CHECKING:
    from pathlib import Path


def open_memory(home: str | None) -> Memory:
    """Return the memory of *home*, else the one in use here; ingest waiting events first."""
    memory = Memory.open(home or None)
    if any(_has_events(each.spool_folder) for each in memory.homes):
        from commonplace.sessions import drain_waiting  # noqa: PLC0415 (the spool is mostly empty)

        drain_waiting(memory)
    return memory


def _has_events(spool_folder: Path) -> bool:
    try:
        return any(name.endswith(".json") for name in os.listdir(spool_folder))
    except OSError:
        return False
