"""What memory servers answer, read as nodes and contexts, whichever server it is.

Servers name the same things differently, and leave fields out. A field that is missing or has
another shape gets its default. What has no id is no node.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.compose.frames import SAVE_KIND
from commonplace.records.kinds import Link
from commonplace.records.nodes import NODE_TYPES, GraphNode
from commonplace.redaction.fields import redact
from commonplace.redaction.suspicion import may_hold_secret

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Where the list of results is, in this order.
_LISTS = ("nodes", "contexts", "results", "hits", "items", "memories", "records", "result", "data")
# What says how like the question a node is, the surest first. Not every score is from 0 to 1.
_LIKENESSES = ("likeness", "similarity", "score")
_TIMES = ("timestamp", "saved_at", "created_at", "updated_at", "at", "ts")
WEIGHT = 0.5
RULES_MAX = 12
# An id is shown, sent and kept: a longer one is no id.
ID_CHARS_MAX = 512
# No count, weight or part of a vector is larger; NaN and infinity are not smaller.
NUMBER_MAX = 1e15


class Found(NamedTuple):
    """A node, and what else the server said about it."""

    node: GraphNode
    # The resonance that the server gives it, from 0 to 1, and what is left of it after a tick; 0 if
    # the server does not say.
    resonance: float = 0.0
    decay: float = 0.0
    uses: int = 0
    last_used_at: str = ""
    # The model and the vector of its text.
    model: str = ""
    vector: tuple[float, ...] = ()
    # How many links it is away from what matched the question.
    hop: int = 0
    # How like the question it is, from 0 to 1; `None` if the server does not say.
    likeness: float | None = None
    # The item of the answer.
    raw: Any = None


class Saved(NamedTuple):
    """A context that was saved for a task."""

    id: str
    task_id: str
    timestamp: str
    # The data of each frame, by its kind.
    frames: Mapping[str, Any]
    # Whether it was built from the memory; other contexts are the agent's own words.
    is_built: bool = False
    # The ids of the nodes in it, as far as the server says them.
    nodes: tuple[str, ...] = ()
    # The item of the answer.
    raw: Any = None

    def frame(self, kind: str) -> Any:  # noqa: ANN401 (any JSON)
        """Return the content of a frame; "" if there is none."""
        return self.frames.get(kind) or ""


def items(answer: object) -> list[Any]:
    """Return the list of results in an answer."""
    if isinstance(answer, list):
        return answer
    if isinstance(answer, dict):
        for name in _LISTS:
            inner = answer.get(name)
            if isinstance(inner, list):
                return inner
            if isinstance(inner, dict) and inner:
                return items(inner)
    return []


def nodes(answer: object) -> list[Found]:
    """Return the nodes of an answer to `search_memory`, in its order; the first of each id."""
    found: dict[str, Found] = {}
    for item in items(answer):
        one = node(item)
        if one is not None:
            found.setdefault(one.node.id, one)
    return list(found.values())


def rules(answer: object) -> list[GraphNode]:
    """Return the rules in force of an answer to `search_memory`, as far as the server says any."""
    given = answer.get("constraints") if isinstance(answer, dict) else None
    return [found.node for found in nodes(_list(given))][:RULES_MAX]


def episodes(answer: object) -> list[Found]:
    """Return the task's episodes of an answer to `search_memory`, as far as the server says any."""
    return nodes(_list(answer.get("episodes"))) if isinstance(answer, dict) else []


