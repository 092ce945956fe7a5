"""Statements: what a line says about other records, such as feedback and links."""

from __future__ import annotations

from typing import NamedTuple

from commonplace.records import Node
from commonplace.vocabulary import INVERSES, SYMMETRIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from commonplace.records import Record

STATEMENT_KINDS = frozenset(["feedback", "link", "forget"])
# The relations that decide whether a record is hidden.
DECIDING = ("derived_from", "supersedes")
# The relation of a node to each of its `children`.
HAS_CHILD = "has_child"


class Edge(NamedTuple):
    """A typed, weighted edge from *of* to *to*, and the id of the record that states it."""

    of: str
    rel: str
    to: str
    w: float
    by: str


def is_statement(kind: str) -> bool:
    """Whether records of this kind are only about other records. Those are not counted."""
    return kind in STATEMENT_KINDS


def edges(record: Record) -> list[Edge]:
    """Return every edge that *record* states, each under its one name, once."""
    ident = record.id
    found = [_edge(ident, link.rel, link.to, link.w, ident) for link in record.edges]
    found += [Edge(ident, "derived_from", source, 1.0, ident) for source in record.sources]
    if isinstance(record, Node):
        found += [
            Edge(ident, HAS_CHILD, child, 1.0, ident)
            for child in record.children.values()
            if isinstance(child, str)
        ]
    if record.kind == "link":
        of, to = record.fields.get("of"), record.fields.get("to")
        if isinstance(of, str) and isinstance(to, str):
            weight = record.fields.get("w")
            w = 1.0 if weight is None else float(min(max(weight, 0.0), 1.0))
            found.append(_edge(of, str(record.fields.get("rel")), to, w, ident))
    unique: dict[tuple[str, str, str], Edge] = {}
    for edge in found:
        unique.setdefault(edge[:3], edge)
    return list(unique.values())


def _edge(of: str, rel: str, to: str, w: float, by: str) -> Edge:
    return Edge(*one_side(of, rel, to), w, by)


def one_side(of: str, rel: str, to: str) -> tuple[str, str, str]:
    """Return the one form of a link that has two: `B superseded_by A` is `A supersedes B`.

    The ends of a symmetric relation are in the order of their ids.
    """
    if rel in INVERSES:
        return to, INVERSES[rel], of
    return (min(of, to), rel, max(of, to)) if rel in SYMMETRIC else (of, rel, to)


def subjects(record: Record) -> tuple[str, ...]:
    """Return the ids of the records that a statement is about; of other records, none."""
    if record.kind not in STATEMENT_KINDS:
        return ()
    named = (record.fields.get("of"), record.fields.get("to") if record.kind == "link" else None)
    return tuple(ident for ident in named if isinstance(ident, str))
