"""Starting the server from a hook: a process of its own, for which nobody waits."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path


def start_server(home: str, cwd: str) -> None:
    """Have the server of *home* started by a process of its own; nobody waits for it."""
    if not Path(home).is_dir():
        return  # There is nothing to serve yet.
    flags = {"start_new_session": True} if os.name == "posix" else {"creationflags": 0x00000208}
    with suppress(OSError):
        subprocess.Popen(
            [sys.executable, "-P", "-m", "commonplace", "serve", "--ensure"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=cwd,
            **flags,
        )
