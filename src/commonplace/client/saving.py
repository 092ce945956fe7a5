"""Sends what waits to be saved, in order, each once.

A save whose answer did not come may have arrived. So before it is sent again, the task's saved
contexts are read: each save carries an id of its own, and if the server has it, it is done. Nodes
need no such question, because writing a node twice leaves one node.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.client import answers, seven
from commonplace.compose.frames import SAVE_FORMAT, SAVE_KIND
from commonplace.errors import NoAnswer, ToolRefused
from commonplace.foreign import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.client.adapter import KomServerAdapter
    from commonplace.client.pending import Pending, PendingSaves

# How many saved contexts are looked through: others may have saved since. Not every server
# returns as many.
LOOK_BACK = (200, 32)
# Arguments that not every server's tool takes.
OURS = ("session", "repo")


class Built(NamedTuple):
    """What only the client knows of a context that it has built."""

    # The nodes that it was built of.
    nodes: list[str]
    # Whether the knowledge frame has a node of the task's domain; `None` for a task without tags.
    covered: bool | None
    # How far the best nodes of the knowledge frame are from the question.
    drift: float | None


def with_save_id(
    blocks: list[dict[str, Any]], ident: str, at: str, built: Built | None
) -> list[dict[str, Any]]:
    """Return the *blocks* of a context, with one more that says which save it is.

    What was *built* repeats what the memory has; otherwise it is the agent's own.
    """
    data: dict[str, Any] = {"id": ident, "at": at, "built": built is not None}
    if built is not None:
        # What was not measured, and an empty list, are left out.
        data |= {name: value for name, value in built._asdict().items() if value not in (None, [])}
    return [*blocks, {"kind": SAVE_KIND, "format": SAVE_FORMAT, "data": data}]


async def flush(server: KomServerAdapter, pending: PendingSaves) -> str:
    """Send what waits, the oldest first, until the server does not answer; return why not.

    What the server refuses is set aside: it would be refused again.
    """
    for one in pending:
        try:
            if not (one.is_unsure and await _has(server, one)):
                arguments = await _known_arguments(server, one)
                pending.set_unsure(one.id)
                await server.call(one.tool, arguments)
        except NoAnswer as error:
            return one_line(str(error))
        except ToolRefused as error:
            pending.set_aside(one.id, one_line(str(error)))
        else:
            pending.done(one.id)
    return ""


async def rate(server: KomServerAdapter, ids: Sequence[str], outcome: str) -> int:
    """Rate nodes on the server, each at most once; return how many it has noted."""
    noted = 0
    for ident in ids:
        try:
            noted += await server.feedback(ident, outcome)
        except NoAnswer:
            break
        except ToolRefused:
            continue  # It has no such node, or this token may not write.
    return noted


async def _known_arguments(server: KomServerAdapter, one: Pending) -> dict[str, Any]:
    """Return the arguments without those of ours that the server's tool does not take."""
    if one.arguments.keys().isdisjoint(OURS):
        return one.arguments
    taken = await server.arguments_of(one.tool)
    return {
        name: value for name, value in one.arguments.items() if name not in OURS or name in taken
    }


async def _has(server: KomServerAdapter, one: Pending) -> bool:
    """Whether the server has this save already."""
    if one.tool != seven.SAVE:
        return False
    task_id, repo = one.arguments["task_id"], one.arguments.get("repo", "")
    for k in LOOK_BACK[:-1]:
        try:
            answer = await server.recall_context(task_id, k, repo=repo)
            break
        except ToolRefused:
            continue  # It may allow fewer.
    else:
        answer = await server.recall_context(task_id, LOOK_BACK[-1], repo=repo)
    wanted = json.dumps(one.id)
    return any(wanted in json.dumps(saved.raw) for saved in answers.contexts(answer))
