"""Sessions: what an agent's hooks tell is taken in, and what it should know is told.

`answered` is for a process that has the memory open (the server); `answered_from_files` for a hook that stands alone.
What only some events need is imported where it is called: most of them are put into the spool, and that is all.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

import time
from contextlib import suppress

from commonplace.capture import spool
from commonplace.errors import CommonplaceError
from commonplace.sessions import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from commonplace.memory import Memory
    from commonplace.sessions.events import Event

__all__ = ["answered", "answered_from_files", "drain_waiting"]

# How long an answer waits for somebody who is draining; then it is given without the session's state.
WAIT_S_MAX = 0.1
# How long a command waits, which would else not show what was just captured.
COMMAND_WAIT_S_MAX = 5.0
# A hook by itself drains for so long at most: the end of a session has one second in all.
HOOK_DRAIN_S_MAX = 0.4
DRAINING = ("start", "stop", "subagent_stop", "compact", "end")


def answered(memory: Memory, agent: str, raw: bytes, *, cwd: str, host: str = "") -> str:
    """Take the event in *raw* in and return what the hook is to print: context in the agent's form, or nothing."""
    event = events.taken(agent, raw, at=time.time(), cwd=cwd, host=host)
    if event is None:
        return ""
    from commonplace.sessions import asked, starting, state, taking
    from commonplace.sessions.replies import printed

    there = memory.beside(agent_id=event.name, cwd=event.cwd)
    _spool(there, event)
    with suppress(CommonplaceError):
        taking.drain(there, wait_s_max=WAIT_S_MAX)
    if event.kind not in ("start", "prompt") or not _is_wanted(there, event):
        if event.kind in ("stop", "compact", "end"):
            there.asking().wake_worker()
        return ""
    with taking.alone(there.home.path, WAIT_S_MAX) as mine:
        known = state.load(there.home.path, event.session)
        if known.answered_elsewhere(event):
            return ""
        said = (
            starting.text(event, asked.for_start(there, event, known))
            if event.kind == "start"
            else asked.for_prompt(there, event, known)
        )
        if mine and said:
            known.save()
    return printed(event, said)


def answered_from_files(memory_of: Callable[[str, str], Memory], agent: str, raw: bytes, *, cwd: str, host: str) -> str:
    """The same for a hook that found no server: the event is kept in the spool, and the files alone answer.

    *memory_of* opens the memory that counts for an agent in a folder.
    """
    event = events.taken(agent, raw, at=time.time(), cwd=cwd, host=host)
    if event is None:
        return ""
    with memory_of(event.name, event.cwd) as memory:
        _spool(memory, event)
        if event.kind in DRAINING or _speaks(memory, event):
            from commonplace.sessions import taking

            begun = time.monotonic()
            with suppress(CommonplaceError):
                taking.drain(memory, deadline=lambda: time.monotonic() - begun > HOOK_DRAIN_S_MAX)
        if event.kind != "start" or not memory.home.path.is_dir() or not _is_wanted(memory, event):
            return ""
        from commonplace.sessions import starting, state
        from commonplace.sessions.replies import printed

        known = state.load(memory.home.path, event.session)
        if known.answered_elsewhere(event):
            return ""
        return printed(event, starting.text(event, starting.from_files(memory, event)))


def drain_waiting(memory: Memory) -> None:
    """Take in what waits in any home that counts here: a command must show what was captured before it."""
    from commonplace.sessions import taking

    for place, home in enumerate(memory.homes):
        if taking.is_waiting(home.path):
            with suppress(CommonplaceError):
                if place == 0:
                    taking.drain(memory, wait_s_max=COMMAND_WAIT_S_MAX)
                else:
                    with type(memory).open(home.path) as other:
                        taking.drain(other, wait_s_max=COMMAND_WAIT_S_MAX)


def _is_wanted(memory: Memory, event: Event) -> bool:
    exempt = {event.subagent, event.name, event.agent} & set(memory.settings["hooks.exempt"])
    return bool(memory.settings[f"hooks.{event.kind}"]) and not exempt


def _speaks(memory: Memory, event: Event) -> bool:
    return any(prefix in event.command for prefix in memory.settings["hooks.prefixes"])


def _spool(memory: Memory, event: Event) -> None:
    """Keep the event for whoever drains. A start in a home that is not there yet leaves nothing behind."""
    home = memory.home.path
    if event.kind not in ("prompt", "tool", "failure") and not home.is_dir():
        return
    with suppress(OSError):
        if not home.is_dir():
            from commonplace import homes

            with suppress(CommonplaceError):
                homes.make(home)
        if not spool.put(spool.folder_of(home), event._asdict()):
            return
