"""Maintain the home of a server while the server is idle."""

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

# A server without a request for this long is idle.
IDLE_S = 2.0
LOOK_EVERY_S = 2.0
# What other processes wrote is maintained at this interval, even without requests.
RARELY_S = 600.0


class IdleMaintenance:
    """A thread that maintains the nearest home of *memory* when the server is idle.

    *idle_s* returns for how many seconds there has been no request.
    """

    def __init__(self, memory: Memory, idle_s: Callable[[], float]) -> None:
        self._memory = memory
        self._idle_s = idle_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="commonplace-idle", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop after the current step and wait until the thread has ended."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            if self._is_time() and is_due(self._memory):
                with suppress(CommonplaceError):  # The next query reports it.
                    runner.run(self._memory, is_over=self._must_stop)

    def _is_time(self) -> bool:
        """Whether the server is idle, and was used since the last run or did not run for long."""
        idle, since = self._idle_s(), since_last(self._memory.home)
        return idle >= IDLE_S and (idle < since or since > RARELY_S)

    def _must_stop(self) -> bool:
        return self._ended.is_set() or self._idle_s() < IDLE_S
