"""`serve --ensure`, `--status`, `--stop`: a server started when needed, once a home, and gone when not."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any

from commonplace import processes
from commonplace.errors import ServerTrouble, unusable
from commonplace.files.lock import hold
from commonplace.server import presence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commonplace.server.presence import Presence
    from commonplace.where.home import Home

ANSWER_S_MAX = 5.0
START_S_MAX = 60.0
STOP_S_MAX = 10.0
SETTLE_S_MAX = 20.0
POLL_S = 0.02
LOG_LINES_SHOWN_MAX = 5


def running(home: Home) -> Presence | None:
    """The server of *home*, if it answers."""
    there = presence.read(home)
    if there is None or not presence.alive(home):
        return None
    return there if asked(there, "GET", "/health").get("pid") == there.pid else None


def ensure(home: Home, arguments: Sequence[str]) -> tuple[Presence, bool]:
    """The server of *home*, started with *arguments* if there is none; whether it was. However many ask: one."""
    there = running(home)
    if there is not None:
        return there, False
    with hold(home.server_start_lock):
        # Whoever held it before us may have started it; and one that is about to end is let go first.
        there = _settled(home, running)
        if there is not None:
            return there, False
        return _started(home, arguments), True


def stop(home: Home) -> Presence | None:
    """End the server of *home* and wait until it is gone; which one it was."""
    there = _settled(home, presence.read)  # One that starts is not missed.
    if there is None or not presence.alive(home):
        if there is not None:
            presence.remove(home, there.key)  # Left by one that was killed.
        return None
    asked(there, "POST", "/api/v1/stop")
    if not _gone(home, STOP_S_MAX):
        _signal(there.pid, signal.SIGTERM)
        if not _gone(home, STOP_S_MAX):
            raise ServerTrouble(
                f"the server (process {there.pid}) does not stop", "end that process by hand"
            )
    presence.remove(home, there.key)
    return there


def _settled(home: Home, look: Callable[[Home], Presence | None]) -> Presence | None:
    """What *look* finds, once it finds something or no process serves *home*: one may be starting or ending."""
    deadline = time.monotonic() + SETTLE_S_MAX
    while (there := look(home)) is None and presence.alive(home):
        if time.monotonic() > deadline:
            raise ServerTrouble(
                "a server holds this home and does not answer",
                f"whoever holds `{home.server_lock}` is it",
            )
        time.sleep(POLL_S)
    return there


def asked(there: Presence, method: str, path: str) -> dict[str, Any]:
    """What the server answers to its own key; nothing if it does not."""
    connection = HTTPConnection(there.host, there.port, timeout=ANSWER_S_MAX)
    try:
        headers = {"Authorization": f"Bearer {there.key}", "Content-Type": "application/json"}
        connection.request(method, path, headers=headers)
        told = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return {}
    finally:
        connection.close()
    return told if isinstance(told, dict) else {}


def _started(home: Home, arguments: Sequence[str]) -> Presence:
    log = home.server_log
    try:
        # Appending, so that the server can begin it anew.
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    except OSError as error:
        raise unusable(log, error) from error
    try:
        # A heap for each thread would double the memory that the server holds.
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
        there = running(home)
        if there is not None:
            process.returncode = 0  # It is on its own now: no warning that it still runs.
            return there
        if process.poll() is not None:
            break
        time.sleep(POLL_S)
    else:
        process.kill()
    with suppress(OSError):
        last = log.read_text("utf-8", "replace").strip().splitlines()[-LOG_LINES_SHOWN_MAX:]
    # A full disk takes no log; then the exit code is all there is to know.
    why = " ".join(last) or f"exit code {process.returncode}, see docs/CLI.md"
    raise ServerTrouble(f"the server did not start: {why}", f"its log is `{log}`")


def _gone(home: Home, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while presence.alive(home):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return  # It is gone.
