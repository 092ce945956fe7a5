"""Records as nodes of the graph: one of nine types, a label, a payload, links and children.

This is how agents see the memory as a dictionary of concepts. The log keeps records, and every
record that says something is a node: what a lesson states is its payload.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from commonplace.records.kinds import AntiPattern, Episode, Lesson, Link, Node, Pattern, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NODE_TYPES = (
    "concept",
    "skill",
    "fact",
    "snippet",
    "pattern",
    "episode",
    "tool",
    "persona",
    "task",
)
# Records of these kinds have other fields than a node. A node of such a type has the kind `node`.
TYPES_WITH_RECORDS = ("skill", "pattern", "episode")
NODE_KIND = "node"
# Which kinds of record belong to a type, besides nodes of that type.
KINDS_OF_TYPE = {
    **{name: (name,) for name in NODE_TYPES},
    "fact": ("fact", "lesson"),
    "pattern": ("pattern", "anti_pattern"),
}
_TYPE_OF_KIND = {kind: name for name, kinds in KINDS_OF_TYPE.items() for kind in kinds}
# The fields of a record that say something; the rest is about the record.
_PAYLOAD = {
    Lesson: ("lesson", "context", "command", "success_rate"),
    Pattern: (
        "pattern",
        "category",
        "conditions",
        "correct_approach",
        "incorrect_approach",
        "confidence",
    ),
    AntiPattern: ("what_fails", "why", "prevention"),
    Episode: ("task_id", "context", "outcome", "errors_encountered", "artifacts_produced"),
}


class GraphNode(NamedTuple):
    """A node of the graph, whatever kind of record it is."""

    id: str
    type: str
    label: str
    payload: Any
    links: tuple[Link, ...] = ()
    # The name of each child, and its id.
    children: Mapping[str, str] = {}
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = {}
    kind: str = ""
    repo: str = ""
    timestamp: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the node as other programs see it."""
        return {
            "id": self.id,
            "type": self.type,
            "label": self.label,
            "payload": self.payload,
            "links": [link._asdict() for link in self.links],
            "children": dict(self.children),
            "tags": list(self.tags),
            "meta": dict(self.meta),
            "kind": self.kind,
            "repo": self.repo,
            "timestamp": self.timestamp,
        }


def names_of(type_name: str, name: str) -> list[str]:
    """Return the ids that a node with this name may have: of a task, `q1` and `task.q1` are one."""
    whole = f"{type_name}.{name.removeprefix(f'{type_name}.')}"
    return list(dict.fromkeys([name, whole, whole.partition(".")[2]])) if name else []


def tags_of(record: Record) -> list[str]:
    """Return the tags of a record and its domain tags, in lower case."""
    domain = record.meta.get("domain_tags", ())
    more = map(str, domain) if isinstance(domain, list | tuple) else ()
    return list(dict.fromkeys(tag.lower() for tag in (*record.tags, *more)))


def type_of(record: Record) -> str:
    """Return which of the nine types a record has; "" if it is no node, like feedback."""
    if record.kind == NODE_KIND:
        name = str(record.fields.get("type", ""))
        return name if name in NODE_TYPES else "concept"
    return _TYPE_OF_KIND.get(record.kind, "")


def node_of(record: Record, *, links: bool = True) -> GraphNode:
    """Return *record* as a node. Without its *links* if nobody reads them: a hub has thousands."""
    if isinstance(record, Node):
        label, payload, children = record.label, record.payload, record.children
    else:
        names = _PAYLOAD.get(type(record), ())
        payload = {name: record.fields[name] for name in names if record.fields.get(name)}
        label, children = _label(record), {}
    return GraphNode(
        id=record.id,
        type=type_of(record),
        label=label,
        payload=payload,
        links=record.edges if links else (),
        children=children,
        tags=tuple(record.tags),
        meta=record.meta,
        kind=record.kind,
        repo=record.repo,
        timestamp=record.timestamp,
    )


def _label(record: Record) -> str:
    if isinstance(record, Episode):
        return str(record.context.get("goal") or record.task_id)
    return str(record.fields.get(record.title_field) or record.id)
