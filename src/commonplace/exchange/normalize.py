"""Convert the values of other systems to ours: times, tags, ids, texts, links.

Values that do not fit are stored in `meta` of the record.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from commonplace.records import (
    EVENT_TYPES,
    KINDS,
    RELATIONS,
    TAGS_MAX,
    Record,
    check_id,
    check_repo_name,
    slug,
    to_utc,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

SLUG_CHARS_MAX = 60
# As seconds, a larger number would lie beyond the year 5000, so it is read as milliseconds.
_MILLISECONDS_FROM = 1e11
_TEXT_NAMES = (
    "lesson", "insight", "learning", "learned", "content", "text", "description", "body", "fact",
    "observation", "note", "message", "summary", "resolution", "value",
)  # fmt: skip
_CONTEXT_NAMES = ("context", "trigger", "title", "name", "label", "problem", "error", "goal", "key")
_TIME_NAMES = (
    "timestamp", "updated_at", "modified", "created_at", "recorded_at", "created", "ts", "date",
    "time", "createdAt", "updatedAt", "last_updated",
)  # fmt: skip
_AGENT_NAMES = ("agent_id", "agent", "author", "created_by", "assignee")
# The relations of other systems, and ours for each. Any other word becomes a `related_to` that
# keeps the word in `as`.
_RELATIONS = {
    "blocks": "uses",
    "depends_on": "uses",
    "depends-on": "uses",
    "requires": "uses",
    "parent-child": "elaborates",
    "part_of": "elaborates",
    "extends": "elaborates",
    "implements": "elaborates",
    "duplicates": "related_to",
    "contrasts_with": "contradicts",
    "conflicts_with": "contradicts",
    "instance_of": "example_of",
    "replaces": "supersedes",
    "replaced_by": "superseded_by",
    "type_of": "is_a",
}


def parse_time(value: object) -> str | None:
    """Return *value* (a text, or seconds or milliseconds since 1970) as one of our timestamps.

    Return `None` if it is not a time.
    """
    if isinstance(value, str) and re.fullmatch(r"\d{9,13}(?:\.\d+)?", value.strip()):
        value = float(value)
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        if not math.isfinite(value) or value <= 0:
            return None
        seconds = value / 1000 if value >= _MILLISECONDS_FROM else value
        try:
            return to_utc(datetime.fromtimestamp(seconds, UTC))
        except (OverflowError, OSError, ValueError):
            return None
    try:
        return to_utc(value.strip() if isinstance(value, str) else value)
    except ValueError:
        return None


def find_time(entry: Mapping[str, Any]) -> str | None:
    """Return when *entry* was written, from the first of its fields that holds a time."""
    return next((found for name in _TIME_NAMES if (found := parse_time(entry.get(name)))), None)


def find_agent(entry: Mapping[str, Any]) -> str:
    """Return the agent or author that *entry* names, else an empty text."""
    return next(
        (value for name in _AGENT_NAMES if isinstance(value := entry.get(name), str) and value), ""
    )


def parse_tags(*values: object) -> list[str]:
    """Return the tags in *values*, which are lists or texts with commas; each tag once."""
    found: list[str] = []
    for value in values:
        items = (
            value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
        )
        found += [
            text for item in items if item is not None and (text := str(item).strip().lstrip("#"))
        ]
    return list(dict.fromkeys(found))[:TAGS_MAX]


def list_texts(value: object) -> list[str]:
    """Return one text or a list of texts as a list."""
    items = value if isinstance(value, list) else [value]
    return [text for item in items if item is not None and (text := str(item).strip())]


def find_text(entry: Mapping[str, Any], names: Iterable[str] = _TEXT_NAMES) -> tuple[str, str]:
    """Return the first field of *names* that holds a text in *entry*, and that text."""
    for name in names:
        value = entry.get(name)
        if isinstance(value, str) and value.strip():
            return name, value
    return "", ""


def make_link(to: str, relation: object) -> dict[str, Any]:
    """Return a link to *to*; `as` holds the other system's relation if ours is another."""
    theirs = relation if isinstance(relation, str) and relation else "related_to"
    plain = theirs.strip().lower().replace(" ", "_")
    ours = (
        plain
        if plain in RELATIONS
        else _RELATIONS.get(plain, _RELATIONS.get(plain.replace("_", "-"), "related_to"))
    )
    return {"to": to, "rel": ours, **({"as": theirs} if theirs != ours else {})}


def make_links(
    entry: Mapping[str, Any], relations: Mapping[str, str], to_id: Callable[[str], str]
) -> list[dict[str, Any]]:
    """Return a link for each id in the fields of *entry* that *relations* names."""
    targets = (
        (to, relation)
        for name, relation in relations.items()
        for to in list_texts(entry.get(name) or [])
    )
    return [make_link(to_id(to), relation) for to, relation in targets]