def node(item: object) -> Found | None:
    """Return the node of an *item*: a node itself, or something with one in it."""
    if not isinstance(item, dict):
        return None
    item = without_secrets(item)
    fields = next(
        (item[name] for name in ("node", "record") if isinstance(item.get(name), dict)), item
    )
    ident = fields.get("id")
    if not isinstance(ident, str) or not 0 < len(ident) <= ID_CHARS_MAX:
        return None
    kind = _text(fields.get("kind"))
    named = _text(fields.get("type")) or kind
    resonance, stats = _dict(fields.get("resonance")), _dict(fields.get("stats"))
    embeddings = _dict(fields.get("embeddings"))
    made = GraphNode(
        id=ident,
        type=named if named in NODE_TYPES else "concept",
        label=_text(fields.get("label")) or ident,
        payload=fields.get("payload", fields.get("text", {})),
        links=tuple(_links(fields.get("links"))),
        children={
            str(name): to
            for name, to in _dict(fields.get("children")).items()
            if isinstance(to, str) and to
        },
        tags=tuple(tag for tag in _list(fields.get("tags")) if isinstance(tag, str)),
        meta=_dict(fields.get("meta")),
        kind=kind,
        repo=_text(fields.get("repo")),
        timestamp=_time(fields),
    )
    return Found(
        made,
        _share(resonance.get("value")),
        _share(resonance.get("decay")),
        int(_number(stats.get("uses"))),
        _text(stats.get("last_used_at")),
        _text(embeddings.get("model")),
        _vector(embeddings.get("vector")),
        int(_number(item.get("hop", fields.get("hop")))),
        _likeness({**fields, **item}),
        item,
    )


def without_secrets(fields: dict[str, Any]) -> dict[str, Any]:
    """Return *fields* without secrets: they are kept in files, shown to models and sent."""
    if not may_hold_secret(json.dumps(fields, ensure_ascii=False, default=str)):
        return fields
    clean, _removed = redact(fields)
    return clean


def contexts(answer: object) -> list[Saved]:
    """Return the contexts of an answer to `recall_context`, in its order."""
    return [
        Saved(
            _text(item.get("id")),
            _text(item.get("task_id")) or _text(item.get("task")),
            _time(item),
            frames := _frames(_saved_frames(item)),
            # Our server says it itself; of another, our own block does.
            bool((about := _dict(frames.get(SAVE_KIND))).get("built") or item.get("built")),
            _texts(item.get("nodes")) or _texts(about.get("nodes")),
            item,
        )
        for item in items(answer)
        if is_context(item)
    ]


def is_context(item: object) -> bool:
    """Whether an item of an answer is a saved context; others are nodes."""
    return isinstance(item, dict) and isinstance(_saved_frames(item), list | dict)


def _saved_frames(item: Mapping[str, Any]) -> object:
    found = item.get("frames", item.get("blocks"))
    return _dict(item.get("payload")).get("frames") if found is None else found


def _frames(value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return {str(name): data for name, data in value.items()}
    return {
        _text(block.get("kind")): block.get("data")
        for block in _list(value)
        if isinstance(block, dict) and block.get("kind")
    }


def ids_in(tree: object) -> Iterator[str]:
    """Return the ids in a knowledge frame: the keys of its dictionaries that are nodes."""
    if isinstance(tree, str):
        try:
            tree = json.loads(tree)
        except ValueError:
            return
    if not isinstance(tree, dict):
        return
    for name, entry in tree.items():
        if isinstance(entry, dict):
            if "type" in entry or "label" in entry:
                yield name
            yield from ids_in(entry.get("children", {}))


def _links(value: object) -> Iterator[Link]:
    for link in _list(value):
        fields = {"to": link} if isinstance(link, str) else _dict(link)
        to = fields.get("to")
        if isinstance(to, str) and 0 < len(to) <= ID_CHARS_MAX:
            weight = fields.get("w", fields.get("weight"))
            yield Link(
                to,
                _text(fields.get("rel")) or "related",
                WEIGHT if weight is None else _share(weight),
            )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _dict(value: object) -> dict[str, Any]:
    return {str(name): item for name, item in value.items()} if isinstance(value, dict) else {}


def _texts(value: object) -> tuple[str, ...]:
    return tuple(text for text in _list(value) if isinstance(text, str))


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _number(value: object) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < NUMBER_MAX else 0.0  # type: ignore[arg-type]


def _likeness(fields: Mapping[str, Any]) -> float | None:
    given = (fields.get(name) for name in _LIKENESSES)
    found = next((value for value in given if isinstance(value, int | float)), None)
    return float(found) if found is not None and 0 <= found <= 1 else None


def _share(value: object) -> float:
    return min(1.0, max(0.0, _number(value)))


def _vector(value: object) -> tuple[float, ...]:
    return tuple(_number(item) for item in _list(value))


def _time(fields: Mapping[str, Any]) -> str:
    return next((_text(fields[name]) for name in _TIMES if _text(fields.get(name))), "")
