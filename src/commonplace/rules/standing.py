"""The standing of records: current, or hidden and why."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, Protocol

from commonplace.rules.order import Stamp, is_after

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence


class Standing(IntEnum):
    """The standing of a line. The values are stored in the index."""

    REPLACED = 0
    CURRENT = 1
    FORGOTTEN = 2
    DERIVED = 3  # It rests on something forgotten.
    SUPERSEDED = 4


def is_gone(standing: Standing) -> bool:
    """Whether the record must not be shown at all. A superseded one may be, on request."""
    return standing in (Standing.FORGOTTEN, Standing.DERIVED)


def is_private(kind: str, owner: str, reader: str) -> bool:
    """Whether a record is a note of another agent than *reader*."""
    return kind == "note" and owner != reader


class Support(NamedTuple):
    """The record *of* rests on the record *on*, as the record *by* states."""

    of: str
    on: str
    by: str


class Facts(Protocol):
    """The facts that decide about records. The log's fold and the index implement this."""

    def stamps(self, ids: Collection[str]) -> Mapping[str, Stamp]:
        """Return the stamp of the current line of each of *ids* that has one."""

    def forgets(self, ids: Collection[str]) -> Mapping[str, Sequence[Stamp]]:
        """Return the stamps of all lines that forget each of *ids*."""

    def supports(self, ids: Collection[str]) -> Iterable[Support]:
        """Return what each of *ids* rests on: its sources, or the subject of a statement."""

    def superseders(self, ids: Collection[str]) -> Iterable[Support]:
        """Return what supersedes each of *ids*: `Support(superseded, superseder, by)`."""


def standings(ids: Collection[str], facts: Facts) -> dict[str, Standing]:
    """Return the standing of each of *ids*. Linear in what they rest on, cycles included."""
    return Standings(facts).of(ids)


class Standings:
    """The standings by *facts* that do not change; what was decided once is not read again.

    So the questions of one reader about some records after others are linear together.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        # The records whose supports were read, with everything that those rest on.
        self._reached: set[str] = set()
        # The records of which it is known whether they are forgotten, and those that are.
        self._checked: set[str] = set()
        self._forgotten: set[str] = set()
        # Everything forgotten, and everything reached that rests on it.
        self._gone: set[str] = set()

    def of(self, ids: Collection[str]) -> dict[str, Standing]:
        """Return the standing of each of *ids*."""
        superseding = self._superseding(ids)
        supports = self._reach({*ids, *(one.on for one in superseding)})
        self._check({*ids, *(name for one in (*supports, *superseding) for name in one)})
        self._spread(supports)
        superseders: dict[str, set[str]] = {}
        for one in superseding:
            # A record that is gone supersedes nothing any more.
            if one.on not in self._gone and one.by not in self._forgotten:
                superseders.setdefault(one.of, set()).add(one.on)
        superseded = {ident for ident in superseders if _is_superseded(ident, superseders)}
        return {ident: self._standing(ident, superseded) for ident in ids}

    def _superseding(self, ids: Collection[str]) -> list[Support]:
        """What supersedes *ids*, and what supersedes that."""
        found: list[Support] = []

        def superseders(frontier: set[str]) -> Iterable[str]:
            level = list(self._facts.superseders(frontier))
            found.extend(level)
            return (one.on for one in level)

        spread({*ids}, superseders, set())
        return found

    def _standing(self, ident: str, superseded: set[str]) -> Standing:
        if ident in self._forgotten:
            return Standing.FORGOTTEN
        if ident in self._gone:
            return Standing.DERIVED
        return Standing.SUPERSEDED if ident in superseded else Standing.CURRENT

    def _reach(self, ids: set[str]) -> list[Support]:
        """Everything that *ids* rest on, directly or through others, and that is not known yet."""
        found: list[Support] = []

        def sources(frontier: set[str]) -> Iterable[str]:
            level = list(self._facts.supports(frontier))
            found.extend(level)
            return (one.on for one in level)

        spread(ids, sources, self._reached)
        return found

    def _check(self, ids: set[str]) -> None:
        fresh = ids - self._checked
        self._checked |= fresh
        forgotten = find_forgotten(fresh, self._facts)
        self._forgotten |= forgotten
        self._gone |= forgotten

    def _spread(self, supports: Iterable[Support]) -> None:
        """Add what rests on something gone. All that rests on it by other supports is known."""
        dependents: dict[str, list[str]] = {}
        for one in supports:
            # A forgotten link no longer holds.
            if one.by == one.of or one.by not in self._forgotten:
                dependents.setdefault(one.on, []).append(one.of)
        waiting = [ident for ident in dependents if ident in self._gone]
        while waiting:
            for ident in dependents.get(waiting.pop(), ()):
                if ident not in self._gone:
                    self._gone.add(ident)
                    waiting.append(ident)


def _is_superseded(ident: str, superseders: Mapping[str, set[str]]) -> bool:
    """Whether one supersedes *ident* that it does not supersede in turn, directly or not.

    Records that supersede each other in a circle, or themselves, stay: else none would be left.
    """
    for one in superseders[ident]:
        above: set[str] = set()
        spread({one}, lambda ids: (up for below in ids for up in superseders.get(below, ())), above)
        if ident not in above:
            return True
    return False


def spread(ids: set[str], step: Callable[[set[str]], Iterable[str]], known: set[str]) -> None:
    """Add *ids* to *known*, and what *step* leads to from them; each id is stepped from once."""
    frontier = ids - known
    while frontier:
        known |= frontier
        frontier = {*step(frontier)} - known


def find_forgotten(ids: Collection[str], facts: Facts) -> set[str]:
    """Return those of *ids* that were forgotten themselves, whatever they rest on."""
    forgets = facts.forgets(ids)
    if not forgets:
        return set()
    stamps = facts.stamps(forgets.keys())
    return {ident for ident, lines in forgets.items() if is_forgotten(stamps.get(ident), lines)}


def is_forgotten(current: Stamp | None, forgets: Iterable[Stamp]) -> bool:
    """Whether one of the lines that forget a record came after its current line.

    A record without a current line stays forgotten.
    """
    return current is None or any(is_after(stamp, current) for stamp in forgets)