def stable_id(prefix: str, *parts: str) -> str:
    """Return a readable id that depends on *prefix* and *parts* alone."""
    digest = blake2b("\x1f".join(parts).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    words = slug(parts[-1].rpartition("/")[2], SLUG_CHARS_MAX)
    return f"{prefix}-{words}-{digest}" if words else f"{prefix}-{digest}"


def usable_id(prefix: str, given: object) -> str | None:
    """Return the id *given* by another system if it is valid here, else one made from it."""
    if not isinstance(given, str | int) or isinstance(given, bool) or not str(given).strip():
        return None
    try:
        check_id(str(given))
    except ValueError:
        return stable_id(prefix, str(given))
    return str(given)


def unused_fields(entry: Mapping[str, Any], used: Iterable[str]) -> dict[str, Any]:
    """Return the fields of *entry* that hold something and are not among *used*."""
    names_used = set(used)
    return {
        name: value
        for name, value in entry.items()
        if name not in names_used and value not in (None, "", [], {})
    }


def make_lesson(entry: Mapping[str, Any], prefix: str) -> dict[str, Any] | None:
    """Return the fields of a lesson made from *entry*; `None` if it has no text."""
    name, text = find_text(entry)
    if not text:
        return None
    about, context = find_text(entry, [name_ for name_ in _CONTEXT_NAMES if name_ != name])
    event_type = entry.get("event_type") or entry.get("type")
    fields: dict[str, Any] = {
        "kind": "lesson",
        "id": usable_id(prefix, entry.get("id") or entry.get("_id") or entry.get("uuid")),
        "timestamp": find_time(entry),
        "agent_id": find_agent(entry),
        "event_type": event_type if event_type in EVENT_TYPES else "learned",
        "context": context,
        "lesson": text,
        "tags": parse_tags(entry.get("tags"), entry.get("labels"), entry.get("keywords")),
    }
    if isinstance(entry.get("command"), str):
        fields["command"] = entry["command"]
    if isinstance(entry.get("links"), list):
        fields["links"] = entry["links"]
    used = {
        name,
        about,
        "id",
        "event_type",
        "tags",
        "labels",
        "command",
        "links",
        "meta",
        "repo",
        *_TIME_NAMES,
    }
    for known in ("repo", "success_rate"):
        if entry.get(known):
            fields[known] = entry[known]
            used.add(known)
    meta = dict(entry["meta"]) if isinstance(entry.get("meta"), dict) else {}
    for field in ("source", "bead", "commit"):
        if isinstance(entry.get(field), str) and entry[field]:
            meta.setdefault(field, entry[field])
            used.add(field)
    if unused := unused_fields(entry, used | {"_id", "uuid", "agent_id", "kind"}):
        meta["rest"] = unused
    return {**fields, "meta": meta}


def fit_to_kind(fields: Mapping[str, Any], prefix: str, default_repo: str) -> dict[str, Any]:
    """Return *fields* with the values that their kind would refuse moved to `meta.unfit`.

    Required fields stay as they are, so that the refusal names them.
    """
    fit, unfit = dict(fields), dict[str, Any]()
    cls = KINDS.get(str(fit.get("kind") or "lesson"), Record)
    if fit.get("id"):
        fit["id"] = usable_id(prefix, fit["id"])
    for name in ("timestamp", *cls.times):
        if fit.get(name) is not None:
            given = fit.pop(name)
            found = parse_time(given)
            (unfit if found is None else fit)[name] = found or given
    if fit.get("repo"):
        fit["repo"] = _repo(fit["repo"], unfit, default_repo)
    for name in [
        name
        for name, known in cls.known.items()
        if not known.required and _is_refused(known.check, fit.get(name))
    ]:
        unfit[name] = fit.pop(name)
    if "tags" in unfit:
        fit["tags"] = parse_tags(unfit["tags"])
    if unfit:
        fit["meta"] = {**(fit.get("meta") or {}), "unfit": unfit}
    return fit


def _is_refused(check: Callable[[Any], None], value: object) -> bool:
    if value is None:
        return False
    try:
        check(value)
    except ValueError:
        return True
    return False


def _repo(given: object, unfit: dict[str, Any], default: str) -> str:
    try:
        return check_repo_name(given)
    except ValueError:
        unfit["repo"] = given
    try:
        return check_repo_name(re.sub(r'[\s/\\:*?"<>|]+', "-", str(given)).strip(".- "))
    except ValueError:
        return default
