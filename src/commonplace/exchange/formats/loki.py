"""Loki's memory: `.loki/memory/`.

It holds episodes, patterns, facts, links, skills, ledgers, handoffs and learnings.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from commonplace.exchange import files, normalize
from commonplace.exchange.items import (
    Head,
    ImportedRecord,
    Item,
    SkillText,
    Skipped,
    Source,
    Unreadable,
)
from commonplace.exchange.round_trip import DERIVED, add_extra, apply_extra, is_derived, is_ours
from commonplace.learn import learnings, metrics
from commonplace.records import KINDS, Episode, Node
from commonplace.records.episodes import with_agent_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from commonplace.records import Record

SUFFIXES = (".json", ".md")
MARK = ".loki/memory"
METRICS_MARK = ".loki/metrics"
NODES = tuple(kind for kind, cls in KINDS.items() if cls is Node)
KINDS_HELD = ("episode", "pattern", "anti_pattern", *NODES, "link", "ledger", "handoff", "lesson")
INDEX = "episodic/index.json"
_FOLDERS = ("episodic", "semantic", "skills", "ledgers", "handoffs", "learnings")
_NAME_CHARS_MAX = 80


def recognises(path: Path, _head: Head) -> bool:
    if path.suffix not in SUFFIXES or _folder(path) is None:
        return False
    parts = path.parts
    return ".loki" in parts or any(
        parts[at] == "memory" and parts[at + 1] in _FOLDERS for at in range(len(parts) - 2)
    )


def _folder(path: Path) -> str | None:
    return next((part for part in reversed(path.parts[:-1]) if part in _FOLDERS), None)


def read(source: Source) -> Iterator[Item]:
    folder = _folder(source.path)
    try:
        if source.path.suffix == ".md":
            text = files.read_text(source.path)
            yield (
                SkillText(source.path.stem, text)
                if folder == "skills"
                else Skipped(0, "is not part of the layout")
            )
            return
        value = files.read_json(source.path)
    except files.UnreadableFile as error:
        yield Unreadable(0, str(error))
        return
    if source.path.parts[-2:] == ("episodic", "index.json"):
        yield Skipped(0, "is an index of the files beside it")
        return
    kind = _kind(folder, source.path.stem)
    if kind is None:
        yield Skipped(0, "is not part of the layout")
        return
    for number, entry in enumerate(_entries(value), 1):
        if is_derived(entry):
            yield Skipped(0, "is in the episodes beside it")
        else:
            yield _item(kind, entry, number, source)


def _kind(folder: str | None, stem: str) -> str | None:
    if folder == "semantic":
        return {
            "patterns": "pattern",
            "anti-patterns": "anti_pattern",
            "facts": "fact",
            "links": "link",
        }.get(stem)
    return {
        "episodic": "episode",
        "ledgers": "ledger",
        "handoffs": "handoff",
        "learnings": "lesson",
    }.get(folder or "")


def _entries(value: object) -> list[Any]:
    """Return the entries of a file.

    *value* is a list, an object that holds a list, an object of objects, or a single entry.
    """
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return [value]
    lists = [inner for name, inner in value.items() if isinstance(inner, list) and name in _LISTS]
    if len(lists) == 1:
        return lists[0]
    if value and all(isinstance(inner, dict) for inner in value.values()):
        return [{"id": name, **inner} for name, inner in value.items()]
    return [value]


_LISTS = (
    "patterns",
    "anti_patterns",
    "antiPatterns",
    "facts",
    "links",
    "learnings",
    "entries",
    "items",
    "lessons",
)


def _item(kind: str, entry: object, number: int, source: Source) -> Item:
    """Return the record of an entry; *number* is its position in the file."""
    if isinstance(entry, str):
        entry = {_MAIN[kind]: entry} if kind in _MAIN else entry
    if not isinstance(entry, dict):
        return Unreadable(0, f"entry {number} is not an object")
    fields = apply_extra(entry, entry_reader(kind))
    if is_ours(entry):
        return ImportedRecord(fields)
    if kind in _FILE_NAME_FIELDS and not fields.get(_FILE_NAME_FIELDS[kind]):
        fields[_FILE_NAME_FIELDS[kind]] = source.path.stem
    missing = [name for name in _REQUIRED[kind] if not str(fields.get(name) or "").strip()]
    return (
        Unreadable(0, f"entry {number} has no `{missing[0]}`")
        if missing
        else ImportedRecord(fields)
    )


# Fields whose value is the name of the file, if the entry has none.
_FILE_NAME_FIELDS = {"episode": "task_id", "ledger": "agent_id"}
_MAIN = {"pattern": "pattern", "anti_pattern": "what_fails", "fact": "label", "lesson": "lesson"}
_REQUIRED: dict[str, tuple[str, ...]] = {
    "episode": ("task_id",),
    "pattern": ("pattern",),
    "anti_pattern": ("what_fails",),
    "fact": ("label",),
    "link": ("of", "to", "rel"),
    "ledger": ("agent_id",),
    "handoff": ("from_agent", "to_agent"),
    "lesson": ("lesson",),
}


# --- An entry as a record -------------------------------------------------------------------------


def _episode(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "episode", **_with_agent(entry)}


def _with_agent(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"agent_id": "", **with_agent_id(entry)}


def _pattern(entry: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"kind": "pattern", "agent_id": "", **entry}
    if not fields.get("pattern"):
        name, text = normalize.find_text(entry, ("description", "content", "text", "name"))
        fields |= {"pattern": text}
        fields.pop(name, None)
    # Loki's patterns say when they were last used, not when they were written.
    fields.setdefault(
        "timestamp", normalize.find_time(entry) or normalize.parse_time(entry.get("last_used"))
    )
    return fields


def _anti_pattern(entry: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"kind": "anti_pattern", "agent_id": "", **entry}
    if not fields.get("what_fails"):
        name, text = normalize.find_text(
            entry, ("pattern", "incorrect_approach", "description", "error", "name")
        )
        fields |= {"what_fails": text}
        fields.pop(name, None)
    return fields


def _fact(entry: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"kind": "fact", "agent_id": "", **entry}
    if not fields.get("label"):
        name, text = normalize.find_text(
            entry, ("fact", "title", "name", "statement", "content", "text", "description")
        )
        fields |= {"label": text}
        fields.pop(name, None)
    return fields


def _link(entry: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"kind": "link", "agent_id": "", **entry}
    of = fields.pop("from", None) or fields.get("of") or fields.get("source")
    to = fields.get("to") or fields.get("target")
    relation = fields.pop("relation", None) or fields.get("rel")
    return {**fields, "of": of, **normalize.make_link(str(to or ""), relation)}


def _handoff(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "handoff", "agent_id": entry.get("from_agent") or "", **entry}


def _ledger(entry: Mapping[str, Any]) -> dict[str, Any]:
    at = normalize.find_time(entry) or normalize.parse_time(entry.get("last_checkpoint"))
    return {"kind": "ledger", **({"timestamp": at} if at else {}), **_with_agent(entry)}


def _lesson(entry: Mapping[str, Any]) -> dict[str, Any]:
    if entry.get("lesson") and entry.get("event_type"):
        return {"kind": "lesson", "agent_id": "", **entry}
    return normalize.make_lesson(entry, "les") or {}


def entry_reader(kind: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return the function that reads an entry of *kind*; Loki names a link's `rel` `relation`."""

    def read_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
        links = entry.get("links")
        if isinstance(links, list):
            entry = {**entry, "links": [_rename_key(edge, "relation", "rel") for edge in links]}
        return _READERS[kind](entry)

    return read_entry


