"""The guard before every route: who asks, from where, how much and how often. The SDK guards its own route alone.

A web page in a browser on this machine can send requests to a loopback port; it cannot hide its Host and Origin. So
both are checked first, on everything, whatever the token.
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
from commonplace.server.access_tokens import SCOPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from commonplace.server.access_tokens import Token

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
# Watching is not using: what asks how the server is does not keep it alive. Nor does who is refused.
WATCHED = ("/health", "/metrics")
# Answered at once whatever else is going on: whoever asks them wants to know whether it lives, or to end it.
UNCOUNTED = ("/health", "/api/v1/stop")
CALLERS_MAX = 10_000
STREAMS_MAX = 500
# How long a client may take to say what it wants, and stop reading what it is told.
PATIENCE_S = 15.0

LOG = logging.getLogger(__name__)


class Caller(NamedTuple):
    """Who asks: the agent its notes and records go by, what it may do, and a name to count it under."""

    agent: str
    scopes: tuple[str, ...]
    name: str


CALLER: ContextVar[Caller] = ContextVar("caller")


class Limits(NamedTuple):
    """What one server takes on."""

    body_bytes_max: int
    hook_bytes_max: int
    rate_max: int
    concurrency_max: int
    streams_max: int = STREAMS_MAX
    patience_s: float = PATIENCE_S


class Refused(Exception):
    """A request that gets no further: status, sentence, and headers of the answer."""

    def __init__(self, status: int, message: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


class Guard:
    """The outermost layer of the server."""

    def __init__(  # noqa: PLR0913 (what it decides by)
        self,
        app: ASGIApp,
        *,
        names: Iterable[str],
        any_address: bool,
        find: Callable[[str], Token | None],
        is_open: Callable[[], bool],
        agent: str,
        limits: Limits,
        observe: Callable[[str, str, int, float], None] = lambda *_what: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in names)
        self._any_address = any_address
        self._find = find
        self._is_open = is_open
        self._agent = agent
        self._limits = limits
        self._observe = observe
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
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
        started, answered = self._clock(), Answered(send)
        try:
            await self._guarded(scope, receive, answered)
        except Refused as refused:
            await answered.refuse(refused)
        except ClientDisconnect:
            pass  # It hung up before it had said all; there is nobody to answer.
        except Exception:  # The outer edge: a mistake of ours costs one answer, and the log has what is known of it.
            LOG.exception(
                "%s %s failed", scope["method"], scope["raw_path"][:200].decode("latin-1")
            )
            await answered.refuse(Refused(500, "a fault of ours; the server's log says more"))
        finally:
            self._observe(scope["method"], scope["path"], answered.status, self._clock() - started)

    async def _guarded(self, scope: Scope, receive: Receive, send: Answered) -> None:
        headers = _headers(scope)
        self._check_host(headers)
        self._check_origin(headers)
        caller = self._caller(headers, scope)
        self._check_rate(caller)
        is_hook = scope["path"] == "/api/v1/hook"
        limit = self._limits.hook_bytes_max if is_hook else self._limits.body_bytes_max
        if _length(headers) > limit:
            raise Refused(413, f"the body is over {limit:,} bytes")
        is_stream = _is_stream(scope, headers)
        counted, most = (
            (self.streams, self._limits.streams_max)
            if is_stream
            else (self.in_flight, self._limits.concurrency_max)
        )
        if counted >= most and scope["path"] not in UNCOUNTED:
            raise Refused(503, "too many requests at once; try again", (b"retry-after", b"1"))
        counting = CALLER.set(caller)
        self._count(1, is_stream=is_stream)
        try:
            await self._app(scope, _bounded(receive, limit, self._limits.patience_s), send)
        finally:
            if scope["path"] not in WATCHED:
                self.last_used = self._clock()
            self._count(-1, is_stream=is_stream)
            CALLER.reset(counting)

    def idle_s(self) -> float:
        """For how many seconds nobody has asked anything."""
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
        # A page of our own comes from where the request goes to.
        same = authority.lower() == headers.get(b"host", b"").decode("latin-1").lower()
        if scheme not in {"http", "https"} or not same:
            raise Refused(403, "requests from this Origin are not taken")

    def _is_ours(self, name: str) -> bool:
        if name in self._names:
            return True
        if not self._any_address:
            return False
        try:
            ip_address(
                name
            )  # A rebound name is a name; whoever writes an address means this machine.
        except ValueError:
            return False
        return True

    def _caller(self, headers: dict[bytes, bytes], scope: Scope) -> Caller:
        kind, _, text = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if text:
            token = self._known(text.strip()) if kind.lower() == "bearer" else None
            if token is None:
                raise _unauthorised("this token is not known, or was revoked")
            access = AccessToken(
                token="", client_id=token.id, scopes=list(token.scopes), subject=token.agent
            )
            scope["user"] = AuthenticatedUser(access)  # The SDK ties its sessions to it.
            return Caller(token.agent, token.scopes, token.id)
        if scope["path"] == "/health" or self._open():
            return Caller(self._agent, SCOPES, (scope.get("client") or ("",))[0])
        raise _unauthorised("a token is needed")

    def _known(self, text: str) -> Token | None:
        try:
            return self._find(text)
        except CommonplaceError as error:
            raise Refused(503, str(error)) from error

    def _open(self) -> bool:
        try:
            return self._is_open()
        except CommonplaceError as error:
            raise Refused(503, str(error)) from error

    def _check_rate(self, caller: Caller) -> None:
        """A bucket of a second's worth for each caller, refilled as time goes by."""
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


