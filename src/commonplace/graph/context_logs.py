"""Which repositories have the contexts of a task: a task has one record in each.

A server that all folders share does not know in which repository a client works. Then the contexts
of a task are found wherever they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace import records
from commonplace.errors import RecordInvalid, RepoUnknown
from commonplace.log.logs import list_repos
from commonplace.records.nodes import names_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from commonplace.recaller import Recaller

TASK_ID_CHARS_MAX = 200


def check_task(task_id: object) -> str:
    """Return the id of a task. Raises `RecordInvalid`."""
    if not isinstance(task_id, str) and task_id is not None:
        raise RecordInvalid("task_id", "is no text", "such as `task-7`")
    if not task_id or not task_id.strip():
        raise RecordInvalid("task_id", "is missing", "say which task the context belongs to")
    if len(task_id) > TASK_ID_CHARS_MAX:
        raise RecordInvalid("task_id", f"has over {TASK_ID_CHARS_MAX} characters")
    return task_id.strip()


def ids_by_log(memory: Recaller, task_id: str, repo: str = "") -> dict[str, list[str]]:
    """Return the ids that the task's record may have in each log that may have one.

    There are two, one for each name of the task. The logs are those of *repo*, or else of this
    repository, or all if that is not known.
    """
    # As it would be written: without secrets.
    given = [
        {"kind": "context", "task_id": name, "frames": []}
        for name in names_of("task", check_task(task_id))
    ]
    fields = [{**one, "task_id": memory.prepare(one).record.fields["task_id"]} for one in given]
    here, now = memory.repository.name, memory.now()
    if repo:
        logs = logs_named(memory, repo)
    elif memory.repository.known:
        logs = [here, *memory.scope().here()]
    else:
        homes = [home for home in memory.homes if memory.trusts(home)]
        logs = [here, *(log for home in homes for log in list_repos(home))]
    return {
        log: [records.make(one, now=now, repo=log, agent_id=memory.agent_id).id for one in fields]
        for log in dict.fromkeys(logs)
    }


def logs_named(memory: Recaller, repo: str) -> list[str]:
    """Return the logs of a repository. Nothing may have been written to it yet.

    Raises `RepoUnknown` if the name looks like a typing mistake.
    """
    try:
        return memory.scope().named(repo)
    except RepoUnknown:
        return [memory.log_to_write(repo)]


def log_to_save(memory: Recaller, repo: str, having: Collection[str]) -> str:
    """Return the log for the next context of a task, of which the logs *having* have some.

    If the repository is not known and one alone has worked on the task, it is that one.
    """
    if repo:
        return memory.log_to_write(repo)
    if not memory.repository.known and len(having) == 1:
        return next(iter(having))
    return memory.repository.name
