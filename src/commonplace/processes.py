"""Start processes of our own that this one does not wait for: a server, or background work."""

from __future__ import annotations

import os
import subprocess
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

LOWEST_PRIORITY = 19
# DETACHED_PROCESS would open a console window for every child, so CREATE_NO_WINDOW is used; and a
# new process group, so that a Ctrl-C for the parent does not reach the child.
_WINDOWS_FLAGS = 0x08000000 | 0x00000200
_WINDOWS_IDLE_PRIORITY = 0x00000040


def start(
    module: str,
    arguments: Sequence[str] = (),
    *,
    cwd: str | None = None,
    stdin: int = subprocess.DEVNULL,
    output: int = subprocess.DEVNULL,
    environment: Mapping[str, str] | None = None,
    lowest_priority: bool = False,
) -> subprocess.Popen[bytes]:
    """Start `python -m module arguments`, which outlives this process and its terminal."""
    options: dict[str, Any] = {"start_new_session": True}
    if os.name != "posix":
        priority = _WINDOWS_IDLE_PRIORITY if lowest_priority else 0
        options = {"creationflags": _WINDOWS_FLAGS | priority}
    process = subprocess.Popen(  # noqa: S603 (our own command)
        # Without `-P`, a file in the working folder could be taken for a module.
        [sys.executable, "-P", "-m", module, *arguments],
        stdin=stdin,
        stdout=output,
        stderr=output,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        **options,
    )
    if lowest_priority and os.name == "posix":
        os.setpriority(os.PRIO_PROCESS, process.pid, LOWEST_PRIORITY)
    return process
