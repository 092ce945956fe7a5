"""The logs of agent-knowledge: `agent-knowledge/logs/<repo>.jsonl`, one lesson per line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.exchange import normalize
from commonplace.exchange.files import LINE_SUFFIXES, read_json_lines
from commonplace.exchange.items import Head, ImportedRecord, Item, Source, Unreadable
from commonplace.exchange.round_trip import add_extra, apply_extra
from commonplace.records import EVENT_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

SUFFIXES = LINE_SUFFIXES
MARK = "agent-knowledge/logs"
KINDS_HELD = ("lesson",)
# The fields of a line in their order, with their defaults.
_FIELDS: dict[str, Any] = {
    "timestamp": "", "agent_id": "", "repo": "", "event_type": "", "context": "", "command": "",
    "lesson": "", "success_rate": "", "tags": [],
}  # fmt: skip


def recognises(path: Path, head: Head) -> bool:
    has_lesson = any(
        "lesson" in entry and "event_type" in entry and "kind" not in entry
        for entry in head.objects
    )
    by_path = path.parts[-3:-1] == ("agent-knowledge", "logs")
    return path.suffix in SUFFIXES and (has_lesson or by_path)


def read(source: Source) -> Iterator[Item]:
    for found in read_json_lines(source.path):
        if isinstance(found, Unreadable):
            yield found
            continue
        line, entry = found
        fields = apply_extra(entry, lesson_fields)
        if str(fields.get("lesson") or "").strip():
            # A log in `logs/` belongs to one repository and is named after it.
            yield ImportedRecord(
                {"repo": source.path.stem, **fields} if _is_log(source.path) else fields, line
            )
        else:
            yield Unreadable(line, "has no `lesson`")


def _is_log(path: Path) -> bool:
    return path.parent.name == "logs"


def lesson_fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a lesson made from a line; fields we do not know are kept."""
    fields: dict[str, Any] = {"kind": "lesson", **entry}
    if not fields.get("success_rate"):
        fields.pop("success_rate", None)
    if fields.get("event_type") not in EVENT_TYPES:
        theirs = fields.get("event_type")
        fields["event_type"] = "learned"
        if theirs:
            fields["meta"] = {
                **(fields["meta"] if isinstance(fields.get("meta"), dict) else {}),
                "event_type": theirs,
            }
    for name in ("repo", "timestamp"):
        if not fields.get(name):
            fields.pop(name, None)
    if not isinstance(fields.get("tags", []), list):
        fields["tags"] = normalize.parse_tags(fields["tags"])
    return fields


def write(records: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the file of each record, below the layout's folder, and its line."""
    for fields in records:
        entry = {name: fields.get(name, default) for name, default in _FIELDS.items()}
        yield f"{fields.get('repo') or 'general'}.jsonl", add_extra(fields, entry, lesson_fields)
