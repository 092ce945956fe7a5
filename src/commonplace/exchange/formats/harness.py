"""Seed 004's memory: `agents/<name>/memory/`, files of an agent's own, of any kind of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.exchange import files
from commonplace.exchange.items import Head, Item, NoteText, Source, Unread

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUFFIXES = ("",)  # Any: no schema is imposed.
MARK = "agents"
KINDS_HELD = ()


def recognises(path: Path, _head: Head) -> bool:
    return _place(path) is not None


def _place(path: Path) -> tuple[str, str] | None:
    """The agent and the path below its memory, if the file lies in one."""
    parts = path.parts
    for at in range(len(parts) - 4, -1, -1):
        if parts[at] == "agents" and parts[at + 2] == "memory":
            return parts[at + 1], "/".join(parts[at + 3 :])
    return None


def read(source: Source) -> Iterator[Item]:
    agent, path = _place(source.path) or (_agent(source), source.name)
    try:
        yield NoteText(agent, path, files.text(source.path))
    except files.NotText as error:
        yield Unread(0, str(error))


def _agent(source: Source) -> str:
    """Whose a folder is that lies elsewhere: the one above `memory`, else itself."""
    folder = source.root if source.root.is_dir() else source.root.parent
    return folder.parent.name if folder.name == "memory" else folder.name


def place(agent: str, path: str) -> str:
    """Where the layout keeps a note."""
    return f"{agent}/memory/{path}"
