"""`commonplace mcp` as a process, and clients that behave badly: it answers, it lives, it ends when it should."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp.client import Client

from commonplace.index.embedded.tables import READERS_KEPT_MAX
from commonplace.notes import Notes
from commonplace.where.home import Home
from serving import WORDS_ONLY
from test_server import ERAS, ask, stdio, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

HELLO = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"t","version":"1"}}}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
)
CALLS = 2000
RSS_GROWTH_KB_MAX = 30_000
# A connection kept for the next question holds two descriptors (the index, and its write-ahead
# log), and SQLite keeps that of a closed one for the next while others hold locks on the file.
DESCRIPTORS_GROWTH_MAX = 3 * READERS_KEPT_MAX


@pytest.fixture
def home(own_home: Path) -> Path:
    """A home that answers by words alone: the model has nothing to do with how a server behaves."""
    own_home.mkdir()
    (own_home / "config.toml").write_text(WORDS_ONLY)
    return own_home


class Raw:
    """The server's process, spoken to byte by byte, in the handshake era."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr
        self.send(HELLO)
        assert json.loads(self.stdout.readline())["id"] == 1

    def send(self, raw: bytes) -> None:
        self.stdin.write(raw)
        self.stdin.flush()

    def answers(self, *numbers: int) -> dict[int, Any]:
        """What came back for these requests; every line on stdout is a message of the protocol."""
        found: dict[int, Any] = {}
        while not found.keys() >= set(numbers):
            line = self.stdout.readline()
            assert line, "the server ended"
            message = json.loads(line)
            if isinstance(message.get("id"), int):
                found[message["id"]] = message
        return found


def call(number: int, tool: str, **arguments: Any) -> bytes:
    message = {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    return json.dumps(message).encode() + b"\n"


@contextmanager
def raw() -> Iterator[Raw]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-m", "commonplace", "mcp"], stdin=pipe, stdout=pipe, stderr=pipe
    )
    try:
        with process:
            yield Raw(process)
    finally:
        process.kill()


def move(source: Path, target: Path) -> None:
    assert not target.exists(), "nothing was made behind the user's back"
    source.rename(target)


# --- What is asked ------------------------------------------------------------------------------------------------

BAD: list[tuple[str, dict[str, Any], str]] = [
    ("nope", {}, "nope"),
    ("recall", {}, "text"),
    ("recall", {"text": ["x"]}, "text"),
    ("recall", {"text": "x", "limit": "many"}, "limit"),
    ("recall", {"text": "x", "limit": 10**30}, "limit"),
    ("recall", {"text": "x", "kinds": ["nonsense"]}, "kind"),
    ("recall", {"text": "x", "repo": {"a": 1}}, "repo"),
    ("remember", {"lesson": {"deep": [1]}, "type": "error"}, "lesson"),
    ("remember", {"lesson": "x" * 2_000_000, "type": "error"}, "line_bytes_max"),
    ("remember", {"lesson": "x", "type": "error", "repo": "../x"}, "repo"),
    ("remember", {"lesson": "x", "type": "error", "tags": ["t"] * 999}, "tags"),
    ("memory_write", {"path": "a.md", "content": "x" * 5_000_000}, "bytes"),
    ("memory_write", {"path": "a/" * 5000, "content": "x"}, "deep"),
    ("memory_insert", {"path": "a.md", "line": -1, "text": "x"}, "line"),
    ("show", {"id": "x" * 100_000}, "no record"),
]


@pytest.mark.parametrize("mode", ERAS)
def test_what_is_wrong_or_huge_is_an_error_the_model_can_act_on(home: Path, mode: str) -> None:
    async def talk(client: Client) -> list[Any]:
        said = [await client.call_tool(tool, given) for tool, given, _said in BAD]
        long = await client.call_tool("recall", {"text": "kettle " * 100_000})
        stored = await client.call_tool("remember", {"lesson": "kettle", "type": "error"})
        return [*said, long, stored]

    *errors, long, stored = ask(stdio(home), talk, mode)

    for (tool, _given, said), error in zip(BAD, errors, strict=True):
        assert error.is_error, tool
        assert said in text_of(error)
        assert "Traceback" not in text_of(error)
    assert not long.is_error
    assert not stored.is_error


@pytest.mark.parametrize("mode", ERAS)
def test_a_home_that_vanishes_is_told_and_one_that_comes_back_is_used(
    home: Path, mode: str
) -> None:
    away = home.with_name("away")
    tools: list[tuple[str, dict[str, Any]]] = [
        ("recall", {"text": "kettle"}),
        ("remember", {"lesson": "second", "type": "error"}),
        ("show", {"id": "les-kettle"}),
        ("feedback", {"id": "les-kettle", "outcome": "worked"}),
        ("forget", {"id": "les-kettle", "reason": "x"}),
        ("memory_list", {}),
        ("memory_read", {"path": "a.md"}),
        ("memory_write", {"path": "a.md", "content": "x"}),
        ("memory_replace", {"path": "a.md", "old": "x", "new": "y"}),
        ("memory_insert", {"path": "a.md", "line": 0, "text": "y"}),
    ]

    async def talk(client: Client) -> tuple[list[Any], list[Any], str]:
        await client.call_tool("remember", {"lesson": "kettle boils over", "type": "error"})
        await client.call_tool("recall", {"text": "kettle"})
        await client.call_tool("memory_write", {"path": "a.md", "content": "x"})
        move(home, away)
        gone = [await client.call_tool(tool, given) for tool, given in tools]
        with pytest.raises(Exception, match="it was removed or moved"):
            await client.read_resource("memory://stats")
        move(away, home)
        back = [await client.call_tool(tool, given) for tool, given in tools if tool != "forget"]
        usage = await client.call_tool("show", {"id": "les-kettle"})
        return gone, back, text_of(usage)

    gone, back, shown = ask(stdio(home), talk, mode)

    assert all(one.is_error and "it was removed or moved" in text_of(one) for one in gone)
    assert [text_of(one) for one in back if one.is_error] == []
    assert "kettle boils over" in text_of(back[0])
    assert (
        json.loads(shown)["record"]["usage_count"] == 2
    )  # Counted before it went, and after it came back.


