"""Taking in what hooks saw: the spool is drained in order, once, by whoever comes first.

An event is applied, then its file goes. A process that dies in between has the next one apply it again, which changes
nothing: a session remembers which events it has had, and a record's id comes from its content.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from commonplace.errors import CommonplaceError, RecordInvalid
from commonplace.files.lock import hold, try_hold
from commonplace.log.append import Appender
from commonplace.records import slug
from commonplace.sessions import episode, events, failures, inbox, spool, state
from commonplace.sessions.spoken import spoken_in, tags_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from commonplace.memory import Memory
    from commonplace.sessions.events import Event
    from commonplace.sessions.state import State
    from commonplace.where.home import Home

BATCH_MAX = 200
# A draft that has not moved for so long belongs to a session that ended without a word.
IDLE_S = 1800.0
IDLE_SESSIONS_MAX = 20
DISPATCHES_BYTES_MAX = 4 << 20
KEY_CHARS_MAX = 60
# What would count twice; the end of a turn may come again at once, and writes what is new.
REPEATABLE = ("prompt", "tool", "failure")


def is_waiting(home: Home) -> bool:
    """Whether anything waits in the spool of *home*; cheap enough for every command."""
    return bool(spool.waiting(home.spool_folder))


def drain(
    memory: Memory, *, wait_s_max: float = 0.0, deadline: Callable[[], bool] = lambda: False
) -> int:
    """Take in what waits in the nearest home; how many events that were.

    Somebody else may be at it: then wait up to *wait_s_max* for them. With *deadline* true the rest is left.
    """
    home = memory.home
    taken = 0
    # Whoever was told "somebody is at it" has put its event before; so look again after letting go.
    while is_waiting(home) and not deadline():
        with alone(home, wait_s_max) as mine:
            if not mine:
                return taken
            while is_waiting(home) and not deadline():
                some, blocked = _drain_some(memory)
                taken += some
                if blocked:
                    return taken
    with suppress(CommonplaceError):
        memory.flush()  # A server goes on for days; what was taken in is safe now.
    return taken


@contextmanager
def alone(home: Home, wait_s_max: float) -> Iterator[bool]:
    """Be the only one that drains *home* or writes a session's state; whether we are."""
    entered = False
    try:
        if wait_s_max > 0:
            with hold(home.spool_lock, wait_s_max):
                entered = True
                yield True
        else:
            with try_hold(home.spool_lock) as mine:
                entered = True
                yield mine
    except CommonplaceError:
        if entered:
            raise
        yield False  # Busy, or a home that cannot be written.


def _drain_some(memory: Memory) -> tuple[int, bool]:
    """How many events were taken in, and whether the next cannot be now."""
    folder = memory.home.spool_folder
    states: dict[str, State] = {}
    done: list[str] = []
    started = blocked = False
    try:
        for name in spool.waiting(folder)[:BATCH_MAX]:
            event = events.of(spool.read(folder, name) or {})
            if event is not None:
                if event.session not in states:
                    states[event.session] = state.load(memory.home, event.session)
                take(memory, states[event.session], event)
                started = started or event.kind == "start"
            done.append(name)
    except CommonplaceError:
        blocked = True  # A log that is busy, or a full disk: the rest waits for the next one.
    for each in states.values():
        each.save()
    for name in done:
        spool.remove(folder, name)
    if started:
        tidy(memory)
    return len(done), blocked


def take(memory: Memory, known: State, event: Event) -> None:
    """Apply one event: what it says is logged, what it did is added to the session's draft."""
    settings = memory.settings
    if {event.subagent, event.name, event.agent} & set(settings["hooks.exempt"]):
        return
    before = dict(known.fields.get("seen") or {})
    if known.is_repeated(event) and event.kind in REPEATABLE:
        return
    ours = events.is_ours(event)
    try:
        if event.command and not ours and (event.guessed or not event.failed):
            _log(memory, lessons(event, settings["hooks.prefixes"]))
    except CommonplaceError:
        known.fields["seen"] = before
        raise
    if not ours:
        episode.note(known, event, settings["hooks.prefixes"])
        if settings["hooks.failures"] and event.tool:
            candidate = failures.follow(known, event)
            if candidate is not None:
                episode.resolve(known, candidate)
                inbox.add(memory.home, candidate)
        if settings["hooks.dispatches"] and event.tool in events.DISPATCHING:
            _keep_dispatch(memory.home, event)
    if event.kind in ("stop", "compact", "end"):
        write_episode(memory, known, event.kind)


