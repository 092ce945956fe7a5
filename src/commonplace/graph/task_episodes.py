"""Which episodes a context tells of. Pure: the server and the client library use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.index.topics import tasks_of_node
from commonplace.records.nodes import names_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.records.nodes import GraphNode

# So many of the newest episodes of a task are seeds.
EPISODES_MAX = 8


def is_of_task(episode: GraphNode, task_id: str) -> bool | None:
    """Whether an episode is of a task, by what it names or links to; `None` if it names none."""
    if not task_id:
        return None
    named = tasks_of_node(episode)
    if not set(names_of("task", task_id)).isdisjoint(named or (link.to for link in episode.links)):
        return True
    return False if named or any(link.to.startswith("task.") for link in episode.links) else None


def choose(lit: Sequence[GraphNode], task_id: str, count: int) -> list[GraphNode]:
    """Return the episodes of a task; if none of *lit* is, the first *count* that name no task."""
    found = [(is_of_task(one, task_id), one) for one in lit]
    own = [one for is_own, one in found if is_own]
    return own or [one for is_own, one in found if is_own is None][:count]
