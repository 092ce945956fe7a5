"""Serena's memories: `.serena/memories/<topic>/<name>.md`, plain Markdown that refers to one another by `mem:`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from commonplace.exchange import files, frontmatter, normalize
from commonplace.exchange.items import Head, Item, Passed, Source, Taken, Unread

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUFFIXES = files.TEXT_SUFFIXES
_REFERENCE = re.compile(r"\bmem:([\w./-]+\w)")
_HEADING = re.compile(r"^#+\s+(.+?)\s*#*$", re.MULTILINE)
# Files that speak of a folder or a project, not from memory.
ABOUT = frozenset(
    ["readme", "changelog", "license", "contributing", "agents", "claude", "gemini", "security"]
)


def recognises(path: Path, _head: Head) -> bool:
    if path.suffix not in SUFFIXES or path.stem.lower() in ABOUT:
        return False
    return (
        ".serena" in path.parts
        or path.parent.name == "serena"
        or path.parts[-3:-1] == ("serena", "memories")
    )


def read(source: Source) -> Iterator[Item]:
    try:
        text = files.text(source.path)
    except files.NotText as error:
        yield Unread(0, str(error))
        return
    front, body = frontmatter.split(text)
    if not body.strip():
        yield Passed(0, "is empty")
        return
    name = _name(source.below("memories", "serena", ".serena"))
    yield Taken(
        {
            "id": normalize.ident("serena", source.repo, name),
            "kind": "fact",
            "timestamp": normalize.time_in(front or {}),
            "agent_id": "",
            "type": "memory",
            "label": heading(body) or name,
            "payload": body,
            "tags": normalize.tags_of((front or {}).get("tags"), name.split("/")[:-1]),
            "links": [
                normalize.link(normalize.ident("serena", source.repo, _name(to)), "related_to")
                for to in dict.fromkeys(_REFERENCE.findall(body))
                if _name(to) != name
            ],
            "meta": {"name": name},
        }
    )


def _name(path: str) -> str:
    return path.removesuffix(".md").removesuffix(".markdown")


def heading(text: str) -> str:
    """The first heading of a Markdown text, if it has one."""
    found = _HEADING.search(text)
    return found.group(1) if found else ""
