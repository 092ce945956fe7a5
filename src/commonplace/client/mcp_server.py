"""Calls the seven tools of any MCP server, over stdio or Streamable HTTP.

The connection is opened by the first call. When it breaks, the next call opens a new one: a server
that was restarted is found again.
"""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import anyio
import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from commonplace.client.adapter import KomServerAdapter
from commonplace.client.seven import READING, Listed, find
from commonplace.errors import AccessRefused, NoAnswer, ToolRefused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from anyio.abc import TaskGroup, TaskStatus
    from mcp_types import CallToolResult

    Connect = Callable[[], AbstractAsyncContextManager[Any]]

_T = TypeVar("_T")

CALL_S_MAX = 30.0
PAGES_MAX = 50
# The status of an answer to a wrong token, or to one without the right to ask.
REFUSED = (401, 403)
OUR_VARIABLES = "COMMONPLACE_"
# Every way in which a connection fails: the SDK raises its own errors, those of its transports, and
# groups of them.
_FAILURES = (
    MCPError,
    OSError,
    TimeoutError,
    ValueError,
    RuntimeError,
    ExceptionGroup,
    httpx2.HTTPError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
)


class _Connection(NamedTuple):
    client: Any
    # Which of the seven tools it has, and the one for ratings, by short names.
    tools: Mapping[str, Listed]
    ended: anyio.Event


