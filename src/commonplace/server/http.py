"""`commonplace serve`: one server for every agent of a home, over HTTP: `/mcp`, `/api/v1/…`, `/health`, `/metrics`.

It ends by itself when nobody has used it for a while.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
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
from commonplace.server import api, metrics, presence
from commonplace.server.access_tokens import SCOPES, Token, Tokens
from commonplace.server.build import chosen, made
from commonplace.server.connection import KEEP_ALIVE_S, Connection, make_room
from commonplace.server.guard import LOOPBACK_NAMES, Guard, Limits, current
from commonplace.server.idle import IdleMaintenance
from commonplace.sessions import drain_waiting
from commonplace.where.repository import Repository, find

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import Request

    from commonplace.memory import Memory

BACKLOG = 256
# Questions are answered one at a time, and each that waits has a thread with memory of its own; what else is asked
# should not have to wait for them.
THREADS_MAX = 20
SESSIONS_MAX = 1000
# Over this many, those used longest ago are let go: most clients never say goodbye.
SESSIONS_KEPT = 800
SESSION_IDLE_S = 900
WATCH_S_MAX = 5.0
WARM_UP_S_MAX = 5.0
# A home that was removed may come back; a server nobody can find again is not waited for that long.
ORPHAN_S = 60.0
GRACE_S = 2
HOOK_BYTES_MAX = 24 << 20
# An answer makes thousands of small values, nearly all of which are freed without the collector. With
# Python's own thresholds it ran several times in every answer and took an eighth of the server's time.
GARBAGE_THRESHOLDS = (20_000, 20, 20)
# How to reach from here what listens everywhere. Not every system lets both families in at `::`.
FROM_HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
# Besides Ctrl-C: what ends a service, and what a terminal sends when it is closed. What was written is then flushed.
ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def serve(
    memory: Memory,
    host: str | None,
    port: int | None,
    toolsets: str | None,
    said: Callable[[str], None],
) -> None:
    """Serve *memory* until told to stop or idle; *said* gets the address. One server a home."""
    # Whoever started it, it serves everybody: only a repository's own home tells which repository is meant.
    memory.repository = (
        Repository("general", "general") if memory.home.of_user else find(memory.home.path.parent)
    )
    host = host or memory.settings["server.host"]
    tokens = Tokens(memory.home)
    if not is_loopback(host) and not tokens.all():
        raise ServerTrouble(
            f"to listen on `{host}`, which others can reach, a token is needed",
            "make one with `commonplace token add AGENT`, or serve on 127.0.0.1",
        )
    presence.claim(memory.home)
    listening = bound(host, port, memory.settings["server.port"])
    Serving(memory, tokens, listening, host, toolsets).run(said)


class Serving:
    """One run of the server."""

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
        # Known to whoever may read the home's files, so that our own commands need no token.
        self._own = Token("local", memory.agent_id, (*SCOPES, "own"), "", "")
        self._key = secrets.token_hex(32)
        self._presence = presence.Presence(
            host=FROM_HERE.get(host, host),
            port=listening.getsockname()[1],
            pid=os.getpid(),
            key=self._key,
            version=commonplace.__version__,
        )
        self._trouble: CommonplaceError | None = None
        self._server = made(self._opened, chosen(toolsets, memory))
        self._guard = self._guarded(tokens, host)
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

    def run(self, said: Callable[[str], None]) -> None:
        # Anew, over what the SDK has set up: its coloured boxes make two hundred lines of a traceback.
        logging.basicConfig(
            level=logging.WARNING,
            format="%(asctime)s %(levelname)s %(name)s: %(message)s",
            force=True,
        )
        gc.set_threshold(*GARBAGE_THRESHOLDS)
        Connection.connections_max = make_room()
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # As under `nohup`.
                signal.signal(number, lambda *_what: self._stop())
        try:
            said(self._presence.address)
            os.chdir(self._home.path.anchor)  # It may outlive the folder it was started in.
            self._uvicorn.run(sockets=[self._listening])
        finally:
            presence.remove(self._home, self._key)
            self._memory.engine().stop_worker()
        if self._trouble is not None:
            raise self._trouble

    # --- The application --------------------------------------------------------------------------------------------

    def _guarded(self, tokens: Tokens, host: str) -> Guard:
        # The guard has checked Host and Origin already, with what is known here and not to the SDK.
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
        routes = api.routes(self._server, self._opened, self._memory.homes, self._stop)
        self._metrics = metrics.made(self._operations, lambda: self._guard.in_flight)
        loopback = is_loopback(host)
        tokenless = loopback and not settings["server.token_required"]
        return Guard(
            Router(
                [*protocol.routes, *extra, *routes], default=api.nowhere, lifespan=self._lifespan
            ),
            names=LOOPBACK_NAMES | {host.lower(), *settings["server.hosts"]},
            any_address=not loopback,
            find=lambda text: self._own if self._is_own(text) else tokens.find(text),
            is_open=lambda: tokenless and not tokens.all(),
            agent=self._memory.agent_id,
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
                self._trouble = (
                    error  # Told when the loop has ended: in here it would be a traceback.
                )
                self._stop()
            watching = asyncio.create_task(self._watch())
            maintenance = IdleMaintenance(self._memory, self._guard.idle_s)
            await to_thread.run_sync(
                drain_waiting, self._memory
            )  # What hooks saw while nobody was there.
            try:
                yield
            finally:
                watching.cancel()
                await to_thread.run_sync(maintenance.close)

    async def _warm_up(self) -> None:
        """Open the index and take in what is new, so that the first question is answered as quickly as the next.

        A long way to catch up goes on behind the door, and the model loads there: answers do without until then.
        """
        engine = self._memory.engine()

        def caught_up() -> None:
            with suppress(CommonplaceError):  # Whoever asks is told.
                engine.catch_up()
            engine.run_in_background()

        with move_on_after(WARM_UP_S_MAX):
            await to_thread.run_sync(caught_up, abandon_on_cancel=True)

    async def _watch(self) -> None:
        """End when idle: no request for a while, none under way, no client holding a stream."""
        trimmed = self._guard.last_used
        settled = False
        while not self._uvicorn.should_exit:
            # Seldom: whoever has it running all day should not find it among what runs.
            await asyncio.sleep(min(WATCH_S_MAX, max(self._idle_s / 4, 0.1)))
            presence.trim_log(self._home)
            self._let_sessions_go()
            if not settled:
                settled = True
                gc.collect()
                gc.freeze()  # What was loaded by now stays: looking through it for garbage would hold up answers.
            if trimmed != self._guard.last_used:
                trimmed = self._guard.last_used
                await asyncio.to_thread(give_back_memory)  # Not among the threads that answer.
            known = presence.read(self._home)
            limit = (
                self._idle_s if known and known.key == self._key else min(ORPHAN_S, self._idle_s)
            )
            busy = self._guard.in_flight or self._guard.streams
            if not busy and time.monotonic() - self._guard.last_used > limit:
                self._stop()

    def _let_sessions_go(self) -> None:
        sessions = self._server.session_manager._server_instances.values()  # noqa: SLF001 (no public way)
        # The SDK ends a session through this scope when it has been idle for long; while it is in use there is no end.
        scopes = [session.idle_scope for session in sessions if session.idle_scope is not None]
        idle = sorted(
            (scope for scope in scopes if scope.deadline < math.inf),
            key=lambda scope: scope.deadline,
        )
        for scope in idle[: max(0, len(sessions) - SESSIONS_KEPT)]:
            scope.cancel()

    def _is_own(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(), self._key.encode())

    def _stop(self) -> None:
        self._uvicorn.should_exit = True

    def _opened(self, scope: str = "read") -> Memory:
        caller = current()
        if scope not in caller.scopes:
            raise ScopeMissing(scope)
        self._memory.check_homes()
        return self._memory.beside(agent_id=caller.agent)

    def _operations(self) -> frozenset[str]:
        tools = {tool.name for tool in self._server._tool_manager.list_tools()}  # noqa: SLF001 (no public way that waits for nothing)
        return frozenset(
            {*tools, "records", "stats", "context", "openapi.json", "hook", "ask", "stop"}
        )

    async def _health(self, _request: Request) -> Response:
        told: dict[str, Any] = {"status": "ok", "version": commonplace.__version__}
        if current().name == self._own.id:
            told |= {
                "pid": os.getpid(),
                "home": str(self._home.path),
                "in_flight": self._guard.in_flight,
            }
        return JSONResponse(told)

    async def _metrics_page(self, _request: Request) -> Response:
        if self._metrics is None:
            return JSONResponse({"error": metrics.MISSING}, 404)
        try:
            self._opened("read")
        except CommonplaceError as error:
            return api.failed(error)
        return Response(self._metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


def give_back_memory() -> None:
    """Have glibc give back what was freed: each commit of the index leaves holes, and by itself it keeps them."""
    with suppress(
        OSError, AttributeError
    ):  # Other systems' libraries have no such call, and no such habit.
        if sys.platform == "linux":
            ctypes.CDLL(None).malloc_trim(0)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def bound(host: str, port: int | None, usual: int) -> socket.socket:
    """A socket that listens on *host*: at *port* if one is asked for, else at the usual one or any that is free."""
    wanted = [port] if port is not None else [usual, 0]
    for number in wanted:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                host, number, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            listening = socket.socket(family, kind, protocol)
        except OSError as error:
            raise ServerTrouble(
                f"`{host}` is no address of this machine ({error.strerror})"
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
