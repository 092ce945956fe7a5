"""What is searched of a record: its texts in the order in which they help, whatever its kind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commonplace.records import Record

# Fields that say where a record belongs rather than what it says.
_ADDRESS = frozenset(
    ["id", "kind", "timestamp", "repo", "agent_id", "agent", "links", "meta", "embeddings", "resonance", "stats",
     "event_type", "success_rate", "outcome", "type", "confidence", "usage_count", "last_used", "source_episodes",
     "source", "key", "ts", "git_commit", "path", "title", "of", "to", "rel", "w", "children"],
)  # fmt: skip
# What to do comes before how it came about: the order in which fields are read out.
_ORDER = (
    "label", "context", "pattern", "what_fails", "lesson", "correct_approach", "prevention", "command",
    "incorrect_approach", "why", "conditions", "text", "payload", "errors_encountered", "content",
)  # fmt: skip
UNSEARCHED_KINDS = frozenset(["feedback", "link", "forget"])


class Document(NamedTuple):
    """A record as text: a title that names it, and everything it says."""

    title: str
    text: str


def document(record: Record) -> Document:
    """The searchable text of any record: every string in it that is not an address."""
    fields = record.fields
    if record.kind in ("skill", "note"):
        return _text_document(str(fields.get("title", "")), str(fields.get("text", "")))
    command = fields.get("command")
    if isinstance(command, str) and "\n" in command.strip():
        fields = {**fields, "command": f"```\n{command}\n```"}  # Code stays as it is written.
    parts = list(dict.fromkeys(text for text in _said(fields) if text.strip()))
    return Document(_title(record), "\n\n".join(parts))


_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_DESCRIPTION = re.compile(r"^description:\s*(.+)$", re.MULTILINE)


def _text_document(title: str, text: str) -> Document:
    """A file: its front matter gives no more than what it says about itself."""
    front = _FRONT_MATTER.match(text)
    described = _DESCRIPTION.search(front.group(1)) if front else None
    body = text[front.end() :] if front else text
    return Document(
        title, f"{described.group(1).strip()}\n\n{body.strip()}" if described else body.strip()
    )


def _said(fields: Mapping[str, Any]) -> Iterator[str]:
    for name in _ORDER:
        if name in fields:
            yield from _strings(fields[name])
    for name, value in fields.items():
        if name not in _ADDRESS and name not in _ORDER:
            yield from _strings(value)


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