class McpServer(KomServerAdapter):
    """A memory server, by its address or by the command that starts it.

    `async with` keeps one connection open; without it, every call opens its own.
    """

    def __init__(
        self, connect: Connect, call_s_max: float = CALL_S_MAX, refusals: list[int] | None = None
    ) -> None:
        """*connect* returns a context manager with a connected client of the MCP SDK.

        It adds to *refusals* the status of answers that refuse the token: the SDK does not say.
        """
        self._connect = connect
        self._refusals = [] if refusals is None else refusals
        self._call_s_max = call_s_max
        self._group: TaskGroup | None = None
        self._lock = anyio.Lock()
        self._connection: _Connection | None = None

    @classmethod
    def http(cls, url: str, token: str = "", call_s_max: float = CALL_S_MAX) -> McpServer:
        """Return the server at *url*, such as `http://127.0.0.1:8377/mcp`."""
        refusals: list[int] = []

        async def note_refusal(response: httpx2.Response) -> None:
            if response.status_code in REFUSED:
                refusals.append(response.status_code)

        @asynccontextmanager
        async def connect() -> AsyncIterator[Client]:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            refusals.clear()
            async with (
                httpx2.AsyncClient(
                    headers=headers,
                    timeout=call_s_max,
                    event_hooks={"response": [note_refusal]},
                ) as http,
                Client(
                    streamable_http_client(url, http_client=http), read_timeout_seconds=call_s_max
                ) as client,
            ):
                yield client

        return cls(connect, call_s_max, refusals)

    @classmethod
    def stdio(
        cls,
        command: str,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        call_s_max: float = CALL_S_MAX,
    ) -> McpServer:
        """Return the server that *command* starts, such as `commonplace mcp --toolsets kom`.

        It gets the usual variables of the environment, ours (`COMMONPLACE_…`), and *env*.
        """
        # The SDK passes on only a few. Without ours, the server would use another home.
        ours = {name: text for name, text in os.environ.items() if name.startswith(OUR_VARIABLES)}
        started = StdioServerParameters(
            command=command, args=list(arguments), env={**ours, **(env or {})}, cwd=cwd
        )
        return cls(lambda: Client(started, read_timeout_seconds=call_s_max), call_s_max)

    # --- The connection ---------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self._group is not None

    async def __aenter__(self) -> Self:
        group = anyio.create_task_group()
        await group.__aenter__()
        self._group = group
        return self

    async def __aexit__(self, *_error: object) -> None:
        group, self._group = self._group, None
        if self._connection is not None:
            self._drop(self._connection)
        if group is not None:
            # The group is not told of the caller's error: it would wrap it in a group of errors.
            await group.__aexit__(None, None, None)

    async def _keep(self, *, task_status: TaskStatus[_Connection]) -> None:
        """Own a connection: the SDK wants it opened and closed by one task."""
        connection = None
        try:
            async with self._connect() as client:
                connection = await _look_at(client)
                task_status.started(connection)
                await connection.ended.wait()
        except _FAILURES:
            if connection is None:
                raise  # The call that wanted it is told.
        finally:
            if connection is not None:
                self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        connection.ended.set()
        if self._connection is connection:
            self._connection = None

    async def _with_connection(
        self, work: Callable[[_Connection], Awaitable[_T]], *, may_repeat: bool = True
    ) -> _T:
        """Return what *work* returns for a connection. Raises `NoAnswer` if that fails.

        If a connection from before does not work any more, as after a restart of the server, what
        may be repeated is tried again on a new one.
        """
        before = self._connection
        try:
            if self._group is None:
                return await self._with_own(work)
            connection = await self._kept(self._group)
            try:
                return await work(connection)
            except _FAILURES:
                self._drop(connection)
                raise
        except _FAILURES as error:
            if before is None or not may_repeat:
                raise self._failure(error) from error
        return await self._with_connection(work, may_repeat=False)

    def _failure(self, error: Exception) -> NoAnswer:
        return AccessRefused(self._refusals[-1]) if self._refusals else NoAnswer(_words(error))

    async def _kept(self, group: TaskGroup) -> _Connection:
        async with self._lock:
            if self._connection is None:
                with anyio.fail_after(self._call_s_max):
                    self._connection = await group.start(self._keep)
            return self._connection

    async def _with_own(self, work: Callable[[_Connection], Awaitable[_T]]) -> _T:
        # An error that leaves the block of the client would come back in a group of errors.
        failure: Exception | None = None
        async with self._connect() as client:
            try:
                outcome = await work(await _look_at(client))
            except _FAILURES as error:
                failure = error
        if failure is not None:
            raise failure
        return outcome

    # --- Calls ------------------------------------------------------------------------------------

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401 (JSON)
        async def work(connection: _Connection) -> CallToolResult | str:
            """Return the result, or why the server refuses the call."""
            listed = connection.tools.get(tool)
            if listed is None:
                return "the server does not offer it"
            try:
                with anyio.fail_after(self._call_s_max):
                    result: CallToolResult = await connection.client.call_tool(
                        listed.name, dict(arguments)
                    )
            except MCPError as error:
                if error.code == INVALID_PARAMS:
                    return error.message
                raise
            return result

        result = await self._with_connection(work, may_repeat=tool in READING)
        if isinstance(result, str):
            raise ToolRefused(tool, result)
        text = _text_of(result)
        if result.is_error:
            raise ToolRefused(tool, text or "it gives no reason")
        if result.structured_content is not None:
            return result.structured_content
        try:
            return json.loads(text)
        except ValueError:
            return {"text": text}

    async def arguments_of(self, tool: str) -> frozenset[str]:
        async def work(connection: _Connection) -> frozenset[str]:
            listed = connection.tools.get(tool)
            return listed.arguments if listed else frozenset()

        return await self._with_connection(work)


async def _look_at(client: Any) -> _Connection:  # noqa: ANN401 (a client of the SDK, or like one)
    """Return the connection of *client*, with the tools that its server lists."""
    listed: list[Listed] = []
    cursor = None
    for _page in range(PAGES_MAX):
        page = await client.list_tools(cursor=cursor)
        listed += (
            Listed(
                tool.name,
                tool.meta or {},
                frozenset((tool.input_schema or {}).get("properties", {})),
            )
            for tool in page.tools
        )
        cursor = page.next_cursor
        if not cursor:
            break
    return _Connection(client, find(listed), anyio.Event())


def _text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


def _words(error: BaseException) -> str:
    """Return what an error says, in one line; of a group, its first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(str(error).split()) or type(error).__name__
