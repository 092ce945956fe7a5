"""Merge records that say the same: one stays, and takes in the evidence and the use of the others.

Patterns and anti-patterns merge if their vectors are at least 0.9 alike, lessons (and all, where
there is no embedder) if they have the same words; never if they state different values. The record
that stays gets one new version, which adds up and supersedes the others: one line, so a run that is
killed has merged a group or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.errors import RecordInvalid
from commonplace.learn.batches import new_name
from commonplace.learn.duplicates import Finder, Marks, Merge
from commonplace.learn.versions import next_version
from commonplace.records import Rate
from commonplace.rules import MERGED_RATE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from commonplace.recaller import Recaller
    from commonplace.records import Record

STEP = "merging"
KINDS = ("pattern", "anti_pattern", "lesson")
LISTED_MAX = 100


def merge(memory: Recaller, *, dry_run: bool, is_over: Callable[[], bool]) -> dict[str, Any]:
    """Merge what says the same in the nearest home; return how many of each kind were taken in."""
    done: dict[str, Any] = dict.fromkeys((f"{kind}s" for kind in KINDS), 0)
    if not memory.settings["learn.merge"] or not memory.trusts(memory.home):
        return done
    now = memory._clock()  # noqa: SLF001 (the clock of the memory)
    batch = new_name(now)
    marks = Marks(memory.home)
    merged: list[Merge] = []
    for kind in KINDS:
        finder = Finder(memory, kind, marks, is_over)
        with memory.engine().reading() as readers:
            found = list(finder.find(readers))
        for log, merges in found:
            written = merges if dry_run else _write(memory, log, merges, batch, now)
            merged += written
            done[f"{kind}s"] += sum(len(one.others) for one in written)
        if finder.reason:
            done["reason"] = finder.reason
    if not dry_run:
        marks.save()
    if merged:
        done["merges"] = [
            {"kept": one.kept.record.id, "superseded": [other.record.id for other in one.others]}
            for one in merged[:LISTED_MAX]
        ]
        if not dry_run:
            done["batch"] = batch
    return done


def _write(
    memory: Recaller, log: str, merges: Sequence[Merge], batch: str, now: datetime
) -> list[Merge]:
    """Append the versions of the records that stay; return the merges that were written.

    Nobody else writes to the log meanwhile. If a record was changed since it was read, this waits
    for the next run.
    """
    written, entries = [], []
    for one in merges:
        kept = one.kept.record
        fields = next_version(kept, _take_in(one), batch=batch, step=STEP, now=now)
        named = {"agent_id": kept.agent_id, **fields, "repo": kept.repo or log}
        try:
            entries.append(memory.prepare(named, now))
        except RecordInvalid:
            continue  # An older version wrote what is refused today: it stays as it is.
        written.append(one)
    keys = {
        member.record.id: member.card.key for one in written for member in (one.kept, *one.others)
    }

    def is_current() -> bool:
        with memory.engine().reading() as readers:
            return readers[0].keys(keys) == keys

    return written if memory.append_if(log, entries, is_current) else []


def _take_in(one: Merge) -> dict[str, Any]:
    """Return the fields of the record that stays, with what the others add to it."""
    kept = one.kept.record
    others = [other.record for other in sorted(one.others, key=lambda other: other.record.id)]
    links = [dict(link) for link in kept.links]
    changes: dict[str, Any] = {}
    own = {kept.id, *kept.sources, *(other.id for other in others)}
    sources = dict.fromkeys(
        source for other in others for source in other.sources if source not in own
    )
    if kept.kind == "pattern":
        changes["source_episodes"] = [*kept.fields.get("source_episodes", []), *sources]
        used = sum(_count(record) for record in (kept, *others))
        if used:
            changes["usage_count"] = used
        last = max(str(record.fields.get("last_used") or "") for record in (kept, *others))
        if last:
            changes["last_used"] = last
    elif kept.kind == "anti_pattern":
        links += [{"to": source, "rel": "derived_from"} for source in sources]
    else:
        changes |= {"success_rate": rate} if (rate := _added_rates(one)) else {}
    if kept.kind != "lesson" and (rate := _added_rates(one)):
        changes["meta"] = {MERGED_RATE: rate}
    links += [{"to": other.id, "rel": "supersedes"} for other in others]
    return {**changes, "links": links}


def _count(record: Record) -> int:
    count = record.fields.get("usage_count")
    return count if isinstance(count, int) else 0


def _added_rates(one: Merge) -> str:
    """Return the rate that the kept record states with those of the others, feedback included."""
    rates = [one.kept.card.stated, *(other.card.rate for other in one.others)]
    known = [rate for rate in rates if rate is not None]
    if not known:
        return ""
    worked, tried = sum(rate.worked for rate in known), sum(rate.tried for rate in known)
    return str(Rate(worked, tried))
