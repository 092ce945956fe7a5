"""Beads: its knowledge base (`.beads/memory/knowledge.jsonl`) and its issues (`issues.jsonl`)."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from commonplace.exchange import normalize
from commonplace.exchange.files import LINE_SUFFIXES, read_json_lines
from commonplace.exchange.items import Head, ImportedRecord, Item, Source, Unreadable, Withdrawal
from commonplace.exchange.round_trip import add_extra, apply_extra
from commonplace.records import EVENT_TYPES, keyed_id, make_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

SUFFIXES = LINE_SUFFIXES
MARK = ".beads/memory"
KINDS_HELD = ("lesson",)
_KNOWLEDGE = ("knowledge.jsonl", "knowledge.archive.jsonl")
# Where the records of an archive go that would else be in the other file.
ARCHIVE_OF = {_KNOWLEDGE[0]: _KNOWLEDGE[1]}
_DELETED = "tombstone"


def recognises(path: Path, head: Head) -> bool:
    if path.suffix not in SUFFIXES:
        return False
    by_path = path.name in _KNOWLEDGE or (
        path.parent.name == ".beads" and path.name.endswith(".jsonl")
    )
    return by_path or any(_is_knowledge(entry) or _is_issue(entry) for entry in head.objects)


def _is_knowledge(entry: Mapping[str, Any]) -> bool:
    return "content" in entry and "key" in entry and ("ts" in entry or "bead" in entry)


def _is_issue(entry: Mapping[str, Any]) -> bool:
    return "title" in entry and "status" in entry and ("issue_type" in entry or "priority" in entry)


def read(source: Source) -> Iterator[Item]:
    for found in read_json_lines(source.path):
        if isinstance(found, Unreadable):
            yield found
            continue
        line, entry = found
        yield _item(entry, line, source.repo)


def _item(entry: dict[str, Any], line: int, repo: str) -> Item:
    if "title" in entry and "content" not in entry:
        return _issue(entry, line)
    if entry.get("_type") == "memory":
        entry = {**entry, "content": entry.get("value") or entry.get("content")}
    fields = apply_extra(entry, partial(lesson_fields, repo=repo))
    if not str(fields.get("lesson") or "").strip():
        return Unreadable(line, "has neither a `content` nor a `title`")
    return ImportedRecord(fields, line)


def lesson_fields(entry: Mapping[str, Any], repo: str) -> dict[str, Any]:
    """Return the fields of a lesson made from a line of the knowledge base.

    Lines with the same key are versions of one record, so the latest applies. The hooks give what
    they capture in *repo* the same id.
    """
    entry_type, key = entry.get("type"), entry.get("key")
    meta = {name: entry[name] for name in ("source", "bead", "key") if entry.get(name)}
    if entry_type and entry_type not in EVENT_TYPES:
        meta["type"] = entry_type
    used = ("key", "type", "content", "source", "tags", "ts", "bead", "_type", "value")
    return {
        "id": keyed_id(str(key), repo) if key else None,
        "kind": "lesson",
        "timestamp": normalize.parse_time(entry.get("ts")),
        "agent_id": "",
        "event_type": entry_type if entry_type in EVENT_TYPES else "learned",
        "lesson": entry.get("content"),
        "tags": entry["tags"]
        if isinstance(entry.get("tags"), list)
        else normalize.parse_tags(entry.get("tags")),
        **normalize.unused_fields(entry, used),
        **({"meta": meta} if meta else {}),
    }


def _issue(entry: dict[str, Any], line: int) -> Item:
    ident = normalize.usable_id("bead", entry.get("id"))
    at = normalize.find_time(entry)
    if ident is None or not str(entry["title"] or "").strip():
        return Unreadable(line, "is an issue without an `id` or a `title`")
    if entry.get("status") == _DELETED:
        return Withdrawal(
            ident,
            normalize.parse_time(entry.get("deleted_at")) or at or "",
            "it was deleted in beads",
            line,
        )
    used = (
        "id",
        "title",
        "issue_type",
        "labels",
        "dependencies",
        "dependency_count",
        "dependent_count",
        "comment_count",
    )
    return ImportedRecord(
        {
            "id": ident,
            "kind": "task",
            "timestamp": at,
            "agent_id": normalize.find_agent(
                {"agent": entry.get("assignee"), "author": entry.get("created_by")}
            ),
            "type": str(entry.get("issue_type") or "task"),
            "label": str(entry["title"]),
            "payload": normalize.unused_fields(entry, used),
            "tags": normalize.parse_tags(entry.get("labels")),
            "links": [
                found for item in entry.get("dependencies") or [] if (found := _link(item, ident))
            ],
        },
        line,
    )


def _link(item: object, ident: str) -> dict[str, Any] | None:
    if not isinstance(item, dict):
        return None
    to = normalize.usable_id("bead", item.get("depends_on_id"))
    return None if to is None or to == ident else normalize.make_link(to, item.get("type"))


def write(records: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the file of each record, below the layout's folder, and its line."""
    keys: set[str] = set()
    for fields in records:
        meta = fields.get("meta") or {}
        key = meta.get("key")
        if not isinstance(key, str) or not key:
            key = make_key(fields["event_type"], fields["lesson"])
        if key in keys:  # Beads reads only the latest line with a key.
            key = normalize.stable_id(key, fields["id"])
        keys.add(key)
        entry = {
            "key": key,
            "type": fields["event_type"],
            "content": fields["lesson"],
            "source": meta.get("source") or "",
            "tags": fields.get("tags") or [],
            "ts": int(datetime.fromisoformat(fields["timestamp"]).timestamp()),
            "bead": meta.get("bead") or "",
        }
        read_again = partial(lesson_fields, repo=fields.get("repo") or "")
        yield _KNOWLEDGE[0], add_extra(fields, entry, read_again)
