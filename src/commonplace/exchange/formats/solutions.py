"""Solution notes: Markdown with front matter (title, problem_type, symptoms, tags …), as in `docs/solutions/`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.exchange import files, frontmatter, normalize
from commonplace.exchange.formats.serena import ABOUT, heading
from commonplace.exchange.items import Head, Item, Passed, Source, Taken, Unread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SUFFIXES = files.TEXT_SUFFIXES
_SIGNS = frozenset(
    [
        "problem_type",
        "symptoms",
        "root_cause",
        "resolution_type",
        "applies_when",
        "component",
        "module",
    ]
)
# What is worth finding it by, beside its text.
_SAID = ("symptoms", "applies_when", "root_cause", "module", "component", "problem")
_DEPTH_MAX = 4
_USED = ("title", "date", "last_updated", "created", "updated", "tags", *_SAID)


def recognises(path: Path, head: Head) -> bool:
    if path.suffix not in SUFFIXES:
        return False
    # Not any folder of that name above: a whole project may lie in one.
    by_place = "solutions" in path.parts[-_DEPTH_MAX - 1 : -1]
    return by_place or (
        head.front is not None and "title" in head.front and bool(_SIGNS & head.front.keys())
    )


def read(source: Source) -> Iterator[Item]:
    try:
        text = files.text(source.path)
    except files.NotText as error:
        yield Unread(0, str(error))
        return
    front, body = frontmatter.split(text)
    if front is None and source.path.stem.lower() in ABOUT:
        yield Passed(0, "speaks of the folder; it is no solution")
    elif not body.strip():
        yield Passed(0, "is empty")
    else:
        yield Taken(_fields(source, front or {}, body.strip("\n")))


def _fields(source: Source, front: Mapping[str, Any], body: str) -> dict[str, Any]:
    name = source.below("solutions")
    folder = name.split("/")[-2:-1]
    said = {field: front[field] for field in _SAID if front.get(field)}
    return {
        "id": normalize.ident("solution", source.repo, name.rpartition(".")[0]),
        "kind": "fact",
        "timestamp": normalize.moment(front.get("last_updated")) or normalize.time_in(front),
        "agent_id": "",
        "type": str(front.get("problem_type") or front.get("category") or "solution"),
        "label": str(front.get("title") or heading(body) or source.path.stem),
        "payload": body,
        "tags": normalize.tags_of(front.get("tags"), front.get("category") or folder),
        **said,
        "meta": {**normalize.rest(front, _USED), "name": name},
    }
