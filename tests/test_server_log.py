"""The server's log: it says what failed, and nothing that an agent sent or a memory says."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING

from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from serving import WORDS_ONLY, Served

if TYPE_CHECKING:
    from pathlib import Path


def tools_over_mcp(server: Served, token: str, tool: str, arguments: dict[str, str]) -> str:
    import httpx2

    async def talk() -> str:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http_client,
            Client(streamable_http_client(f"{server.address}/mcp", http_client=http_client)) as one,
        ):
            answer = await one.call_tool(tool, arguments)
            return answer.content[0].text  # type: ignore[union-attr]

    return asyncio.run(talk())


def test_a_tool_that_fails_is_logged_by_its_name_without_what_was_asked(own_home: Path) -> None:
    own_home.mkdir()
    (own_home / "config.toml").write_text(WORDS_ONLY, "utf-8")
    code = """if True:
        import sys
        from commonplace.memory import Memory
        def fail(self, *given, **more):
            raise RuntimeError("about " + str(given) + str(more))
        Memory.recall = Memory.stats = Memory.describe = fail
        from commonplace.cli import main
        sys.exit(main(["serve", "--port", "0"]))
    """
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout:
        server = Served(own_home, process.stdout.readline().partition(" ")[0], process.pid)
    server.ask("GET", "/health")  # It has begun.
    asked = {"text": "the-private-question"}
    tools_over_mcp(server, server.token, "recall", asked)
    assert server.call("recall", **asked).status == 500
    assert server.ask("GET", "/api/v1/stats").status == 500
    assert server.ask("GET", "/api/v1/records/the-private-id").status == 500
    process.terminate()
    _none, log = process.communicate(timeout=60)

    assert log.count("Tool 'recall' raised an unexpected exception") == 2
    assert "GET /api/v1/stats failed" in log
    assert "GET /api/v1/records failed" in log
    assert "RuntimeError" in log
    assert "tools.py" in log
    assert "private" not in log
