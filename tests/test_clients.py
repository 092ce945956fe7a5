"""Clients and checkers that others wrote: the MCP Inspector and the official conformance scenarios."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

import npm
from serving import served

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

# Those that ask nothing of a server but what the protocol does; the others call test tools of their own.
SCENARIOS = [
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-error",
    "resources-list",
    "prompts-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
]


def test_the_conformance_scenarios_pass(own_home: Path, tmp_path: Path) -> None:
    npm.installed(npm.CONFORMANCE)
    with served(own_home) as server:
        for scenario in SCENARIOS:
            flags = ("--url", f"{server.address}/mcp", "--scenario", scenario, "-o", str(tmp_path))
            done = npm.run(npm.CONFORMANCE, "server", *flags)
            assert done.returncode == 0, (scenario, done.stdout[-600:])
            checks = json.loads(
                next(tmp_path.glob(f"server-{scenario}-*/checks.json")).read_text("utf-8")
            )
            assert {check["status"] for check in checks} <= {"SUCCESS", "INFO"}, scenario


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_inspector_lists_and_calls(own_home: Path, transport: str) -> None:
    npm.installed(npm.INSPECTOR)
    with served(own_home) as server:

        def inspect(*flags: str) -> Any:
            local = (sys.executable, "-m", "commonplace", "mcp")
            target = (
                local if transport == "stdio" else (f"{server.address}/mcp", "--transport", "http")
            )
            done = npm.run(npm.INSPECTOR, "--cli", *target, *flags)
            assert done.returncode == 0, done.stderr[-600:]
            return json.loads(done.stdout)

        names = [tool["name"] for tool in inspect("--method", "tools/list")["tools"]]
        stored = inspect(
            "--method", "tools/call", "--tool-name", "remember",
            "--tool-arg", "lesson=seed after migrating", "--tool-arg", "type=error",
        )  # fmt: skip
        found = inspect(
            "--method",
            "tools/call",
            "--tool-name",
            "recall",
            "--tool-arg",
            "text=seed after migrating",
        )
        resources = [one["uri"] for one in inspect("--method", "resources/list")["resources"]]

    assert names[0] == "recall"
    assert stored["structuredContent"]["id"] == found["structuredContent"]["hits"][0]["id"]
    assert resources == ["memory://context", "memory://stats"]
