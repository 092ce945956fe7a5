"""The memory of an agent, on the agent's side, with any MCP server that has the seven tools.

    from commonplace.client import McpServer, MemoryOrchestrator

    server = McpServer.stdio("commonplace", "mcp", "--toolsets", "kom")
    async with MemoryOrchestrator(server) as memory:
        frames = await memory.build_context("…", {"id": "task-7", "tags": ["cpp"]}, 2000)

Importing this package imports nothing else: each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commonplace.client.adapter import KomServerAdapter
    from commonplace.client.blocking import BlockingOrchestrator
    from commonplace.client.frames import Frames
    from commonplace.client.mcp_server import McpServer
    from commonplace.client.options import Options
    from commonplace.client.orchestrator import MemoryOrchestrator
    from commonplace.client.state import state_folder
    from commonplace.client.task import Task

_WHERE = {
    "BlockingOrchestrator": "blocking",
    "Frames": "frames",
    "KomServerAdapter": "adapter",
    "McpServer": "mcp_server",
    "MemoryOrchestrator": "orchestrator",
    "Options": "options",
    "Task": "task",
    "state_folder": "state",
}
__all__ = [
    "BlockingOrchestrator",
    "Frames",
    "KomServerAdapter",
    "McpServer",
    "MemoryOrchestrator",
    "Options",
    "Task",
    "state_folder",
]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
