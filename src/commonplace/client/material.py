"""The lines of the frames, from what the orchestrator has found. All of it is foreign text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.compose.frames import Material
from commonplace.compose.hdod import Shown
from commonplace.foreign import block, flat, one_line
from commonplace.graph.scoring import words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commonplace.client.answers import Saved
    from commonplace.client.task import Task
    from commonplace.records.nodes import GraphNode

# What is in the knowledge frame. The other types have frames of their own.
KNOWLEDGE_TYPES = ("concept", "skill", "fact", "snippet", "pattern")
# A node with one of these tags, or one of them in its path, says what a result must keep to.
_CONSTRAINTS = (
    "api constraint constraints convention conventions policy signature signatures style test"
    " testing tests version versions"
)
CONSTRAINT_TAGS = frozenset(_CONSTRAINTS.split())
STEPS_MAX = 12
HEADINGS = ("Plan:", "Invariants:", "Open questions:")
_HEADING = re.compile(r"#{1,6}\s+|#{1,6}$")
# The fields of a payload that say in a sentence what a node is about.
_SENTENCES = ("definition", "text", "pattern", "lesson", "what_fails", "outcome", "goal")


class Scored(NamedTuple):
    """A node that was selected, and its score."""

    node: GraphNode
    score: float


class Parts(NamedTuple):
    """What a context is made of."""

    query: str
    task: Task
    # The best first.
    selected: Sequence[Scored]
    # The newest first.
    contexts: Sequence[Saved] = ()
    persona: GraphNode | None = None
    task_node: GraphNode | None = None
    tools: Sequence[str] = ()


def material(parts: Parts) -> Material:
    """Return the lines of all frames, each as it may be shown."""
    constraints = [one.node for one in parts.selected if is_constraint(one.node)]
    shown = [
        Shown(one.node, one.score)
        for one in parts.selected
        if one.node.type in KNOWLEDGE_TYPES and one.node not in constraints
    ]
    return Material(
        problem=_shown(_problem(parts)),
        identity=_shown(_identity(parts)),
        knowledge=shown,
        episodic=_shown(_episodic(parts))[:STEPS_MAX],
        constraints=_shown(_constraints(parts, constraints)),
        scratchpad=list(map(block, _scratchpad(parts))),
        query=parts.query,
    )


def _shown(lines: Iterable[str]) -> list[str]:
    """Return each of *lines* once, quoted if it begins like a heading of ours."""
    return list(dict.fromkeys(map(block, lines)))


def is_constraint(node: GraphNode) -> bool:
    """Whether a node is a rule about style, versions, tests or signatures."""
    return node.type in ("fact", "pattern", "snippet") and bool(words_of(node) & CONSTRAINT_TAGS)


def _problem(parts: Parts) -> Iterator[str]:
    yield one_line(parts.query)
    if parts.task.text:
        yield from _lines(parts.task.text)
    if parts.task_node is not None:
        yield _sentence(parts.task_node)
    tags = ", ".join(one_line(tag) for tag in parts.task.tags)
    yield f"Task: {one_line(parts.task.id)}" + (f" ({tags})" if tags else "")


def _identity(parts: Parts) -> Iterator[str]:
    if parts.persona is not None:
        yield _sentence(parts.persona)
    tools = [one.node for one in parts.selected if one.node.type == "tool"]
    if parts.tools:
        yield "Tools: " + ", ".join(one_line(name) for name in parts.tools)
    for node in tools:
        yield f"- {_sentence(node)}"


def _episodic(parts: Parts) -> Iterator[str]:
    episodes = [one.node for one in parts.selected if one.node.type == "episode"]
    for node in sorted(episodes, key=lambda node: (_time_of(node), node.id), reverse=True):
        yield step(node)
    for saved in parts.contexts:
        for line in _lines(saved.frames.get("episodic"), headings=False):
            # What was built repeats steps, the last of them cut to its budget.
            if not (saved.is_built and line.endswith("…")):
                yield line if line.startswith("- ") else f"- {line}"


def step(node: GraphNode) -> str:
    """Return an episode as a line: when, what, and how it ended."""
    day = _time_of(node)[:10]
    payload = node.payload if isinstance(node.payload, dict) else {}
    outcome = one_line(flat(payload.get("outcome") or ""))
    text = f"{day} {one_line(node.label)}".strip()
    return f"- {text}: {outcome}" if outcome else f"- {text}"


def _time_of(node: GraphNode) -> str:
    payload = node.payload if isinstance(node.payload, dict) else {}
    return one_line(str(payload.get("at") or node.timestamp))


def _constraints(parts: Parts, nodes: Iterable[GraphNode]) -> Iterator[str]:
    for text in parts.task.constraints:
        yield f"- {one_line(text)}"
    for node in nodes:
        yield f"- {_sentence(node)}"


def _scratchpad(parts: Parts) -> Iterator[str]:
    given: list[Any] = [parts.task.scratchpad]
    if parts.task.scratchpad is None:
        # The agent's own words come first: what was built may have been cut to its budget.
        own_first = sorted(parts.contexts, key=lambda saved: saved.is_built)
        given = [saved.frames.get("scratchpad") for saved in own_first]
    for text in given:
        lines = list(_lines(text))
        if lines and tuple(lines) != HEADINGS[: len(lines)]:
            yield from lines
            return
    yield from HEADINGS


def _sentence(node: GraphNode) -> str:
    """Return the label of a node and what it says, in a line."""
    label = one_line(node.label)
    payload = node.payload
    if isinstance(payload, dict):
        said = next((payload[name] for name in _SENTENCES if payload.get(name)), payload)
        payload = said
    text = one_line(flat(payload)) if payload not in (None, "", {}, []) else ""
    return label if not text or text == label else f"{label}: {text}"


def _lines(value: object, *, headings: bool = True) -> Iterator[str]:
    """Return the lines of a text, each as it may be shown; a heading without its marks, or not."""
    if value is None:
        return
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    for line in text.splitlines():
        shown = one_line(line)
        if heading := _HEADING.match(shown):
            # The headings of a context are ours.
            shown = shown[heading.end() :] if headings else ""
        if shown:
            yield shown
