"""The guard checks every request before its route does: caller, Host, Origin, size and rate.

The SDK checks only its own route. A web page in a browser on this machine can send requests to a
loopback port, but cannot hide its Host and Origin. So both are checked first, on every request,
whatever the token.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from contextvars import ContextVar
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.requests import ClientDisconnect

from commonplace.errors import CommonplaceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from commonplace.server.access_tokens import Token

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
# Requests for these paths do not keep the server alive, nor do rejected requests.
MONITORING_PATHS = ("/health", "/metrics")
# Answered even when too many requests are in flight: they check that the server runs, or end it.
UNLIMITED_PATHS = ("/health", "/api/v1/stop")
CALLERS_MAX = 10_000
STREAMS_MAX = 500
# How long a client may take to send a request, or may stop reading the response.
CLIENT_TIMEOUT_S = 15.0
# In the state of a request that came through the user's own socket (see `own_socket.py`).
OWN_SOCKET = "own_socket"

LOG = logging.getLogger(__name__)


class Caller(NamedTuple):
    """The caller of a request: its agent, its scopes, and the name that its rate is counted by."""

    agent: str
    scopes: tuple[str, ...]
    name: str


CALLER: ContextVar[Caller] = ContextVar("caller")


class Limits(NamedTuple):
    """The limits of one server."""

    body_bytes_max: int
    hook_bytes_max: int
    rate_max: int
    concurrency_max: int
    streams_max: int = STREAMS_MAX
    client_timeout_s: float = CLIENT_TIMEOUT_S


class Refused(Exception):
    """A rejected request: the status, message and headers of the response."""

    def __init__(self, status: int, message: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


class Guard:
    """The outermost layer of the server."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        names: Iterable[str],
        any_address: bool,
        find: Callable[[str], Token | None],
        own: Token,
        limits: Limits,
        observe: Callable[[str, str, int, float], None] = lambda *_what: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in names)
        self._any_address = any_address
        self._find = find
        self._own = own
        self._limits = limits
        self._observe = observe
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        self._bodies: dict[str, list[asyncio.Timeout]] = {}
        self.in_flight = 0
        self.streams = 0
        self.last_used = clock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # There are no WebSockets here.
            await send({"type": "websocket.close", "code": 1008})
            return
        started, sender = self._clock(), ResponseSender(send)
        try:
            await self._handle(scope, receive, sender)
        except Refused as refused:
            await sender.refuse(refused)
        except ClientDisconnect:
            pass  # It hung up before it had sent the whole request.
        except Exception:  # The outer edge: a fault of ours fails one request and is logged.
            # Only the name of the operation: what follows it may be a text of the user.
            operation = "/".join(scope["path"].split("/")[:4])
            LOG.exception("%s %s failed", scope["method"], operation[:100])
            await sender.refuse(Refused(500, "a fault of ours; the server's log says more"))
        finally:
            self._observe(scope["method"], scope["path"], sender.status, self._clock() - started)

    async def _handle(self, scope: Scope, receive: Receive, send: ResponseSender) -> None:
        headers = _headers(scope)
        self._check_host(headers)
        self._check_origin(headers)
        caller = self._caller(headers, scope)
        self._check_rate(caller)
        is_hook = scope["path"] == "/api/v1/hook"
        limit = self._limits.hook_bytes_max if is_hook else self._limits.body_bytes_max
        if not caller.scopes:
            limit = 0  # A stranger who asks for `/health` has nothing to send.
        if _length(headers) > limit:
            raise Refused(413, f"the body is over {limit:,} bytes")
        # A request counts as in flight once it is complete; else slow ones would shut out others.
        body = await self._read_body(receive, caller, limit)
        is_stream = _is_stream(scope, headers)
        count, count_max = (
            (self.streams, self._limits.streams_max)
            if is_stream
            else (self.in_flight, self._limits.concurrency_max)
        )
        if count >= count_max and scope["path"] not in UNLIMITED_PATHS:
            raise Refused(503, "too many requests at once; try again", (b"retry-after", b"1"))
        previous = CALLER.set(caller)
        self._count(1, is_stream=is_stream)
        try:
            await self._app(scope, _give_body(body, receive), send)
        finally:
            if scope["path"] not in MONITORING_PATHS:
                self.last_used = self._clock()
            self._count(-1, is_stream=is_stream)
            CALLER.reset(previous)

    def idle_s(self) -> float:
        """Return for how many seconds there has been no request."""
        return 0.0 if self.in_flight else self._clock() - self.last_used

    def _count(self, step: int, *, is_stream: bool) -> None:
        if is_stream:
            self.streams += step
        else:
            self.in_flight += step

    def _check_host(self, headers: dict[bytes, bytes]) -> None:
        if not self._is_ours(_host_name(headers.get(b"host", b"").decode("latin-1"))):
            raise Refused(421, "this Host is not served here")

    def _check_origin(self, headers: dict[bytes, bytes]) -> None:
        origin = headers.get(b"origin")
        if origin is None:
            return
        scheme, _, authority = origin.decode("latin-1").partition("://")
        # For a page of our own, the Origin is the host that the request goes to.
        same = authority.lower() == headers.get(b"host", b"").decode("latin-1").lower()
        if scheme not in {"http", "https"} or not same:
            raise Refused(403, "requests from this Origin are not accepted")

    def _is_ours(self, name: str) -> bool:
        if name in self._names:
            return True
        if not self._any_address:
            return False
        try:
            # DNS rebinding needs a name; a request to an address means this machine.
            ip_address(name)
        except ValueError:
            return False
        return True

    def _caller(self, headers: dict[bytes, bytes], scope: Scope) -> Caller:
        token = self._token(headers, scope)
        if token is not None:
            access = AccessToken(
                token="", client_id=token.id, scopes=list(token.scopes), subject=token.agent
            )
            scope["user"] = AuthenticatedUser(access)  # The SDK ties its sessions to the user.
            return Caller(token.agent, token.scopes, token.id)
        if scope["path"] == "/health":
            return Caller("", (), (scope.get("client") or ("",))[0])
        raise _unauthorised("an access token is needed")

    def _token(self, headers: dict[bytes, bytes], scope: Scope) -> Token | None:
        """Return the token of a request; `None` if it has none and comes through the port."""
        kind, _, text = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if not kind:
            return self._own if scope.get("state", {}).get(OWN_SOCKET) is True else None
        try:
            token = self._find(text.strip()) if kind.lower() == "bearer" else None
        except CommonplaceError as error:
            raise Refused(503, str(error)) from error
        if token is None:
            raise _unauthorised("this access token is not known, or was revoked")
        return token

    async def _read_body(self, receive: Receive, caller: Caller, limit: int) -> bytes:
        """Return the whole body. If a caller sends too many at once, the oldest is given up."""
        now = asyncio.get_running_loop().time
        under_way = self._bodies.setdefault(caller.name, [])
        while len(under_way) >= self._limits.concurrency_max:
            oldest = under_way.pop(0)
            if not oldest.expired():
                oldest.reschedule(now())
        chunks, taken, more = list[bytes](), 0, True
        # Whatever the headers say, size and time are limited.
        timeout = asyncio.timeout(self._limits.client_timeout_s)
        try:
            async with timeout:
                under_way.append(timeout)
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    chunks.append(message.get("body", b""))
                    taken += len(chunks[-1])
                    if taken > limit:
                        raise Refused(413, f"the body is over {limit:,} bytes")
                    more = message.get("more_body", False)
        except TimeoutError:
            raise Refused(408, "the body took too long", (b"connection", b"close")) from None
        finally:
            if timeout in under_way:
                under_way.remove(timeout)
            if not under_way and self._bodies.get(caller.name) is under_way:
                del self._bodies[caller.name]
        return b"".join(chunks)

    def _check_rate(self, caller: Caller) -> None:
        """Reject a caller over the rate: a bucket holds one second's requests and is refilled."""
        rate, now = float(self._limits.rate_max), self._clock()
        left, then = self._buckets.get(caller.name, (rate, now))
        left = min(rate, left + (now - then) * rate)
        if left < 1:
            raise Refused(
                429,
                f"over {self._limits.rate_max} requests a second; slow down",
                (b"retry-after", b"1"),
            )
        if len(self._buckets) >= CALLERS_MAX:
            self._buckets.clear()
        self._buckets[caller.name] = (left - 1, now)


