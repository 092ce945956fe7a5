"""Ingest the events of hooks: one process at a time drains the spool, in order.

An event is applied, then its file is removed. If a process dies in between, the next one applies
the event again, which changes nothing: a session knows which events it has had, and the id of a
record comes from its content.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from commonplace import inbox
from commonplace.errors import CommonplaceError, RecordInvalid
from commonplace.files.lock import hold, try_hold
from commonplace.log.append import Appender
from commonplace.records import keyed_id, make_key
from commonplace.sessions import episode, events, failures, spool, state
from commonplace.sessions.lesson_prefixes import find_lessons
from commonplace.tagging import tags_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from commonplace.memory import Memory
    from commonplace.sessions.events import Event
    from commonplace.sessions.lesson_prefixes import PrefixedLesson
    from commonplace.sessions.state import State
    from commonplace.where.home import Home

BATCH_MAX = 200
# A session without an event for this long is treated as ended.
IDLE_S = 1800.0
IDLE_SESSIONS_MAX = 20
DISPATCHES_BYTES_MAX = 4 << 20
PATTERN_PREFIX = "PATTERN:"
PATTERN_RANK = 3.0
# The type of the lesson after a prefix; after any other it is `learned`.
_TYPES = {"DECISION:": "decision"}
# Delivered twice, these are applied once. The end of a turn may come again soon, with new content.
APPLIED_ONCE = ("prompt", "tool", "failure")


def has_events(home: Home) -> bool:
    """Whether there is anything in the spool of *home*; cheap enough for every command."""
    return bool(spool.list_names(home.spool_folder))


def drain(
    memory: Memory, *, wait_s_max: float = 0.0, is_over: Callable[[], bool] = lambda: False
) -> int:
    """Apply the events in the spool of the nearest home; return how many.

    If another process is draining, wait for it up to *wait_s_max*. Stops when *is_over* is true.
    """
    home = memory.home
    count = 0
    # A process that found the lock taken has added its event before: so look again afterwards.
    while has_events(home) and not is_over():
        with drain_lock(home, wait_s_max) as is_held:
            if not is_held:
                return count
            while has_events(home) and not is_over():
                applied, is_blocked = _drain_batch(memory)
                count += applied
                if is_blocked:
                    return count
    with suppress(CommonplaceError):
        memory.flush()  # A server runs for days; what was applied must not wait for its end.
    return count


@contextmanager
def drain_lock(home: Home, wait_s_max: float) -> Iterator[bool]:
    """Hold the lock for draining *home* and writing its sessions; yield whether we do."""
    entered = False
    try:
        if wait_s_max > 0:
            with hold(home.spool_lock, wait_s_max):
                entered = True
                yield True
        else:
            with try_hold(home.spool_lock) as is_held:
                entered = True
                yield is_held
    except CommonplaceError:
        if entered:
            raise
        yield False  # Another process has it, or the home cannot be written.


def _drain_batch(memory: Memory) -> tuple[int, bool]:
    """Apply some events; return how many, and whether the next one has to wait."""
    folder = memory.home.spool_folder
    states: dict[str, State] = {}
    applied: list[str] = []
    is_start = is_blocked = False
    try:
        for name in spool.list_names(folder)[:BATCH_MAX]:
            try:
                is_start = _apply_file(memory, states, name) or is_start
            except CommonplaceError:
                raise
            except Exception as error:  # noqa: BLE001 (a fault of ours in one event: the others go on)
                if not _set_aside(memory.home, name, error):
                    is_blocked = True
                    break
            applied.append(name)
    except CommonplaceError:
        is_blocked = True  # The log is busy or the disk is full: the rest stays in the spool.
    for each in states.values():
        each.save()
    for name in applied:
        # What cannot be removed would be applied again without end.
        is_blocked = not spool.remove(folder, name) or is_blocked
    if is_start:
        tidy(memory)
    return len(applied), is_blocked


def _apply_file(memory: Memory, states: dict[str, State], name: str) -> bool:
    """Apply the event in a file of the spool; return whether it starts a session."""
    event = events.from_fields(spool.read(memory.home.spool_folder, name) or {})
    if event is None:
        return False
    if event.session not in states:
        states[event.session] = state.load(memory.home, event.session)
    apply(memory, states[event.session], event)
    return event.kind == "start"


def _set_aside(home: Home, name: str, error: Exception) -> bool:
    """Take an event that cannot be applied out of the way; return whether the next may follow."""
    import logging  # noqa: PLC0415 (a hook pays for every import)

    logging.getLogger(__name__).warning(
        "an event was set aside as %s: %s",
        home.failed_events_folder / name,
        type(error).__name__,  # Not its message: that may hold what the agent read.
    )
    return spool.set_aside(home.spool_folder, name, home.failed_events_folder)


def apply(memory: Memory, session: State, event: Event) -> None:
    """Log the lessons that *event* states, and add it to the session's draft."""
    settings = memory.settings
    if {event.subagent, event.name, event.agent} & set(settings["hooks.exempt"]):
        return
    is_repeated = session.has_seen(event)
    if is_repeated and event.kind in APPLIED_ONCE:
        return
    is_own = events.is_own_work(event)
    if not is_own and (event.guessed or not event.failed):
        session.mark_logged(_log_lessons(memory, event))
    if not is_repeated:
        session.mark_seen(event)  # Only now: if the log is busy, the event comes again.
    if is_own:
        session.mark_rated(episode.rated_in(event))
    else:
        episode.add_event(session, event, settings["hooks.prefixes"])
        if settings["hooks.failures"] and event.tool:
            solved = failures.track(session, event)
            if solved is not None:
                episode.add_resolution(session, solved)
                inbox.add_solved(memory.home, solved)
        if settings["hooks.dispatches"] and event.dispatches:
            _log_dispatch(memory.home, event)
    if event.kind in ("stop", "compact", "end"):
        write_episode(memory, session, event.kind)


