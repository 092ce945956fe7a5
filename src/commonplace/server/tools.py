"""How an MCP tool is made: a typed function with a docstring.

The signature is the schema; errors are raised. The tools are in `*_tools.py`, and `toolsets.py`
groups them.
"""

from __future__ import annotations

from inspect import getdoc
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mcp.server.mcpserver.exceptions import MCPServerError, ToolError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel

from commonplace.errors import CommonplaceError
from commonplace.foreign import one_line, render, render_value
from commonplace.server.schemas import shorten_arguments, shorten_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.mcpserver import MCPServer

    from commonplace.memory import Memory

# In the `_meta` of a tool: its dotted name.
DOTTED = "commonplace/dotted-name"

F = TypeVar("F", bound="Callable[..., Any]")

READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
ADDS = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
COUNTS = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
CHANGES = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)
EDITS = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False
)


class OpenMemory(Protocol):
    """Return the memory that a call works on, or raise if the caller lacks *scope*.

    Tools that are not read-only ask for `write`.
    """

    def __call__(self, scope: str = "read", /) -> Memory: ...


def tool(
    server: MCPServer[Any], annotations: ToolAnnotations, title: str, dotted: str = ""
) -> Callable[[F], F]:
    """Return a decorator that adds a function to *server* as a tool, described by its docstring.

    *dotted* is another name of the tool, which its `_meta` has.
    """

    def add(function: F) -> F:
        # Before 3.13 Python keeps the indentation of docstrings, which would cost tokens in every
        # session of every agent.
        server.add_tool(
            function,
            title=title,
            description=getdoc(function),
            annotations=annotations,
            meta={DOTTED: dotted} if dotted else None,
        )
        added = server._tool_manager.get_tool(function.__name__)  # noqa: SLF001 (no public way)
        assert added is not None
        added.parameters = shorten_arguments(added.parameters)
        if added.fn_metadata.output_schema is not None:
            added.fn_metadata.output_schema = shorten_result(added.fn_metadata.output_schema)
        return function

    return add


def tool_result(text: str, model: BaseModel, *, is_exact: bool = False) -> CallToolResult:
    """Return a result with *text* for the model and *model* as data.

    Both are rendered: many clients give the data to the model instead of the text. With *is_exact*
    the data is as it is stored, for programs that change it and write it back.
    """
    found = model.model_dump()
    return CallToolResult(
        content=[TextContent(type="text", text=render(text))],
        structured_content=found if is_exact else render_value(found),
    )


class errors_as_tool_results:  # noqa: N801 (used like a function)
    """A context that turns a `CommonplaceError` into an error of *kind*, which the model reads."""

    def __init__(self, kind: type[MCPServerError] = ToolError) -> None:
        self.kind = kind

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, CommonplaceError):
            text = f"{error}{f'. {error.hint}' if error.hint else ''}"
            raise self.kind(one_line(text)) from error
