"""LangGraph's store in the log: every item is a record, every put a line, every delete a `forget`.

An item is a `fact`. Its id is made from namespace and key, and its `payload` is the part of the
value that is searched. Its `tags` are the namespace and those above it, so that a search in a
namespace reads only its items. All items are in one log of the nearest home, which any number of
processes may share.
"""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import UTC, datetime
from hashlib import blake2b
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, Any

from commonplace.errors import ExtraMissing, RecordInvalid
from commonplace.redaction.text import redact_text

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        PutOp,
        SearchItem,
        SearchOp,
        get_text_at_path,
        validate_op_namespace,
    )
except ImportError as error:
    raise ExtraMissing("langgraph", "langgraph-checkpoint>=4") from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from langgraph.store.base import Op, Result

    from commonplace.memory import Memory
    from commonplace.records import Record

KIND = "fact"
TYPE = "item"
# The number of items of a namespace that a search ranks; the others follow without a score.
RANKED_MAX = 1000

Namespace = tuple[str, ...]


def now_utc() -> datetime:
    return datetime.now(UTC)


class CommonplaceStore(BaseStore):
    """The items in the log *repo* of the memory's nearest home. The caller closes the memory."""

    def __init__(
        self, memory: Memory, *, repo: str = "langgraph", clock: Callable[[], datetime] = now_utc
    ) -> None:
        self._memory = memory
        self._repo = repo
        self._clock = clock
        # A put reads when the item was created, and then writes it.
        self._lock = threading.RLock()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do *ops*. Reads come before all writes; of several puts of one item the last applies."""
        all_ops = list(ops)
        for op in all_ops:
            validate_op_namespace(op)
        with self._lock:
            results: list[Result] = [self._read(op) for op in all_ops]
            self._write({(op.namespace, op.key): op for op in all_ops if isinstance(op, PutOp)})
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Call `batch` in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    # --- Reading ----------------------------------------------------------------------------------

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            found = self._records({_id(op.namespace, op.key)})
            return _item(found[0]) if found else None
        if isinstance(op, SearchOp):
            return list(self._search(op))
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        if not isinstance(op, PutOp):
            raise ValueError(f"there is no operation {type(op).__name__}")
        return None

    def _search(self, op: SearchOp) -> list[SearchItem]:
        found = [
            item
            for item in self._below(op.namespace_prefix)
            if _matches(item.value, op.filter or {})
        ]
        scores = self._scores(op) if op.query and found else {}
        if scores:
            # The sort is stable: items without a score follow in the order of their creation.
            found.sort(key=lambda item: -scores.get((item.namespace, item.key), -1.0))
        return [
            SearchItem(
                namespace=item.namespace,
                key=item.key,
                value=item.value,
                created_at=item.created_at,
                updated_at=item.updated_at,
                score=scores.get((item.namespace, item.key)),
            )
            for item in found[op.offset : op.offset + op.limit]
        ]

    def _scores(self, op: SearchOp) -> dict[tuple[Namespace, str], float]:
        """Return the scores of the items below the prefix that recall ranks for the question."""
        tags = [_tag(op.namespace_prefix)] if op.namespace_prefix else None
        query = op.query or ""
        # With a filter, rank more items: the filter removes some of them afterwards.
        limit = RANKED_MAX if op.filter else max(1, min(op.offset + op.limit, RANKED_MAX))
        hits = (
            self._memory.rank(query, limit=limit, tags=tags, **self._narrowing())
            if query.strip()
            else []
        )
        nearest = 0
        items = (
            (_item(hit.record), hit.score)
            for hit in hits
            if hit.address[0] == nearest and _is_searched(hit.record)
        )
        return {(item.namespace, item.key): score for item, score in items}

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        found = {
            namespace[: op.max_depth]
            for namespace in {item.namespace for item in self._below(())}
            if all(_fits(condition, namespace) for condition in conditions)
        }
        return sorted(found)[op.offset : op.offset + op.limit]

    def _below(self, prefix: Namespace) -> list[Item]:
        """Return the items whose namespace begins with *prefix*, in the order of their creation."""
        found = map(_item, self._records(tags=[_tag(prefix)] if prefix else None))
        # Two namespaces that differ in letter case or slashes have the same tag.
        below = [item for item in found if item.namespace[: len(prefix)] == prefix]
        return sorted(below, key=lambda item: item.created_at)

    def _records(self, ids: set[str] | None = None, tags: list[str] | None = None) -> list[Record]:
        return [
            record
            for record in self._memory.select(ids, tags=tags, **self._narrowing())
            if _is_item(record)
        ]

    def _narrowing(self) -> dict[str, Any]:
        return {"repo": self._repo, "kinds": [KIND], "archived": True}

    # --- Writing ----------------------------------------------------------------------------------

    def _write(self, puts: Mapping[tuple[Namespace, str], PutOp]) -> None:
        if not puts:
            return
        existing = {record.id: record for record in self._records({_id(*name) for name in puts})}
        lines: list[dict[str, Any]] = []
        for (namespace, key), op in puts.items():
            ident = _id(namespace, key)
            if op.value is not None:
                lines.append(self._line(op, existing.get(ident)))
            elif ident in existing:
                lines.append(
                    {
                        "kind": "forget",
                        "of": ident,
                        "repo": self._repo,
                        "reason": "deleted from the store",
                    }
                )
        self._memory.append(lines)

    def _line(self, op: PutOp, before: Record | None) -> dict[str, Any]:
        if op.ttl is not None:
            raise NotImplementedError(
                "a time to live is not supported: delete the item, or forget it later"
            )
        for label in (*op.namespace, op.key):
            if redact_text(label)[1]:
                raise RecordInvalid(
                    "key", "or its namespace looks like a secret", "choose another name"
                )
        now = self._clock().isoformat()
        meta: dict[str, Any] = {
            "source": "langgraph",
            "namespace": list(op.namespace),
            "item": op.key,
            "created_at": before.meta["created_at"] if before else now,
        }
        value = dict(op.value or {})
        searched = _searched_part(value, op.index)
        if searched != value:
            meta["value"] = value
        return {
            "id": _id(op.namespace, op.key),
            "kind": KIND,
            "type": TYPE,
            "label": op.key if op.key.strip() else "item",
            "payload": searched,
            "tags": [_tag(op.namespace[:depth]) for depth in range(1, len(op.namespace) + 1)],
            "timestamp": now,
            "repo": self._repo,
            "meta": meta,
        }


# --- Items and records ----------------------------------------------------------------------------


def _id(namespace: Namespace, key: str) -> str:
    name = json.dumps([list(namespace), key]).encode()
    return f"item-{blake2b(name, digest_size=16).hexdigest()}"


def _tag(namespace: Namespace) -> str:
    return "/".join(namespace).lower()


def _item(record: Record) -> Item:
    meta = record.meta
    value = meta["value"] if "value" in meta else record.fields.get("payload") or {}
    return Item(
        value=value,
        key=meta["item"],
        namespace=tuple(meta["namespace"]),
        created_at=datetime.fromisoformat(meta["created_at"]),
        updated_at=datetime.fromisoformat(record.timestamp),
    )


def _searched_part(value: dict[str, Any], index: list[str] | bool | None) -> dict[str, Any]:
    """Return the part of *value* to search: all of it, the texts at some paths, or nothing."""
    if index is None or index is True:
        return value
    paths = index or []
    return {path: texts for path in paths if (texts := get_text_at_path(value, path))}


def _is_item(record: Record) -> bool:
    """Whether the store wrote the record; other programs may write facts into its log."""
    return (
        record.fields.get("type") == TYPE
        and {"namespace", "item", "created_at"} <= record.meta.keys()
    )


def _is_searched(record: Record) -> bool:
    return _is_item(record) and bool(record.fields.get("payload"))


# --- Conditions -----------------------------------------------------------------------------------


def _fits(condition: MatchCondition, namespace: Namespace) -> bool:
    """Whether the namespace begins or ends with the path of *condition*; `*` is any label."""
    path = condition.path
    if len(namespace) < len(path):
        return False
    if condition.match_type not in {"prefix", "suffix"}:
        raise ValueError(
            f"a namespace is matched by prefix or suffix, not by {condition.match_type}"
        )
    part = (
        namespace[: len(path)]
        if condition.match_type == "prefix"
        else namespace[len(namespace) - len(path) :]
    )
    return all(pattern in ("*", label) for pattern, label in zip(path, part, strict=True))


def _matches(value: object, condition: object) -> bool:
    """Whether *value* fulfils a filter: each key of an object, each list item, or an operator."""
    if isinstance(condition, dict):
        if any(name.startswith("$") for name in condition):
            return all(_compare(value, name, bound) for name, bound in condition.items())
        return isinstance(value, dict) and all(
            _matches(value.get(name), inner) for name, inner in condition.items()
        )
    if isinstance(condition, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(condition)
            and all(_matches(item, inner) for item, inner in zip(value, condition, strict=True))
        )
    return value == condition


def _compare(value: Any, operator: str, bound: Any) -> bool:  # noqa: ANN401 (any JSON value)
    if operator in {"$eq", "$ne"}:
        return bool(value == bound) == (operator == "$eq")
    if operator not in _ORDERS:
        raise ValueError(
            f"there is no operator `{operator}`; choose among $eq, $ne, {', '.join(_ORDERS)}"
        )
    try:
        return _ORDERS[operator](float(value), float(bound))
    except (TypeError, ValueError):
        return False  # Only numbers can be compared with these operators.


_ORDERS: dict[str, Callable[[float, float], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
