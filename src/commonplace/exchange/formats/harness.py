"""The memory of an agent harness: `agents/<name>/memory/`, text files of any kind per agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.exchange import files
from commonplace.exchange.items import Head, Item, NoteText, Source, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUFFIXES = ("",)  # Any suffix.
MARK = "agents"
KINDS_HELD = ()


def recognises(path: Path, _head: Head) -> bool:
    return _agent_and_path(path) is not None


def _agent_and_path(path: Path) -> tuple[str, str] | None:
    """Return the agent and the path below its `memory` folder, if the file is in one."""
    parts = path.parts
    for at in range(len(parts) - 4, -1, -1):
        if parts[at] == "agents" and parts[at + 2] == "memory":
            return parts[at + 1], "/".join(parts[at + 3 :])
    return None


def read(source: Source) -> Iterator[Item]:
    agent, path = _agent_and_path(source.path) or (_agent(source), source.name)
    try:
        yield NoteText(agent, path, files.read_text(source.path))
    except files.UnreadableFile as error:
        yield Unreadable(0, str(error))


def _agent(source: Source) -> str:
    """Return the agent of a folder outside `agents/`: the name of the folder above `memory`.

    Without a `memory` folder, it is the name of the folder itself.
    """
    folder = source.root if source.root.is_dir() else source.root.parent
    return folder.parent.name if folder.name == "memory" else folder.name


def note_path(agent: str, path: str) -> str:
    """Return the path of a note below the layout's folder."""
    return f"{agent}/memory/{path}"
