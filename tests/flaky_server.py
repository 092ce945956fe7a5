"""A real MCP server in this process, behind a connection that fails when a test says so."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcp.client import Client

from commonplace.client import McpServer
from other_kom_server import Store, build

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

# What happens to a connection or a call: it works, it fails before the server has it, or the server
# does what was asked and the answer is lost.
OK, BEFORE, AFTER = "ok", "before", "after"


class Flaky:
    """The server, and what becomes of the next connections and calls; then all work."""

    def __init__(self, store: Store | None = None, plan: Iterable[str] = ()) -> None:
        self.store = store or Store()
        self._plan: Iterator[str] = iter(plan)
        # While it is down, no connection can be made.
        self.is_down = False
        self.calls: list[str] = []

    def server(self) -> McpServer:
        return McpServer(self._connect)

    def will(self, *plan: str) -> None:
        self._plan = iter(plan)

    def _next(self) -> str:
        return BEFORE if self.is_down else next(self._plan, OK)

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Any]:
        if self._next() != OK:
            raise ConnectionRefusedError("nobody listens")
        async with Client(build(self.store)) as client:
            yield _FlakyClient(client, self)

    async def call(self, client: Client, name: str, arguments: dict[str, Any]) -> Any:
        what = self._next()
        self.calls.append(name)
        if what == BEFORE:
            raise ConnectionResetError("the connection broke")
        result = await client.call_tool(name, arguments)
        if what == AFTER:
            raise ConnectionResetError("the answer was lost")
        return result


class _FlakyClient:
    def __init__(self, client: Client, flaky: Flaky) -> None:
        self._client, self._flaky = client, flaky

    async def list_tools(self, cursor: str | None = None) -> Any:
        return await self._client.list_tools(cursor=cursor)

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        return await self._flaky.call(self._client, name, arguments)
