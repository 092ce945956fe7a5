"""basic-memory: Markdown notes with observations and relations.

An observation is a line `- [category] text #tag`, a relation is a line `- word [[Note]]`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from commonplace import frontmatter
from commonplace.exchange import files, normalize
from commonplace.exchange.formats.serena import heading
from commonplace.exchange.items import (
    Head,
    ImportedRecord,
    Item,
    Skipped,
    Source,
    Unreadable,
    relative_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SUFFIXES = files.TEXT_SUFFIXES
# A category in brackets, but not the check box of a task.
_OBSERVATION = re.compile(
    r"^\s*[-*]\s+\[(?P<category>(?![ xX-]\])[^\]\[(]+)\](?!\()\s+(?P<text>.+)$", re.MULTILINE
)
_RELATION = re.compile(
    r"^\s*[-*]\s+(?P<word>[^\[\n]*?)\s*\[\[(?P<to>[^\]]+)\]\](?P<context>.*)$", re.MULTILINE
)
_TAG = re.compile(r"(?<!\S)#([\w/-]+)")


def recognises(path: Path, head: Head) -> bool:
    if path.suffix not in SUFFIXES or head.front is None:
        return False
    marked = _OBSERVATION.search(head.text) or _RELATION.search(head.text)
    return "permalink" in head.front or ("title" in head.front and marked is not None)


def read(source: Source) -> Iterator[Item]:
    try:
        text = files.read_text(source.path)
    except files.UnreadableFile as error:
        yield Unreadable(0, str(error))
        return
    front, body = frontmatter.split(text.replace("\r\n", "\n"))
    if not body.strip():
        yield Skipped(0, "is empty")
    else:
        yield ImportedRecord(_note(source, front or {}, body.strip("\n")))


def _note(source: Source, front: Mapping[str, Any], body: str) -> dict[str, Any]:
    observations = [match["text"] for match in _OBSERVATION.finditer(body)]
    used = ("title", "type", "permalink", "tags", "created", "modified", "date")
    return {
        "id": _id(source.path, front, source.root, source.repo),
        "kind": "concept",
        "timestamp": normalize.parse_time(front.get("modified")) or normalize.find_time(front),
        "agent_id": "",
        "type": str(front.get("type") or "note"),
        "label": str(front.get("title") or heading(body) or source.path.stem),
        "payload": body,
        "tags": normalize.parse_tags(
            front.get("tags"), *(_TAG.findall(text) for text in observations)
        ),
        "links": list(_links(source, body)),
        "meta": {
            **normalize.unused_fields(front, used),
            **({"permalink": front["permalink"]} if front.get("permalink") else {}),
        },
    }


def _links(source: Source, body: str) -> Iterator[dict[str, Any]]:
    known = _names(source.files, source.root, source.repo)
    seen: set[tuple[str, str]] = set()
    for match in _RELATION.finditer(body):
        target = match["to"].partition("|")[0].strip()
        name = target.casefold()
        to = known.get(name) or normalize.stable_id("bm", source.repo, name)
        relation = match["word"].strip().strip("\"'`") or "related_to"
        if (to, relation) not in seen:
            seen.add((to, relation))
            yield normalize.make_link(to, relation)


def _id(path: Path, front: Mapping[str, Any], root: Path, repo: str) -> str:
    link = front.get("permalink")
    name = link if isinstance(link, str) and link else relative_name(path, root).rpartition(".")[0]
    return normalize.stable_id("bm", repo, name.casefold())


@lru_cache(maxsize=4)
def _names(paths: tuple[Path, ...], root: Path, repo: str) -> dict[str, str]:
    """Map the names by which notes refer to one another (title, permalink, file name) to ids."""
    names: dict[str, str] = {}
    for path in paths:
        try:
            front = files.read_head(path).front or {}
        except files.UnreadableFile:
            continue
        ident = _id(path, front, root, repo)
        for name in (front.get("title"), front.get("permalink"), path.stem):
            if isinstance(name, str) and name:
                names.setdefault(name.casefold(), ident)
    return names
