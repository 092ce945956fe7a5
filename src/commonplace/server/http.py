"""`commonplace serve`: one HTTP server for all agents of a home.

It serves `/mcp`, `/api/v1/…`, `/health` and `/metrics` at a port, where requests need a token, and
at a socket for programs of its own user. It ends by itself after a time without requests.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import math
import os
import secrets
import signal
import socket
import sys
import time
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import uvicorn
from anyio import move_on_after, to_thread
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

import commonplace
from commonplace.errors import CommonplaceError, ScopeMissing, ServerTrouble
from commonplace.server import api, log_format, metrics, own_socket, presence
from commonplace.server.access_tokens import SCOPES, SCOPES_DEFAULT, Token, Tokens
from commonplace.server.build import build_server, choose_toolsets
from commonplace.server.connection import KEEP_ALIVE_S, Connection, raise_file_limit
from commonplace.server.guard import LOOPBACK_NAMES, Guard, Limits, current_caller
from commonplace.server.home_token import HomeToken
from commonplace.server.idle import IdleMaintenance
from commonplace.sessions import drain_waiting
from commonplace.where.repository import Repository

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import Request

    from commonplace.memory import Memory

BACKLOG = 256
# Queries run one at a time, and each waiting one occupies a thread with its own memory. The limit
# leaves threads for other requests.
THREADS_MAX = 20
SESSIONS_MAX = 1000
# Above this number, the sessions used longest ago are ended: most clients never close theirs.
SESSIONS_KEPT = 800
SESSION_IDLE_S = 900
WATCH_S_MAX = 5.0
WARM_UP_S_MAX = 5.0
# A server whose home was removed ends after this time, in case the home comes back.
ORPHAN_S = 60.0
GRACE_S = 2
HOOK_BYTES_MAX = 24 << 20
# An answer creates thousands of small objects, nearly all of which are freed without the collector.
# With Python's own thresholds it ran several times per answer and took an eighth of the time.
GARBAGE_THRESHOLDS = (20_000, 20, 20)
# glibc's name for how many pools of freed memory the threads have, and the number for ours. With
# one for each thread, a server kept 25 MB more.
M_ARENA_MAX = -8
ARENAS_MAX = 2
# The address at which this machine reaches a server that listens on all interfaces. Not every
# system accepts both families at `::`.
LOCAL_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
# The signals besides SIGINT that end the server in an orderly way: a service manager or a closed
# terminal sends them.
END_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def serve(
    memory: Memory,
    host: str | None,
    port: int | None,
    toolsets: str | None,
    print_address: Callable[[str], None],
) -> None:
    """Serve *memory* until stopped or idle. A home has at most one server."""
    # The server is shared: the folder where it was started does not choose the repository, only a
    # repository's own home does.
    memory.repository = (
        Repository("general", "general", known=False)
        if memory.home.of_user
        else memory.beside(cwd=memory.home.path.parent).repository
    )
    host = host or memory.settings["server.host"]
    tokens = Tokens(memory.home)
    if not is_loopback(host) and not tokens.all():
        raise ServerTrouble(
            f"listening on `{host}`, which others can reach, needs an access token",
            "add one with `commonplace token add AGENT`, or serve on 127.0.0.1",
        )
    presence.claim(memory.home)
    HomeToken(memory.home).create()
    listening = listen(host, port, memory.settings["server.port"])
    HttpServer(memory, tokens, listening, host, toolsets).run(print_address)


class HttpServer:
    """The server of one home, from its start to its end."""

    def __init__(
        self,
        memory: Memory,
        tokens: Tokens,
        listening: socket.socket,
        host: str,
        toolsets: str | None,
    ) -> None:
        self._memory = memory
        self._home = memory.home
        self._listening = listening
        self._idle_s = memory.settings["server.idle_minutes"] * 60.0
        # For our own programs: they come through the socket, or have read the key.
        self._own_token = Token("local", memory.agent_id, (*SCOPES, "own"), "", "")
        self._home_token = HomeToken(memory.home)
        self._key = secrets.token_hex(32)
        self._trouble: CommonplaceError | None = None
        self._server = build_server(
            self._open_memory,
            choose_toolsets(toolsets, memory),
            dotted_names=memory.settings["tools.dotted_names"],
        )
        self._guard = self._build_guard(tokens, host)
        self._uvicorn = uvicorn.Server(
            uvicorn.Config(
                self._guard,
                http=Connection,
                timeout_keep_alive=KEEP_ALIVE_S,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                lifespan="on",
                ws="none",
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        # Last, because a socket leaves a file, which `run` removes.
        self._own_socket = own_socket.bind(memory.home)
        self._presence = presence.Presence(
            host=LOCAL_ADDRESSES.get(host, host),
            port=listening.getsockname()[1],
            pid=os.getpid(),
            key=self._key,
            version=commonplace.__version__,
            socket=self._own_socket.getsockname() if self._own_socket else "",
        )

    def run(self, print_address: Callable[[str], None]) -> None:
        log_format.apply()
        gc.set_threshold(*GARBAGE_THRESHOLDS)
        share_freed_memory()
        Connection.connections_max = raise_file_limit()
        for number in END_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` ignores SIGHUP.
                signal.signal(number, lambda *_what: self._stop())
        try:
            print_address(self._presence.address)
            os.chdir(self._home.path.anchor)  # Its start folder may be removed.
            self._uvicorn.run(sockets=[one for one in (self._listening, self._own_socket) if one])
        finally:
            own_socket.remove(self._presence.socket)
            presence.remove(self._home, self._key)
            self._memory.engine().vectors.stop_worker()
        if self._trouble is not None:
            raise self._trouble

    # --- The application --------------------------------------------------------------------------

    def _build_guard(self, tokens: Tokens, host: str) -> Guard:
        # Our guard checks Host and Origin, since it knows the names of this server.
        unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        settings = self._memory.settings
        limits = Limits(
            settings["server.body_bytes_max"],
            HOOK_BYTES_MAX,
            settings["server.rate_max"],
            settings["server.concurrency_max"],
        )
        protocol = self._server.streamable_http_app(
            transport_security=unchecked,
            max_request_body_size=limits.body_bytes_max,
            session_idle_timeout=SESSION_IDLE_S,
            max_sessions=SESSIONS_MAX,
        )
        extra = [Route("/health", self._health), Route("/metrics", self._metrics_page)]
        routes = api.routes(self._server, self._open_memory, self._memory.homes, self._stop)
        self._metrics = metrics.create(
            self._operations, lambda: self._guard.in_flight, self._memory.worth
        )
        loopback = is_loopback(host)
        return Guard(
            Router(
                [*protocol.routes, *extra, *routes], default=api.not_found, lifespan=self._lifespan
            ),
            names=LOOPBACK_NAMES | {host.lower(), *settings["server.hosts"]},
            any_address=not loopback,
            find=lambda text: self._find_token(text, tokens),
            own=self._own_token,
            limits=limits,
            observe=self._metrics.observe if self._metrics else lambda *_what: None,
        )

    @asynccontextmanager
    async def _lifespan(self, _app: object) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS_MAX
        async with self._server.session_manager.run():
            await self._warm_up()
            try:
                presence.write(self._home, self._presence)
            except CommonplaceError as error:
                # Raised when the loop has ended: raised here it would be logged as a traceback.
                self._trouble = error
                self._stop()
            watching = asyncio.create_task(self._watch())
            maintenance = IdleMaintenance(self._memory, self._guard.idle_s)
            # Ingest the events that hooks spooled while no server ran.
            await to_thread.run_sync(drain_waiting, self._memory)
            try:
                yield
            finally:
                watching.cancel()
                await to_thread.run_sync(maintenance.close)

    async def _warm_up(self) -> None:
        """Open the index and bring it up to date, so that the first query is as fast as the next.

        Catching up for longer goes on in the background, where the model is loaded too; until then
        answers go without them.
        """
        engine = self._memory.engine()

        def catch_up() -> None:
            with suppress(CommonplaceError):  # The next query reports it.
                engine.catch_up()
            engine.run_in_background()

        with move_on_after(WARM_UP_S_MAX):
            await to_thread.run_sync(catch_up, abandon_on_cancel=True)

    async def _watch(self) -> None:
        """End when idle: no request for some time, none in progress, no open stream."""
        trimmed = self._guard.last_used
        settled = False
        while not self._uvicorn.should_exit:
            # At long intervals, so that an idle server uses almost no CPU time.
            await asyncio.sleep(min(WATCH_S_MAX, max(self._idle_s / 4, 0.1)))
            presence.trim_log(self._home)
            self._end_idle_sessions()
            if not settled:
                settled = True
                # What is loaded by now stays: scanning it for garbage would delay answers.
                gc.collect()
                gc.freeze()
            if trimmed != self._guard.last_used:
                trimmed = self._guard.last_used
                await asyncio.to_thread(give_back_memory)  # Not in a thread that answers.
            known = presence.read(self._home)
            limit = (
                self._idle_s if known and known.key == self._key else min(ORPHAN_S, self._idle_s)
            )
            busy = self._guard.in_flight or self._guard.streams
            if not busy and time.monotonic() - self._guard.last_used > limit:
                self._stop()

    def _end_idle_sessions(self) -> None:
        manager = self._server.session_manager
        sessions = manager._server_instances.values()  # noqa: SLF001 (no public way)
        # The SDK ends an idle session by the deadline of this scope, which is infinite during use.
        scopes = [session.idle_scope for session in sessions if session.idle_scope is not None]
        idle = sorted(
            (scope for scope in scopes if scope.deadline < math.inf),
            key=lambda scope: scope.deadline,
        )
        for scope in idle[: max(0, len(sessions) - SESSIONS_KEPT)]:
            scope.cancel()

    def _find_token(self, text: str, tokens: Tokens) -> Token | None:
        if secrets.compare_digest(text.encode(), self._key.encode()):
            return self._own_token
        token = tokens.find(text)
        if token is None and self._home_token.matches(text):
            return Token("home", self._memory.agent_id, SCOPES_DEFAULT, "", "")
        return token

    def _stop(self) -> None:
        # First, so that nobody finds a server that answers for a moment more and then is gone.
        presence.remove(self._home, self._key)
        self._uvicorn.should_exit = True

    def _open_memory(self, scope: str = "read") -> Memory:
        caller = current_caller()
        if scope not in caller.scopes:
            raise ScopeMissing(scope)
        self._memory.check_homes()
        return self._memory.beside(agent_id=caller.agent)

    def _operations(self) -> frozenset[str]:
        manager = self._server._tool_manager  # noqa: SLF001 (the public method is async)
        tools = {tool.name for tool in manager.list_tools()}
        names = {*tools, *self._server.other_names}
        return frozenset(
            {*names, "records", "stats", "context", "openapi.json", "hook", "ask", "stop"}
        )

    async def _health(self, _request: Request) -> Response:
        health: dict[str, Any] = {"status": "ok", "version": commonplace.__version__}
        if current_caller().name == self._own_token.id:
            health |= {
                "pid": os.getpid(),
                "home": str(self._home.path),
                "in_flight": self._guard.in_flight,
            }
        return JSONResponse(health)

    async def _metrics_page(self, _request: Request) -> Response:
        if self._metrics is None:
            return JSONResponse({"error": metrics.MISSING}, 404)
        try:
            self._open_memory("read")
        except CommonplaceError as error:
            return api.error_response(error)
        return Response(self._metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


def share_freed_memory() -> None:
    """Make the threads share what glibc keeps of freed memory. Else each thread keeps its own."""
    with suppress(OSError, AttributeError):
        if sys.platform == "linux":
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS_MAX)


def give_back_memory() -> None:
    """Make glibc return freed memory to the system, which it otherwise keeps after each commit."""
    with suppress(OSError, AttributeError):  # Other C libraries lack this call and do not need it.
        if sys.platform == "linux":
            ctypes.CDLL(None).malloc_trim(0)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int | None, usual: int) -> socket.socket:
    """Return a socket that listens on *host*, at *port* if given, else *usual* or a free one."""
    wanted = [port] if port is not None else [usual, 0]
    for number in wanted:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                host, number, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            listening = socket.socket(family, kind, protocol)
        except OSError as error:
            raise ServerTrouble(
                f"`{host}` is not an address of this machine ({error.strerror})"
            ) from error
        try:
            if os.name == "posix":  # On Windows this would let two servers share a port.
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(BACKLOG)
        except OSError as error:
            listening.close()
            if number == wanted[-1]:
                raise ServerTrouble(
                    f"port {number} of `{host}` cannot be used ({error.strerror})",
                    "choose another with `--port`",
                ) from error
        else:
            listening.setblocking(False)  # noqa: FBT003 (its signature)
            return listening
    raise AssertionError("there is at least one port to try")
