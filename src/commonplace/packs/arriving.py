"""A line of a pack as the line of our log: checked, redacted, and without power over other records.

A pack may be by anybody. So its records cannot hide, rate or outdate what the user has: statements
about other records are left out, `supersedes` and `contradicts` become `related_to`, and no time is
in the future.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.foreign import OUTSIDE
from commonplace.log.prepare import PreparedLine, prepare
from commonplace.records import decode, micros, to_utc
from commonplace.where.repository import ALL_REPOSITORIES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

# What judges or hides another record.
_VERDICTS = ("feedback", "forget")
_REPLACING = ("supersedes", "superseded_by", "contradicts")
# What a step of ours notes in `meta` of its records, so that they can be undone together.
_OF_STEPS = ("batch", "step")


class Arrived(NamedTuple):
    """A record of a pack: as it was given, and its line in our log; `None` if it stays out."""

    given: dict[str, Any]
    entry: PreparedLine | None


def read(raw: bytes, pack: str, now: datetime, line_bytes_max: int) -> Arrived:
    """Return the record in a line of the pack called *pack*. Raises `ValueError`, `RecordInvalid`.

    Its repository becomes the log of all repositories: what a pack knows is true in each of them.
    """
    given = decode(raw)
    kind = given.get("kind")
    is_replacing_link = kind == "link" and _relation(given) in _REPLACING
    if kind in _VERDICTS or is_replacing_link:
        return Arrived(given, None)
    entry = prepare(
        _stamped(given, pack, now),
        now=now,
        repo=ALL_REPOSITORIES,
        agent_id="",
        line_bytes_max=line_bytes_max,
    )
    return Arrived(given, entry)


def origin_of(pack: str) -> str:
    """Return how the `meta.origin` of all records of a pack begins."""
    return f"pack:{pack}"


def is_of(pack: str, fields: Mapping[str, Any]) -> bool:
    """Whether a record came with the pack, edited here or not."""
    meta = fields.get("meta")
    given = meta.get("origin") if isinstance(meta, dict) else None
    origin = origin_of(pack)
    return isinstance(given, str) and (given == origin or given.startswith(f"{origin} of "))


def pack_of(fields: Mapping[str, Any]) -> str:
    """Return the pack that a record in the log of a pack came with."""
    meta = fields.get("meta")
    origin = meta.get("origin") if isinstance(meta, dict) else ""
    return str(origin).removeprefix(origin_of("")).partition(" of ")[0] or "another pack"


def _stamped(given: dict[str, Any], pack: str, now: datetime) -> dict[str, Any]:
    found = given.get("meta")
    meta = dict(found) if isinstance(found, dict) else {}
    before = meta.get("origin")
    origin = origin_of(pack)
    is_outside = isinstance(before, str) and before.startswith(OUTSIDE)
    # Always this pack first: by it, `pack remove` finds the record.
    meta["origin"] = f"{origin} of {before}" if is_outside and before != origin else origin
    for name in _OF_STEPS:
        meta.pop(name, None)
    if "edited" in meta:
        meta["edited"] = _not_after(meta["edited"], now)
    repo = given.get("repo")
    if isinstance(repo, str) and repo and repo != ALL_REPOSITORIES:
        meta.setdefault("repo", repo)
    stamped = {"agent_id": "", **given, "repo": ALL_REPOSITORIES, "meta": meta}
    if given.get("timestamp"):
        stamped["timestamp"] = _not_after(given["timestamp"], now)
    if isinstance(links := given.get("links"), list):
        stamped["links"] = [_without_replacing(link) for link in links]
    return stamped


def _not_after(time: object, now: datetime) -> object:
    """Return *time*, or *now* if that is earlier: a later line would win over what the user says.

    What is no time is left for the check of the record.
    """
    with suppress(ValueError):
        if isinstance(time, str) and micros(time) > micros(to_utc(now)):
            return to_utc(now)
    return time


def _without_replacing(link: object) -> object:
    if isinstance(link, dict) and _relation(link) in _REPLACING:
        return {
            **{name: value for name, value in link.items() if name != "relation"},
            "rel": "related_to",
            "as": _relation(link),
        }
    return link


def _relation(link: Mapping[str, Any]) -> object:
    return link.get("rel") or link.get("relation")
