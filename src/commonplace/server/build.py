"""Build the MCP server, for any transport: its tools, resources and prompts over a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import MCPServer

import commonplace
from commonplace.errors import UsageError
from commonplace.server import resources
from commonplace.server.tools import TOOLSETS

if TYPE_CHECKING:
    from commonplace.memory import Memory
    from commonplace.server.tools import OpenMemory


def build_server(open_memory: OpenMemory, toolsets: list[str]) -> MCPServer[Any]:
    """Return a server with *toolsets*, whose calls work on the memory from *open_memory*."""
    server: MCPServer[Any] = MCPServer(
        "commonplace",
        title="Commonplace",
        instructions="\n".join(TOOLSETS[name].instructions for name in toolsets),
        version=commonplace.__version__,
        log_level="WARNING",
    )
    for name in toolsets:
        TOOLSETS[name].add(server, open_memory)
    resources.register(server, open_memory)
    return server


def choose_toolsets(toolsets: str | None, memory: Memory) -> list[str]:
    """Return the names in *toolsets*, else those of the settings, else all.

    Notes are left out where the settings disable them.
    """
    wanted = [name.strip() for name in toolsets.split(",") if name.strip()] if toolsets else []
    names = wanted or memory.settings["tools.sets"] or list(TOOLSETS)
    unknown = [name for name in names if name not in TOOLSETS]
    if unknown:
        raise UsageError(
            f"there is no toolset `{unknown[0]}`", f"choose among {', '.join(TOOLSETS)}"
        )
    enabled = memory.settings["tools.memory.enabled"]
    return [name for name in TOOLSETS if name in names and (name != "notes" or enabled)]
