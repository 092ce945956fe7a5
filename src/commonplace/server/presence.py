"""The address of a home's server: `.state/server.json`, written at its start, removed at its end.

The server holds `.state/server.lock` for as long as it runs; the system releases it however the
process ends. So a file without a held lock was left by a killed server, and is ignored.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from commonplace.errors import CommonplaceError, ServerTrouble
from commonplace.files import atomic, lock, nofollow
from commonplace.files.plain import make_folder, open_for_append, read_small
from commonplace.served import PRESENCE_BYTES_MAX

if TYPE_CHECKING:
    from commonplace.where.home import Home

CLAIMS_MAX = 10
CLAIM_WAIT_S = 0.03
LOG_BYTES_MAX = 1 << 20


class Presence(NamedTuple):
    """The address of a running server. `key` admits processes that can read the home's files.

    `socket` is the path of the socket for them; Windows has none.
    """

    host: str
    port: int
    pid: int
    key: str
    version: str
    socket: str = ""

    @property
    def address(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def trim_log(home: Home) -> None:
    """Empty the log of a detached server when it is long: clients can cause messages in it."""
    with suppress(OSError):
        if home.server_log.stat().st_size > LOG_BYTES_MAX:
            os.close(nofollow.open_file(home.server_log, os.O_WRONLY | os.O_TRUNC))


def write(home: Home, presence: Presence) -> None:
    """Write the file by which hooks and commands find the server."""
    with suppress(OSError):
        make_folder(home.hook_marks_folder)  # Hooks make no folders.
    atomic.replace(home.server_file, [json.dumps(presence._asdict()).encode()])


def read(home: Home) -> Presence | None:
    """Return the content of the file, if it is there and valid."""
    try:
        return Presence(**json.loads(read_small(home.server_file, PRESENCE_BYTES_MAX)))
    except (OSError, ValueError, TypeError):
        return None


def remove(home: Home, key: str) -> None:
    """Remove the file, unless another server has replaced it."""
    server = read(home)
    if server is not None and server.key == key:
        _remove(home)


def _remove(home: Home) -> None:
    with suppress(OSError):
        home.server_file.unlink(missing_ok=True)


def claim(home: Home) -> None:
    """Hold the lock that makes this process the only server of *home*, until the process ends."""
    for _attempt in range(CLAIMS_MAX):
        descriptor = open_for_append(home.server_lock)
        if lock.try_acquire(descriptor):
            # A killed server may have left it, and another process may have its number by now.
            _remove(home)
            return
        os.close(descriptor)
        # A process that checks whether the lock is held holds it for a moment.
        time.sleep(CLAIM_WAIT_S)
    server = read(home)
    raise ServerTrouble(
        f"a server for this home is already running{f' at {server.address}' if server else ''}",
        "`commonplace serve --ensure` prints its address; `commonplace serve --stop` ends it",
    )


def is_alive(home: Home) -> bool:
    """Whether some process serves *home*, or is about to."""
    if not home.server_lock.exists():
        return False
    try:
        with lock.try_hold(home.server_lock) as free:
            return not free
    except CommonplaceError:
        return False
