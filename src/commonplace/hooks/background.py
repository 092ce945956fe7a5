"""Processes that a hook starts and does not wait for: the server, and maintenance."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from commonplace import processes


def start_server(home: str, cwd: str) -> None:
    """Start the server of *home*, the one in use in *cwd*."""
    if Path(home).is_dir():  # Without a home there is nothing to serve.
        with suppress(OSError):
            processes.start("commonplace", ["serve", "--ensure"], cwd=cwd)


def start_maintenance(home: Path, cwd: Path) -> None:
    """Maintain *home*, the one in use in *cwd*, now that a session has ended."""
    if home.is_dir():
        with suppress(OSError):
            arguments = ["maintain", "--if-due"]
            processes.start("commonplace", arguments, cwd=str(cwd), lowest_priority=True)