def lessons(event: Event, prefixes: list[str]) -> list[dict[str, Any]]:
    """The lessons *event* states, as records: seed 003's fields, where our own have a place for them."""
    return [
        {
            "kind": "lesson",
            "event_type": "learned",
            "lesson": spoken.text,
            "tags": tags_of(spoken.text, spoken.prefix),
            "timestamp": moment(event.at),
            "repo": event.repo,
            "agent_id": event.name,
            "meta": _without_empty({
                "source": episode.source_of(worktree=event.worktree),
                "bead": spoken.issue,
                "key": key_of(spoken.text),
                "origin": "hooks",
                "session": event.session,
                "subagent": event.subagent,
            }),
        }
        for spoken in spoken_in(event.command, prefixes)
    ]  # fmt: skip


def key_of(lesson: str) -> str:
    """Seed 003's key: the type and the first 60 characters, as a slug. Of two with one key, the latest is shown."""
    return f"learned-{slug(lesson[:KEY_CHARS_MAX], KEY_CHARS_MAX)}"


def write_episode(memory: Memory, known: State, kind: str) -> None:
    """Write the session's draft down, if there is something new in it. If that fails, the draft is still there."""
    if memory.settings["hooks.episodes"] and episode.is_due(known, kind):
        with suppress(CommonplaceError):
            memory.append([episode.record(known)])
            known.fields["written"] = known.fields["done"]


def moment(at: float) -> datetime:
    try:
        return datetime.fromtimestamp(at, UTC).replace(microsecond=0)
    except (OverflowError, OSError, ValueError):
        return datetime.fromtimestamp(0, UTC)


def _log(memory: Memory, given: list[dict[str, Any]]) -> None:
    for lesson in given:
        with suppress(
            RecordInvalid
        ):  # Said too long or with binary in it; the others are none the worse.
            memory.append([lesson])


def _keep_dispatch(home: Home, event: Event) -> None:
    """What was sent to a subagent: the prompt it was given, in a file of this machine's own."""
    path = home.dispatches_file
    line = {
        "at": moment(event.at).isoformat(),
        "session": event.session,
        "agent": event.name,
        "tool": event.tool,
    }
    line |= {"subagent": event.subagent, "prompt": event.prompt, "cwd": event.cwd}
    with suppress(CommonplaceError, OSError):
        if path.exists() and path.stat().st_size > DISPATCHES_BYTES_MAX:
            path.replace(path.with_name("dispatches.old.jsonl"))
        appender = Appender(path, fsync="never", wait_s_max=1.0)
        appender.append(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        appender.close()


def tidy(memory: Memory) -> int:
    """Write down sessions that ended without saying so, and drop what is long over.

    Returns how many episodes were written.
    """
    written = 0
    for known in idle_sessions(memory):
        write_episode(memory, known, "end")
        known.save()
        written += 1
    state.prune(memory.home, time.time())
    for folder in (memory.home.spool_folder, memory.home.inbox_folder):
        spool.sweep(folder)
    return written


def idle_sessions(memory: Memory) -> list[State]:
    """The sessions of which nothing was heard for a while, and whose draft was not written yet."""
    now = time.time()
    found = []
    for known in state.others(memory.home)[:IDLE_SESSIONS_MAX]:
        last = known.fields.get("last")
        is_idle = isinstance(last, int | float) and now - last > IDLE_S
        if is_idle and episode.is_due(known, "end"):
            found.append(known)
    return found


def _without_empty(fields: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value}
