"""Topics: what a record is found by besides its words. A task, a session, that it states a rule.

A search ranks by words and meaning and returns the best. Who wants all records of a task, the last
contexts of a session or the rules in force asks for a topic, the newest first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from commonplace.index.document import document
from commonplace.records.nodes import names_of, tags_of, type_of

if TYPE_CHECKING:
    from commonplace.records import Record
    from commonplace.records.nodes import GraphNode

# Records that state a rule about style, versions or tests.
RULE = "rule"
# Which kinds may state one, and as what type nodes may.
RULE_KINDS = frozenset(["fact", "lesson", "pattern", "anti_pattern"])
RULE_NODE_TYPES = frozenset(["pattern"])
# Besides episodes, these are about a task.
TASK_KINDS = ("ledger", "handoff")
# Where they name it.
_TASK_FIELDS = ("task_id", "current_task", "task", "bead")


def of_task(task_id: str) -> list[str]:
    """Return the topics of the episodes, ledgers and handoffs of a task."""
    return [f"task/{name}" for name in names_of("task", task_id)]


def of_session(session: str) -> str:
    """Return the topic of the contexts that were saved in a session."""
    return f"session/{session}"


def of_agent(agent_id: str) -> str:
    """Return the topic of the contexts that an agent saved."""
    return f"agent/{agent_id}"


def of_repository(repo: str) -> str:
    """Return the topic of the contexts of a repository."""
    return f"repo/{repo}"


def rules_in(repo: str) -> str:
    """Return the topic of the rules of a repository."""
    return f"{RULE}/{repo}"


def topics_of(record: Record, repo: str) -> list[str]:
    """Return the topics of a record in that repository."""
    if record.kind == "context":
        session = record.meta.get("session")
        return [
            of_agent(record.agent_id),
            of_repository(repo),
            *([of_session(session)] if isinstance(session, str) and session else []),
        ]
    if record.kind in TASK_KINDS or type_of(record) == "episode":
        return [f"task/{one}" for one in tasks_of(record)]
    return [RULE, rules_in(repo)] if is_rule(record) else []


def tasks_of(record: Record) -> list[str]:
    """Return the ids of the tasks that a record belongs to: those that it names, or else links to.

    What an episode links to need not be a task: then nobody asks for it by that id.
    """
    fields = record.fields
    named = _tasks_in(fields, fields.get("context"), fields.get("payload"), record.meta)
    return named or [link.to for link in record.edges]


def tasks_of_node(node: GraphNode) -> list[str]:
    """Return the ids of the tasks that a node names."""
    payload = node.payload if isinstance(node.payload, Mapping) else {}
    return _tasks_in(payload, payload.get("context"), node.meta)


def _tasks_in(*places: object) -> list[str]:
    """Return the ids of the tasks that the fields in *places* name.

    A ledger may add words to the id: `t-4: the login`.
    """
    found = dict[str, None]()
    for place in places:
        named = place if isinstance(place, Mapping) else {}
        for name in _TASK_FIELDS:
            value = named.get(name)
            words = value.split() if isinstance(value, str) else []
            if words:
                found |= dict.fromkeys([str(value), words[0].rstrip(":,;.")])
    return [one for one in found if one]


def is_rule(record: Record) -> bool:
    """Whether a record states a rule about style, versions or tests."""
    is_node = record.kind not in RULE_KINDS
    if is_node and (record.kind != "node" or type_of(record) not in RULE_NODE_TYPES):
        return False
    words = {*tags_of(record), *record.id.lower().split(".")}
    # Its patterns take 7 ms to compile, and most questions index nothing.
    from commonplace.index.rule_wording import states_rule  # noqa: PLC0415

    return states_rule(words, document(record).shown)
