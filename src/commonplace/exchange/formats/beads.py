"""Beads: seed 003's `.beads/memory/knowledge.jsonl`, and the issues of the tracker itself (`issues.jsonl`)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from commonplace.exchange import normalize
from commonplace.exchange.files import LINE_SUFFIXES, json_lines
from commonplace.exchange.items import Head, Item, Source, Taken, Unread, Withdrawn
from commonplace.exchange.round_trip import dressed, undressed
from commonplace.records import EVENT_TYPES, slug

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

SUFFIXES = LINE_SUFFIXES
MARK = ".beads/memory"
KINDS_HELD = ("lesson",)
KEY_CHARS_MAX = 60
_KNOWLEDGE = ("knowledge.jsonl", "knowledge.archive.jsonl")
_DELETED = "tombstone"


def recognises(path: Path, head: Head) -> bool:
    if path.suffix not in SUFFIXES:
        return False
    by_place = path.name in _KNOWLEDGE or (
        path.parent.name == ".beads" and path.name.endswith(".jsonl")
    )
    return by_place or any(_is_knowledge(entry) or _is_issue(entry) for entry in head.objects)


def _is_knowledge(entry: Mapping[str, Any]) -> bool:
    return "content" in entry and "key" in entry and ("ts" in entry or "bead" in entry)


def _is_issue(entry: Mapping[str, Any]) -> bool:
    return "title" in entry and "status" in entry and ("issue_type" in entry or "priority" in entry)


def read(source: Source) -> Iterator[Item]:
    for found in json_lines(source.path):
        if isinstance(found, Unread):
            yield found
            continue
        line, entry = found
        yield _item(entry, line)


def _item(entry: dict[str, Any], line: int) -> Item:
    if "title" in entry and "content" not in entry:
        return _issue(entry, line)
    if entry.get("_type") == "memory":
        entry = {**entry, "content": entry.get("value") or entry.get("content")}
    fields = undressed(entry, plain)
    if not str(fields.get("lesson") or "").strip():
        return Unread(line, "has neither a `content` nor a `title`")
    return Taken(fields, line)


def plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A line of the knowledge base as a lesson. The same key is the same record, so its latest entry wins."""
    said = entry.get("type")
    meta = {name: entry[name] for name in ("source", "bead", "key") if entry.get(name)}
    if said and said not in EVENT_TYPES:
        meta["type"] = said
    used = ("key", "type", "content", "source", "tags", "ts", "bead", "_type", "value")
    return {
        "id": normalize.kept_ident("learned", entry.get("key")),
        "kind": "lesson",
        "timestamp": normalize.moment(entry.get("ts")),
        "agent_id": "",
        "event_type": said if said in EVENT_TYPES else "learned",
        "lesson": entry.get("content"),
        "tags": entry["tags"]
        if isinstance(entry.get("tags"), list)
        else normalize.tags_of(entry.get("tags")),
        **normalize.rest(entry, used),
        **({"meta": meta} if meta else {}),
    }


def _issue(entry: dict[str, Any], line: int) -> Item:
    ident = normalize.kept_ident("bead", entry.get("id"))
    at = normalize.time_in(entry)
    if ident is None or not str(entry["title"] or "").strip():
        return Unread(line, "is an issue without an `id` or a `title`")
    if entry.get("status") == _DELETED:
        return Withdrawn(
            ident,
            normalize.moment(entry.get("deleted_at")) or at or "",
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
    return Taken(
        {
            "id": ident,
            "kind": "task",
            "timestamp": at,
            "agent_id": normalize.agent_in(
                {"agent": entry.get("assignee"), "author": entry.get("created_by")}
            ),
            "type": str(entry.get("issue_type") or "task"),
            "label": str(entry["title"]),
            "payload": normalize.rest(entry, used),
            "tags": normalize.tags_of(entry.get("labels")),
            "links": [
                edge for item in entry.get("dependencies") or [] if (edge := _edge(item, ident))
            ],
        },
        line,
    )


def _edge(item: object, ident: str) -> dict[str, Any] | None:
    to = normalize.kept_ident("bead", item.get("depends_on_id")) if isinstance(item, dict) else None
    if to is None or to == ident or not isinstance(item, dict):
        return None
    return normalize.link(to, item.get("type"))


def write(records: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The file of each record, below the layout's folder, and its line."""
    keys: set[str] = set()
    for fields in records:
        meta = fields.get("meta") or {}
        key = meta.get("key")
        if not isinstance(key, str) or not key:
            key = f"{fields['event_type']}-{slug(fields['lesson'][:KEY_CHARS_MAX], KEY_CHARS_MAX)}".rstrip(
                "-"
            )
        if key in keys:  # Readers of the layout take the latest of a key only.
            key = normalize.ident(key, fields["id"])
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
        yield _KNOWLEDGE[0], dressed(fields, entry, plain)
