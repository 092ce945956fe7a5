"""The steps and scratchpads of tasks that were last read or saved, for when no server answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from commonplace.client import answers
from commonplace.client.answers import Saved

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

KINDS = ("episodic", "scratchpad")
# Of more tasks, those that were not read or saved for longest are dropped.
TASKS_MAX = 16
# How many contexts of a task are kept: the agent's own, and those that were built.
OWN_MAX = 12
BUILT_MAX = 2
NODES_MAX = 64
FRAME_CHARS_MAX = 16_000


class TaskFrames:
    """The last contexts of each task, reduced to the frames that only the agent can write."""

    def __init__(self) -> None:
        self._tasks: dict[str, list[Saved]] = {}

    def of(self, task_id: str) -> list[Saved]:
        """Return the contexts of a task, the newest first."""
        return list(self._tasks.get(task_id, ()))

    def replace(self, task_id: str, contexts: Iterable[Saved]) -> None:
        """Keep the *contexts* of a task that were read, the newest first, instead of older ones."""
        self._tasks.pop(task_id, None)
        if kept := _bounded(map(_reduced, contexts)):
            self._tasks[task_id] = kept
        for oldest in list(self._tasks)[:-TASKS_MAX]:
            del self._tasks[oldest]

    def add(self, one: Saved) -> None:
        """Keep a context that was just saved, or waits for that; the same one is kept once."""
        before = self.of(one.task_id)
        if one.id not in {other.id for other in before}:
            self.replace(one.task_id, [one, *before])

    def as_dict(self) -> dict[str, Any]:
        """Return them as they are kept in a file."""
        return {
            task_id: [
                {
                    "id": one.id,
                    "timestamp": one.timestamp,
                    "frames": one.frames,
                    "built": one.is_built,
                    "nodes": one.nodes,
                }
                for one in contexts
            ]
            for task_id, contexts in self._tasks.items()
        }

    def load(self, kept: Mapping[str, Any]) -> None:
        """Take over what `as_dict` returned. Raises for anything else."""
        for task_id, contexts in kept.items():
            self.replace(
                task_id, answers.contexts([{**one, "task_id": task_id} for one in contexts])
            )


def _bounded(contexts: Iterable[Saved]) -> list[Saved]:
    """Return the first of the agent's own *contexts* and of those that were built, in order."""
    room = {False: OWN_MAX, True: BUILT_MAX}
    kept = []
    for one in contexts:
        if (one.frames or one.nodes) and room[one.is_built]:
            room[one.is_built] -= 1
            kept.append(one)
    return kept


def _reduced(one: Saved) -> Saved:
    frames = answers.without_secrets(
        {kind: _text(one.frame(kind)) for kind in KINDS if one.frame(kind)}
    )
    return Saved(one.id, one.task_id, one.timestamp, frames, one.is_built, one.nodes[:NODES_MAX])


def _text(data: object) -> str:
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return text[:FRAME_CHARS_MAX]
