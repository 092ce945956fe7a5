"""Opening the memory for a command: with everything in it that hooks have captured so far."""

from __future__ import annotations

import os

from commonplace.memory import Memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def opened(home: Path | str | None) -> Memory:
    """The memory of *home*, or the one that counts here; what waits in a spool is taken in first."""
    memory = Memory.open(home)
    if any(_waits(str(each.state_folder)) for each in memory.homes):
        from commonplace.sessions import drain_waiting  # noqa: PLC0415 (most commands find nothing waiting)

        drain_waiting(memory)
    return memory


def _waits(state: str) -> bool:
    try:
        return any(name.endswith(".json") for name in os.listdir(f"{state}/spool"))
    except OSError:
        return False
