"""The kinds of record, as typed values.

A record keeps the JSON object it was read from, so that unknown fields survive a round trip in
their order. The classes name and check the fields that are known.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from commonplace.records.fields import (
    Field,
    accept_anything,
    check_count,
    check_links,
    check_links_read,
    check_list,
    check_number,
    check_rate,
    check_share,
    check_tags,
    check_texts,
    check_time,
    choice,
    field,
    mapping,
    text,
)
from commonplace.vocabulary import EVENT_TYPES, OUTCOMES, RELATIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


# A time that cannot be read: the record is older than every other version of it.
TIME_UNKNOWN = "1970-01-01T00:00:00Z"


class Link(NamedTuple):
    """A typed, weighted edge to another record."""

    to: str
    rel: str
    w: float


class Record:
    """One line of the log. It is never edited; a later record with the same id may replace it."""

    __slots__ = ("fields", "redactions", "unusable")
    known: ClassVar[dict[str, Field]] = {}
    # What a record that is written must have, and what its values must pass.
    required: ClassVar[tuple[str, ...]] = ()
    checks: ClassVar[dict[str, Callable[[Any], None]]] = {}
    prefix: ClassVar[str] = "rec"
    # The fields an id is made from, and the one whose words make it readable.
    identity: ClassVar[tuple[str, ...]] = ()
    title_field: ClassVar[str] = ""
    # Its times besides `timestamp`, which are written in UTC as well.
    times: ClassVar[tuple[str, ...]] = ()

    id: str = text(required=True)
    kind: str = text(required=True)
    timestamp: str = field(check_time, "", required=True, stand_in=TIME_UNKNOWN)
    agent_id: str = text()
    repo: str = text()
    tags: Sequence[str] = field(check_tags, (), check_read=check_texts)
    meta: Mapping[str, Any] = mapping()
    links: Sequence[Mapping[str, Any]] = field(check_links, (), check_read=check_links_read)

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        # What redaction removed when this was written: kinds and fields, never a value.
        self.redactions: tuple[Any, ...] = ()
        # Why values in its line were left out when it was read.
        self.unusable: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        cls.known = {
            name: known for base in reversed(cls.__mro__) for name, known in _fields_of(base)
        }
        cls.required = tuple(name for name, known in cls.known.items() if known.required)
        # `make` has checked times and the repository when it wrote them in their own form.
        converted = {"timestamp", "repo", *cls.times}
        cls.checks = {
            name: known.check for name, known in cls.known.items() if name not in converted
        }

    @property
    def edges(self) -> tuple[Link, ...]:
        """`links` as typed edges; Loki names `rel` `relation`."""
        return tuple(
            Link(
                link["to"],
                link.get("rel") or link.get("relation") or "related_to",
                _weight(link.get("w")),
            )
            for link in self.links
        )

    @property
    def sources(self) -> tuple[str, ...]:
        """The ids of the records this one was derived from."""
        return tuple(edge.to for edge in self.edges if edge.rel == "derived_from")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self.fields == other.fields

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"


def _weight(value: float | None) -> float:
    return 1.0 if value is None else float(min(max(value, 0), 1))


def _fields_of(cls: type) -> list[tuple[str, Field]]:
    return [(name, value) for name, value in vars(cls).items() if isinstance(value, Field)]


Record.known = dict(_fields_of(Record))


class Lesson(Record):
    """What was learned: an error and its remedy, a solution, a pattern."""

    __slots__ = ()
    prefix = "les"
    identity = ("context", "command", "lesson")
    title_field = "lesson"
    event_type: str = choice(EVENT_TYPES, needed=False)
    context: str = text()
    command: str = text()
    lesson: str = text(required=True)
    success_rate: str = field(check_rate, "")


class Episode(Record):
    """The trace of one task."""

    __slots__ = ()
    prefix = "ep"
    identity = ("task_id", "timestamp", "context")
    title_field = "context"
    task_id: str = text(required=True)
    duration_seconds: float = field(check_number, 0)
    context: Mapping[str, Any] = mapping()
    action_log: Sequence[Mapping[str, Any]] = field(check_list, ())
    outcome: str = text()
    errors_encountered: Sequence[Mapping[str, Any]] = field(check_list, ())
    artifacts_produced: Sequence[str] = field(check_texts, ())
    git_commit: str = text()


class Pattern(Record):
    """Knowledge that no longer depends on a single episode, with its evidence."""

    __slots__ = ()
    prefix = "pat"
    identity = ("pattern",)
    title_field = "pattern"
    times = ("last_used",)
    pattern: str = text(required=True)
    category: str = text()
    conditions: Sequence[str] = field(check_texts, ())
    correct_approach: str = text()
    incorrect_approach: str = text()
    confidence: float = field(check_share, 0.0, check_read=check_number)
    source_episodes: Sequence[str] = field(check_texts, ())
    usage_count: int = field(check_count, 0)
    last_used: str = field(check_time, "")

    @property
    def sources(self) -> tuple[str, ...]:
        return (*super().sources, *self.source_episodes)


class AntiPattern(Record):
    """What fails, why, and how to avoid it."""

    __slots__ = ()
    prefix = "anti"
    identity = ("what_fails", "why", "prevention")
    title_field = "what_fails"
    what_fails: str = text(required=True)
    why: str = text()
    prevention: str = text()
    source: str = text()

    @property
    def sources(self) -> tuple[str, ...]:
        return (*super().sources, *([self.source] if self.source else []))


class Node(Record):
    """A point of the graph: fact, concept, snippet, tool, persona, task, or `node`."""

    __slots__ = ()
    prefix = ""  # A node's id starts with its kind: `fact-…`, `snippet-…`.
    identity = ("type", "label", "payload")
    title_field = "label"
    type: str = text()
    label: str = text(required=True)
    payload: Any = field(accept_anything)
    children: Mapping[str, str] = mapping()
    stats: Mapping[str, Any] = mapping()


class Handoff(Record):
    """What one agent leaves for the next."""

    __slots__ = ()
    prefix = "handoff"
    identity = ("from_agent", "to_agent", "timestamp", "context")
    title_field = "to_agent"
    times = ("accepted_at",)
    from_agent: str = text(required=True)
    to_agent: str = text(required=True)
    context: Mapping[str, Any] = mapping()
    # Acceptance is a later version with these.
    status: str = text()
    accepted_by: str = text()
    accepted_at: str = field(check_time, "")


class Ledger(Record):
    """An agent's checkpoint; its latest version says how far the agent has come."""

    __slots__ = ()
    prefix = "ledger"
    identity = ("agent_id",)
    title_field = "agent_id"
    times = ("last_checkpoint",)
    last_checkpoint: str = field(check_time, "")
    tasks_completed: int = field(check_count, 0)
    current_task: str = text()
    state: Mapping[str, Any] = mapping()
    context: Mapping[str, Any] = mapping()


