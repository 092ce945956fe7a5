"""Solution notes: Markdown with front matter (title, problem_type, …), as in `docs/solutions/`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace import frontmatter
from commonplace.exchange import files, normalize
from commonplace.exchange.formats.serena import ABOUT, heading
from commonplace.exchange.items import Head, ImportedRecord, Item, Skipped, Source, Unreadable

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
# Fields that are searched along with the text.
_SEARCHED = ("symptoms", "applies_when", "root_cause", "module", "component", "problem")
_DEPTH_MAX = 4
_USED = ("title", "date", "last_updated", "created", "updated", "tags", *_SEARCHED)


def recognises(path: Path, head: Head) -> bool:
    if path.suffix not in SUFFIXES:
        return False
    # Only the nearest folders: a whole project may be in a folder with that name.
    by_path = "solutions" in path.parts[-_DEPTH_MAX - 1 : -1]
    return by_path or (
        head.front is not None and "title" in head.front and bool(_SIGNS & head.front.keys())
    )


def read(source: Source) -> Iterator[Item]:
    try:
        text = files.read_text(source.path)
    except files.UnreadableFile as error:
        yield Unreadable(0, str(error))
        return
    front, body = frontmatter.split(text)
    if front is None and source.path.stem.lower() in ABOUT:
        yield Skipped(0, "describes the folder; it is not a solution")
    elif not body.strip():
        yield Skipped(0, "is empty")
    else:
        yield ImportedRecord(_fields(source, front or {}, body.strip("\n")))


def _fields(source: Source, front: Mapping[str, Any], body: str) -> dict[str, Any]:
    name = source.name_below("solutions")
    folder = name.split("/")[-2:-1]
    searched = {field: front[field] for field in _SEARCHED if front.get(field)}
    return {
        "id": normalize.stable_id("solution", source.repo, name.rpartition(".")[0]),
        "kind": "fact",
        "timestamp": normalize.parse_time(front.get("last_updated")) or normalize.find_time(front),
        "agent_id": "",
        "type": str(front.get("problem_type") or front.get("category") or "solution"),
        "label": str(front.get("title") or heading(body) or source.path.stem),
        "payload": body,
        "tags": normalize.parse_tags(front.get("tags"), front.get("category") or folder),
        **searched,
        "meta": {**normalize.unused_fields(front, _USED), "name": name},
    }
