"""The task that a context is for, whichever way a caller describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from commonplace.graph.arguments import check_text, check_texts
from commonplace.graph.context_logs import check_task

if TYPE_CHECKING:
    from collections.abc import Sequence


_LISTS = ("tags", "files")


class TaskOptions(TypedDict, total=False):
    """What may be said about a task with keywords."""

    persona: str
    tags: Sequence[str]
    files: Sequence[str]
    session: str


class Task(NamedTuple):
    """The task that a context is for; all of it may be missing."""

    id: str = ""
    tags: tuple[str, ...] = ()
    # The id of the persona; without one, that of the environment or the settings.
    persona: str = ""
    # The files that the agent works on.
    files: tuple[str, ...] = ()
    session: str = ""

    @classmethod
    def given(cls, task: Task | Mapping[str, Any] | str | None, **more: Any) -> Task:  # noqa: ANN401
        """Return the task, whichever way it was given, with *more* about it. Raises."""
        if isinstance(task, Task):
            known = task._asdict()
        elif isinstance(task, Mapping):
            # An agent's own task may say more, such as its title.
            known = {name: task[name] for name in cls._fields if task.get(name)}
        else:
            known = {"id": task or ""}
        named = {name: value for name, value in more.items() if value}
        for given in (known, named):
            # One tag or file alone may be given as a text.
            given |= {name: [given[name]] for name in _LISTS if isinstance(given.get(name), str)}
        tags, files = (
            [text for given in (known, named) for text in check_texts(name, given.pop(name, ()))]
            for name in _LISTS
        )
        made = cls(**(known | named))
        for name in ("persona", "session"):
            check_text(f"the {name}", getattr(made, name))
        return made._replace(
            id=check_task(made.id) if made.id else "",
            tags=tuple(dict.fromkeys(tag.strip().lower() for tag in tags if tag.strip())),
            files=tuple(dict.fromkeys(files)),
        )
