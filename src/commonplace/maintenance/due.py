"""Whether automatic maintenance is due: at the end of a session or task, or in an idle server."""

from __future__ import annotations

import time
from contextlib import suppress

from commonplace import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from commonplace.memory import Memory
    from commonplace.where.home import Home

# Sessions can end every few seconds; a home is maintained at most once in this time.
PAUSE_S = 60.0


def is_due(memory: Memory) -> bool:
    """Whether to maintain the nearest home now: it is allowed, and some time has passed."""
    return bool(memory.settings["maintenance.background"]) and since_last(memory.home) > PAUSE_S


def since_last(home: Home) -> float:
    """Return how many seconds ago *home* was maintained last."""
    try:
        return abs(time.time() - home.maintenance_mark.stat().st_mtime)
    except OSError:
        return float("inf")


def start_if_due(memory: Memory) -> None:
    """Maintain the nearest home in a process of its own, if that is due."""
    if memory.background and memory.home.path.is_dir() and is_due(memory):
        with suppress(OSError):
            arguments = ["maintain", "--if-due", "--home", str(memory.home.path)]
            process = processes.start("commonplace", arguments, lowest_priority=True)
            process.returncode = 0  # It outlives us, and nobody waits for it.
