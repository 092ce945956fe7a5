"""Seed 000's logs: `agent-knowledge/logs/<repo>.jsonl`, one lesson a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.exchange import normalize
from commonplace.exchange.files import LINE_SUFFIXES, json_lines
from commonplace.exchange.items import Head, Item, Source, Taken, Unread
from commonplace.exchange.round_trip import dressed, undressed
from commonplace.records import EVENT_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

SUFFIXES = LINE_SUFFIXES
MARK = "agent-knowledge/logs"
KINDS_HELD = ("lesson",)
# The seed's fields in its order, with what stands where nothing was said.
_FIELDS: dict[str, Any] = {
    "timestamp": "", "agent_id": "", "repo": "", "event_type": "", "context": "", "command": "", "lesson": "",
    "success_rate": "", "tags": [],
}  # fmt: skip


def recognises(path: Path, head: Head) -> bool:
    said = any(
        "lesson" in entry and "event_type" in entry and "kind" not in entry
        for entry in head.objects
    )
    return path.suffix in SUFFIXES and (said or path.parts[-3:-1] == ("agent-knowledge", "logs"))


def read(source: Source) -> Iterator[Item]:
    for found in json_lines(source.path):
        if isinstance(found, Unread):
            yield found
            continue
        line, entry = found
        fields = undressed(entry, plain)
        if str(fields.get("lesson") or "").strip():
            # A log of the layout is of one repository, which its name says.
            yield Taken(
                {"repo": source.path.stem, **fields} if _is_log(source.path) else fields, line
            )
        else:
            yield Unread(line, "has no `lesson`")


def _is_log(path: Path) -> bool:
    return path.parent.name == "logs"


def plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A line of the seed's as a lesson; fields it does not name are kept as they are."""
    fields: dict[str, Any] = {"kind": "lesson", **entry}
    if not fields.get("success_rate"):
        fields.pop("success_rate", None)
    if fields.get("event_type") not in EVENT_TYPES:
        said = fields.get("event_type")
        fields["event_type"] = "learned"
        if said:
            fields["meta"] = {
                **(fields["meta"] if isinstance(fields.get("meta"), dict) else {}),
                "event_type": said,
            }
    for name in ("repo", "timestamp"):
        if not fields.get(name):
            fields.pop(name, None)
    if not isinstance(fields.get("tags", []), list):
        fields["tags"] = normalize.tags_of(fields["tags"])
    return fields


def write(records: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The file of each record, below the layout's folder, and its line."""
    for fields in records:
        entry = {name: fields.get(name, default) for name, default in _FIELDS.items()}
        yield f"{fields['repo']}.jsonl", dressed(fields, entry, plain)
