"""The fold: reads the lines of some logs in order and keeps their current state."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from commonplace.rules.feedback import Tally, rate, stated_rate, tally
from commonplace.rules.order import newest
from commonplace.rules.standing import Standing, Support, find_forgotten, is_gone, standings
from commonplace.rules.statements import Edge, edges, is_statement, subjects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from commonplace.records import Rate, Record
    from commonplace.rules.order import Stamp

T = TypeVar("T")


class FoldedLine(NamedTuple, Generic[T]):
    """What the fold keeps of a line: the fields for the rules, and a value of the caller."""

    stamp: Stamp
    kind: str
    value: T
    stated_rate: str
    outcome: str
    subjects: tuple[str, ...]
    edges: tuple[Edge, ...]

    def rate(self, feedback: Tally) -> Rate | None:
        """Return the success rate with *feedback*; `None` if the record was never tried."""
        return rate(self.stated_rate, feedback)


class Fold(Generic[T]):
    """The current state of some logs. Add the lines of each log in order; logs in any order.

    *T* is what is kept of each line: its bytes, or only a digest where a large home must fit.
    """

    def __init__(self) -> None:
        # Of each id the last line in every log that has one, ids in the order they first appeared.
        self._last: dict[str, list[FoldedLine[T]]] = {}
        self._forgets: dict[str, list[Stamp]] = {}
        self._graph: _Graph | None = None

    def add(self, stamp: Stamp, record: Record, value: T) -> None:
        """Add the next line of a log; it replaces an earlier line of that log with its id."""
        kind = record.kind
        outcome = record.fields.get("outcome") if kind == "feedback" else ""
        about = subjects(record)
        kept = FoldedLine(
            stamp,
            kind,
            value,
            stated_rate(record),
            outcome if isinstance(outcome, str) else "",
            about,
            tuple(edges(record)) if _may_have_edges(record) else (),
        )
        if kind == "forget" and about:
            self._forgets.setdefault(about[0], []).append(stamp)
        lines = self._last.setdefault(record.id, [])
        lines[:] = [line for line in lines if line.stamp.log != stamp.log]
        lines.append(kept)
        self._graph = None

    # --- What there is ----------------------------------------------------------------------------

    def __contains__(self, ident: str) -> bool:
        return ident in self._last

    def ids(self) -> Iterable[str]:
        """Return every id, hidden ones included, in the order of their first appearance."""
        return self._last.keys()

    def last_lines(self, ident: str) -> Sequence[FoldedLine[T]]:
        """Return the last line of *ident* in each log that has one."""
        return self._last.get(ident, ())

    def current(self, ident: str) -> FoldedLine[T]:
        """Return the current line of *ident*, which must be there."""
        lines = self._last[ident]
        if len(lines) == 1:
            return lines[0]
        stamp = newest(line.stamp for line in lines)
        return next(line for line in lines if line.stamp == stamp)

    def standings(self, ids: Collection[str] | None = None) -> dict[str, Standing]:
        return standings(self._last.keys() if ids is None else ids, self)

    def visible_ids(self, *, superseded: bool = False, statements: bool = False) -> Iterator[str]:
        """Yield the ids that are not hidden; feedback and links only with *statements*.

        Lines that forget a record are never among them.
        """
        for ident, standing in self.standings().items():
            kind = self.current(ident).kind
            if kind == "forget" or is_gone(standing) or (is_statement(kind) and not statements):
                continue
            if standing is Standing.SUPERSEDED and not superseded:
                continue
            yield ident

    def feedback(self, ident: str) -> dict[str, str]:
        """Return the feedback about a record that was not forgotten: feedback id → outcome."""
        ids = self._graph_now().feedback.get(ident, ())
        forgotten = find_forgotten(ids, self)
        return {one: self.current(one).outcome for one in ids if one not in forgotten}

    def tally(self, ident: str) -> Tally:
        """Return how often a use of the record ended in each outcome."""
        return tally(self.feedback(ident).values())

    def rate(self, ident: str) -> Rate | None:
        """Return the success rate with the feedback; `None` if the record was never tried."""
        return self.current(ident).rate(self.tally(ident))

    def dependents(self, ids: Iterable[str]) -> Iterator[str]:
        """Yield everything that rests directly on *ids*, statements included."""
        graph = self._graph_now()
        for ident in ids:
            yield from graph.dependents.get(ident, ())

    # --- Facts for the rules ----------------------------------------------------------------------

    def stamps(self, ids: Collection[str]) -> dict[str, Stamp]:
        return {ident: self.current(ident).stamp for ident in ids if ident in self._last}

    def forgets(self, ids: Collection[str]) -> dict[str, list[Stamp]]:
        if not self._forgets:
            return {}
        return {ident: self._forgets[ident] for ident in ids if ident in self._forgets}

    def supports(self, ids: Collection[str]) -> Iterator[Support]:
        graph = self._graph_now()
        for ident in ids:
            yield from graph.supports.get(ident, ())

    def superseders(self, ids: Collection[str]) -> Iterator[Support]:
        graph = self._graph_now()
        for ident in ids:
            yield from graph.superseders.get(ident, ())

    def edges(self) -> list[Edge]:
        """Return every edge that a current line states."""
        return [edge for ident in self._last for edge in self.current(ident).edges]

    def _graph_now(self) -> _Graph:
        if self._graph is None:
            self._graph = _Graph(self)
        return self._graph


def _may_have_edges(record: Record) -> bool:
    fields = record.fields
    return bool(
        fields.get("links") or fields.get("children") or record.kind == "link" or record.sources
    )


class _Graph:
    """The statements of the current lines, by the id that they are about."""

    def __init__(self, fold: Fold[T]) -> None:
        self.supports: dict[str, list[Support]] = {}
        self.superseders: dict[str, list[Support]] = {}
        self.feedback: dict[str, list[str]] = {}
        self.dependents: dict[str, list[str]] = {}
        for ident in fold.ids():
            kept = fold.current(ident)
            for subject in kept.subjects if kept.kind != "forget" else ():
                self.supports.setdefault(ident, []).append(Support(ident, subject, ident))
            if kept.kind == "feedback" and kept.subjects:
                self.feedback.setdefault(kept.subjects[0], []).append(ident)
            for edge in kept.edges:
                if edge.rel == "derived_from":
                    support = Support(edge.of, edge.to, edge.by)
                    self.supports.setdefault(edge.of, []).append(support)
                elif edge.rel == "supersedes":
                    support = Support(edge.to, edge.of, edge.by)
                    self.superseders.setdefault(edge.to, []).append(support)
        for supports in self.supports.values():
            for one in supports:
                self.dependents.setdefault(one.on, []).append(one.of)
