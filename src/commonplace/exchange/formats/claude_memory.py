"""Claude Code's own memory: `~/.claude/projects/<project>/memory/`, an index and a file a topic."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from commonplace.exchange import files, frontmatter, normalize
from commonplace.exchange.items import Head, Item, Passed, Source, Taken, Unread

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
    by_place = path.name == INDEX or "agent-memory" in path.parts or (path.parent / INDEX).is_file()
    front = head.front or {}
    return by_place or (_type(front) in _TYPES and "name" in front and "description" in front)


def _type(front: Mapping[str, Any]) -> str:
    inner = front.get("metadata")
    said = front.get("type") or (inner.get("type") if isinstance(inner, dict) else "")
    return said if isinstance(said, str) else ""


def read(source: Source) -> Iterator[Item]:
    try:
        text = files.text(source.path)
    except files.NotText as error:
        yield Unread(0, str(error))
        return
    front, body = frontmatter.split(text)
    if source.path.name == INDEX:
        # Lines that only point at a topic's file say what that file says.
        body = _TOPIC.sub("", body)
    if not re.sub(r"^#.*$", "", body, flags=re.MULTILINE).strip():
        yield Passed(0, "is an index, or empty: it says nothing of its own")
        return
    yield Taken(_fields(source, front or {}, body.strip("\n")))


def _fields(source: Source, front: Mapping[str, Any], body: str) -> dict[str, Any]:
    name, about = (str(front.get(field) or "") for field in ("name", "description"))
    said = _type(front)
    used = ("name", "description", "type", "metadata", "modified", "tags", "related", "created")
    meta = {"type": said, "name": name, **normalize.rest(front, used)}
    fields: dict[str, Any] = {
        "id": _ident(source, source.path.name),
        "timestamp": normalize.moment(front.get("modified")) or normalize.time_in(front),
        "agent_id": _agent(source.path),
        "tags": normalize.tags_of(front.get("tags"), [said] if said else []),
        "links": [normalize.link(_ident(source, to), "related_to") for to in _related(front, body)],
        "meta": normalize.rest(meta, ()),
    }
    if said == "feedback":
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
    return {**fields, "kind": "fact", "type": said or "memory", "label": label, "payload": body}


def _agent(path: Path) -> str:
    """The agent whose memory it is, where the folder says so (`.claude/agent-memory/<agent>/`)."""
    parts = path.parts
    at = parts.index("agent-memory") + 1 if "agent-memory" in parts else len(parts)
    return parts[at] if at < len(parts) - 1 else "claude-code"


def _ident(source: Source, name: str) -> str:
    return normalize.ident(
        "claude",
        source.repo,
        _agent(source.path),
        name.removesuffix(".md").replace("_", "-").lower(),
    )


def _related(front: Mapping[str, Any], body: str) -> list[str]:
    named = [*normalize.texts_of(front.get("related") or []), *_WIKI_LINK.findall(body)]
    return list(dict.fromkeys(name.strip() for name in named))
