"""Clients and checkers that others wrote: the MCP Inspector and the official conformance scenarios."""

from __future__ import annotations

import json
import socket
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

import npm
from serving import Served, served

if TYPE_CHECKING:
    from collections.abc import Iterator
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


@contextmanager
def token_adder(server: Served) -> Iterator[str]:
    """The address of a relay that adds the access token: the tool cannot send one."""

    def relay(link: socket.socket) -> None:
        with (
            suppress(OSError),
            link,
            socket.create_connection(("127.0.0.1", server.port)) as onward,
        ):
            threading.Thread(target=pump, args=(onward, link), daemon=True).start()
            stream, length = link.makefile("rb"), 0
            while line := stream.readline():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
                if line == b"\r\n":  # The end of a head.
                    line = f"Authorization: Bearer {server.token}\r\n\r\n".encode()
                    line += stream.read(length)
                    length = 0
                onward.sendall(line)

    def pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while some := source.recv(65536):
                target.sendall(some)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=relay, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def test_the_conformance_scenarios_pass(own_home: Path, tmp_path: Path) -> None:
    npm.installed(npm.CONFORMANCE)
    with served(own_home) as server, token_adder(server) as address:
        for scenario in SCENARIOS:
            flags = ("--url", f"{address}/mcp", "--scenario", scenario, "-o", str(tmp_path))
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
            if transport == "http":
                flags += ("--header", f"Authorization: Bearer {server.token}")
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