def _rename_key(edge: object, old: str, new: str) -> object:
    if not isinstance(edge, dict) or new in edge:
        return edge
    return {new if name == old else name: value for name, value in edge.items()}


_READERS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "episode": _episode,
    "pattern": _pattern,
    "anti_pattern": _anti_pattern,
    "fact": _fact,
    "link": _link,
    "ledger": _ledger,
    "handoff": _handoff,
    "lesson": _lesson,
}


# --- A record as an entry -------------------------------------------------------------------------

# Loki's fields of each kind, in its order. A record's other fields go into the extra key.
_ENTRY_FIELDS: dict[str, tuple[str, ...]] = {
    "episode": ("id", "task_id", "timestamp", "duration_seconds", "agent", "context", "action_log",
                "outcome", "errors_encountered", "artifacts_produced", "git_commit"),
    "pattern": ("id", "pattern", "category", "conditions", "correct_approach",
                "incorrect_approach", "confidence", "source_episodes", "usage_count", "last_used",
                "links"),
    "anti_pattern": ("id", "what_fails", "why", "prevention", "source", "links"),
    "fact": ("id", "type", "label", "payload", "children", "stats", "tags", "links"),
    "link": ("id", "from", "to", "relation"),
    "ledger": ("agent_id", "last_checkpoint", "tasks_completed", "current_task", "state",
               "context"),
    "handoff": ("id", "from_agent", "to_agent", "timestamp", "context", "status", "accepted_by",
                "accepted_at"),
    "lesson": ("id", "timestamp", "agent_id", "event_type", "context", "command", "lesson",
               "success_rate", "tags"),
}  # fmt: skip
# Loki's field → the record's field, where the names differ.
_RECORD_FIELDS = {"agent": "agent_id", "from": "of", "relation": "rel"}