class Context(Record):
    """The saved frames of a task."""

    __slots__ = ()
    prefix = "ctx"
    identity = ("task_id",)
    title_field = "task_id"
    task_id: str = text(required=True)
    frames: Sequence[Mapping[str, Any]] = field(check_list, ())


class Feedback(Record):
    """One outcome of using a record; each is a record, so that counts add up when logs merge."""

    __slots__ = ()
    prefix = "fb"
    identity = ("of", "outcome", "agent_id", "timestamp")
    title_field = "outcome"
    of: str = text(required=True)
    outcome: str = choice(OUTCOMES)


class LinkRecord(Record):
    """An edge that was added after the records at both its ends."""

    __slots__ = ()
    prefix = "link"
    identity = ("of", "rel", "to")
    title_field = "rel"
    of: str = text(required=True)
    to: str = text(required=True)
    rel: str = choice(RELATIONS)
    w: float = field(check_share, 1.0, check_read=check_number)


class Forget(Record):
    """Hides a record and what was derived from it."""

    __slots__ = ()
    prefix = "forget"
    identity = ("of",)
    of: str = text(required=True)
    reason: str = text()


KINDS: dict[str, type[Record]] = {
    "lesson": Lesson,
    "episode": Episode,
    "pattern": Pattern,
    "anti_pattern": AntiPattern,
    "fact": Node,
    "concept": Node,
    "snippet": Node,
    "tool": Node,
    "persona": Node,
    "task": Node,
    # A skill, pattern or episode that another program wrote as a node (see `nodes.py`).
    "node": Node,
    "handoff": Handoff,
    "ledger": Ledger,
    "context": Context,
    "feedback": Feedback,
    "link": LinkRecord,
    "forget": Forget,
}