class Answered:
    """`send`, and whether and with what status the answer began."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)

    async def refuse(self, refused: Refused) -> None:
        if self.status:
            return  # Too late to say anything else.
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


def _bounded(receive: Receive, limit: int, patience_s: float) -> Receive:
    """*receive*, for bodies that do not say their length, or lie, or never end."""
    taken, whole = 0, False
    deadline = asyncio.get_running_loop().time() + patience_s

    async def bounded() -> Message:
        nonlocal taken, whole
        try:
            # Behind the body comes only the news that the client is gone, which may take as long as the answer.
            async with asyncio.timeout_at(None if whole else deadline):
                message = await receive()
        except TimeoutError:
            raise Refused(
                408, f"the body took over {patience_s:.0f} s", (b"connection", b"close")
            ) from None
        whole = not message.get("more_body", False)
        taken += len(message.get("body", b""))
        if taken > limit:
            raise Refused(413, f"the body is over {limit:,} bytes")
        return message

    return bounded


def _headers(scope: Scope) -> dict[bytes, bytes]:
    headers: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        # Two Hosts or two tokens: whoever sends them hopes that two readers take different ones.
        if name in headers and name in {b"host", b"origin", b"authorization", b"content-length"}:
            raise Refused(400, f"the header {name.decode('latin-1')} is there twice")
        headers[name] = value
    return headers


def _host_name(host: str) -> str:
    """The name or address without the port: `127.0.0.1:80` → `127.0.0.1`, `[::1]:80` → `::1`."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if host.count(":") == 1 else host.lower()


def _is_stream(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    """Whether the answer stays open to carry news: such clients wait, and hold no slot of those who work."""
    listens = headers.get(b"mcp-method") == b"subscriptions/listen"
    return scope["path"] == "/mcp" and (scope["method"] == "GET" or listens)


def _length(headers: dict[bytes, bytes]) -> int:
    try:
        return int(headers.get(b"content-length", b"0"))
    except ValueError:
        raise Refused(400, "the content-length is not a number") from None


def _unauthorised(message: str) -> Refused:
    return Refused(401, message, (b"www-authenticate", b'Bearer realm="commonplace"'))


def current() -> Caller:
    """Who asks, within a request."""
    return CALLER.get()
