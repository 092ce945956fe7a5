"""Limit the number of connections and how long one may neither send nor read.

uvicorn has no limit for either. Connections to the user's own socket and to the port have a limit
each, so that whoever fills the port, which needs no token, does not shut out hooks and commands.
"""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING

from uvicorn.protocols.http.h11_impl import H11Protocol

from commonplace.server.guard import CLIENT_TIMEOUT_S, OWN_SOCKET

if TYPE_CHECKING:
    import asyncio

CONNECTIONS_MAX = 1000
# Besides its connections the server opens the files of its home.
DESCRIPTORS_MAX = 4096
# Longer than clients keep a connection, so that it is not closed during their next request.
KEEP_ALIVE_S = 30


class Connection(H11Protocol):
    """A connection that is closed if sending a request or reading a response takes too long."""

    client_timeout_s = CLIENT_TIMEOUT_S
    connections_max = CONNECTIONS_MAX
    is_own = False
    made_at = 0.0
    is_given_up = False
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.made_at = self.loop.time()
        self.is_own = transport.get_extra_info("socket").family == getattr(socket, "AF_UNIX", None)
        if self.is_own:
            self.app_state = {**self.app_state, OWN_SOCKET: True}
        self._wait()
        self._make_room()

    def _make_room(self) -> None:
        """If there are too many connections, close the oldest in which no request is handled.

        The new one is among them; it is closed if there is no other.
        """
        mine = [one for one in self.connections if isinstance(one, Connection)]
        # One that was given up is removed only later, when the loop comes round to it.
        same = [one for one in mine if one.is_own == self.is_own and not one.is_given_up]
        if len(same) > self.connections_max:
            idle = [one for one in same if one.is_idle()]
            oldest = min(idle, key=lambda one: one.made_at)
            oldest.is_given_up = True
            oldest.transport.abort()

    def is_idle(self) -> bool:
        """Whether no request is being handled: none was sent, only a part of its head, or all."""
        return self.cycle is None or self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._end_waiting()  # From here on the guard limits the time.
        elif self._waiting is None:
            self._wait()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._end_waiting()
        self._wait()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.client_timeout_s, self.transport.abort)

    def _end_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


def raise_file_limit() -> int:
    """Raise the limit of open files; return how many connections of each kind can be accepted."""
    if sys.platform == "win32":
        return CONNECTIONS_MAX  # Windows does not count sockets as files.
    import resource  # noqa: PLC0415 (POSIX only)

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else min(DESCRIPTORS_MAX, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return CONNECTIONS_MAX if soft == resource.RLIM_INFINITY else min(CONNECTIONS_MAX, soft // 4)
