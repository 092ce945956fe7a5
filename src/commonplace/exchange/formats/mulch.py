"""Mulch: `.mulch/expertise/<domain>.jsonl`, with records of a handful of types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.exchange import normalize
from commonplace.exchange.files import LINE_SUFFIXES, json_lines
from commonplace.exchange.items import Head, Item, Source, Taken, Unread
from commonplace.records import slug

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

SUFFIXES = LINE_SUFFIXES
_TYPES = ("convention", "pattern", "failure", "decision", "reference", "guide")
_COMMON = ("id", "type", "recorded_at", "tags", "relates_to", "supersedes", "files")
_RELATIONS = {"relates_to": "related_to", "supersedes": "supersedes"}


def recognises(path: Path, head: Head) -> bool:
    by_place = path.parts[-3:-1] == (".mulch", "expertise")
    return path.suffix in SUFFIXES and (
        by_place or any(_is_expertise(entry) for entry in head.objects)
    )


def _is_expertise(entry: Mapping[str, Any]) -> bool:
    return (
        "type" in entry
        and "recorded_at" in entry
        and ("classification" in entry or entry["type"] in _TYPES)
    )


def read(source: Source) -> Iterator[Item]:
    for found in json_lines(source.path):
        if isinstance(found, Unread):
            yield found
            continue
        line, entry = found
        said, used = _KINDS.get(str(entry.get("type")), _other)(entry)
        if not said:
            yield Unread(line, f"says nothing (`{entry.get('type')}` without a text)")
        else:
            yield Taken({**_common(entry, source.path.stem, used), **said}, line)


def _common(entry: Mapping[str, Any], domain: str, used: tuple[str, ...]) -> dict[str, Any]:
    meta = normalize.rest(entry, (*_COMMON, *used))
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
        "id": _ident(entry),
        "timestamp": normalize.time_in(entry),
        "agent_id": agents[0] if agents else "",
        "tags": normalize.tags_of(entry.get("tags"), [domain]),
        "links": normalize.links_to(
            entry, _RELATIONS, lambda to: normalize.kept_ident("mx", to) or to
        ),
        **({"files": entry["files"]} if entry.get("files") else {}),
        "meta": {**meta, "domain": domain},
    }


def _ident(entry: Mapping[str, Any]) -> str | None:
    ident = normalize.kept_ident("mx", entry.get("id"))
    # Mulch makes the id of a named thing from its name: without one, all such things have the same.
    if ident and "name" in entry and not str(entry["name"] or "").strip():
        return normalize.ident(ident, str(entry.get("description") or ""))
    return ident


def _convention(entry: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    name, said = normalize.text_in(entry, ("content", "description"))
    rate = _rate(entry.get("outcomes"))
    fields = {
        "kind": "lesson",
        "event_type": "pattern",
        "lesson": said,
        **({"success_rate": rate} if rate else {}),
    }
    return (fields if said else {}), (name,)


def _rate(outcomes: object) -> str:
    """How often it worked, as far as it was told: part of a success is none."""
    told = (
        [one.get("status") for one in outcomes if isinstance(one, dict)]
        if isinstance(outcomes, list)
        else []
    )
    return f"{told.count('success')}/{len(told)}" if told else ""


def _pattern(entry: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    name, said = normalize.text_in(entry, ("description", "content", "name"))
    fields = {"kind": "pattern", "pattern": said}
    if entry.get("name") and name != "name":
        fields["category"] = str(entry["name"])
    return (fields if said else {}), (name, "name")


def _failure(entry: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    name, said = normalize.text_in(entry, ("description", "content"))
    fields = {
        "kind": "anti_pattern",
        "what_fails": said,
        "prevention": str(entry.get("resolution") or ""),
    }
    return (fields if said else {}), (name, "resolution")


def _titled(entry: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    title, label = normalize.text_in(entry, ("title", "name", "description", "content"))
    name, said = normalize.text_in(
        entry, [one for one in ("rationale", "description", "content") if one != title]
    )
    fields = {"kind": "fact", "type": str(entry.get("type")), "label": label, "payload": said}
    return (fields if label else {}), (title, name)


def _other(entry: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A type of the project's own: a fact that keeps all its texts."""
    texts = {
        name: value
        for name, value in entry.items()
        if isinstance(value, str) and name not in _COMMON
    }
    _name, label = normalize.text_in(entry, ("title", "name", "content", "description", *texts))
    kept = {
        name: value for name, value in texts.items() if value.strip() and name != "classification"
    }
    fields = {
        "kind": "fact",
        "type": slug(str(entry.get("type") or "note"), 60) or "note",
        "label": label,
    }
    return ({**fields, "payload": kept} if label else {}), tuple(kept)


_KINDS: dict[str, Callable[[Mapping[str, Any]], tuple[dict[str, Any], tuple[str, ...]]]] = {
    "convention": _convention,
    "pattern": _pattern,
    "failure": _failure,
    "decision": _titled,
    "reference": _titled,
    "guide": _titled,
}
