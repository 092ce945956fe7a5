"""The rules of the guard one by one: hosts, origins, tokens, sizes, rates and slots, without a network."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from starlette.requests import ClientDisconnect

from commonplace.errors import UsageError
from commonplace.server import guard as guard_module
from commonplace.server.access_tokens import SCOPES, Token
from commonplace.server.guard import Caller, Guard, Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Message, Receive, Scope, Send

TOKEN = Token("t-1", "ana", ("read", "write"), "2026-01-01T00:00:00Z", "0" * 64)
OWN = Token("local", "default", (*SCOPES, "own"), "", "")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Door:
    """A guard before an app that answers 200 and notes who came in."""

    def __init__(
        self,
        *,
        own_socket: object = True,
        find: Callable[[str], Token | None] = {"sesame": TOKEN}.get,
        names: tuple[str, ...] = ("localhost", "Box.Example"),
        any_address: bool = False,
        app: Any = None,
        **limits: Any,
    ) -> None:
        self.clock = Clock()
        self.callers: list[Caller] = []
        self.scopes: list[Any] = []
        self.observed: list[tuple[str, str, int, float]] = []
        self.state = {guard_module.OWN_SOCKET: own_socket}

        given = {
            "body_bytes_max": 1000,
            "hook_bytes_max": 500,
            "rate_max": 1000,
            "concurrency_max": 2,
        }
        self.guard = Guard(
            app or self._app,
            names=names,
            any_address=any_address,
            find=find,
            own=OWN,
            limits=Limits(**{**given, **limits}),
            observe=lambda *what: self.observed.append(what),
            clock=self.clock,
        )

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.callers.append(guard_module.current_caller())
        self.scopes.append(scope)
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'{"ok": true}'})

    def ask(
        self,
        path: str = "/api/v1/recall",
        *headers: tuple[str, str],
        method: str = "POST",
        body: tuple[bytes, ...] = (b"",),
        client: tuple[str, int] | None = ("10.0.0.9", 1),
    ) -> tuple[int, dict[str, str], Any]:
        """What one request is answered with: status, headers, content."""
        names = [name for name, _value in headers]
        whole = [*headers, *([] if "host" in names else [("host", "localhost")])]
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "client": client,
            "state": self.state,
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in whole],
        }
        parts = list(body)
        sent: list[Any] = []

        async def receive() -> Message:
            part = parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(parts)}

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.guard(scope, receive, send))
        found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], found, json.loads(sent[1]["body"])

    def status(self, *given: Any, **more: Any) -> int:
        return self.ask(*given, **more)[0]


# --- Host and Origin ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "any_address", "status"),
    [
        ("localhost", False, 200),
        ("localhost:8377", False, 200),
        ("LOCALHOST:8377", False, 200),
        ("box.example", False, 200),
        ("evil.example", False, 421),
        ("evil.example:8377", True, 421),
        ("localhost.evil.example", False, 421),
        ("", False, 421),
        ("10.0.0.1", False, 421),
        ("10.0.0.1:80", True, 200),
        ("[fe80::1]:80", True, 200),
        ("fe80::1", True, 200),
        ("[fe80::1]", False, 421),
        ("10.0.0.1.evil.example", True, 421),
    ],
)
def test_only_its_own_hosts_are_served(host: str, any_address: bool, status: int) -> None:
    assert Door(any_address=any_address).status("/mcp", ("host", host)) == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost", 200),
        ("https://localhost", 200),
        ("http://LOCALHOST", 200),
        ("http://localhost:99", 403),
        ("http://evil.example", 403),
        ("ftp://localhost", 403),
        ("null", 403),
        ("localhost", 403),
        ("", 403),
    ],
)
def test_only_a_page_of_its_own_may_ask(origin: str, status: int) -> None:
    assert Door().status("/mcp", ("origin", origin)) == status


@pytest.mark.parametrize("name", ["host", "origin", "authorization", "content-length"])
def test_a_header_that_decides_may_not_come_twice(name: str) -> None:
    value = {"host": "localhost", "origin": "http://localhost", "content-length": "0"}
    header = (name, value.get(name, "Bearer sesame"))

    assert Door().status("/mcp", header) == 200
    assert Door().status("/mcp", header, header) == 400
    assert Door().status("/mcp", ("accept", "a"), ("accept", "b")) == 200


# --- Who asks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        ("Bearer sesame", 200),
        ("bearer  sesame ", 200),
        ("Basic sesame", 401),
        ("Bearer wrong", 401),
        ("sesame", 401),
        ("Bearer", 401),
        ("", 401),
    ],
)
def test_the_port_takes_tokens_only(authorization: str, status: int) -> None:
    door = Door(own_socket=False)

    found, headers, _content = door.ask("/mcp", ("authorization", authorization))

    assert found == status
    assert ("www-authenticate" in headers) is (status == 401)
    if status == 200:
        assert door.callers == [Caller("ana", ("read", "write"), "t-1")]
        assert door.scopes[0]["user"].access_token.scopes == ["read", "write"]
        assert door.scopes[0]["user"].access_token.client_id == "t-1"


def test_a_wrong_token_is_refused_on_the_own_socket_too() -> None:
    assert Door().status("/mcp", ("authorization", "Bearer wrong")) == 401


def test_a_request_on_the_own_socket_is_the_users() -> None:
    door = Door()

    assert door.status("/mcp", client=None) == 200
    assert door.callers == [Caller("default", OWN.scopes, "local")]
    assert door.scopes[0]["user"].access_token.client_id == "local"


@pytest.mark.parametrize("mark", [False, None, 1, "yes"])
def test_what_is_not_marked_as_the_own_socket_needs_a_token(mark: object) -> None:
    assert Door(own_socket=mark).status("/mcp") == 401


def test_without_a_token_the_port_says_that_it_lives_and_takes_nothing() -> None:
    door = Door(own_socket=False)

    assert door.status("/health") == 200
    assert door.callers == [Caller("", (), "10.0.0.9")]
    assert door.status("/health", body=(b"x",)) == 413
    assert door.status("/health", ("content-length", "1")) == 413
    assert door.status("/metrics") == 401


def test_tokens_that_cannot_be_read_let_nobody_in() -> None:
    def damaged(_text: str) -> Token | None:
        raise UsageError("the file is damaged")

    found = Door(find=damaged).ask("/mcp", ("authorization", "Bearer sesame"))

    assert (found[0], found[2]["error"]) == (503, "the file is damaged")


# --- How much -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "length", "status"),
    [
        ("/mcp", "1000", 200),
        ("/mcp", "1001", 413),
        ("/api/v1/hook", "500", 200),
        ("/api/v1/hook", "501", 413),
        ("/mcp", "many", 400),
    ],
)
def test_a_body_may_say_that_it_is_so_long(path: str, length: str, status: int) -> None:
    assert Door().status(path, ("content-length", length)) == status


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/mcp", (b"x" * 1000,), 200),
        ("/mcp", (b"x" * 500, b"x" * 500), 200),
        ("/mcp", (b"x" * 500, b"x" * 501), 413),
        ("/api/v1/hook", (b"x" * 501,), 413),
        ("/api/v1/hook", (b"x" * 500,), 200),
    ],
)
def test_a_body_that_does_not_say_its_length_is_counted(
    path: str, body: tuple[bytes, ...], status: int
) -> None:
    assert Door().status(path, body=body) == status


def test_a_refusal_is_a_sentence_with_its_length() -> None:
    _status, headers, content = Door().ask("/mcp", ("content-length", "1001"))

    assert headers["content-type"] == "application/json"
    assert int(headers["content-length"]) == len(json.dumps(content))
    assert content == {"error": "the body is over 1,000 bytes"}


# --- How often ----------------------------------------------------------------------------------------


def test_a_caller_has_so_many_requests_a_second_and_they_come_back() -> None:
    door = Door(rate_max=3)

    assert [door.status() for _ in range(4)] == [200, 200, 200, 429]
    assert door.ask()[1]["retry-after"] == "1"
    door.clock.now += 0.5
    assert [door.status() for _ in range(2)] == [200, 429]
    door.clock.now += 60
    assert [door.status() for _ in range(4)] == [200, 200, 200, 429]


def test_each_caller_is_counted_alone() -> None:
    door = Door(rate_max=1, own_socket=False)

    def status(port: int) -> int:
        return door.status("/health", client=(f"10.0.0.{port}", 1))

    assert [status(1), status(1), status(2)] == [200, 429, 200]
    assert door.status("/mcp", ("authorization", "Bearer sesame"), client=("10.0.0.1", 1)) == 200


def test_very_many_callers_are_not_all_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_module, "CALLERS_MAX", 3)
    door = Door(rate_max=1, own_socket=False)

    def status(port: int) -> int:
        return door.status("/health", client=(str(port), 1))

    assert [status(n) for n in range(3)] == [200] * 3
    assert [status(0), status(3), status(0)] == [429, 200, 200]


# --- How many at once ---------------------------------------------------------------------------------


class Busy:
    """A guard with requests in it that do not end."""

    def __init__(self, **limits: Any) -> None:
        self.door = Door(app=self._app, **limits)
        self.is_over = asyncio.Event()

    async def _app(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await self.is_over.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def statuses(self, *requests: tuple[str, str, dict[str, str]]) -> list[int]:
        async def one(path: str, method: str, headers: dict[str, str]) -> int:
            sent: list[Any] = []

            async def send(message: Any) -> None:
                sent.append(message)

            async def receive() -> Message:
                return {"type": "http.request"}

            raw = [(name.encode(), text.encode()) for name, text in headers.items()]
            scope = {
                "type": "http",
                "method": method,
                "path": path,
                "raw_path": path.encode(),
                "headers": [(b"host", b"localhost"), *raw],
                "state": self.door.state,
            }
            await self.door.guard(scope, receive, send)
            return int(sent[0]["status"])

        tasks = [asyncio.create_task(one(*request)) for request in requests]
        await asyncio.sleep(0.01)
        self.counts = (self.door.guard.in_flight, self.door.guard.streams)
        self.idle_s = self.door.guard.idle_s()
        self.is_over.set()
        return list(await asyncio.gather(*tasks))


POST = ("/mcp", "POST", dict[str, str]())
GET = ("/mcp", "GET", dict[str, str]())
LISTEN = ("/mcp", "POST", {"mcp-method": "subscriptions/listen"})


@pytest.mark.parametrize(
    ("requests", "statuses", "counts"),
    [
        ([POST, POST], [200, 200], (2, 0)),
        ([POST, POST, POST], [200, 200, 503], (2, 0)),
        ([GET, LISTEN, GET], [200, 200, 503], (0, 2)),
        ([GET, GET, POST, POST], [200] * 4, (2, 2)),
        ([POST, POST, LISTEN], [200] * 3, (2, 1)),
        ([POST, POST, ("/mcp", "POST", {"mcp-method": "other"})], [200, 200, 503], (2, 0)),
        ([POST, POST, ("/other", "GET", {})], [200, 200, 503], (2, 0)),
        ([POST, POST, ("/health", "GET", {})], [200] * 3, (3, 0)),
        ([POST, POST, ("/api/v1/stop", "POST", {})], [200] * 3, (3, 0)),
        ([POST, POST, ("/metrics", "GET", {})], [200, 200, 503], (2, 0)),
    ],
)
def test_so_many_work_at_once_and_so_many_listen(
    requests: list[tuple[str, str, dict[str, str]]], statuses: list[int], counts: tuple[int, int]
) -> None:
    async def talk() -> tuple[list[int], Busy]:
        busy = Busy(concurrency_max=2, streams_max=2)
        return await busy.statuses(*requests), busy

    found, busy = asyncio.run(talk())

    assert found == statuses
    assert busy.counts == counts
    assert (busy.door.guard.in_flight, busy.door.guard.streams) == (0, 0)


# --- What is noted ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "is_use"),
    [("/mcp", True), ("/api/v1/recall", True), ("/health", False), ("/metrics", False)],
)
def test_watching_is_not_using(path: str, is_use: bool) -> None:
    door = Door()
    door.clock.now += 7

    assert door.guard.idle_s() == 7
    assert door.status(path) == 200
    assert door.guard.idle_s() == (0 if is_use else 7)


def test_a_request_under_way_is_use() -> None:
    async def talk() -> Busy:
        busy = Busy()
        busy.door.clock.now += 7
        await busy.statuses(POST)
        return busy

    assert asyncio.run(talk()).idle_s == 0


def test_every_answer_is_observed_with_its_time() -> None:
    async def slow(_scope: Scope, _receive: Receive, send: Send) -> None:
        door.clock.now += 2.5
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    door = Door(app=slow)
    door.status("/a", method="PUT")
    door.status("/b", ("host", "evil.example"))

    assert door.observed == [("PUT", "/a", 202, 2.5), ("POST", "/b", 421, 0.0)]


def test_an_answer_that_has_begun_is_not_begun_again() -> None:
    async def breaks(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}", "more_body": True})
        raise RuntimeError

    door = Door(app=breaks)

    assert door.status() == 200
    assert door.observed[0][2] == 200


def test_a_client_that_hangs_up_is_nobodys_fault(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[Any] = []

    async def hangs_up(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise ClientDisconnect

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    door = Door(app=hangs_up)
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "headers": [(b"host", b"localhost")],
        "state": door.state,
    }
    asyncio.run(door.guard(scope, receive, send))

    assert sent == []
    assert caplog.text == ""
    assert door.observed[0][2] == 0


@pytest.mark.parametrize(
    ("kind", "told"),
    [("lifespan", []), ("websocket", [{"type": "websocket.close", "code": 1008}])],
)
def test_what_is_no_request(kind: str, told: list[dict[str, Any]]) -> None:
    passed: list[str] = []
    sent: list[Any] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        passed.append(scope["type"])

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "x"}

    asyncio.run(Door(app=app).guard({"type": kind}, receive, send))

    assert sent == told
    assert passed == (["lifespan"] if kind == "lifespan" else [])
