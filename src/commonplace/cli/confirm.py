"""Ask before something that cannot be undone."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def confirm(question: Callable[[], str], *, yes: bool) -> bool:
    """Return whether to go on: *yes*, or the user says so at a terminal, where *question* is asked.

    Without a terminal nobody can be asked, and a script means what it says.
    """
    if yes or sys.stdin is None or not sys.stdin.isatty():
        return True
    sys.stderr.write(f"{question()} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
