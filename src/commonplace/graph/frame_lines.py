"""The lines of the frames that are text: what each says, the most important first.

The server and the client library make their frames here, so that each knows the other's. All text
of memories is rendered: it has one line each, and none that begins anything of Markdown beyond
itself (`compose/lines.py`).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from commonplace.compose import tokens
from commonplace.compose.lines import inside
from commonplace.foreign import FRAME, flat, one_line, origin
from commonplace.records.episodes import actions_of, summarise
from commonplace.records.nodes import GraphNode, node_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from commonplace.records import Record

LINE_TOKENS_MAX = 80
# How many of the last steps an episodic frame tells, and of how many episodes.
STEPS_MAX = 12
EPISODES_MAX = 5
ACTIONS_MAX = 3
TOOLS_MAX = 8
FIELDS_MAX = 8
IDENTITY_LINES_MAX = 12
# What a task's scratchpad has before somebody writes into it.
SCRATCHPAD = ("Plan:", "Invariants:", "Open questions:")
# The field of a task's payload whose content has a line of its own.
TAGS = "tags"
MEMORY = f"From memory, {FRAME}. Ask for more: the tool `recall`, or `commonplace recall`."
_HEADING = re.compile(r"#{1,6}(?:\s+|$)")


# The logs of this repository, if they are known.
Here: TypeAlias = "Collection[str] | None"


class Saved(Protocol):
    """A saved context, as the server or the client knows it."""

    @property
    def is_built(self) -> bool:
        """Whether `build_context` saved it, not the agent."""

    def frame(self, kind: str, /) -> Any:  # noqa: ANN401 (any JSON)
        """Return the content of a frame; "" if there is none."""


def problem(
    query: str,
    task_id: str,
    tags: Sequence[str],
    task: GraphNode | None,
    text: str = "",
    here: Here = None,
) -> list[str]:
    """Return the question, what the agent says of its task, then what the node of the task says.

    If the logs of this repository are given as *here*, a node of another repository says so.
    """
    lines = [one_line(query), *text_lines(text)]
    if task is not None:
        lines.append(f"Task {one_line(task.id)}{_from(task, here)}: {_short(task.label)}")
        lines += _fields(task, without=TAGS if tags else "")
    elif task_id:
        lines.append(f"Task: {one_line(task_id)}")
    if tags:
        named = dict.fromkeys([*tags, *(_tags_in(task) if task is not None else ())])
        lines.append(f"Tags: {one_line(', '.join(named))}")
    return list(dict.fromkeys(lines))


def identity(
    persona: GraphNode | None,
    tools: Sequence[GraphNode],
    note: str = "",
    names: Sequence[str] = (),
    ending: str = MEMORY,
    here: Here = None,
) -> list[str]:
    """Return who the agent is, by the persona or its own note, and which tools it has.

    *names* are those of tools that the program offers, *tools* those that the memory knows.
    """
    lines: list[str] = []
    if persona is not None:
        who = f"Persona {one_line(persona.id)}{_from(persona, here)}: {_short(persona.label)}"
        lines = [who, *_fields(persona)]
    elif note.strip():
        lines = text_lines(note)[:IDENTITY_LINES_MAX]
    if names or tools:
        told = [tool(one, here) for one in tools[:TOOLS_MAX]]
        # Lines are dropped from the end: a heading without what it is about would say nothing.
        first = ", ".join(map(one_line, names)) or told.pop(0)
        lines += [f"Tools: {first}", *(f"- {one}" for one in told)]
    return [*lines, ending] if ending else lines


def tool(node: GraphNode, here: Here = None) -> str:
    """Return a tool in one line."""
    about = "; ".join(_values(node))
    name = f"{one_line(node.label)}{_from(node, here)}"
    return _short(name + (f": {about}" if about else ""))


def episodic(
    saved: Sequence[Saved], episodes: Sequence[Record | GraphNode], here: Here = None
) -> list[str]:
    """Return the last steps and outcomes: what the agent saved, and the episodes, newest first."""
    lines: list[str] = []
    for one in saved:
        if not one.is_built:  # One that was built repeats the frames before it.
            lines += map(_bullet, text_lines(one.frame("episodic"), headings=False))
    for episode in episodes[:EPISODES_MAX]:
        lines += steps(episode, here)
    return list(dict.fromkeys(lines))[:STEPS_MAX]


def steps(one: Record | GraphNode, here: Here = None) -> list[str]:
    """Return an episode: its goal and outcome, then its last actions."""
    if isinstance(one, GraphNode):
        return [_step(time_of(one), _outcome(one), one, here)]
    if one.kind != "episode":
        return steps(node_of(one), here)
    actions = [
        _short(
            f"  - {flat(step.get('action', ''))} {flat(step.get('target', ''))}: "
            f"{flat(step.get('result', ''))}".rstrip(": ")
        )
        for step in actions_of(one)[-ACTIONS_MAX:]
    ]
    head = _step(one.timestamp, one_line(summarise(one)), one, here)
    return [head, *(line for line in actions if line.strip(" -:"))]


def _step(time: str, told: str, one: Record | GraphNode, here: Here) -> str:
    day = f"[{one_line(time[:10])}] " if time else ""
    return _short(f"-{_from(one, here)} {day}{told}")


def time_of(node: GraphNode) -> str:
    """Return when it was, as an observation says it, or else when it was written."""
    payload = node.payload if isinstance(node.payload, dict) else {}
    return str(payload.get("at") or node.timestamp)


def _outcome(node: GraphNode) -> str:
    """Return what was done, and how it ended."""
    label = one_line(node.label)
    outcome = node.payload.get("outcome") if isinstance(node.payload, dict) else None
    return f"{label}: {flat(outcome)}" if outcome else "; ".join([label, *_values(node)])


def rule(node: GraphNode) -> str:
    """Return a node that is a rule, in one line."""
    label, about = one_line(node.label), "; ".join(_values(node))
    name = f"- {label}{_from(node)}"
    return _short(f"{name}: {about}" if about and about != label else name)


def scratchpad(saved: Sequence[Saved], given: str | None = None) -> list[str]:
    """Return the scratchpad that is *given*, or that the task has, or else empty headings.

    The agent's own words come first: what was built may have been cut to its budget.
    """
    own_first = sorted(saved, key=lambda one: one.is_built)
    found = [given] if given is not None else (one.frame("scratchpad") for one in own_first)
    for text in found:
        lines = text_lines(text)
        if lines and tuple(lines) != SCRATCHPAD[: len(lines)]:
            return lines
    return list(SCRATCHPAD)


def text_lines(data: object, *, headings: bool = True) -> list[str]:
    """Return the lines of a text, or of JSON; its headings as plain lines, or left out.

    The headings of a context are ours.
    """
    if not data:
        return []
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    found = []
    for line in text.split("\n"):
        shown = one_line(line)
        if heading := _HEADING.match(shown):
            title = shown[heading.end() :].rstrip(": ")
            shown = f"{title}:" if title and headings else ""
        if shown:
            indent = " " * min(8, len(line) - len(line.lstrip(" ")))
            found.append(inside(indent + shown))
    return found


def _from(one: Record | GraphNode, here: Here = None) -> str:
    """Return where what somebody else wrote, or is of another repository, came from, in brackets.

    Before what it says: the end of a long line is cut.
    """
    is_elsewhere = here is not None and one.repo and one.repo not in here
    elsewhere = f"from {one_line(one.repo)}" if is_elsewhere else ""
    text = ", ".join(filter(None, [origin(one.meta, short=True), elsewhere]))
    return f" ({text})" if text else ""


def _bullet(line: str) -> str:
    """Return a line as a step; steps stay as they are."""
    return line if line.lstrip().startswith(("- ", "* ")) else f"- {line}"


def _tags_in(task: GraphNode) -> list[str]:
    """Return the tags in the payload of a task, where some clients keep them."""
    held = task.payload.get(TAGS) if isinstance(task.payload, dict) else None
    given = held if isinstance(held, list) else [held]
    return [one.lower() for one in given if isinstance(one, str) and one]


def _fields(node: GraphNode, without: str = "") -> list[str]:
    """Return what a node says, a line for each field but one."""
    payload = node.payload
    if not isinstance(payload, dict):
        return [_short(flat(payload))] if payload else []
    return [
        _short(f"{name}: {flat(value)}")
        for name, value in list(payload.items())[:FIELDS_MAX]
        if value not in (None, "", [], {}) and name != without
    ]


def _values(node: GraphNode) -> list[str]:
    payload = node.payload if isinstance(node.payload, dict) else {"text": node.payload}
    return [one_line(flat(value)) for value in payload.values() if value not in (None, "", [], {})]


def _short(text: str) -> str:
    indent = " " * (len(text) - len(text.lstrip(" ")))
    return inside(indent + tokens.cut(one_line(text), LINE_TOKENS_MAX))
