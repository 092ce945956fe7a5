"""Sessions: the events of agents' hooks are applied, and answered with what the agent should know.

`answer` is for a process that has the memory open (the server). A hook without a server adds the
event to the spool (`add_to_spool`), then opens the memory and answers from its files alone
(`answer_from_files`).
"""

# Most events only go into the spool, and a hook pays for every import: what only some events need
# is imported where it is used.
# ruff: noqa: PLC0415

from __future__ import annotations

import time
from contextlib import suppress

from commonplace.errors import CommonplaceError
from commonplace.sessions import spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from commonplace.memory import Memory
    from commonplace.sessions.events import Event
    from commonplace.where.home import Home

__all__ = ["add_to_spool", "answer", "answer_from_files", "drain_waiting"]

# How long an answer waits for another process that drains; after that it is given without the
# session's state.
WAIT_S_MAX = 0.1
# How long a command waits: without draining it would not show what was just captured.
COMMAND_WAIT_S_MAX = 5.0
# How long a hook without a server drains: the end of a session has one second in all.
HOOK_DRAIN_S_MAX = 0.4
CONTINUITY_KINDS = ("start", "prompt", "compact")
DRAINING_KINDS = ("start", "stop", "subagent_stop", "compact", "end")


def answer(
    memory: Memory,
    agent: str,
    raw: bytes,
    *,
    cwd: str,
    environment: Collection[str] = (),
    is_awaited: Callable[[], bool] = lambda: True,
) -> str:
    """Apply the event in *raw*; return what the hook prints: context in the agent's form, or "".

    *is_awaited* says whether the hook still waits; if not, the memories are not marked as shown.
    """
    from commonplace.sessions.payload import read_event

    event = read_event(agent, raw, at=time.time(), cwd=cwd, environment=environment)
    if event is None:
        return ""
    from commonplace.sessions import ingest

    there = memory.beside(agent_id=event.name, cwd=event.cwd)
    event = event._replace(repo=there.repository.name)
    add_to_spool(there.home, event)
    ingest.drain(there, wait_s_max=WAIT_S_MAX)
    if event.kind in ("stop", "compact", "end"):
        there.engine().catch_up_soon()
    reply = _reply(there, event, is_awaited) if _wants_answer(there, event) else ""
    if event.kind in CONTINUITY_KINDS and not _is_exempt(there, event):
        _keep_continuity(there, event)
    return reply


def _reply(there: Memory, event: Event, is_awaited: Callable[[], bool]) -> str:
    from commonplace.compose import tokens
    from commonplace.sessions import ingest, start, state, suggest
    from commonplace.sessions.replies import context_reply

    with ingest.drain_lock(there.home, WAIT_S_MAX) as is_held:
        session = state.load(there.home, event.session)
        if session.is_answered_by_other_hook(event):
            return ""
        before = session.shown_ids()
        if event.kind == "start":
            text = start.compose(event, suggest.for_start(there, event, session))
        else:
            text = suggest.for_prompt(there, event, session)
        if is_held and text and is_awaited():
            session.save()
            shown = session.shown_ids() - before
            there.note_injection(event.kind, tokens.count(text), shown, event.session)
    return context_reply(event, text)


def _keep_continuity(memory: Memory, event: Event) -> None:
    """Have our section of `CONTINUITY.md` updated after the answer, where there is such a file."""
    from functools import partial

    from commonplace.learn import continuity
    from commonplace.sessions.suggest import is_specific

    if continuity.is_kept(memory):
        # Without a goal of its own, the event leaves the goal that is noted in the file.
        goal = event.prompt if event.kind == "prompt" and is_specific(event.prompt) else ""
        memory.engine().do_soon(partial(continuity.maintain, memory, goal))


def answer_from_files(memory: Memory, event: Event) -> str:
    """Return what a hook without a server prints for *event*, which is in the spool already."""
    if event.kind in DRAINING_KINDS or _states_lesson(memory, event):
        from commonplace.sessions import ingest

        begin = time.monotonic()
        ingest.drain(memory, is_over=lambda: time.monotonic() - begin > HOOK_DRAIN_S_MAX)
    if event.kind != "start" or not memory.home.path.is_dir() or not _wants_answer(memory, event):
        return ""
    from commonplace.sessions import start, state
    from commonplace.sessions.replies import context_reply

    if state.load(memory.home, event.session).is_answered_by_other_hook(event):
        return ""
    there = memory.beside(cwd=event.cwd)
    return context_reply(event, start.compose(event, start.read_files(there, event)))


def add_to_spool(home: Home, event: Event) -> None:
    """Add *event* to the spool of *home*, if that can be written. A start alone makes no home."""
    with suppress(OSError, CommonplaceError):
        if not home.path.is_dir():
            if event.kind not in ("prompt", "tool", "failure"):
                return
            from commonplace.where import homes

            homes.make(home)
        # Nothing reads the output of a tool later; the output of a failure is in `error`.
        spool.add(home.spool_folder, event._replace(output="")._asdict())


def drain_waiting(memory: Memory) -> None:
    """Drain the spools of all homes of *memory*, so that a command shows what was captured."""
    for index, home in enumerate(memory.homes):
        if not spool.list_names(home.spool_folder):
            continue
        from commonplace.sessions import ingest

        if index == 0:
            ingest.drain(memory, wait_s_max=COMMAND_WAIT_S_MAX)
        else:
            with type(memory).open(home.path) as other:
                ingest.drain(other, wait_s_max=COMMAND_WAIT_S_MAX)


def _wants_answer(memory: Memory, event: Event) -> bool:
    """Whether *event* is of a kind that is answered, and its agent is not exempt."""
    if event.kind not in ("start", "prompt"):
        return False
    return bool(memory.settings[f"hooks.{event.kind}"]) and not _is_exempt(memory, event)


def _is_exempt(memory: Memory, event: Event) -> bool:
    names = {event.subagent, event.name, event.agent}
    return not names.isdisjoint(memory.settings["hooks.exempt"])


def _states_lesson(memory: Memory, event: Event) -> bool:
    return any(prefix in event.run_command for prefix in memory.settings["hooks.prefixes"])
