"""JSON lines: our own records, lessons of compound-agent, or (with `--from`) any texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.exchange import normalize
from commonplace.exchange.files import LINE_SUFFIXES, read_json_lines
from commonplace.exchange.items import Head, ImportedRecord, Item, Source, Unreadable, Withdrawal
from commonplace.records import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SUFFIXES = LINE_SUFFIXES
# compound-agent writes this trigger when none was given.
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
    for found in read_json_lines(source.path):
        if isinstance(found, Unreadable):
            yield found
            continue
        line, entry = found
        if "kind" in entry:
            yield ImportedRecord(entry, line)
        elif _is_withdrawn(entry):
            at = (
                normalize.parse_time(entry.get("invalidatedAt") or entry.get("deletedAt"))
                or normalize.find_time(entry)
                or ""
            )
            reason = str(entry.get("invalidationReason") or "its author withdrew it")
            yield Withdrawal(normalize.usable_id("les", entry["id"]) or "", at, reason, line)
        else:
            fields = _insight(entry) if "insight" in entry else normalize.make_lesson(entry, "les")
            yield (
                ImportedRecord(fields, line)
                if fields
                else Unreadable(line, "has no text: none of the known text fields is filled")
            )


def _is_withdrawn(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("id")) and bool(entry.get("invalidatedAt") or entry.get("deleted"))


def _insight(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    if not isinstance(entry["insight"], str) or not entry["insight"].strip():
        return None
    trigger = entry.get("trigger")
    fields: dict[str, Any] = {
        "id": normalize.usable_id("les", entry.get("id")),
        "kind": "lesson",
        "timestamp": normalize.find_time(entry),
        "agent_id": "",
        "event_type": "error" if entry.get("source") in _FROM_FAILURE else "learned",
        "context": trigger if isinstance(trigger, str) and trigger != _NO_TRIGGER else "",
        "lesson": entry["insight"],
        "tags": normalize.parse_tags(entry.get("tags")),
        "links": normalize.make_links(
            entry, _RELATIONS, lambda to: normalize.usable_id("les", to) or to
        ),
    }
    pair = entry.get("pattern")
    if isinstance(pair, dict):
        fields |= {
            "incorrect_approach": str(pair.get("bad") or ""),
            "correct_approach": str(pair.get("good") or ""),
        }
    used = ("id", "insight", "trigger", "tags", "pattern", "created", "supersedes", "related")
    return {**fields, "meta": normalize.unused_fields(entry, used)}
