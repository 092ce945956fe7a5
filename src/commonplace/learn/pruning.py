"""Put old episodes away: first a summary beside the whole one, later both in the archive.

An episode older than `learn.episodes_whole_days` gets a version without its list of actions, which
keeps in `meta` what later steps need of them; the whole one goes to the archive, where
`show --whole`, `history` and `export` find it. One older than `learn.episodes_kept_days` leaves the
log altogether, unless a current record rests on it. What maintenance has still to learn from is
left as it is. Ages are counted in whole days of UTC, so a log
is written again once a day at most.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import RecordInvalid
from commonplace.index.ports import Filter
from commonplace.learn import marks
from commonplace.learn.batches import new_name
from commonplace.learn.metrics import retries_of
from commonplace.learn.pool import was_read
from commonplace.learn.versions import next_version
from commonplace.log.retire import Change, digest, lines_with_ids, retire
from commonplace.recall.visibility import shown_cards
from commonplace.records import from_line, micros, to_utc
from commonplace.records.episodes import ACTIONS_KEPT, actions_of
from commonplace.rules import SeveralHomes, Standing, standings
from commonplace.where.home import is_pack_log

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from commonplace.index.ports import Reader
    from commonplace.recaller import Recaller
    from commonplace.records import Record

STEP = "episodes"
# What the versions say in `meta`: when they were made from the whole one, and when put away.
SUMMARIZED = "summarized"
ARCHIVED = "archived"
IDS_SHOWN_MAX = 100
# What a summary keeps of the actions: the first ones and the last ones, as an episode does.
KEPT_HEAD_MAX = 20
KEPT_TAIL_MAX = 40
KEPT_CHARS_MAX = 160
KEPT_FIELDS = ("action", "target", "result", "error")


class Due(NamedTuple):
    """The episodes of one log that are old enough: for a summary, and for the archive."""

    whole: frozenset[str]
    archive: frozenset[str]


class Plan(NamedTuple):
    """What to do with the episodes of one log."""

    # The versions to write, with the whole line to the archive; and those among them, or written
    # by a run that was killed, that go to the archive as well.
    summaries: dict[str, Change]
    archived: dict[str, Change]


def prune(memory: Recaller, *, dry_run: bool, is_over: Callable[[], bool]) -> dict[str, Any]:
    """Summarize and archive the old episodes of the nearest home; return how many, and some ids."""
    done: dict[str, Any] = {"summarized": 0, "archived": 0}
    named: dict[str, list[str]] = {name: [] for name in done}
    if not memory.trusts(memory.home):
        return done
    now = memory._clock()  # noqa: SLF001 (the clock of the memory)
    batch = new_name(now)
    home = memory.home
    with memory.engine().reading() as readers:
        by_log, waiting = _find_due(memory, readers, now)
    for log, due in by_log.items():
        if is_over():
            break
        plan = _plan(memory, log, due, batch, now, is_over)
        if not dry_run:
            written = retire(home, log, plan.summaries)
            moving = {
                ident: change
                for ident, change in plan.archived.items()
                if ident not in plan.summaries or ident in written
            }
            moved = retire(home, log, moving)
            plan = Plan(
                {ident: plan.summaries[ident] for ident in written},
                {ident: plan.archived[ident] for ident in moved},
            )
        found = {
            "summarized": plan.summaries.keys() - plan.archived.keys(),
            "archived": plan.archived,
        }
        for name, ids in found.items():
            done[name] += len(ids)
            room = IDS_SHOWN_MAX - len(named[name])
            named[name] += sorted(ids)[:room]
    # Both lists are there only if they name something, so that nothing to do stays short.
    done |= {f"{name}_ids": ids for name, ids in named.items() if ids}
    if not dry_run and any(done.values()):
        done["batch"] = batch
    if waiting:
        done["not_learned_from_yet"] = waiting
    return done


def _find_due(
    memory: Recaller, readers: Sequence[Reader], now: datetime
) -> tuple[dict[str, Due], int]:
    """Return the episodes that are old enough, by their logs; and how many wait for learning."""
    whole_before = _cutoff(now, memory.settings["learn.episodes_whole_days"])
    kept_before = _cutoff(now, memory.settings["learn.episodes_kept_days"])
    before = max(whole_before, kept_before)
    filter_ = Filter(kinds=frozenset(["episode"]), until_micros=before - 1)
    old_cards = shown_cards(readers, 0, readers[0].select(filter_), filter_)
    due = [card for card in old_cards if not is_pack_log(card.log)]
    cards = due
    if memory.settings["learn.background"]:
        mark = marks.read(memory.home.learning_mark, readers[0].build())
        cards = [card for card in due if was_read(mark, card.key, card.micros)]
    old = {card.id for card in cards if card.micros < kept_before}
    old -= _rested_on(readers, old)
    ids: dict[str, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for card in cards:
        if card.id in old:
            ids[card.log][1].add(card.id)
        elif card.micros < whole_before:
            ids[card.log][0].add(card.id)
    by_log = {log: Due(frozenset(whole), frozenset(far)) for log, (whole, far) in ids.items()}
    return by_log, len(due) - len(cards)


def _cutoff(now: datetime, days: int) -> int:
    """Return the time before which an episode has been there for *days* whole days; 0 = never."""
    if days <= 0:
        return -(1 << 62)
    try:
        day = now.astimezone(UTC) - timedelta(days=days)
    except OverflowError:
        return -(1 << 62)
    return micros(to_utc(day.replace(hour=0, minute=0, second=0, microsecond=0)))


def _rested_on(readers: Sequence[Reader], ids: Collection[str]) -> set[str]:
    """Return those of *ids* that a current record of any home was derived from."""
    edges = [
        edge
        for reader in readers
        for edge in (reader.edges(ids, "derived_from") if ids else ())
        if edge.to in ids
    ]
    # The record that rests on it, and the link that says so.
    names = {name for edge in edges for name in (edge.of, edge.by)}
    found = standings(names, SeveralHomes(readers))
    current = {ident for ident, standing in found.items() if standing is Standing.CURRENT}
    return {edge.to for edge in edges if edge.of in current and edge.by in current}


def _plan(
    memory: Recaller,
    log: str,
    due: Due,
    batch: str,
    now: datetime,
    is_over: Callable[[], bool],
) -> Plan:
    plan = Plan({}, {})
    taken_back = _were_archived(memory.home.archive(log), due.archive)
    for ident, raw, was_summarized in _current_lines(memory.home.log(log), due.whole | due.archive):
        if is_over():
            break
        is_archived = ident in due.archive
        record = from_line(raw)
        if ARCHIVED in record.meta and is_archived:
            # A run was killed before it moved it, or after the archive had it and before it left
            # the log.
            plan.archived[ident] = Change(digest(raw))
            continue
        # One that was summarized before and is whole again was taken back, or its session went on.
        if ident in taken_back or (was_summarized and not is_archived):
            continue
        has_actions = bool(record.fields.get("action_log"))
        # There is nothing to leave out; or a new version would lose a value that we cannot read.
        if record.unusable or not (is_archived or has_actions):
            continue
        try:
            line = _summarize(memory, log, record, batch, now, is_archived=is_archived)
        except RecordInvalid:
            continue  # An older version wrote what is refused today: it stays as it is.
        plan.summaries[ident] = Change(digest(raw), line)
        if is_archived:
            plan.archived[ident] = Change(digest(line.rstrip(b"\n")))
    return plan


def _summarize(
    memory: Recaller, log: str, record: Record, batch: str, now: datetime, *, is_archived: bool
) -> bytes:
    """Return the line of the version without the actions."""
    fields = dict(record.fields)
    actions = fields.pop("action_log", None)
    meta: dict[str, Any] = {}
    if actions:
        meta = {SUMMARIZED: to_utc(now), "actions": len(actions), **_keep(record)}
    if is_archived:
        meta[ARCHIVED] = to_utc(now)
    given = next_version(type(record)(fields), {"meta": meta}, batch=batch, step=STEP, now=now)
    named = {"agent_id": record.agent_id, **given, "repo": record.repo or log}
    return memory.prepare(named, now).line


def _keep(record: Record) -> dict[str, Any]:
    """Return what later steps need of the actions: routines, commands that failed, retries."""
    actions = [
        {name: str(one[name])[:KEPT_CHARS_MAX] for name in KEPT_FIELDS if one.get(name)}
        for one in actions_of(record)
    ]
    kept = actions[:KEPT_HEAD_MAX] + actions[KEPT_HEAD_MAX:][-KEPT_TAIL_MAX:]
    before = record.meta.get("actions_left_out")
    left_out = len(actions) - len(kept) + (before if isinstance(before, int) else 0)
    return {
        ACTIONS_KEPT: kept,
        **({"actions_left_out": left_out} if left_out else {}),
        **({"retries": retries} if (retries := retries_of(record)) else {}),
    }


class _Current(NamedTuple):
    ident: str
    raw: bytes
    was_summarized: bool


def _current_lines(path: Path, ids: Collection[str]) -> Iterator[_Current]:
    """Yield the last line of each of *ids* in the log, and whether an earlier one is a summary."""
    last: dict[str, int] = {}
    summarized: set[str] = set()
    for number, ident, raw in lines_with_ids(path):
        if ident in ids:
            last[ident] = number
            if f'"{SUMMARIZED}"'.encode() in raw:
                summarized.add(ident)
    for number, ident, raw in lines_with_ids(path):
        if last.get(ident) == number:
            yield _Current(ident, raw, ident in summarized)


def _were_archived(path: Path, ids: Collection[str]) -> set[str]:
    """Return those of *ids* that were put away before: somebody has taken them back since."""
    if not ids:
        return set()
    return {
        line.ident for line in lines_with_ids(path) if line.ident in ids and _was_archived(line.raw)
    }


def _was_archived(raw: bytes) -> bool:
    if f'"{ARCHIVED}"'.encode() not in raw:
        return False
    try:
        return ARCHIVED in from_line(raw).meta
    except ValueError:
        return False  # A damaged line: `doctor` tells of it.