def lesson_records(event: Event, prefixes: list[str]) -> list[dict[str, Any]]:
    """Return the fields of a record for each lesson that *event* states, but for patterns."""
    return [
        _record_of(lesson, event)
        for lesson in find_lessons(event.run_command, prefixes)
        if lesson.prefix != PATTERN_PREFIX
    ]


def _record_of(lesson: PrefixedLesson, event: Event) -> dict[str, Any]:
    is_fact = lesson.prefix == "FACT:"
    type_name = "fact" if is_fact else _TYPES.get(lesson.prefix, "learned")
    tags = tags_for(lesson.text, lesson.prefix)
    key = make_key(type_name, lesson.text)
    return {
        # The key decides: of two lessons with one key, the later is the current version.
        "id": keyed_id(key, event.repo),
        **(_fact_fields(lesson.text) if is_fact else _lesson_fields(lesson.text, type_name)),
        "tags": tags if type_name == "learned" else tags[1:],
        "timestamp": to_datetime(event.at),
        "repo": event.repo,
        "agent_id": event.name,
        "meta": _without_empty({
            "source": episode.source_of(worktree=event.worktree),
            "bead": lesson.issue,
            "key": key,
            "origin": "hooks",
            "session": event.session,
            "subagent": event.subagent,
        }),
    }  # fmt: skip


def _lesson_fields(text: str, event_type: str) -> dict[str, str]:
    return {"kind": "lesson", "event_type": event_type, "lesson": text}


def _fact_fields(text: str) -> dict[str, str]:
    label, _newline, rest = text.partition("\n")
    return _without_empty({"kind": "fact", "label": label, "payload": rest.strip("\n")})


def write_episode(memory: Memory, session: State, kind: str) -> None:
    """Append the session's episode if it has anything new. If that fails, it stays a draft."""
    if not memory.settings["hooks.episodes"] or not episode.is_due(session, kind):
        return
    try:
        record = episode.to_record(session)
    except (ArithmeticError, LookupError, OSError, TypeError, ValueError):
        return  # A draft was damaged in a way that reading it did not notice; the others go on.
    with suppress(CommonplaceError):
        memory.append([record])
        session.fields["written"] = session.fields["done"]


def to_datetime(at: float) -> datetime:
    try:
        return datetime.fromtimestamp(at, UTC).replace(microsecond=0)
    except (OverflowError, OSError, ValueError):
        return datetime.fromtimestamp(0, UTC)


def _log_lessons(memory: Memory, event: Event) -> list[str]:
    """Log the lessons that *event* states, and return their ids."""
    prefixes = memory.settings["hooks.prefixes"]
    ids = []
    for record in lesson_records(event, prefixes):
        with suppress(RecordInvalid):  # Too long, or with binary data in it: the others are logged.
            ids += [logged.id for logged in memory.append([record])]
    for lesson in find_lessons(event.run_command, prefixes):
        if lesson.prefix == PATTERN_PREFIX:
            with suppress(RecordInvalid):
                inbox.add(memory.home, _pattern_of(lesson.text, event))
    return ids


def _pattern_of(text: str, event: Event) -> inbox.Proposal:
    return inbox.Proposal(
        kind="pattern",
        title=text,
        fields={
            "pattern": text,
            "tags": tags_for(text, PATTERN_PREFIX)[1:],
            "meta": {"origin": "hooks"},
        },
        evidence=(),
        repo=event.repo,
        agent=event.name,
        session=event.session,
        at=event.at,
        rank=PATTERN_RANK,  # Somebody took it for one and said so.
    )


def _log_dispatch(home: Home, event: Event) -> None:
    """Append the prompt that a subagent was given to a file in `.state/`."""
    path = home.dispatches_file
    line = {
        "at": to_datetime(event.at).isoformat(),
        "session": event.session,
        "agent": event.name,
        "tool": event.tool,
        "subagent": event.subagent,
        "prompt": event.prompt,
        "cwd": event.cwd,
    }
    with suppress(CommonplaceError, OSError):
        if path.exists() and path.stat().st_size > DISPATCHES_BYTES_MAX:
            path.replace(path.with_name("dispatches.old.jsonl"))
        appender = Appender(path, fsync="never", wait_s_max=1.0)
        appender.append(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        appender.close()


def tidy(memory: Memory) -> int:
    """Write the episodes of sessions that ended without an event, and remove old files.

    Return how many episodes were written.
    """
    written = 0
    for session in idle_sessions(memory):
        write_episode(memory, session, "end")
        session.save()
        written += 1
    state.prune(memory.home, time.time())
    for folder in (memory.home.spool_folder, memory.home.inbox_folder):
        spool.remove_leftovers(folder)
    return written


def idle_sessions(memory: Memory) -> list[State]:
    """Return the sessions without a recent event whose episode is not written yet."""
    idle_since = time.time() - IDLE_S
    found = []
    for session in state.load_all(memory.home, idle_since)[:IDLE_SESSIONS_MAX]:
        last = session.fields.get("last")
        if last is not None and last < idle_since and episode.is_due(session, "end"):
            found.append(session)
    return found


def _without_empty(fields: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value}
