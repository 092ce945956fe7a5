"""Where a home's server is: `.state/server.json`, written when it answers and removed when it ends.

The server holds `.state/server.lock` for as long as it lives; the system lets go of it however the process ends. So
a file without a held lock is what a killed server left, and is never believed.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from commonplace.errors import CommonplaceError, ServerTrouble
from commonplace.files import atomic, lock
from commonplace.files.plain import open_for_append

if TYPE_CHECKING:
    from commonplace.where.home import Home

CLAIMS_MAX = 10
CLAIM_WAIT_S = 0.03
LOG_BYTES_MAX = 1 << 20


class Presence(NamedTuple):
    """A server that answers. `key` lets those in who may read the home's files."""

    host: str
    port: int
    pid: int
    key: str
    version: str

    @property
    def address(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def trim_log(home: Home) -> None:
    """Begin the log of a detached server anew when it is long: clients can make it say things."""
    with suppress(OSError):
        if home.server_log.stat().st_size > LOG_BYTES_MAX:
            os.truncate(home.server_log, 0)


def write(home: Home, presence: Presence) -> None:
    atomic.replace(home.server_file, [json.dumps(presence._asdict()).encode()])


def read(home: Home) -> Presence | None:
    """What the file says, if it says anything."""
    try:
        return Presence(**json.loads(home.server_file.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def remove(home: Home, key: str) -> None:
    """Remove the file, unless it is another server's by now."""
    there = read(home)
    if there is not None and there.key == key:
        _remove(home)


def _remove(home: Home) -> None:
    with suppress(OSError):
        home.server_file.unlink(missing_ok=True)


def claim(home: Home) -> None:
    """Be the server of *home*, the only one, until this process is gone: the lock is never let go of before."""
    for _attempt in range(CLAIMS_MAX):
        descriptor = open_for_append(home.server_lock)
        if lock.try_acquire(descriptor):
            _remove(
                home
            )  # What a killed one left; its process number may be somebody else's by now.
            return
        os.close(descriptor)
        time.sleep(
            CLAIM_WAIT_S
        )  # Somebody may be looking whether it is held, which holds it for a moment.
    there = read(home)
    raise ServerTrouble(
        f"a server for this home is already running{f' at {there.address}' if there else ''}",
        "`commonplace serve --ensure` prints its address; `commonplace serve --stop` ends it",
    )


def alive(home: Home) -> bool:
    """Whether some process serves *home*, or is about to."""
    if not home.server_lock.exists():
        return False
    try:
        with lock.try_hold(home.server_lock) as free:
            return not free
    except CommonplaceError:
        return False
