"""Sessions: what an agent's hooks tell is taken in, and what it should know is told.

`answered` is for a process that has the memory open (the server). A hook that stands alone keeps the event (`keep`),
then opens the memory and has it answered from the files (`answered_from_files`).
What only some events need is imported where it is called: most of them are put into the spool, and that is all.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

import time
from contextlib import suppress

from commonplace.errors import CommonplaceError
from commonplace.sessions import events, spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from commonplace.memory import Memory
    from commonplace.sessions.events import Event
    from commonplace.where.home import Home

__all__ = ["answered", "answered_from_files", "drain_waiting", "keep"]

# How long an answer waits for somebody who is draining; then it is given without the session's state.
WAIT_S_MAX = 0.1
# How long a command waits, which would else not show what was just captured.
COMMAND_WAIT_S_MAX = 5.0
# A hook by itself drains for so long at most: the end of a session has one second in all.
HOOK_DRAIN_S_MAX = 0.4
DRAINING = ("start", "stop", "subagent_stop", "compact", "end")


def answered(
    memory: Memory,
    agent: str,
    raw: bytes,
    *,
    cwd: str,
    host: str = "",
    heard: Callable[[], bool] = lambda: True,
) -> str:
    """Take the event in *raw* in and return what the hook is to print: context in the agent's form, or nothing.

    *heard* says whether the hook still listens: what it will not print counts as never shown.
    """
    event = events.taken(agent, raw, at=time.time(), cwd=cwd, host=host)
    if event is None:
        return ""
    from commonplace.sessions import ingest, start, state, suggest
    from commonplace.sessions.replies import printed

    there = memory.beside(agent_id=event.name, cwd=event.cwd)
    keep(there.home, event)
    ingest.drain(there, wait_s_max=WAIT_S_MAX)
    if event.kind in ("stop", "compact", "end"):
        there.engine().catch_up_soon()
    if not _is_wanted(there, event):
        return ""
    with ingest.alone(there.home, WAIT_S_MAX) as mine:
        known = state.load(there.home, event.session)
        if known.answered_elsewhere(event):
            return ""
        if event.kind == "start":
            said = start.text(event, suggest.for_start(there, event, known))
        else:
            said = suggest.for_prompt(there, event, known)
        if mine and said and heard():
            known.save()
    return printed(event, said)


def answered_from_files(memory: Memory, event: Event) -> str:
    """What a hook without a server is to print for *event*, kept before; what waits is drained as time allows."""
    if event.kind in DRAINING or _speaks(memory, event):
        from commonplace.sessions import ingest

        begun = time.monotonic()
        ingest.drain(memory, deadline=lambda: time.monotonic() - begun > HOOK_DRAIN_S_MAX)
    if event.kind != "start" or not memory.home.path.is_dir() or not _is_wanted(memory, event):
        return ""
    from commonplace.sessions import start, state
    from commonplace.sessions.replies import printed

    if state.load(memory.home, event.session).answered_elsewhere(event):
        return ""
    return printed(event, start.text(event, start.from_files(memory, event)))


def keep(home: Home, event: Event) -> None:
    """Put *event* into the spool of *home*, if that can be written. A start alone makes no home."""
    with suppress(OSError, CommonplaceError):
        if not home.path.is_dir():
            if event.kind not in ("prompt", "tool", "failure"):
                return
            from commonplace.where import homes

            homes.make(home)
        # Nobody reads what a tool printed; what it said when it failed is in `error`.
        spool.put(home.spool_folder, event._replace(output="")._asdict())


def drain_waiting(memory: Memory) -> None:
    """Take in what waits in any home that counts here: a command must show what was captured before it."""
    from commonplace.sessions import ingest

    for place, home in enumerate(memory.homes):
        if not ingest.is_waiting(home):
            continue
        if place == 0:
            ingest.drain(memory, wait_s_max=COMMAND_WAIT_S_MAX)
        else:
            with type(memory).open(home.path) as other:
                ingest.drain(other, wait_s_max=COMMAND_WAIT_S_MAX)


def _is_wanted(memory: Memory, event: Event) -> bool:
    """Whether *event* asks for an answer, and its agent may have one."""
    if event.kind not in ("start", "prompt"):
        return False
    exempt = {event.subagent, event.name, event.agent} & set(memory.settings["hooks.exempt"])
    return bool(memory.settings[f"hooks.{event.kind}"]) and not exempt


def _speaks(memory: Memory, event: Event) -> bool:
    return any(prefix in event.command for prefix in memory.settings["hooks.prefixes"])
