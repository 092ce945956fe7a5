"""Build the MCP server, for any transport: its tools, resources and prompts over a memory."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import ValidationError

import commonplace
from commonplace.errors import UsageError
from commonplace.foreign import one_line
from commonplace.server import resources
from commonplace.server.arguments import ArgumentUnknown, explain, use_own_names
from commonplace.server.tools import DOTTED
from commonplace.server.toolsets import DEFAULT_TOOLSETS, TOOLSETS

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver.tools import Tool
    from mcp_types import CallToolResult, GetPromptResult, InputRequiredResult

    from commonplace.memory import Memory
    from commonplace.server.tools import OpenMemory

LOG = logging.getLogger(__name__)


class Server(MCPServer[Any]):
    """The SDK's server, with our own sentences about arguments that cannot be used."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 (those of the SDK)
        super().__init__(*arguments, **options)
        self._other_names: dict[str, str] = {}

    def use_dotted_names(self, *, listed: bool) -> None:
        """Accept the dotted names of tools; *listed*, the tools are called by them.

        Not every client accepts a dot in the name of a tool, so they are not listed by default.
        """
        tools = self._tool_manager._tools  # noqa: SLF001 (no public way)
        for short, tool in list(tools.items()):
            dotted = (tool.meta or {}).get(DOTTED)
            if dotted and listed:
                tools[dotted] = tools.pop(short).model_copy(update={"name": dotted})
                self._other_names[short] = dotted
            elif dotted:
                self._other_names[dotted] = short

    @property
    def other_names(self) -> frozenset[str]:
        """The names of tools that are not listed, and can be called."""
        return frozenset(self._other_names)

    def find_tool(self, name: str) -> Tool | None:
        """Return the tool that has this name, listed or not."""
        return self._tool_manager.get_tool(self._other_names.get(name, name))

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any],
        context: Context[Any, Any] | None = None,
    ) -> CallToolResult | InputRequiredResult:
        tool = self.find_tool(name)
        if tool is None:
            return await super().call_tool(name, arguments, context)
        name = tool.name
        try:
            own = use_own_names(tool.fn.__name__, arguments, tool.parameters)
            return await super().call_tool(name, own, context)
        except ArgumentUnknown as error:
            raise ToolError(one_line(str(error))) from error
        except UnexpectedToolError:
            raise
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                raise ToolError(one_line(explain(cause, tool.parameters))) from cause
            # The SDK puts this before every sentence of ours.
            said = str(error).removeprefix(f"Error executing tool {name}: ")
            raise ToolError(said) from cause

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[Any, Any] | None = None,
    ) -> GetPromptResult | InputRequiredResult:
        # The SDK raises another error for these, which it logs with a traceback.
        prompt = self._prompt_manager.get_prompt(name)
        if prompt is None:
            known = ", ".join(f"`{one.name}`" for one in self._prompt_manager.list_prompts())
            raise MCPError(INVALID_PARAMS, one_line(f"there is no prompt `{name}`, but {known}"))
        for argument in prompt.arguments or ():
            if argument.required and argument.name not in (arguments or {}):
                raise MCPError(INVALID_PARAMS, f"the prompt `{name}` needs `{argument.name}`")
        return await super().get_prompt(name, arguments, context)


def build_server(
    open_memory: OpenMemory, toolsets: list[str], *, dotted_names: bool = False
) -> Server:
    """Return a server with *toolsets*, whose calls work on the memory from *open_memory*.

    With *dotted_names*, tools that have a dotted name are listed by that.
    """
    server = Server(
        "commonplace",
        title="Commonplace",
        instructions="\n".join(TOOLSETS[name].instructions for name in toolsets),
        version=commonplace.__version__,
        log_level="WARNING",
    )
    for name in toolsets:
        TOOLSETS[name].add(server, open_memory)
    server.use_dotted_names(listed=dotted_names)
    resources.register(server, open_memory, has_brief="episodes" in toolsets)
    return server


def choose_toolsets(toolsets: str | None, memory: Memory) -> list[str]:
    """Return the names in *toolsets*, else those of the settings, else core and notes.

    Notes are left out where the settings disable them. A name in *toolsets* that nobody knows is an
    error; one in the settings is reported, and the others are offered.
    """
    wanted = [name.strip() for name in toolsets.split(",") if name.strip()] if toolsets else []
    if not wanted:
        for path, name, item in memory.settings.unknown_items:
            if name == "tools.sets":
                LOG.warning("there is no toolset `%s`, which `%s` names", one_line(item), path)
    names = wanted or memory.settings["tools.sets"] or list(DEFAULT_TOOLSETS)
    unknown = [name for name in names if name not in TOOLSETS]
    if unknown:
        raise UsageError(
            f"there is no toolset `{unknown[0]}`", f"choose among {', '.join(TOOLSETS)}"
        )
    enabled = memory.settings["tools.memory.enabled"]
    return [name for name in TOOLSETS if name in names and (name != "notes" or enabled)]
