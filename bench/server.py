"""The server: how soon it answers `initialize`, and how it works under load.

    python bench/server.py [--clients 32] [--calls 500]

Start: a process is started, `initialize` is sent over stdio, and the time until the answer is taken;
beside a trivial one-tool server on the same SDK, in turns; medians of 9; the bar is 1.2 times that.

Load: clients, each a thread with a connection of its own, half over `/mcp` (stateless 2026-07-28
requests) and half over `/api/v1`, make mixed calls (six of ten recall, two remember, one feedback,
one a note) on a home with 2,000 lessons, embedder included; the first fifth of the calls is warm-up.
Before and after, the same clients send the same arguments to a server on the same SDK whose one tool
does nothing; the bar is half of its calls a second. The clients run on the same cores as the server.

Reported: errors (none is the bar); calls a second, and as a share of the empty tool's; p50 and p95
of a call as the client sees it; the processor time of the server for each call, and of it that of
the event loop (HTTP, the SDK, validation; the rest is tools, the model and indexing); resident memory and
open descriptors of the server after warm-up and at the end, each when nobody has asked for six
seconds, since it gives back what it freed every five (the bar: at most 10 % and 16 MB, or 8
descriptors, more; about 3,200 lessons are stored on the way, in a home of 2,000).
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

TRIVIAL = """
from mcp.server.mcpserver import MCPServer
server = MCPServer('x')
@server.tool()
def f(a: int) -> int:
    'add'
    return a
server.run('stdio')
"""
EMPTY = """
import sys
import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
server = MCPServer('empty', log_level='WARNING')
@server.tool()
def nothing(text: str) -> dict[str, str]:
    'Does nothing.'
    return {'text': text}
unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
app = server.streamable_http_app(transport_security=unchecked)
uvicorn.run(app, port=int(sys.argv[1]), log_level='warning', access_log=False)
"""
HALF = 0.5
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "b", "version": "1"},
    },
}
WORDS = [
    "build",
    "test",
    "deploy",
    "cache",
    "token",
    "schema",
    "worker",
    "queue",
    "index",
    "lock",
    "retry",
    "timeout",
    "socket",
    "branch",
    "merge",
    "rebase",
    "lint",
]
PROTOCOL = "2026-07-28"
REST_S = 6.0
META = {
    "io.modelcontextprotocol/protocolVersion": PROTOCOL,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--calls", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        environment = {**os.environ, "COMMONPLACE_HOME": str(home)}
        fill(environment)
        good = start(environment)
        return 0 if load(environment, options.clients, options.calls) and good else 1


def fill(environment: dict[str, str]) -> None:
    chance = random.Random(7)
    lines = "\n".join(
        json.dumps(
            {"event_type": "error", "lesson": f"{lesson(chance)} in step {number}", "repo": "bench"}
        )
        for number in range(2000)
    )
    command = [sys.executable, "-m", "commonplace", "log", "--stdin"]
    subprocess.run(command, input=lines.encode(), env=environment, check=True, capture_output=True)


def lesson(chance: random.Random) -> str:
    return f"when the {' '.join(chance.sample(WORDS, 4))} fails, clear the {' '.join(chance.sample(WORDS, 3))} first"


def start(environment: dict[str, str]) -> bool:
    def hello(*command: str) -> float:
        begin = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline()
        taken = time.perf_counter() - begin
        process.kill()
        process.communicate()
        return taken

    pairs = [(hello("-c", TRIVIAL), hello("-m", "commonplace", "mcp")) for _ in range(9)]
    trivial, ours = (statistics.median(times) for times in zip(*pairs, strict=True))
    good = ours / trivial <= 1.2
    print(
        f"stdio, start to initialize: {ours / trivial:.2f} x a trivial server ({trivial * 1000:.0f} ms); bar 1.2{'' if good else ': MISSED'}"
    )
    return bool(good)


def load_empty(clients: int, calls: int) -> float:
    """The calls a second of a server whose one tool does nothing."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", EMPTY, str(port)])
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.05)
        crowd = Crowd(f"http://127.0.0.1:{port}", clients, empty=True)
        crowd.run(max(1, calls // 5))
        begin = time.perf_counter()
        taken = crowd.run(calls)
        wall = time.perf_counter() - begin
        assert not crowd.errors, crowd.errors[0]
        return len(taken) / wall
    finally:
        process.kill()
        process.wait()


def load(environment: dict[str, str], clients: int, calls: int) -> bool:
    empty = [load_empty(clients, calls // 4)]
    ensure = [sys.executable, "-m", "commonplace", "serve", "--ensure", "--json", "--port", "0"]
    presence = json.loads(
        subprocess.run(ensure, env=environment, check=True, capture_output=True).stdout
    )
    try:
        subprocess.run(
            [sys.executable, "-m", "commonplace", "index", "rebuild"],
            env=environment,
            check=True,
            capture_output=True,
        )
        token = Path(presence["token_file"]).read_text("ascii").strip()
        crowd = Crowd(presence["address"], clients, token)
        warm = crowd.run(calls // 5)
        before = weigh_at_rest(presence["pid"])
        used = processor_s(presence["pid"])
        begin = time.perf_counter()
        taken = crowd.run(calls - calls // 5)
        wall = time.perf_counter() - begin
        used_after = processor_s(presence["pid"])
        after = weigh_at_rest(presence["pid"])
    finally:
        subprocess.run(
            [sys.executable, "-m", "commonplace", "serve", "--stop"],
            env=environment,
            check=True,
            capture_output=True,
        )
    empty.append(load_empty(clients, calls // 4))
    rate, share = len(taken) / wall, len(taken) / wall / statistics.mean(empty)
    errors = len(crowd.errors)
    quantiles = statistics.quantiles(taken, n=20)
    grown = after[0] - before[0] > max(16 << 20, before[0] // 10) or after[1] - before[1] > 8
    print(
        f"load: {clients} clients x {calls} calls ({len(warm)} of them warm-up): {errors} errors; bar 0{': MISSED' if errors else ''}"
    )
    print(
        f"load: {rate:,.0f} calls/s, p50 {statistics.median(taken) * 1000:.1f} ms, p95 {quantiles[18] * 1000:.1f} ms, "
        f"{1000 * (used_after[0] - used[0]) / len(taken):.1f} ms of processor time a call, "
        f"of it {1000 * (used_after[1] - used[1]) / len(taken):.1f} ms in the event loop"
    )
    print(
        f"load: {share:.2f} of an empty tool ({empty[0]:,.0f} calls/s before, {empty[1]:,.0f} after); "
        f"bar {HALF}{': MISSED' if share < HALF else ''}"
    )
    print(
        f"load: resident {before[0] / 1e6:.0f} MB after warm-up, {after[0] / 1e6:.0f} MB at the end; "
        f"descriptors {before[1]} and {after[1]}{': GROWN' if grown else ''}"
    )
    for error in crowd.errors[:3]:
        print(f"  {error}")
    left = json.loads(
        subprocess.run(
            [*ensure[:4], "--stop", "--json"], env=environment, check=True, capture_output=True
        ).stdout
    )
    print(f"after --stop: {'still there' if left['stopped'] else 'no process'}")
    return not errors and not grown and share >= HALF and left["stopped"] is False


def weigh_at_rest(pid: int) -> tuple[int, int]:
    """Resident bytes and open descriptors of a process (Linux)."""
    time.sleep(REST_S)
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), len(list(Path(f"/proc/{pid}/fd").iterdir()))


def processor_s(pid: int) -> tuple[float, float]:
    """The seconds that a process has run so far, and its main thread alone (Linux)."""

    def seconds(stat: str) -> float:
        fields = Path(stat).read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    return seconds(f"/proc/{pid}/stat"), seconds(f"/proc/{pid}/task/{pid}/stat")


class Crowd:
    """Clients that stay connected from one run to the next; *empty* has one tool that does nothing."""

    def __init__(self, address: str, clients: int, token: str = "", *, empty: bool = False) -> None:
        self._empty = empty
        self._token = token
        host, _, port = address.removeprefix("http://").partition(":")
        self._connections = [
            http.client.HTTPConnection(host, int(port), timeout=60) for _ in range(clients)
        ]
        self._chances = [random.Random(number) for number in range(clients)]
        self.errors: list[str] = []

    def run(self, calls: int) -> list[float]:
        taken: list[float] = []
        threads = [
            threading.Thread(target=self._talk, args=(number, calls, taken))
            for number in range(len(self._connections))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return taken

    def _talk(self, number: int, calls: int, taken: list[float]) -> None:
        ident = ""
        for _ in range(calls):
            tool, arguments = self._draw(number, ident)
            begin = time.perf_counter()
            try:
                result = self._ask(number, tool, arguments)
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                self.errors.append(f"{tool}: {error!r}")
                self._connections[number].close()
                continue
            taken.append(time.perf_counter() - begin)
            ident = result.get("id", ident)

    def _draw(self, number: int, ident: str) -> tuple[str, dict[str, Any]]:
        chance = self._chances[number]
        kind = chance.randrange(10)
        if kind < 6:
            return "recall", {"text": " ".join(chance.sample(WORDS, 4))}
        if kind < 8 or (kind == 8 and not ident):
            return "remember", {
                "lesson": f"{lesson(chance)} ({number}, {chance.randrange(10**9)})",
                "type": "error",
                "repo": "bench",
            }
        if kind == 8:
            return "feedback", {"id": ident, "outcome": "worked"}
        return "memory_write", {"path": f"notes-{number}.md", "content": lesson(chance)}

    def _ask(self, number: int, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        connection = self._connections[number]
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {self._token}",
        }
        if self._empty:
            tool, arguments = "nothing", {"text": json.dumps(arguments)}
        elif number % 2:
            connection.request("POST", f"/api/v1/{tool}", json.dumps(arguments), headers)
            response = connection.getresponse()
            raw = response.read()
            if response.status != 200:
                raise ValueError(f"{response.status} {raw[:200]!r}")
            answer: dict[str, Any] = json.loads(raw)
            return answer
        call = {"name": tool, "arguments": arguments, "_meta": META}
        headers |= {"MCP-Protocol-Version": PROTOCOL, "Mcp-Method": "tools/call", "Mcp-Name": tool}
        connection.request(
            "POST",
            "/mcp",
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}),
            headers,
        )
        response = connection.getresponse()
        raw = response.read()
        if response.status != 200:
            raise ValueError(f"{response.status} {raw[:200]!r}")
        text = raw.decode()
        result = json.loads(
            text[text.index("{") :] if text.startswith("{") else text.partition("data: ")[2]
        )["result"]
        if result.get("isError"):
            raise ValueError(str(result["content"])[:200])
        found: dict[str, Any] = result["structuredContent"]
        return found


if __name__ == "__main__":
    sys.exit(main())
