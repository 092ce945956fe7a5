"""Opening the memory for a command, with everything in it that hooks have captured so far."""

from __future__ import annotations

from commonplace.announce import announcement
from commonplace.cli.output import note
from commonplace.memory import Memory
from commonplace.sessions import drain_waiting


def open_memory(home: str | None) -> Memory:
    """Return the memory of *home*, else the one in use here; ingest waiting events first."""
    memory = Memory.open(home or None)
    drain_waiting(memory)
    if text := announcement(memory, "command"):
        note(f"note: {text}")
    return memory
