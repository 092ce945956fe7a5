"""What an agent works on, as it tells the orchestrator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from commonplace.errors import UsageError

_HINT = "give a task such as {'id': 'task-7'}"


class Task(NamedTuple):
    """A task: its id and its domain tags, and what is to be done, as far as the agent says it."""

    id: str
    tags: tuple[str, ...] = ()
    text: str = ""
    # What the result must keep to: signatures, tests, versions, style.
    constraints: tuple[str, ...] = ()
    # The run of the agent; its contexts are recalled, too.
    session: str = ""
    # Where the agent writes its plan. None: the one that was saved last.
    scratchpad: str | None = None

    @classmethod
    def of(cls, given: Task | str | Mapping[str, Any]) -> Task:
        """Return the task of an id, or of a dictionary with `id` and any of the other fields."""
        if isinstance(given, Task):
            return given
        if not isinstance(given, str | Mapping):
            raise UsageError("the task is no id and no dictionary", _HINT)
        fields = {"id": given} if isinstance(given, str) else dict(given)
        ident, scratchpad = fields.get("id"), fields.get("scratchpad")
        if not isinstance(ident, str) or not ident.strip():
            raise UsageError("the task has no id", _HINT)
        return cls(
            ident.strip(),
            _texts(fields.get("tags")),
            str(fields.get("text") or fields.get("title") or fields.get("spec") or ""),
            _texts(fields.get("constraints")),
            str(fields.get("session") or ""),
            None if scratchpad is None else str(scratchpad),
        )


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(str(item) for item in value) if isinstance(value, list | tuple) else ()
