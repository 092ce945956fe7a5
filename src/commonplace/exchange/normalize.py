"""Making what others wrote fit our records: times, tags, ids, texts. What does not fit is kept aside, never lost."""

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
# From here on a number of seconds would lie beyond the year 5000, so it counts milliseconds.
_MILLISECONDS_FROM = 1e11
_TEXT_NAMES = (
    "lesson", "insight", "learning", "learned", "content", "text", "description", "body", "fact", "observation", "note",
    "message", "summary", "resolution", "value",
)  # fmt: skip
_CONTEXT_NAMES = ("context", "trigger", "title", "name", "label", "problem", "error", "goal", "key")
_TIME_NAMES = (
    "timestamp", "updated_at", "modified", "created_at", "recorded_at", "created", "ts", "date", "time", "createdAt",
    "updatedAt", "last_updated",
)  # fmt: skip
_AGENT_NAMES = ("agent_id", "agent", "author", "created_by", "assignee")
# How other systems call an edge; any other word is a `related_to` that keeps it.
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


def moment(value: object) -> str | None:
    """A time as we write it, from text or from seconds or milliseconds since 1970; `None` if it is none."""
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


def time_in(entry: Mapping[str, Any]) -> str | None:
    """When *entry* says it was written."""
    return next((found for name in _TIME_NAMES if (found := moment(entry.get(name)))), None)


def agent_in(entry: Mapping[str, Any]) -> str:
    return next(
        (value for name in _AGENT_NAMES if isinstance(value := entry.get(name), str) and value), ""
    )


def tags_of(*values: object) -> list[str]:
    """Tags from lists or from texts with commas, each once."""
    found: list[str] = []
    for value in values:
        items = (
            value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
        )
        found += [
            text for item in items if item is not None and (text := str(item).strip().lstrip("#"))
        ]
    return list(dict.fromkeys(found))[:TAGS_MAX]


def texts_of(value: object) -> list[str]:
    """One text or several, as a list."""
    items = value if isinstance(value, list) else [value]
    return [text for item in items if item is not None and (text := str(item).strip())]


def text_in(entry: Mapping[str, Any], names: Iterable[str] = _TEXT_NAMES) -> tuple[str, str]:
    """The first of *names* under which *entry* says something, and what it says."""
    for name in names:
        value = entry.get(name)
        if isinstance(value, str) and value.strip():
            return name, value
    return "", ""


def link(to: str, word: object, **more: object) -> dict[str, Any]:
    """An edge to *to*, with the other system's own word for it where ours is another."""
    said = word if isinstance(word, str) and word else "related_to"
    plain = said.strip().lower().replace(" ", "_")
    ours = (
        plain
        if plain in RELATIONS
        else _RELATIONS.get(plain, _RELATIONS.get(plain.replace("_", "-"), "related_to"))
    )
    return {"to": to, "rel": ours, **({"as": said} if said != ours else {}), **more}


def links_to(
    entry: Mapping[str, Any], relations: Mapping[str, str], ident: Callable[[str], str]
) -> list[dict[str, Any]]:
    """Edges from the lists of ids in *entry*: its field → the relation it states."""
    named = (
        (to, relation)
        for name, relation in relations.items()
        for to in texts_of(entry.get(name) or [])
    )
    return [link(ident(to), relation) for to, relation in named]


def ident(prefix: str, *parts: str) -> str:
    """An id that is the same whenever the same thing is read again, and readable."""
    digest = blake2b("\x1f".join(parts).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    words = slug(parts[-1].rpartition("/")[2], SLUG_CHARS_MAX)
    return f"{prefix}-{words}-{digest}" if words else f"{prefix}-{digest}"


def kept_ident(prefix: str, given: object) -> str | None:
    """The id another system gave, if ours may look like that; else one made from it."""
    if not isinstance(given, str | int) or isinstance(given, bool) or not str(given).strip():
        return None
    try:
        check_id(str(given))
    except ValueError:
        return ident(prefix, str(given))
    return str(given)


def rest(entry: Mapping[str, Any], used: Iterable[str]) -> dict[str, Any]:
    """What of *entry* has found no other place."""
    taken = set(used)
    return {
        name: value
        for name, value in entry.items()
        if name not in taken and value not in (None, "", [], {})
    }


def lesson(entry: Mapping[str, Any], prefix: str) -> dict[str, Any] | None:
    """Any object that says something, as a lesson; `None` if it says nothing."""
    name, said = text_in(entry)
    if not said:
        return None
    about, context = text_in(entry, [name_ for name_ in _CONTEXT_NAMES if name_ != name])
    event_type = entry.get("event_type") or entry.get("type")
    fields: dict[str, Any] = {
        "kind": "lesson",
        "id": kept_ident(prefix, entry.get("id") or entry.get("_id") or entry.get("uuid")),
        "timestamp": time_in(entry),
        "agent_id": agent_in(entry),
        "event_type": event_type if event_type in EVENT_TYPES else "learned",
        "context": context,
        "lesson": said,
        "tags": tags_of(entry.get("tags"), entry.get("labels"), entry.get("keywords")),
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
    if left := rest(entry, used | {"_id", "uuid", "agent_id", "kind"}):
        meta["rest"] = left
    return {**fields, "meta": meta}


def fitted(fields: Mapping[str, Any], prefix: str, default_repo: str) -> dict[str, Any]:
    """*fields* with nothing in them that our kinds would refuse: that is set aside in `meta.unfit`.

    What a kind cannot do without is left as it is, so that the refusal names it.
    """
    fit, unfit = dict(fields), dict[str, Any]()
    cls = KINDS.get(str(fit.get("kind") or "lesson"), Record)
    if fit.get("id"):
        fit["id"] = kept_ident(prefix, fit["id"])
    for name in ("timestamp", *cls.times):
        if fit.get(name) is not None:
            given = fit.pop(name)
            found = moment(given)
            (unfit if found is None else fit)[name] = found or given
    if fit.get("repo"):
        fit["repo"] = _repo(fit["repo"], unfit, default_repo)
    for name in [
        name
        for name, known in cls.known.items()
        if not known.required and _refused(known.check, fit.get(name))
    ]:
        unfit[name] = fit.pop(name)
    if "tags" in unfit:
        fit["tags"] = tags_of(unfit["tags"])
    if unfit:
        fit["meta"] = {**(fit.get("meta") or {}), "unfit": unfit}
    return fit


def _refused(check: Callable[[Any], None], value: object) -> bool:
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
