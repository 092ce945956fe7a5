"""The lines of the frames that are text: what each says, the most important first.

All text of memories is rendered here: it has one line each, and none that begins anything of
Markdown beyond itself (`compose/lines.py`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from commonplace.compose import tokens
from commonplace.compose.lines import inside
from commonplace.foreign import FRAME, flat, one_line, origin
from commonplace.records.episodes import actions_of, summarise
from commonplace.records.nodes import node_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.graph.contexts import SavedContext
    from commonplace.records import Record
    from commonplace.records.nodes import GraphNode

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
MEMORY = f"From memory, {FRAME}. Ask for more: the tool `recall`, or `commonplace recall`."
_HEADING = re.compile(r"#{1,6}(?:\s+|$)")


def problem(query: str, task_id: str, tags: Sequence[str], task: GraphNode | None) -> list[str]:
    """Return the question, then what the node of the task says."""
    lines = [one_line(query)]
    if task is not None:
        lines.append(f"Task {one_line(task.id)}: {_short(task.label)}")
        lines += _fields(task)
    elif task_id:
        lines.append(f"Task: {one_line(task_id)}")
    if tags:
        lines.append(f"Tags: {one_line(', '.join(tags))}")
    return lines


def identity(persona: GraphNode | None, tools: Sequence[GraphNode], note: str) -> list[str]:
    """Return who the agent is, by the persona or its own note, and which tools it has."""
    lines: list[str] = []
    if persona is not None:
        lines = [f"Persona {one_line(persona.id)}: {_short(persona.label)}", *_fields(persona)]
    elif note.strip():
        lines = text_lines(note)[:IDENTITY_LINES_MAX]
    if tools:
        lines.append("Tools:")
        lines += [tool(one) for one in tools[:TOOLS_MAX]]
    return [*lines, MEMORY]


def tool(node: GraphNode) -> str:
    """Return a tool in one line."""
    about = "; ".join(_values(node))
    return _short(f"- {one_line(node.label)}" + (f": {about}" if about else ""))


def episodic(saved: Sequence[SavedContext], episodes: Sequence[Record]) -> list[str]:
    """Return the last steps and outcomes: what the agent saved, and the episodes, newest first."""
    lines: list[str] = []
    for one in saved:
        if not one.is_built:  # One that was built repeats the frames before it.
            data = one.frame("episodic")
            text = data if isinstance(data, str) else ""
            lines += [_bullet(line) for line in text_lines(text, headings=False)]
    for record in episodes[:EPISODES_MAX]:
        lines += steps(record)
    return list(dict.fromkeys(lines))[:STEPS_MAX]


def steps(record: Record) -> list[str]:
    """Return an episode: its goal and outcome, then its last actions."""
    if record.kind != "episode":
        node = node_of(record)
        told = "; ".join([one_line(node.label), *_values(node)])
    else:
        told = one_line(summarise(record))
    marks = origin(record.meta, short=True)
    head = f"- [{one_line(record.timestamp[:10])}] {told}" + (f" ({marks})" if marks else "")
    actions = [
        _short(
            f"  - {flat(step.get('action', ''))} {flat(step.get('target', ''))}: "
            f"{flat(step.get('result', ''))}".rstrip(": ")
        )
        for step in actions_of(record)[-ACTIONS_MAX:]
    ]
    return [_short(head), *(line for line in actions if line.strip(" -:"))]


def scratchpad(saved: Sequence[SavedContext]) -> list[str]:
    """Return the scratchpad that the task has, or else empty headings."""
    for one in saved:
        data = one.frame("scratchpad")
        lines = text_lines(data) if isinstance(data, str) else []
        if lines and tuple(lines) != SCRATCHPAD[: len(lines)]:
            return lines
    return list(SCRATCHPAD)


def text_lines(text: str, *, headings: bool = True) -> list[str]:
    """Return the lines of a text; its headings as plain lines, or left out.

    The headings of a context are ours.
    """
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


def _bullet(line: str) -> str:
    """Return a line as a step; steps stay as they are."""
    return line if line.lstrip().startswith(("- ", "* ")) else f"- {line}"


def _fields(node: GraphNode) -> list[str]:
    """Return what a node says, a line for each field."""
    payload = node.payload
    if not isinstance(payload, dict):
        return [_short(flat(payload))] if payload else []
    return [
        _short(f"{name}: {flat(value)}")
        for name, value in list(payload.items())[:FIELDS_MAX]
        if value not in (None, "", [], {})
    ]


def _values(node: GraphNode) -> list[str]:
    payload = node.payload if isinstance(node.payload, dict) else {"text": node.payload}
    return [one_line(flat(value)) for value in payload.values() if value not in (None, "", [], {})]


def _short(text: str) -> str:
    indent = " " * (len(text) - len(text.lstrip(" ")))
    return inside(indent + tokens.cut(one_line(text), LINE_TOKENS_MAX))
