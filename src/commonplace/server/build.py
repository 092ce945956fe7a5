"""The MCP server itself, whatever carries it: its tools, resources and prompts over a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import MCPServer

import commonplace
from commonplace.errors import UsageError
from commonplace.server import resources
from commonplace.server.tools import TOOLSETS

if TYPE_CHECKING:
    from commonplace.memory import Memory
    from commonplace.server.tools import Opened


def made(memory: Opened, toolsets: list[str]) -> MCPServer[Any]:
    """The server with these toolsets; *memory* gives what a call works on, if the caller's scope allows it."""
    server: MCPServer[Any] = MCPServer(
        "commonplace",
        title="Commonplace",
        instructions="\n".join(TOOLSETS[name].instructions for name in toolsets),
        version=commonplace.__version__,
        log_level="WARNING",
    )
    for name in toolsets:
        TOOLSETS[name].add(server, memory)
    resources.register(server, memory)
    return server


def chosen(toolsets: str | None, memory: Memory) -> list[str]:
    """The toolsets asked for, else those of the settings, else all; the notes only where the settings have them."""
    asked = [name.strip() for name in toolsets.split(",") if name.strip()] if toolsets else []
    names = asked or memory.settings["tools.sets"] or list(TOOLSETS)
    unknown = [name for name in names if name not in TOOLSETS]
    if unknown:
        raise UsageError(
            f"there is no toolset `{unknown[0]}`", f"choose among {', '.join(TOOLSETS)}"
        )
    enabled = memory.settings["tools.memory.enabled"]
    return [name for name in TOOLSETS if name in names and (name != "notes" or enabled)]
