"""What a server does while nobody asks it anything: the maintenance of its home."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from commonplace.errors import CommonplaceError
from commonplace.maintenance import runner
from commonplace.maintenance.due import is_due, since_last

if TYPE_CHECKING:
    from collections.abc import Callable

    from commonplace.memory import Memory

# A server that was asked nothing for this long is idle.
IDLE_S = 2.0
LOOK_EVERY_S = 2.0
# What other processes wrote is looked after now and then, even if nobody asks this server.
RARELY_S = 600.0


class IdleMaintenance:
    """A thread that maintains the nearest home of *memory* when the server is idle.

    *idle_s* says for how many seconds nobody has asked anything.
    """

    def __init__(self, memory: Memory, idle_s: Callable[[], float]) -> None:
        self._memory = memory
        self._idle_s = idle_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="commonplace-idle", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End, after what is being done now."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            if self._is_time() and is_due(self._memory):
                with suppress(CommonplaceError):  # The next question reports it.
                    runner.run(self._memory, is_over=self._must_stop)

    def _is_time(self) -> bool:
        """Whether it is idle, and was used since the last time or has not looked for long."""
        idle, since = self._idle_s(), since_last(self._memory.home)
        return idle >= IDLE_S and (idle < since or since > RARELY_S)

    def _must_stop(self) -> bool:
        return self._ended.is_set() or self._idle_s() < IDLE_S
