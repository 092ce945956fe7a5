"""basic-memory: Markdown notes with observations (`- [category] text #tag`) and relations (`- word [[Note]]`)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from commonplace.exchange import files, frontmatter, normalize
from commonplace.exchange.formats.serena import heading
from commonplace.exchange.items import Head, Item, Passed, Source, Taken, Unread, relative

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SUFFIXES = files.TEXT_SUFFIXES
# A category, not the box of a task.
_OBSERVATION = re.compile(
    r"^\s*[-*]\s+\[(?P<category>(?![ xX-]\])[^\]\[(]+)\](?!\()\s+(?P<said>.+)$", re.MULTILINE
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
        text = files.text(source.path)
    except files.NotText as error:
        yield Unread(0, str(error))
        return
    front, body = frontmatter.split(text.replace("\r\n", "\n"))
    if not body.strip():
        yield Passed(0, "is empty")
    else:
        yield Taken(_note(source, front or {}, body.strip("\n")))


def _note(source: Source, front: Mapping[str, Any], body: str) -> dict[str, Any]:
    observations = [match["said"] for match in _OBSERVATION.finditer(body)]
    used = ("title", "type", "permalink", "tags", "created", "modified", "date")
    return {
        "id": _ident(source, source.path, front),
        "kind": "concept",
        "timestamp": normalize.moment(front.get("modified")) or normalize.time_in(front),
        "agent_id": "",
        "type": str(front.get("type") or "note"),
        "label": str(front.get("title") or heading(body) or source.path.stem),
        "payload": body,
        "tags": normalize.tags_of(
            front.get("tags"), *(_TAG.findall(said) for said in observations)
        ),
        "links": list(_links(source, body)),
        "meta": {
            **normalize.rest(front, used),
            **({"permalink": front["permalink"]} if front.get("permalink") else {}),
        },
    }


def _links(source: Source, body: str) -> Iterator[dict[str, Any]]:
    known = _names(source.files, source.root, source.repo)
    seen: set[tuple[str, str]] = set()
    for match in _RELATION.finditer(body):
        target = match["to"].partition("|")[0].strip()
        to = known.get(target.casefold()) or normalize.ident("bm", source.repo, target.casefold())
        word = match["word"].strip().strip("\"'`") or "related_to"
        if (to, word) not in seen:
            seen.add((to, word))
            yield normalize.link(to, word)


def _ident(source: Source, path: Path, front: Mapping[str, Any]) -> str:
    return _ident_of(path, front, source.root, source.repo)


def _ident_of(path: Path, front: Mapping[str, Any], root: Path, repo: str) -> str:
    named = front.get("permalink")
    place = named if isinstance(named, str) and named else relative(path, root).rpartition(".")[0]
    return normalize.ident("bm", repo, place.casefold())


@lru_cache(maxsize=4)
def _names(paths: tuple[Path, ...], root: Path, repo: str) -> dict[str, str]:
    """How the notes are called by one another (title, permalink, file name) → their ids."""
    names: dict[str, str] = {}
    for path in paths:
        try:
            front = files.head(path).front or {}
        except files.NotText:
            continue
        ident = _ident_of(path, front, root, repo)
        for name in (front.get("title"), front.get("permalink"), path.stem):
            if isinstance(name, str) and name:
                names.setdefault(name.casefold(), ident)
    return names
