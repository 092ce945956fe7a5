"""JSON lines: records of our own, the lessons of compound-agent, or (when asked for) anything that has a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.exchange import normalize
from commonplace.exchange.files import LINE_SUFFIXES, json_lines
from commonplace.exchange.items import Head, Item, Source, Taken, Unread, Withdrawn
from commonplace.records import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SUFFIXES = LINE_SUFFIXES
# What stands for "nobody said" in a trigger.
_NO_TRIGGER = "Manual capture"
_RELATIONS = {"supersedes": "supersedes", "related": "related_to"}
_FROM_FAILURE = ("test_failure", "self_correction", "error")


def recognises(path: Path, head: Head) -> bool:
    return path.suffix in SUFFIXES and any(
        _is_record(entry) or _is_lesson(entry) for entry in head.objects
    )


def _is_record(entry: Mapping[str, Any]) -> bool:
    return entry.get("kind") in KINDS and ("timestamp" in entry or "id" in entry)


def _is_lesson(entry: Mapping[str, Any]) -> bool:
    return "insight" in entry and "trigger" in entry


def read(source: Source) -> Iterator[Item]:
    for found in json_lines(source.path):
        if isinstance(found, Unread):
            yield found
            continue
        line, entry = found
        if "kind" in entry:
            yield Taken(entry, line)
        elif _is_withdrawn(entry):
            at = (
                normalize.moment(entry.get("invalidatedAt") or entry.get("deletedAt"))
                or normalize.time_in(entry)
                or ""
            )
            reason = str(entry.get("invalidationReason") or "its author withdrew it")
            yield Withdrawn(normalize.kept_ident("les", entry["id"]) or "", at, reason, line)
        else:
            fields = _insight(entry) if "insight" in entry else normalize.lesson(entry, "les")
            yield (
                Taken(fields, line)
                if fields
                else Unread(line, "says nothing: no field of it is a text we know")
            )


def _is_withdrawn(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("id")) and bool(entry.get("invalidatedAt") or entry.get("deleted"))


def _insight(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    if not isinstance(entry["insight"], str) or not entry["insight"].strip():
        return None
    trigger = entry.get("trigger")
    fields: dict[str, Any] = {
        "id": normalize.kept_ident("les", entry.get("id")),
        "kind": "lesson",
        "timestamp": normalize.time_in(entry),
        "agent_id": "",
        "event_type": "error" if entry.get("source") in _FROM_FAILURE else "learned",
        "context": trigger if isinstance(trigger, str) and trigger != _NO_TRIGGER else "",
        "lesson": entry["insight"],
        "tags": normalize.tags_of(entry.get("tags")),
        "links": normalize.links_to(
            entry, _RELATIONS, lambda to: normalize.kept_ident("les", to) or to
        ),
    }
    pair = entry.get("pattern")
    if isinstance(pair, dict):
        fields |= {
            "incorrect_approach": str(pair.get("bad") or ""),
            "correct_approach": str(pair.get("good") or ""),
        }
    used = ("id", "insight", "trigger", "tags", "pattern", "created", "supersedes", "related")
    return {**fields, "meta": normalize.rest(entry, used)}
