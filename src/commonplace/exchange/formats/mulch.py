"""Mulch: `.mulch/expertise/<domain>.jsonl`, one record of one of a few types per line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.exchange import normalize
from commonplace.exchange.files import LINE_SUFFIXES, read_json_lines
from commonplace.exchange.items import Head, ImportedRecord, Item, Source, Unreadable
from commonplace.records import slug

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

SUFFIXES = LINE_SUFFIXES
_TYPES = ("convention", "pattern", "failure", "decision", "reference", "guide")
_COMMON = ("id", "type", "recorded_at", "tags", "relates_to", "supersedes", "files")
_RELATIONS = {"relates_to": "related_to", "supersedes": "supersedes"}


def recognises(path: Path, head: Head) -> bool:
    by_path = path.parts[-3:-1] == (".mulch", "expertise")
    return path.suffix in SUFFIXES and (
        by_path or any(_is_expertise(entry) for entry in head.objects)
    )


def _is_expertise(entry: Mapping[str, Any]) -> bool:
    return (
        "type" in entry
        and "recorded_at" in entry
        and ("classification" in entry or entry["type"] in _TYPES)
    )


def read(source: Source) -> Iterator[Item]:
    for found in read_json_lines(source.path):
        if isinstance(found, Unreadable):
            yield found
            continue
        line, entry = found
        fields, used = _READERS.get(str(entry.get("type")), _other)(entry)
        if not fields:
            yield Unreadable(line, f"has no text (its type is `{entry.get('type')}`)")
        else:
            yield ImportedRecord({**_common_fields(entry, source.path.stem, used), **fields}, line)


def _common_fields(entry: Mapping[str, Any], domain: str, used: tuple[str, ...]) -> dict[str, Any]:
    meta = normalize.unused_fields(entry, (*_COMMON, *used))
    evidence = entry["evidence"] if isinstance(entry.get("evidence"), dict) else {}
    meta |= {
        name: evidence[name] for name in ("commit", "bead") if isinstance(evidence.get(name), str)
    }
    outcomes = entry["outcomes"] if isinstance(entry.get("outcomes"), list) else []
    agents = [
        one["agent"]
        for one in outcomes
        if isinstance(one, dict) and isinstance(one.get("agent"), str)
    ]
    return {
        "id": _id(entry),
        "timestamp": normalize.find_time(entry),
        "agent_id": agents[0] if agents else "",
        "tags": normalize.parse_tags(entry.get("tags"), [domain]),
        "links": normalize.make_links(
            entry, _RELATIONS, lambda to: normalize.usable_id("mx", to) or to
        ),
        **({"files": entry["files"]} if entry.get("files") else {}),
        "meta": {**meta, "domain": domain},
    }


def _id(entry: Mapping[str, Any]) -> str | None:
    ident = normalize.usable_id("mx", entry.get("id"))
    # Mulch makes the id of such a record from its name: all with an empty name have the same id.
    if ident and "name" in entry and not str(entry["name"] or "").strip():
        return normalize.stable_id(ident, str(entry.get("description") or ""))
    return ident


def _convention(entry: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    name, text = normalize.find_text(entry, ("content", "description"))
    rate = _rate(entry.get("outcomes"))
    fields = {
        "kind": "lesson",
        "event_type": "pattern",
        "lesson": text,
        **({"success_rate": rate} if rate else {}),
    }
    return (fields if text else {}), (name,)


def _rate(outcomes: object) -> str:
    """Return `successes/outcomes`; a partial success is not counted as one."""
    statuses = (
        [one.get("status") for one in outcomes if isinstance(one, dict)]
        if isinstance(outcomes, list)
        else []
    )
    return f"{statuses.count('success')}/{len(statuses)}" if statuses else ""


def _pattern(entry: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    name, text = normalize.find_text(entry, ("description", "content", "name"))
    fields = {"kind": "pattern", "pattern": text}
    if entry.get("name") and name != "name":
        fields["category"] = str(entry["name"])
    return (fields if text else {}), (name, "name")


def _failure(entry: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    name, text = normalize.find_text(entry, ("description", "content"))
    fields = {
        "kind": "anti_pattern",
        "what_fails": text,
        "prevention": str(entry.get("resolution") or ""),
    }
    return (fields if text else {}), (name, "resolution")


def _fact(entry: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    title, label = normalize.find_text(entry, ("title", "name", "description", "content"))
    name, text = normalize.find_text(
        entry, [one for one in ("rationale", "description", "content") if one != title]
    )
    fields = {"kind": "fact", "type": str(entry.get("type")), "label": label, "payload": text}
    return (fields if label else {}), (title, name)


def _other(entry: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Read a type that the project defined itself: a fact that keeps all its texts."""
    texts = {
        name: value
        for name, value in entry.items()
        if isinstance(value, str) and name not in _COMMON
    }
    _name, label = normalize.find_text(entry, ("title", "name", "content", "description", *texts))
    kept = {
        name: value for name, value in texts.items() if value.strip() and name != "classification"
    }
    fields = {
        "kind": "fact",
        "type": slug(str(entry.get("type") or "note"), 60) or "note",
        "label": label,
    }
    return ({**fields, "payload": kept} if label else {}), tuple(kept)


_READERS: dict[str, Callable[[Mapping[str, Any]], tuple[dict[str, Any], tuple[str, ...]]]] = {
    "convention": _convention,
    "pattern": _pattern,
    "failure": _failure,
    "decision": _fact,
    "reference": _fact,
    "guide": _fact,
}