class ResponseSender:
    """`send`, with the status of the response; 0 until it began."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)

    async def refuse(self, refused: Refused) -> None:
        if self.status:
            return  # The response has begun already.
        body = json.dumps({"error": str(refused)}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        await self(
            {
                "type": "http.response.start",
                "status": refused.status,
                "headers": [*headers, *refused.headers],
            }
        )
        await self({"type": "http.response.body", "body": body})


def _give_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first returns *body*, and then waits for the disconnect."""
    given = False

    async def receive_body() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_body


def _headers(scope: Scope) -> dict[bytes, bytes]:
    headers: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        # Duplicates are an attack: two parsers may read different ones.
        if name in headers and name in {b"host", b"origin", b"authorization", b"content-length"}:
            raise Refused(400, f"the header {name.decode('latin-1')} occurs twice")
        headers[name] = value
    return headers


def _host_name(host: str) -> str:
    """Return *host* without the port: `127.0.0.1:80` → `127.0.0.1`, `[::1]:80` → `::1`."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if host.count(":") == 1 else host.lower()


def _is_stream(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    """Whether the response is a stream of events, which is counted apart from other requests."""
    listens = headers.get(b"mcp-method") == b"subscriptions/listen"
    return scope["path"] == "/mcp" and (scope["method"] == "GET" or listens)


def _length(headers: dict[bytes, bytes]) -> int:
    try:
        return int(headers.get(b"content-length", b"0"))
    except ValueError:
        raise Refused(400, "the content-length is not a number") from None


def _unauthorised(message: str) -> Refused:
    return Refused(401, message, (b"www-authenticate", b'Bearer realm="commonplace"'))


def current_caller() -> Caller:
    """Return the caller of the request that is being handled."""
    return CALLER.get()
