"""The reference MCP memory server: `memory.jsonl`, a line an entity or a relation of its graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.exchange import normalize
from commonplace.exchange.files import LINE_SUFFIXES, json_lines
from commonplace.exchange.items import Head, Item, Source, Taken, Unread

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
    for found in json_lines(source.path):
        if isinstance(found, Unread):
            yield found
        elif _is_entity(found[1]) and str(found[1]["name"] or "").strip():
            yield Taken(_entity(found[1], source.repo), found[0])
        elif _is_relation(found[1]) and str(found[1]["from"] or "") and str(found[1]["to"] or ""):
            yield Taken(_relation(found[1], source.repo), found[0])
        else:
            yield Unread(
                found[0],
                "is neither an entity with a `name` nor a relation `from` one `to` another",
            )


def _ident(name: object, repo: str) -> str:
    return normalize.ident("entity", repo, str(name))


def _entity(entry: Mapping[str, Any], repo: str) -> dict[str, Any]:
    observations = entry.get("observations")
    said = [one.get("content", one) if isinstance(one, dict) else one for one in observations or []]
    left = normalize.rest(entry, ("type", "name", "entityType", "observations", "tags"))
    return {
        "id": _ident(entry["name"], repo),
        "kind": "concept",
        "timestamp": normalize.time_in(
            {**entry, "timestamp": entry.get("lastModified") or entry.get("timestamp")}
        ),
        "agent_id": "",
        "type": str(entry.get("entityType") or "entity"),
        "label": str(entry["name"]),
        "payload": normalize.texts_of(said),
        "tags": normalize.tags_of(entry.get("tags")),
        "meta": left,
    }


def _relation(entry: Mapping[str, Any], repo: str) -> dict[str, Any]:
    of, to = _ident(entry["from"], repo), _ident(entry["to"], repo)
    edge = normalize.link(to, entry.get("relationType"))
    return {
        # Two relations between the same two may be one of ours.
        "id": normalize.ident("link", of, to, str(entry.get("relationType") or "")),
        "kind": "link",
        "timestamp": normalize.time_in(entry),
        "agent_id": "",
        "of": of,
        **edge,
    }
