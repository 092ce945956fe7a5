"""What an orchestrator keeps between two runs: its working set, frames of tasks, its sources.

It is kept in a folder of its own that only one orchestrator uses at a time. A damaged file costs no
memory: the working set starts over. What waits to be saved is in another file (`pending.py`).
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from commonplace.client import answers, seven
from commonplace.client.pending import PendingSaves
from commonplace.client.sources import Sources
from commonplace.client.task_frames import TaskFrames
from commonplace.client.working_set import Limits, WorkingSet
from commonplace.errors import UsageError
from commonplace.files import atomic
from commonplace.files.lock import try_acquire
from commonplace.files.plain import open_for_append, read_all
from commonplace.records.ids import slug
from commonplace.where.homes import user_home

if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.client.pending import Pending

VERSION = 1
BYTES_MAX = 1 << 26
NAME_CHARS_MAX = 60


class State:
    """The state of one orchestrator, in *folder* or in memory alone."""

    def __init__(self, folder: Path | None, limits: Limits) -> None:
        self._folder = folder
        self._lock: int | None = None
        self.working_set = WorkingSet(limits)
        self.sources = Sources()
        self.task_frames = TaskFrames()
        # Whether the file of the working set could not be read.
        self.is_damaged = False
        if folder is not None:
            self._lock = _lock(folder)
            self._load(folder)
        self.pending = PendingSaves(folder / "pending.jsonl" if folder is not None else None)
        for one in self.pending:
            # The program may have ended before it wrote this file.
            self.note_save(one)

    def note_save(self, one: Pending) -> None:
        """Keep the frames of a save, if it is one of a context."""
        if one.tool == seven.SAVE:
            given = {**one.arguments, "id": one.id, "timestamp": one.at}
            for context in answers.contexts([given]):
                self.task_frames.add(context)

    def write(self) -> None:
        """Write the working set, the frames of tasks and the sources."""
        if self._folder is None:
            return
        kept = {
            "version": VERSION,
            "working_set": self.working_set.as_dict(),
            "sources": self.sources.as_dict(),
            "task_frames": self.task_frames.as_dict(),
        }
        raw = json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        # A power cut may leave the file as it was before: nothing in it is a memory.
        atomic.replace(self._folder / "working-set.json", (raw,))

    def close(self) -> None:
        """Let another orchestrator use the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _load(self, folder: Path) -> None:
        raw = read_all(folder / "working-set.json", BYTES_MAX)
        if not raw:
            return
        try:
            kept: Any = json.loads(raw)
            if kept["version"] != VERSION:
                raise ValueError("another version")
            self.working_set.load(kept["working_set"])
            self.sources.load(kept["sources"])
            self.task_frames.load(kept.get("task_frames", {}))
        except (ValueError, TypeError, KeyError, AttributeError):
            self.is_damaged = True
            self.working_set = WorkingSet(self.working_set.limits)
            self.sources = Sources()
            self.task_frames = TaskFrames()


def state_folder(name: str) -> Path:
    """Return the folder for the state of the orchestrator called *name*, in the user's home."""
    plain = slug(name, NAME_CHARS_MAX)
    if not plain or plain != name:
        raise UsageError(
            f"`{name}` is no name of an orchestrator", "use small letters, digits and hyphens"
        )
    return user_home(os.environ).client_state_folder(name)


def _lock(folder: Path) -> int:
    descriptor = open_for_append(folder / "lock")
    if not try_acquire(descriptor):
        os.close(descriptor)
        raise UsageError(
            f"another orchestrator uses the folder {folder}", "give each one a folder of its own"
        )
    return descriptor
