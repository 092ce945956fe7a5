"""A thread for work that should not delay answers. A server has one; a command has none."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# The thread also runs at this interval, for work without a notification.
INTERVAL_S = 5.0


class Background:
    """Runs *tasks* in order, one pass after the other, when it is notified of work."""

    def __init__(self, tasks: Sequence[Callable[[], None]]) -> None:
        self._tasks = tasks
        self._changed = threading.Condition()
        self._asked = 0
        self._done = 0
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="commonplace-work", daemon=True)
        self._thread.start()

    def notify(self) -> int:
        """Start a pass; return its number, for `wait`."""
        with self._changed:
            self._asked += 1
            self._changed.notify_all()
            return self._asked

    def wait(self, number: int, seconds: float) -> bool:
        """Wait until the pass with that *number* is done; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: self._done >= number or self._ended, seconds)

    def close(self) -> None:
        """Stop after the task that is running now."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._asked > self._done or self._ended, INTERVAL_S)
                if self._ended:
                    return
                number = self._asked
            for task in self._tasks:
                if self._ended:
                    return
                try:
                    task()
                except Exception:  # The outer edge of this thread: the next pass tries again.
                    import logging  # noqa: PLC0415  (5 ms of a command, which has no such thread)

                    logger = logging.getLogger(__name__)
                    logger.exception("%s failed in the background", task.__name__)
            with self._changed:
                self._done = number
                self._changed.notify_all()
