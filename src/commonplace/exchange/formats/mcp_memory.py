"""The reference MCP memory server: `memory.jsonl`, one entity or relation of its graph per line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.exchange import normalize
from commonplace.exchange.files import LINE_SUFFIXES, read_json_lines
from commonplace.exchange.items import Head, ImportedRecord, Item, Source, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SUFFIXES = LINE_SUFFIXES


def recognises(path: Path, head: Head) -> bool:
    return path.suffix in SUFFIXES and any(
        _is_entity(entry) or _is_relation(entry) for entry in head.objects
    )


def _is_entity(entry: Mapping[str, Any]) -> bool:
    return entry.get("type") == "entity" and "name" in entry


def _is_relation(entry: Mapping[str, Any]) -> bool:
    return entry.get("type") == "relation" and "from" in entry and "to" in entry


def read(source: Source) -> Iterator[Item]:
    for found in read_json_lines(source.path):
        if isinstance(found, Unreadable):
            yield found
        elif _is_entity(found[1]) and str(found[1]["name"] or "").strip():
            yield ImportedRecord(_entity(found[1], source.repo), found[0])
        elif _is_relation(found[1]) and str(found[1]["from"] or "") and str(found[1]["to"] or ""):
            yield ImportedRecord(_relation(found[1], source.repo), found[0])
        else:
            yield Unreadable(
                found[0],
                "is neither an entity with a `name` nor a relation `from` one `to` another",
            )


def _ident(name: object, repo: str) -> str:
    return normalize.stable_id("entity", repo, str(name))


def _entity(entry: Mapping[str, Any], repo: str) -> dict[str, Any]:
    observations = entry.get("observations")
    texts = [
        item.get("content", item) if isinstance(item, dict) else item for item in observations or []
    ]
    unused = normalize.unused_fields(entry, ("type", "name", "entityType", "observations", "tags"))
    return {
        "id": _ident(entry["name"], repo),
        "kind": "concept",
        "timestamp": normalize.find_time(
            {**entry, "timestamp": entry.get("lastModified") or entry.get("timestamp")}
        ),
        "agent_id": "",
        "type": str(entry.get("entityType") or "entity"),
        "label": str(entry["name"]),
        "payload": normalize.list_texts(texts),
        "tags": normalize.parse_tags(entry.get("tags")),
        "meta": unused,
    }


def _relation(entry: Mapping[str, Any], repo: str) -> dict[str, Any]:
    of, to = _ident(entry["from"], repo), _ident(entry["to"], repo)
    edge = normalize.make_link(to, entry.get("relationType"))
    return {
        # Two different relations of theirs may be the same relation of ours, so the id uses theirs.
        "id": normalize.stable_id("link", of, to, str(entry.get("relationType") or "")),
        "kind": "link",
        "timestamp": normalize.find_time(entry),
        "agent_id": "",
        "of": of,
        **edge,
    }
