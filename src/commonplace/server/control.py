"""Start, find and stop the server of a home, for `serve --ensure`, `--status` and `--stop`."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from commonplace import processes, served
from commonplace.errors import ServerTrouble, unusable
from commonplace.files.lock import hold
from commonplace.files.plain import open_for_append, read_small
from commonplace.server import presence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commonplace.server.presence import Presence
    from commonplace.where.home import Home

ANSWER_S_MAX = 5.0
ANSWER_BYTES_MAX = 64 << 10
START_S_MAX = 60.0
STOP_S_MAX = 10.0
SETTLE_S_MAX = 20.0
POLL_S = 0.02
LOG_LINES_SHOWN_MAX = 5


def running_server(home: Home) -> Presence | None:
    """Return the server of *home*, if it answers."""
    server = presence.read(home)
    if server is None or not presence.is_alive(home):
        return None
    return server if request(home, "GET", "/health").get("pid") == server.pid else None


def ensure(home: Home, arguments: Sequence[str]) -> tuple[Presence, bool]:
    """Return the server of *home*, and whether it was started, with *arguments*, by this call.

    However many processes call this, one server is started.
    """
    server = running_server(home)
    if server is not None:
        return server, False
    with hold(home.server_start_lock):
        # The previous holder of the lock may have started one; one that is ending must end first.
        server = _wait_until_settled(home, running_server)
        if server is not None:
            return server, False
        return _start(home, arguments), True


def stop(home: Home) -> Presence | None:
    """Stop the server of *home*, wait until it has ended, and return it."""
    server = _wait_until_settled(home, presence.read)  # One may be starting.
    if server is None or not presence.is_alive(home):
        if server is not None:
            presence.remove(home, server.key)  # Left by a server that was killed.
        return None
    request(home, "POST", "/api/v1/stop")
    if not _wait_until_gone(home, STOP_S_MAX):
        _signal(server.pid, signal.SIGTERM)
        if not _wait_until_gone(home, STOP_S_MAX):
            raise ServerTrouble(
                f"the server (process {server.pid}) does not stop", "end that process by hand"
            )
    presence.remove(home, server.key)
    return server


def _wait_until_settled(home: Home, look: Callable[[Home], Presence | None]) -> Presence | None:
    """Return what *look* finds, once it finds something or no process serves *home*.

    Until then a server may be starting or ending.
    """
    deadline = time.monotonic() + SETTLE_S_MAX
    while (server := look(home)) is None and presence.is_alive(home):
        if time.monotonic() > deadline:
            raise ServerTrouble(
                "a server holds this home and does not answer",
                f"end the process that holds `{home.server_lock}`",
            )
        time.sleep(POLL_S)
    return server


def request(home: Home, method: str, path: str) -> dict[str, Any]:
    """Ask the server of *home* as its own user; return the answer, or {} if there is none."""
    server = served.find_server(str(home.state_folder))
    if server is None:
        return {}
    reply = served.send(server, method, path, b"", ANSWER_S_MAX, ANSWER_BYTES_MAX)
    try:
        answer = json.loads(reply or b"{}")
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _start(home: Home, arguments: Sequence[str]) -> Presence:
    log = home.server_log
    try:
        descriptor = open_for_append(log)  # Appending, so that the server can truncate it.
        os.ftruncate(descriptor, 0)
    except OSError as error:
        raise unusable(log, error) from error
    try:
        # One heap for each thread would double the memory of the server.
        arenas = os.environ.get("MALLOC_ARENA_MAX", "2")
        process = processes.start(
            "commonplace",
            ["serve", *arguments],
            output=descriptor,
            environment={"MALLOC_ARENA_MAX": arenas},
        )
    finally:
        os.close(descriptor)
    last = list[str]()
    deadline = time.monotonic() + START_S_MAX
    while time.monotonic() < deadline:
        server = running_server(home)
        if server is not None:
            process.returncode = 0  # Prevents the warning that the process still runs.
            return server
        if process.poll() is not None:
            break
        time.sleep(POLL_S)
    else:
        process.kill()
    with suppress(OSError):
        last = (
            read_small(log, presence.LOG_BYTES_MAX)
            .decode("utf-8", "replace")
            .strip()
            .splitlines()[-LOG_LINES_SHOWN_MAX:]
        )
    # On a full disk there is no log, only the exit code.
    why = " ".join(last) or f"exit code {process.returncode}, see docs/CLI.md"
    raise ServerTrouble(f"the server did not start: {why}", f"its log is `{log}`")


def _wait_until_gone(home: Home, seconds: float) -> bool:
    """Whether no process serves *home* within *seconds*."""
    deadline = time.monotonic() + seconds
    while presence.is_alive(home):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return  # The process has ended.