@pytest.mark.parametrize("mode", ERAS)
def test_a_record_that_is_not_there_is_told_by_its_resource(home: Path, mode: str) -> None:
    async def talk(client: Client) -> Any:
        with pytest.raises(Exception, match="no record has an id") as caught:
            await client.read_resource("memory://records/none")
        await client.call_tool("recall", {"text": "still there?"})
        return caught.value

    assert ask(stdio(home), talk, mode).code == -32602


def test_servers_of_one_agent_that_race_lose_no_update_and_another_agent_is_not_touched(
    home: Path,
) -> None:
    Notes(Home(home), "me").write(
        "a.md", "".join(f"[{who}{number}]\n" for who in "ab" for number in range(40))
    )
    Notes(Home(home), "other").write("a.md", "".join(f"[c{number}]\n" for number in range(40)))

    async def edit(agent: str, who: str) -> list[Any]:
        async with Client(stdio(home, agent)) as client:
            return [
                await client.call_tool(
                    "memory_replace",
                    {"path": "a.md", "old": f"[{who}{number}]", "new": f"({who}{number})"},
                )
                for number in range(40)
            ]

    async def race() -> list[list[Any]]:
        return list(await asyncio.gather(edit("me", "a"), edit("me", "b"), edit("other", "c")))

    said = asyncio.run(race())

    assert not [text_of(one) for answers in said for one in answers if one.is_error]
    expected = "".join(f"({who}{number})\n" for who in "ab" for number in range(40))
    assert Notes(Home(home), "me").read("a.md") == expected
    assert Notes(Home(home), "other").read("a.md") == "".join(
        f"(c{number})\n" for number in range(40)
    )


# --- How it is asked ----------------------------------------------------------------------------------------------


def test_what_is_no_message_is_passed_over(home: Path) -> None:
    junk = [
        b"{half a mess",
        b"",
        b"\xff\xfe\x00",
        b"[" * 50_000,
        b'"text"',
        b"[]",
        b'{"jsonrpc":"2.0"}',
        b"null",
    ]
    junk += [
        b'{"jsonrpc":"1.0","id":5,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":6,"method":"no/such"}',
    ]
    with raw() as server:
        for number, line in enumerate(junk, 100):
            server.send(line + b"\n" + call(number, "memory_list"))
            answer = server.answers(number)[number]
            assert answer["result"]["content"][0]["text"] == "No notes yet.", line[:40]
        server.stdin.close()
        assert server.process.wait(timeout=30) == 0


@pytest.mark.parametrize("closed", [("stdin",), ("stdin", "stdout"), ("stdout", "stdin")])
@pytest.mark.parametrize(
    "last", [b'{"jsonrpc":"2.0","id":9,"meth', call(9, "recall", text="kettle")]
)
def test_a_client_that_hangs_up_in_the_middle_ends_it_quietly(
    home: Path, closed: tuple[str, ...], last: bytes
) -> None:
    lesson = "said just before the line went dead"
    with raw() as server:
        server.send(call(2, "remember", lesson=lesson, type="error"))
        server.answers(2)
        server.send(call(3, "memory_write", path="a.md", content="x") + last)
        for stream in closed:
            getattr(server, stream).close()
        assert server.process.wait(timeout=60) == 0
        assert b"Traceback" not in server.stderr.read()

    assert lesson in next((home / "log").glob("*.jsonl")).read_text()


@pytest.mark.slow
def test_thousands_of_calls_leave_nothing_behind(home: Path) -> None:
    with raw() as server:
        server.send(
            call(2, "remember", lesson="kettle boils over", type="error")
            + call(3, "recall", text="kettle")
        )
        server.answers(2, 3)
        sample = [
            ("recall", {"text": "kettle boils"}),
            ("memory_write", {"path": "a.md", "content": "x"}),
            ("memory_read", {"path": "a.md"}),
            ("memory_list", {}),
            ("nope", {}),
            ("show", {"id": "les-kettle"}),
        ]
        before: tuple[int, int] | None = None
        for start in range(10, 10 + CALLS, 100):
            numbers = range(start, start + 100)
            batch = b"".join(
                call(number, tool, **given)
                for number in numbers
                for tool, given in [sample[number % 6]]
            )
            server.send(batch)
            server.answers(*numbers)
            before = before or footprint(server.process.pid)
        after = footprint(server.process.pid)
        server.stdin.close()
        assert server.process.wait(timeout=30) == 0

    if before and after:
        assert after[0] <= before[0] + DESCRIPTORS_GROWTH_MAX, "open descriptors grew"
        assert after[1] <= before[1] + RSS_GROWTH_KB_MAX, "memory grew"


def footprint(pid: int) -> tuple[int, int] | None:
    """Open descriptors and resident kilobytes, where the system tells."""
    folder = Path(f"/proc/{pid}")
    if not folder.is_dir():
        return None
    status = (folder / "status").read_text()
    resident = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return len(list((folder / "fd").iterdir())), int(resident)
