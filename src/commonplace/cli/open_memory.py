"""Opening the memory for a command, with everything in it that hooks have captured so far."""

from __future__ import annotations

from commonplace.announce import announcement
from commonplace.cli.output import note
from commonplace.memory import Memory
from commonplace.sessions import drain_waiting
from commonplace.where import homes


def open_memory(home: str | None, *, to_write: bool = False) -> Memory:
    """Return the memory of *home*, else the one in use here; ingest waiting events first.

    A home that was named and does not exist is an error, unless it is opened *to_write*.
    """
    memory = Memory.open(home or None)
    if not to_write:
        homes.check_exists(memory.home)
    drain_waiting(memory)
    if text := announcement(memory, "command"):
        note(f"note: {text}")
    return memory
