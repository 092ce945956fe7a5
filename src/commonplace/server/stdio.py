"""`commonplace mcp`: the server over stdio, one process an agent. Several on one home are normal.

stdout is the protocol; nothing else may be written there. The index and the model are opened by the first call that
needs them, so that a client that only says hello does not wait.
"""

from __future__ import annotations

from commonplace.memory import Memory
from commonplace.server.build import chosen, made


def serve(home: str | None, agent: str | None, toolsets: str | None) -> None:
    """Serve until the client closes stdin."""
    with Memory.open(home, agent_id=agent) as memory:
        # The client is the user's own agent: it may do what the user may.
        made(lambda _scope="read": memory, chosen(toolsets, memory)).run("stdio")
