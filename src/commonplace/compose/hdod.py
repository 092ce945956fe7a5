"""Nodes as a dictionary of dictionaries (HDoD), within a limit of tokens.

The keys are the ids of nodes. A node is inside the one above it: the node whose path its own path
continues, or that names it as a child. Short fields of the payload stay as they are; long texts are
under `details`, and become bullets where there is not enough room: its best passages, word for
word. Pure: the server and the client library use the same functions.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.compose import tokens
from commonplace.foreign import flat, one_line, origin, render, render_value
from commonplace.index.passages import split_block, split_blocks
from commonplace.index.terms import query_terms, term_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from commonplace.records.nodes import GraphNode

    Tree = dict[str, Any]

# A longer text is no short field: it goes to `details`.
ATOMIC_CHARS_MAX = 240
# A list with more items, or an object with more fields, goes there too.
ITEMS_MAX = 8
# A label that says more than a name is cut.
LABEL_TOKENS_MAX = 40
BULLETS_MAX = 6
BULLET_CHARS_MAX = 200
# In fewer tokens, `details` would say too little to be worth their key.
DETAILS_TOKENS_MIN = 12
# The share of the room of a node that its code may have.
CODE_SHARE = 0.7
# A line end within a paragraph: the next line goes on, it is no item, heading, quotation or table.
_WRAP = re.compile(r"(?<=\S)\n(?=[^\s\-*•#>|`])(?!\d+[.)]\s)")
# What the first node inside another one costs besides itself: `"children":{},`.
CHILDREN_TOKENS = 4
# The fields that we write ourselves; a payload with the same names says it in `details`.
OWN_FIELDS = ("type", "label", "from", "origin", "details", "children")


class Shown(NamedTuple):
    """A node that may be shown."""

    node: GraphNode
    score: float = 0.0
    # The repository that it comes from, if that is not the one in use.
    elsewhere: str = ""


class Materialised(NamedTuple):
    """A dictionary of nodes, and the ids of those that fitted, the best first."""

    tree: Tree
    ids: list[str]


def materialise(nodes: Sequence[Shown], tokens_max: int, query: str = "") -> Materialised:
    """Return *nodes*, the best first, as a dictionary whose JSON has at most *tokens_max*.

    Every node first gets its short fields, as long as they fit. Then the long texts fill what is
    left, those of the best nodes first, whole or as bullets that say most about *query*.
    """
    wanted = query_terms(query)
    left = tokens_max - cost({})
    entries: dict[str, Tree] = {}
    details: dict[str, str] = {}
    codes: dict[str, str] = {}
    ids: list[str] = []
    for shown in nodes:
        ident = one_line(shown.node.id)  # The key: an id may contain what may not be shown.
        if ident in entries:
            continue
        entry, long_text, long_code = entry_of(shown)
        needed = _entry_cost(ident, entry)
        if needed > left:
            entry = {name: entry[name] for name in OWN_FIELDS if name in entry}
            needed = _entry_cost(ident, entry)
            if needed > left:
                continue  # A smaller one may still fit.
        entries[ident], details[ident], codes[ident] = entry, long_text, long_code
        ids.append(shown.node.id)
        left -= needed
    waiting = [ident for ident, text in details.items() if text or codes[ident]]
    for number, ident in enumerate(waiting, 1):
        # One long text must not take the room of all others.
        room = left if number == len(waiting) else left // 2
        used = _add_code(entries[ident], codes[ident], room)
        left -= used + _add_details(entries[ident], details[ident], wanted, room - used)
    return Materialised(nest(entries, [shown.node for shown in nodes]), ids)


def entry_of(shown: Shown) -> tuple[Tree, str, str]:
    """Return the short fields of a node, its long text, and its code if that is long."""
    node = shown.node
    label = tokens.cut(one_line(node.label), LABEL_TOKENS_MAX)
    entry: Tree = {"type": node.type, "label": label}
    if shown.elsewhere:
        entry["from"] = one_line(shown.elsewhere)
    if source := origin(node.meta):
        entry["origin"] = source
    long_texts: list[str] = []
    code = ""
    payload = node.payload if isinstance(node.payload, dict) else {"text": node.payload}
    if not label or label.endswith(" …"):
        long_texts.append(render(node.label))
    for name, value in payload.items():
        key = one_line(str(name))
        if value is None or value in ("", [], {}) or value == node.label:
            continue
        if key not in OWN_FIELDS and is_atomic(value):
            entry[key] = render_value(value)
        elif key == "code" and isinstance(value, str):
            code = render(value)
        else:
            is_text = key in ("details", "text")
            text = render(value) if isinstance(value, str) else one_line(flat(value))
            long_texts.append(text if is_text else f"{key}: {text}")
    return entry, "\n\n".join(long_texts), code


def is_atomic(value: object) -> bool:
    """Whether *value* is a short field: a number, a short text, or a few of those."""
    if isinstance(value, str):
        return len(value) <= ATOMIC_CHARS_MAX
    if isinstance(value, list | dict):
        items = list(value.values()) if isinstance(value, dict) else value
        return (
            len(items) <= ITEMS_MAX
            and not any(isinstance(item, list | dict) for item in items)
            and len(flat(value)) <= ATOMIC_CHARS_MAX
        )
    return True


def _add_code(entry: Tree, code: str, tokens_max: int) -> int:
    """Put *code* into *entry* if it fits whole; return what that costs. Parts of it say nothing."""
    needed = cost(code) + tokens.count('"code":,')
    # The text about it comes first, so it has its share.
    if not code or needed > tokens_max * CODE_SHARE:
        return 0
    entry["code"] = code
    return needed


def _add_details(entry: Tree, text: str, wanted: Mapping[str, float], tokens_max: int) -> int:
    """Put *text* into *entry*, whole or as bullets; return what that costs."""
    spare = tokens_max - tokens.count('"details":,')
    if spare < DETAILS_TOKENS_MIN:
        return 0
    if cost(text) > spare:
        text = bullets(text, wanted, spare)
    if not text:
        return 0
    entry["details"] = text
    return cost(text) + tokens.count('"details":,')


def bullets(text: str, wanted: Mapping[str, float], tokens_max: int) -> str:
    """Return the passages of *text* that say most about *wanted*, as bullets in their order."""
    left = tokens_max - 1
    chosen: list[tuple[int, str]] = []
    for position, line in _passages(text, wanted):
        bullet = f"- {line}"
        if cost(bullet) > left:
            bullet = "" if chosen else cut(bullet, left)
        if not bullet:
            continue
        chosen.append((position, bullet))
        left -= cost(bullet)
        if len(chosen) == BULLETS_MAX or left < DETAILS_TOKENS_MIN:
            break
    return "\n".join(bullet for _position, bullet in sorted(chosen))


def _passages(text: str, wanted: Mapping[str, float]) -> list[tuple[int, str]]:
    """Return the passages of *text* with their positions, those with the most *wanted* first."""
    # A sentence goes on in the next line.
    whole = _WRAP.sub(" ", text)
    found = [part for block in split_blocks(whole) for part in split_block(block, BULLET_CHARS_MAX)]
    lines = dict.fromkeys(one_line(part.text).lstrip("-*• ") for part in found)
    ranked: list[tuple[float, int, str]] = []
    for position, line in enumerate(filter(None, lines)):
        terms = term_set(line)
        about = sum(weight for term, weight in wanted.items() if term in terms)
        ranked.append((-about, position, line))
    return [(position, line) for _about, position, line in sorted(ranked)]


def nest(entries: Mapping[str, Tree], nodes: Iterable[GraphNode]) -> Tree:
    """Return *entries* with each inside the one above it, under `children`.

    That is the one with the longest path that its own path continues; else the one that names it
    as a child.
    """
    named: dict[str, str] = {}
    for node in nodes:
        for child in node.children.values():
            named.setdefault(one_line(child), one_line(node.id))
    parents = {ident: parent for ident in entries if (parent := _by_path(ident, entries))}
    for ident in entries:
        parent = named.get(ident, "")
        if parent in entries and ident not in parents and not _is_above(ident, parent, parents):
            parents[ident] = parent
    tree: Tree = {}
    for ident, entry in entries.items():
        parent = parents.get(ident, "")
        place = entries[parent].setdefault("children", {}) if parent else tree
        place[ident] = entry
    return tree


def _by_path(ident: str, entries: Mapping[str, Tree]) -> str:
    """Return the nearest id in *entries* that the path *ident* continues."""
    while "." in ident:
        ident = ident.rpartition(".")[0]
        if ident in entries:
            return ident
    return ""


def _is_above(ident: str, other: str, parents: Mapping[str, str]) -> bool:
    """Whether *other* is *ident*, or inside it: nodes may name each other as children."""
    while other:
        if other == ident:
            return True
        other = parents.get(other, "")
    return False


def as_json(value: object) -> str:
    """Return *value* as JSON in the fewest bytes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def cost(value: object) -> int:
    """Return how many tokens the JSON of *value* has."""
    return tokens.count(as_json(value))


def cut(text: str, tokens_max: int) -> str:
    """Return *text*, cut so that its JSON has at most *tokens_max* tokens; "" if nothing fits."""
    room = tokens_max
    while room > 0:
        short = tokens.cut(text, room)
        needed = cost(short)
        if not short or needed <= tokens_max:
            return short
        # Quotation marks and line ends are longer in JSON.
        room = min(room - 1, room * tokens_max // needed)
    return ""


def _entry_cost(ident: str, entry: Tree) -> int:
    return tokens.count(f"{as_json(ident)}:{as_json(entry)},\n") + CHILDREN_TOKENS
