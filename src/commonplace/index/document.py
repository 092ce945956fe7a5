"""The searchable text of a record of any kind: its texts, the most useful first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.foreign import longer_fence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commonplace.records import Record

# Fields that are not searched: they identify, classify or count.
_UNSEARCHED_FIELDS = frozenset(
    ["id", "kind", "timestamp", "repo", "agent_id", "agent", "links", "meta", "embeddings",
     "resonance", "stats", "event_type", "success_rate", "outcome", "type", "confidence",
     "usage_count", "last_used", "source_episodes", "source", "key", "ts", "git_commit", "path",
     "title", "of", "to", "rel", "w", "children"],
)  # fmt: skip
# The fields that come first, in this order: instructions before background.
_ORDER = (
    "label",
    "context",
    "pattern",
    "what_fails",
    "lesson",
    "correct_approach",
    "prevention",
    "command",
    "incorrect_approach",
    "why",
    "conditions",
    "text",
    "payload",
    "errors_encountered",
    "content",
)


class Document(NamedTuple):
    """A record as text: its title, and all its searchable text."""

    title: str
    text: str


def document(record: Record) -> Document:
    """Return the title and the searchable text of any record."""
    fields = record.fields
    if record.kind in ("skill", "note"):
        return _text_document(str(fields.get("title", "")), str(fields.get("text", "")))
    command = fields.get("command")
    if isinstance(command, str) and "\n" in command.strip():
        fence = longer_fence(command, "```")
        fields = {**fields, "command": f"{fence}\n{command}\n{fence}"}  # Keeps its line ends.
    parts = list(dict.fromkeys(text for text in _searchable_texts(fields) if text.strip()))
    return Document(_title(record), "\n\n".join(parts))


_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_DESCRIPTION = re.compile(r"^description:\s*(.+)$", re.MULTILINE)


def _text_document(title: str, text: str) -> Document:
    """Return the document of a file; of its front matter, only the description is searched."""
    front = _FRONT_MATTER.match(text)
    described = _DESCRIPTION.search(front.group(1)) if front else None
    body = text[front.end() :] if front else text
    return Document(
        title, f"{described.group(1).strip()}\n\n{body.strip()}" if described else body.strip()
    )


def _searchable_texts(fields: Mapping[str, Any]) -> Iterator[str]:
    for name in _ORDER:
        if name in fields:
            yield from _strings(fields[name])
    for name, value in fields.items():
        if name not in _UNSEARCHED_FIELDS and name not in _ORDER:
            yield from _strings(value)
    meta = fields.get("meta")
    if isinstance(meta, dict):
        yield from _strings(meta.get("bead"))  # People look for what an issue has taught.


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        if value and all(isinstance(item, str) for item in value):
            yield ", ".join(value)
        else:
            for item in value:
                yield from _strings(item)


def _title(record: Record) -> str:
    value = (
        record.fields.get(record.title_field) if record.title_field else record.fields.get("title")
    )
    if isinstance(value, dict):
        value = value.get("goal")
    return value if isinstance(value, str) else ""
