"""`commonplace mcp`: the server over stdio, one process an agent. Several on one home are normal.

stdout is the protocol; nothing else may be written there. The index and the model are opened by the first call that
needs them, so that a client that only says hello does not wait.
"""

from __future__ import annotations

import os
import sys
import time

from commonplace.memory import Memory
from commonplace.server.build import chosen, made
from commonplace.server.idle import IdleMaintenance
from commonplace.sessions import drain_waiting


def serve(home: str | None, agent: str | None, toolsets: str | None) -> None:
    """Serve until the client closes stdin, or no longer reads."""
    last_used = time.monotonic()
    with Memory.open(home, agent_id=agent) as memory:

        def opened(_scope: str = "read") -> Memory:
            # The client is the user's own agent: it may do what the user may, and sees what its hooks just saw.
            nonlocal last_used
            last_used = time.monotonic()
            memory.check_homes()
            drain_waiting(memory)
            return memory

        server = made(opened, chosen(toolsets, memory))
        maintenance = IdleMaintenance(memory, lambda: time.monotonic() - last_used)
        try:
            server.run("stdio")
        except* BrokenPipeError:
            # It hung up in the middle of a call. Python would complain once more when it closes the stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        finally:
            maintenance.close()
