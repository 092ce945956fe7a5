"""Serena's memories: `.serena/memories/<topic>/<name>.md`, Markdown with `mem:` references."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from commonplace import frontmatter
from commonplace.exchange import files, normalize
from commonplace.exchange.items import Head, ImportedRecord, Item, Skipped, Source, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUFFIXES = files.TEXT_SUFFIXES
_REFERENCE = re.compile(r"\bmem:([\w./-]+\w)")
_HEADING = re.compile(r"^#+\s+(.+?)\s*#*$", re.MULTILINE)
# Files that describe a folder or a project and are not memories.
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
        text = files.read_text(source.path)
    except files.UnreadableFile as error:
        yield Unreadable(0, str(error))
        return
    front, body = frontmatter.split(text)
    if not body.strip():
        yield Skipped(0, "is empty")
        return
    name = _name(source.name_below("memories", "serena", ".serena"))
    yield ImportedRecord(
        {
            "id": normalize.stable_id("serena", source.repo, name),
            "kind": "fact",
            "timestamp": normalize.find_time(front or {}),
            "agent_id": "",
            "type": "memory",
            "label": heading(body) or name,
            "payload": body,
            "tags": normalize.parse_tags((front or {}).get("tags"), name.split("/")[:-1]),
            "links": [
                normalize.make_link(
                    normalize.stable_id("serena", source.repo, _name(to)), "related_to"
                )
                for to in dict.fromkeys(_REFERENCE.findall(body))
                if _name(to) != name
            ],
            "meta": {"name": name},
        }
    )


def _name(path: str) -> str:
    return path.removesuffix(".md").removesuffix(".markdown")


def heading(text: str) -> str:
    """Return the first heading of a Markdown text, else an empty text."""
    found = _HEADING.search(text)
    return found.group(1) if found else ""
