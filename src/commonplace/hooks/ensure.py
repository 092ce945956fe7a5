"""Starting the server from a hook, in a process that the hook does not wait for."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path


def start_server(home: str, cwd: str) -> None:
    """Start the server of *home* in the background."""
    if not Path(home).is_dir():
        return  # Without a home there is nothing to serve.
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
