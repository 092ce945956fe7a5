"""The main use, end to end: one agent stores a lesson and another one recalls it.

Run by `make demo`. Each agent has its own MCP server: a real `commonplace mcp` process, called with
the official SDK's client.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

COMMAND = Path(sys.executable).parent / "commonplace"
LESSON = {
    "lesson": "always verify ownership before npm operations",
    "type": "error",
    "context": "npm install failed with EACCES",
    "command": "sudo chown -R $USER . && npm ci",
    "success_rate": "9/10",
    "tags": ["npm", "permissions", "node_modules"],
    "repo": "gptcoach2",
}


async def main(folder: Path) -> None:
    print("Two agents, each with its own MCP server, one home of plain files, deleted at the end.")
    async with Client(server(folder, "agent-a")) as a, Client(server(folder, "agent-b")) as b:
        await call(a, "agent-a", "remember", LESSON)
        found = await call(
            b, "agent-b", "recall", {"text": "npm install fails with a permission error"}
        )
        hit = found.structured_content["hits"][0]["id"]
        await call(b, "agent-b", "feedback", {"id": hit, "outcome": "worked"})
    path = folder / "home" / "log" / "gptcoach2.jsonl"
    print(f"\nThe memory itself, {path.relative_to(folder)}:\n{path.read_text('utf-8').rstrip()}")


def server(folder: Path, agent: str) -> StdioServerParameters:
    environment = {
        **os.environ,
        "COMMONPLACE_HOME": str(folder / "home"),
        "HOME": str(folder),
        "COMMONPLACE_AGENT": agent,
    }
    return StdioServerParameters(
        command=str(COMMAND), args=["mcp"], env=environment, cwd=str(folder)
    )


async def call(client: Client, agent: str, tool: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401
    given = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    print(f"\n{agent} » {tool}({given})", flush=True)
    answer: Any = await client.call_tool(tool, arguments)
    print("\n".join(block.text for block in answer.content), flush=True)
    if answer.is_error:
        sys.exit(1)
    return answer


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        asyncio.run(main(Path(scratch)))
