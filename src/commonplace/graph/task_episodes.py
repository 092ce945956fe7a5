"""Which episodes a context tells of, on the server and in the client library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.index import topics
from commonplace.records.nodes import names_of, node_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.recall.consultation import Consultation
    from commonplace.recall.query import Query
    from commonplace.recaller import Recaller
    from commonplace.records import Record
    from commonplace.records.nodes import GraphNode

# So many of the newest episodes of a task are seeds.
EPISODES_MAX = 8


def newest(consultation: Consultation, query: Query, task_id: str) -> list[Record]:
    """Return the episodes of a task, the newest first."""
    asked = query.with_(kinds=frozenset(["episode"]), node_types=frozenset(["episode"]))
    found = consultation.of_topics(topics.of_task(task_id), EPISODES_MAX, asked)
    return [hit.record for hit in found]


def newest_nodes(memory: Recaller, task_id: str) -> list[GraphNode]:
    """Return the episodes of a task as nodes, the newest first."""
    asked = memory.query(task_id, automatic=True, all_repos=True, cutoff=False)
    found, _notes = memory.engine().consult(
        asked, lambda consultation: newest(consultation, asked, task_id), lambda _found: []
    )
    return [node_of(record) for record in found]


def is_of_task(episode: GraphNode, task_id: str) -> bool | None:
    """Whether an episode is of a task, by what it names or links to; `None` if it names none."""
    if not task_id:
        return None
    named = topics.tasks_of_node(episode)
    if not set(names_of("task", task_id)).isdisjoint(named or (link.to for link in episode.links)):
        return True
    return False if named or any(link.to.startswith("task.") for link in episode.links) else None


def choose(lit: Sequence[GraphNode], task_id: str, count: int) -> list[GraphNode]:
    """Return the episodes of a task; if none of *lit* is, the first *count* that name no task."""
    found = [(is_of_task(one, task_id), one) for one in lit]
    own = [one for is_own, one in found if is_own]
    return own or [one for is_own, one in found if is_own is None][:count]