def write(records: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the file of each record, below the layout's folder, and its entry."""
    names: set[str] = set()
    for fields in records:
        kind = "fact" if fields["kind"] in NODES else str(fields["kind"])
        values = (
            (name, fields.get(_RECORD_FIELDS.get(name, name))) for name in _ENTRY_FIELDS[kind]
        )
        entry = {name: value for name, value in values if value is not None}
        if isinstance(entry.get("links"), list):
            entry["links"] = [_rename_key(edge, "rel", "relation") for edge in entry["links"]]
        yield _file(kind, fields, names), add_extra(fields, entry, entry_reader(kind))


def _file(kind: str, fields: Mapping[str, Any], names: set[str]) -> str:
    day = str(fields["timestamp"])[:10]
    if kind in _SHARED:
        return _SHARED[kind].format(day=day)
    folder = {"episode": f"episodic/{day}/", "ledger": "ledgers/", "handoff": "handoffs/"}[kind]
    stem = {
        "episode": fields.get("task_id"),
        "ledger": fields.get("agent_id"),
        "handoff": fields["id"],
    }[kind]
    name = f"{folder}{_safe_name(str(stem or fields['id']))}"
    if name.casefold() in names:
        name = f"{folder}{normalize.stable_id(_safe_name(str(stem)), fields['id'])}"
    names.add(name.casefold())
    return f"{name}.json"


_SHARED = {
    "pattern": "semantic/patterns.json",
    "anti_pattern": "semantic/anti-patterns.json",
    "fact": "semantic/facts.json",
    "link": "semantic/links.json",
    "lesson": "learnings/{day}.json",
}


def _safe_name(name: str) -> str:
    """Return *name* as a file name that is valid on every operating system."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:_NAME_CHARS_MAX].rstrip(".-")
    return (
        plain
        if plain and plain.split(".")[0].lower() not in _DEVICES
        else normalize.stable_id("entry", name)
    )


_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))]
)


def is_shared_file(name: str) -> bool:
    """Whether a file holds a list of entries rather than one."""
    return name.startswith(("semantic/", "learnings/"))


def episode_index(files: Iterable[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return the index of the episodes, oldest first. *files* are file names and records."""
    rows = [
        {
            "id": fields["id"],
            "task_id": fields["task_id"],
            "timestamp": fields["timestamp"],
            "file": name,
        }
        for name, fields in files
        if fields["kind"] == "episode"
    ]
    return sorted(rows, key=lambda row: (row["timestamp"], row["id"]))


# --- What is derived from episodes ----------------------------------------------------------------


def write_learnings(
    records: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the file and the entry of each solved error; an import leaves these entries out."""
    for day in learnings.by_day(_episodes(records)):
        for entry in day["learnings"]:
            yield f"learnings/{day['day']}.json", {**entry, **DERIVED}


def write_metrics(
    records: Iterable[Mapping[str, Any]], feedback: Sequence[Record], now: datetime
) -> dict[str, Any]:
    """Return the content of each file of `.loki/metrics/`, by its name."""
    episodes = _episodes(records)
    tasks = metrics.tasks(episodes)
    files: dict[str, Any] = {}
    for task, reward in zip(tasks, metrics.rewards(tasks, feedback), strict=True):
        files.setdefault(f"efficiency/{task.day}.json", []).append({**task._asdict(), **DERIVED})
        files.setdefault(f"rewards/{task.day}.json", []).append({**reward, **DERIVED})
    files["dashboard.json"] = {
        **metrics.summarise_period(episodes, feedback, now),
        **DERIVED,
    }
    return files


def _episodes(records: Iterable[Mapping[str, Any]]) -> list[Record]:
    return [Episode(dict(fields)) for fields in records if fields["kind"] == "episode"]
