"""Nodes and saved contexts as text, for clients that show a model the text of a result alone.

All of it is foreign: a text of several lines is quoted, so that none of its lines begins one of
ours. The whole has a limit of tokens. Every node has its line; what they say fills the rest, the
best ones first.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from commonplace.compose import tokens
from commonplace.compose.lines import inside
from commonplace.foreign import flat, one_line, origin, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commonplace.graph.contexts import SavedContext
    from commonplace.graph.search import ScoredNode
    from commonplace.records.nodes import GraphNode

TEXT_TOKENS_MAX = 4000
# What one node or context may have, unless there is room for more.
NODE_TOKENS_MAX = 300
CONTEXT_TOKENS_MAX = 1500
ENTRIES_MAX = 50
HEAD_TOKENS_MAX = 50
LINKS_MAX = 8
_MARGIN = "  "


class _Entry(NamedTuple):
    head: str
    body: str


def text_of_nodes(
    found: Sequence[ScoredNode],
    rules: Sequence[GraphNode] = (),
    episodes: Sequence[GraphNode] = (),
    tokens_max: int = TEXT_TOKENS_MAX,
) -> str:
    """Return nodes with their links and children, the *rules* in force, the task's *episodes*."""
    entries = [
        _Entry(
            f"{one.score:.3f} [{one.node.id}] {_kind(one.node)}: {one.node.label}",
            "\n".join(_node_lines(one.node)),
        )
        for one in found[:ENTRIES_MAX]
    ]
    others = [("in force", one) for one in rules] + [("of the task", one) for one in episodes]
    entries += [
        _Entry(f"{why} [{one.id}] {_kind(one)}: {one.label}", "\n".join(_node_lines(one)))
        for why, one in others[: ENTRIES_MAX - len(entries)]
    ]
    return _filled(entries, len(found) + len(others), NODE_TOKENS_MAX, tokens_max)


def text_of_contexts(saved: Sequence[SavedContext], tokens_max: int = TEXT_TOKENS_MAX) -> str:
    """Return saved contexts with their frames, in the order in which they are given."""
    entries = [
        _Entry(
            f"{one.timestamp} [{one.id}] {one.task_id}, version {one.version}, "
            + ("built" if one.is_built else "saved"),
            "\n".join(
                line
                for frame in one.frames
                for line in _field(str(frame.get("kind")), _as_text(frame.get("data", "")))
            ),
        )
        for one in saved[:ENTRIES_MAX]
    ]
    return _filled(entries, len(saved), CONTEXT_TOKENS_MAX, tokens_max)


def _filled(entries: Sequence[_Entry], count: int, entry_tokens_max: int, tokens_max: int) -> str:
    """Return the entries of *count*, each cut so that all are within *tokens_max*."""
    if not entries:
        return ""
    heads = [tokens.cut(one_line(one.head), HEAD_TOKENS_MAX) for one in entries]
    ending = f"and {count - len(entries)} more" if count > len(entries) else ""
    # A line end is at most a token.
    room = tokens_max - sum(tokens.count(line) + 1 for line in [*heads, ending])
    share = max(entry_tokens_max, room // len(entries))
    lines: list[str] = []
    for head, entry in zip(heads, entries, strict=True):
        body = tokens.cut(entry.body, max(0, min(share, room - 1)))
        room -= tokens.count(body) + 1 if body else 0
        lines += [head, body]
    return "\n".join(filter(None, [*lines, ending]))


def _node_lines(node: GraphNode) -> Iterator[str]:
    payload = node.payload if isinstance(node.payload, dict) else {"": node.payload}
    label = one_line(node.label)
    for name, value in payload.items():
        text = value if isinstance(value, str) else flat(value)
        if value not in (None, "", [], {}) and one_line(text) != label:
            yield from _field(str(name), text)
    if node.links:
        told = [f"{link.rel} {link.to} ({link.w:g})" for link in node.links]
        yield from _field("links", _few(told))
    if node.children:
        yield from _field("children", _few([f"{name} {to}" for name, to in node.children.items()]))


def _few(told: Sequence[str]) -> str:
    more = [f"and {len(told) - LINKS_MAX} more"] if len(told) > LINKS_MAX else []
    return ", ".join([*told[:LINKS_MAX], *more])


def _field(name: str, text: str) -> Iterator[str]:
    """Yield a field in a line, or its name and the quoted lines of its text."""
    begin = f"{one_line(name)}:" if name else ""
    if "\n" not in text.strip():
        yield inside(_MARGIN + one_line(f"{begin} {text}"))
        return
    if begin:
        yield inside(_MARGIN + begin)
    yield from (_MARGIN + line for line in quote(text).split("\n"))


def _as_text(data: object) -> str:
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)


def _kind(node: GraphNode) -> str:
    """Return the type of a node and where it came from, before its label, which may be cut."""
    came_from = origin(node.meta, short=True)
    return f"{node.type} ({came_from})" if came_from else node.type
