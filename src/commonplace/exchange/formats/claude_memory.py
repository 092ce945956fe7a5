"""Claude Code's own memory: `~/.claude/projects/<project>/memory/`, an index and topic files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from commonplace import frontmatter
from commonplace.exchange import files, normalize
from commonplace.exchange.items import Head, ImportedRecord, Item, Skipped, Source, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SUFFIXES = files.TEXT_SUFFIXES
INDEX = "MEMORY.md"
_TYPES = ("user", "feedback", "project", "reference")
_TOPIC = re.compile(r"^\s*[-*]\s*\[[^\]]*\]\(([^)]+\.md)\).*$", re.MULTILINE)
_WIKI_LINK = re.compile(r"\[\[([^\]|#]+)(?:[|#][^\]]*)?\]\]")


def recognises(path: Path, head: Head) -> bool:
    if path.suffix not in SUFFIXES:
        return False
    by_path = path.name == INDEX or "agent-memory" in path.parts or (path.parent / INDEX).is_file()
    front = head.front or {}
    return by_path or (_type(front) in _TYPES and "name" in front and "description" in front)


def _type(front: Mapping[str, Any]) -> str:
    inner = front.get("metadata")
    value = front.get("type") or (inner.get("type") if isinstance(inner, dict) else "")
    return value if isinstance(value, str) else ""


def read(source: Source) -> Iterator[Item]:
    try:
        text = files.read_text(source.path)
    except files.UnreadableFile as error:
        yield Unreadable(0, str(error))
        return
    front, body = frontmatter.split(text)
    if source.path.name == INDEX:
        # A line that only links to a topic's file repeats what that file says.
        body = _TOPIC.sub("", body)
    if not re.sub(r"^#.*$", "", body, flags=re.MULTILINE).strip():
        yield Skipped(0, "is an index or empty: it has no text of its own")
        return
    yield ImportedRecord(_fields(source, front or {}, body.strip("\n")))


def _fields(source: Source, front: Mapping[str, Any], body: str) -> dict[str, Any]:
    name, about = (str(front.get(field) or "") for field in ("name", "description"))
    memory_type = _type(front)
    used = ("name", "description", "type", "metadata", "modified", "tags", "related", "created")
    meta = {"type": memory_type, "name": name, **normalize.unused_fields(front, used)}
    links = [
        normalize.make_link(_id(source, to), "related_to") for to in _related_names(front, body)
    ]
    fields: dict[str, Any] = {
        "id": _id(source, source.path.name),
        "timestamp": normalize.parse_time(front.get("modified")) or normalize.find_time(front),
        "agent_id": _agent(source.path),
        "tags": normalize.parse_tags(front.get("tags"), [memory_type] if memory_type else []),
        "links": links,
        "meta": normalize.unused_fields(meta, ()),
    }
    if memory_type == "feedback":
        return {
            **fields,
            "kind": "lesson",
            "event_type": "learned",
            "context": about or name,
            "lesson": body,
        }
    label = (
        f"{name}: {about}"
        if name and about and name != about
        else name or about or source.path.stem
    )
    return {
        **fields,
        "kind": "fact",
        "type": memory_type or "memory",
        "label": label,
        "payload": body,
    }


def _agent(path: Path) -> str:
    """Return the agent in `.claude/agent-memory/<agent>/`, else `claude-code`."""
    parts = path.parts
    at = parts.index("agent-memory") + 1 if "agent-memory" in parts else len(parts)
    return parts[at] if at < len(parts) - 1 else "claude-code"


def _id(source: Source, name: str) -> str:
    return normalize.stable_id(
        "claude",
        source.repo,
        _agent(source.path),
        name.removesuffix(".md").replace("_", "-").lower(),
    )


def _related_names(front: Mapping[str, Any], body: str) -> list[str]:
    names = [*normalize.list_texts(front.get("related") or []), *_WIKI_LINK.findall(body)]
    return list(dict.fromkeys(name.strip() for name in names))
