"""The guard and the connections in this process: what a client may not do to the others."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from commonplace.server.access_tokens import SCOPES, Token
from commonplace.server.connection import Connection
from commonplace.server.guard import OWN_SOCKET, Guard, Limits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from starlette.types import ASGIApp, Receive, Scope, Send

SOON_S = 0.05
TOKEN = Token("local", "default", SCOPES, "", "")


def guard(app: ASGIApp, **limits: Any) -> Guard:
    return Guard(
        app,
        names=["localhost"],
        any_address=False,
        find=lambda text: TOKEN._replace(id=text) if text.startswith("t-") else None,
        own=TOKEN,
        limits=Limits(**{"body_bytes_max": 1000, "hook_bytes_max": 1000, "rate_max": 1000, "concurrency_max": 1, **limits}),
    )  # fmt: skip


def request(path: str, method: str = "POST", **headers: str) -> dict[str, Any]:
    given = {
        "host": "localhost",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    raw = [(name.encode(), value.encode()) for name, value in given.items()]
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "headers": raw,
        "state": {OWN_SOCKET: True},
    }


async def never() -> MutableMapping[str, Any]:
    await asyncio.Event().wait()
    raise AssertionError


async def nothing() -> MutableMapping[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def asked(
    guarded: Guard, scope: dict[str, Any], receive: Receive = nothing
) -> tuple[int, Any]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await guarded(scope, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


async def takes_the_body(_scope: Scope, receive: Receive, _send: Send) -> None:
    while (await receive()).get("more_body"):
        pass
    raise AssertionError("the body has no end")


async def fails(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise RuntimeError("a secret of ours")


def test_a_body_that_does_not_come_gives_its_slot_back() -> None:
    guarded = guard(takes_the_body, client_timeout_s=SOON_S)

    async def talk() -> tuple[int, Any]:
        return await asked(guarded, request("/api/v1/recall"), never)

    assert asyncio.run(talk())[0] == 408
    assert guarded.in_flight == 0
    assert guarded._bodies == {}


def test_a_body_that_trickles_has_one_deadline_for_all_of_it() -> None:
    async def trickle() -> MutableMapping[str, Any]:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"", "more_body": True}

    async def talk() -> tuple[int, Any]:
        return await asked(
            guard(takes_the_body, client_timeout_s=SOON_S), request("/api/v1/recall"), trickle
        )

    assert asyncio.run(talk())[0] == 408


def test_slow_bodies_of_one_caller_shut_nobody_out() -> None:
    """They take no slot of complete requests; of too many, the oldest is given up."""

    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        assert (await receive())["body"] == b""
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"{}"})

    async def talk() -> tuple[list[int], list[int]]:
        guarded = guard(app, concurrency_max=3)
        of_one = request("/mcp", authorization="Bearer t-1")
        slow = [asyncio.create_task(asked(guarded, of_one, never)) for _ in range(5)]
        await asyncio.sleep(0)
        others = request("/mcp"), request("/mcp", authorization="Bearer t-2"), of_one
        answered = [(await asked(guarded, one))[0] for one in others]
        given_up = [(await one)[0] for one in slow[:3]]
        assert not any(one.done() for one in slow[3:])
        for one in slow[3:]:
            one.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        assert guarded._bodies == {}
        assert guarded.in_flight == 0
        return answered, given_up

    assert asyncio.run(asyncio.wait_for(talk(), 20)) == ([200] * 3, [408] * 3)


def test_a_fault_of_ours_is_an_answer_that_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[int] = []
    guarded = guard(fails)
    guarded._observe = lambda _method, _path, status, _seconds: seen.append(status)

    status, told = asyncio.run(asked(guarded, request("/api/v1/recall")))

    assert status == 500
    assert "secret" not in told["error"]
    assert "a secret of ours" in caplog.text
    assert seen == [500]


def test_only_who_is_let_in_keeps_it_alive() -> None:
    guarded = guard(fails)
    begun = guarded.last_used

    def used(scope: dict[str, Any]) -> bool:
        asyncio.run(asked(guarded, scope))
        return guarded.last_used > begun

    strangers = [
        request("/mcp", host="evil.example"),
        request("/mcp", origin="http://evil.example"),
        request("/health"),
    ]
    assert [used(scope) for scope in strangers] == [False] * 3
    assert used(request("/mcp"))


@pytest.mark.parametrize(
    "stream", [request("/mcp", "GET"), request("/mcp", mcp_method="subscriptions/listen")]
)
def test_who_only_listens_takes_no_slot_of_those_who_work(stream: dict[str, Any]) -> None:
    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["path"] == "/mcp":
            await asyncio.Event().wait()
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"{}"})

    async def talk() -> list[int]:
        guarded = guard(app, streams_max=2)
        open_streams = [asyncio.create_task(asked(guarded, stream)) for _ in range(2)]
        await asyncio.sleep(0)
        statuses = [(await asked(guarded, one))[0] for one in (request("/api/v1/recall"), stream)]
        for one in open_streams:
            one.cancel()
        return statuses

    assert asyncio.run(talk()) == [200, 503]


def test_a_full_server_still_says_that_it_lives_and_can_be_ended() -> None:
    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["path"] == "/api/v1/recall":
            await asyncio.Event().wait()
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"{}"})

    async def talk() -> list[int]:
        guarded = guard(app)
        working = asyncio.create_task(asked(guarded, request("/api/v1/recall")))
        await asyncio.sleep(0)
        paths = ("/api/v1/show", "/health", "/api/v1/stop")
        statuses = [(await asked(guarded, request(path)))[0] for path in paths]
        working.cancel()
        return statuses

    assert asyncio.run(talk()) == [503, 200, 200]


# --- Connections ----------------------------------------------------------------------------------------------------


async def listening(app: ASGIApp, talk: Callable[[int], Awaitable[Any]], **changes: Any) -> Any:
    """What *talk* comes to with a real socket behind which *app* answers."""
    kind = type("Impatient", (Connection,), {"client_timeout_s": SOON_S, **changes})
    config, state = uvicorn.Config(app, ws="none", log_config=None), ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: kind(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    async with server:
        return await talk(server.sockets[0].getsockname()[1])


async def plain(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    )
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.mark.parametrize(
    "said", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HT"]
)
def test_a_connection_on_which_nothing_is_asked_is_closed(said: bytes) -> None:
    async def talk(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said)
        with suppress(ConnectionResetError):
            await reader.read()  # Until it is closed.
        writer.close()

    asyncio.run(asyncio.wait_for(listening(plain, talk), 20))


def test_a_client_that_does_not_read_is_let_go() -> None:
    ended = asyncio.Event()

    async def long(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(100):
            await send({"type": "http.response.body", "body": b"x" * (1 << 20), "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        ended.set()

    async def talk(port: int) -> None:
        _reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await ended.wait()
        writer.close()

    asyncio.run(asyncio.wait_for(listening(long, talk), 20))


def test_of_too_many_connections_the_oldest_without_a_request_makes_room() -> None:
    async def talk(port: int) -> list[bytes]:
        oldest, held = await asyncio.open_connection("127.0.0.1", port)
        second, other = await asyncio.open_connection("127.0.0.1", port)
        newest, writer = await asyncio.open_connection("127.0.0.1", port)
        ended = await _until_closed(oldest)
        replies = []
        for reader, stream in ((second, other), (newest, writer)):
            stream.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            replies.append((await reader.readline()).strip())
        for one in (held, other, writer):
            one.close()
        return [ended, *replies]

    assert asyncio.run(
        asyncio.wait_for(listening(plain, talk, connections_max=2, client_timeout_s=600), 20)
    ) == [b"", b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK"]


def test_a_connection_makes_no_room_while_its_request_is_handled() -> None:
    begun, over = asyncio.Event(), asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await over.wait()
        await plain(scope, receive, send)

    async def talk(port: int) -> tuple[bytes, bytes]:
        first, held = await asyncio.open_connection("127.0.0.1", port)
        held.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await begun.wait()
        second, writer = await asyncio.open_connection("127.0.0.1", port)
        ended = await _until_closed(second)
        over.set()
        told = await first.readline()
        for one in (held, writer):
            one.close()
        return ended, told.strip()

    assert asyncio.run(
        asyncio.wait_for(listening(slow, talk, connections_max=1, client_timeout_s=600), 20)
    ) == (b"", b"HTTP/1.1 200 OK")


async def _until_closed(reader: asyncio.StreamReader) -> bytes:
    with suppress(ConnectionResetError):
        return await reader.read()
    return b""
