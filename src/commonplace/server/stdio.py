"""`commonplace mcp`: the server over stdio, one process for each agent.

Several processes on one home are normal.

stdout carries the protocol; nothing else may be written there. The first call that needs the index
and the model opens them, so that a client that only initializes does not wait.
"""

from __future__ import annotations

import os
import sys
import time

from commonplace.memory import Memory
from commonplace.server.build import build_server, choose_toolsets
from commonplace.server.idle import IdleMaintenance
from commonplace.sessions import drain_waiting


def serve(home: str | None, agent: str | None, toolsets: str | None) -> None:
    """Serve until the client closes stdin, or no longer reads."""
    last_used = time.monotonic()
    with Memory.open(home, agent_id=agent) as memory:

        def open_memory(_scope: str = "read") -> Memory:
            # The client is the user's own agent: it may do everything, and its hooks' events are
            # ingested first.
            nonlocal last_used
            last_used = time.monotonic()
            memory.check_homes()
            drain_waiting(memory)
            return memory.beside()

        server = build_server(
            open_memory,
            choose_toolsets(toolsets, memory),
            dotted_names=memory.settings["tools.dotted_names"],
        )
        maintenance = IdleMaintenance(memory, lambda: time.monotonic() - last_used)
        try:
            server.run("stdio")
        except* BrokenPipeError:
            # The client hung up during a call. Without this, Python would report the error again
            # when it closes stdout.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        finally:
            maintenance.close()
