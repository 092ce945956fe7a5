"""Whether automatic maintenance is due: at the end of a session or task, or in an idle server."""

from __future__ import annotations

import math
import os
import time
from contextlib import suppress

from commonplace import processes
from commonplace.files.plain import make_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from commonplace.memory import Memory
    from commonplace.where.home import Home

# Sessions can end every few seconds; a home is maintained at most once in this time.
PAUSE_S = 60.0
# What is recorded within this time is learned from together.
SETTLE_S = 2.0


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
    """Maintain the nearest home in a process of its own, when that is due.

    It waits a little, for tasks are often recorded one after another, and until some time has
    passed since the last run. While one waits, no other is started.
    """
    home = memory.home
    if not (memory.background and home.path.is_dir() and memory.settings["maintenance.background"]):
        return
    wait_s = max(SETTLE_S, PAUSE_S + 1 - since_last(home))
    with suppress(OSError):
        if 0 < home.maintenance_planned.stat().st_mtime - time.time() <= PAUSE_S + 1:
            return
    with suppress(OSError):
        make_folder(home.state_folder)
        home.maintenance_planned.touch(mode=0o600)
        os.utime(home.maintenance_planned, (time.time() + wait_s,) * 2)
    with suppress(OSError):
        options = ["--if-due", "--wait", str(math.ceil(wait_s)), "--home", str(home.path)]
        process = processes.start("commonplace", ["maintain", *options], lowest_priority=True)
        process.returncode = 0  # It outlives us, and nobody waits for it.
