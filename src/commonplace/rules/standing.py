"""The standing of records: current, or hidden and why."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, Protocol

from commonplace.rules.order import Stamp, is_after

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


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
    superseding = list(facts.superseders(ids))
    supports = _reach({*ids, *(one.on for one in superseding)}, facts)
    named = {*ids, *(name for one in (*supports, *superseding) for name in one)}
    forgotten = _find_forgotten(named, facts)
    gone = _with_dependents(forgotten, supports)
    superseded = {
        one.of
        for one in superseding
        # A record does not supersede itself, and one that is gone supersedes nothing any more.
        if one.of != one.on and one.on not in gone and one.by not in forgotten
    }
    return {ident: _standing(ident, forgotten, gone, superseded) for ident in ids}


def _standing(ident: str, forgotten: set[str], gone: set[str], superseded: set[str]) -> Standing:
    if ident in forgotten:
        return Standing.FORGOTTEN
    if ident in gone:
        return Standing.DERIVED
    return Standing.SUPERSEDED if ident in superseded else Standing.CURRENT


def _reach(ids: set[str], facts: Facts) -> list[Support]:
    """Everything that *ids* rest on, directly or through others."""
    found: list[Support] = []
    seen, frontier = set(ids), ids
    while frontier:
        level = list(facts.supports(frontier))
        found += level
        frontier = {one.on for one in level} - seen
        seen |= frontier
    return found


def _find_forgotten(ids: Collection[str], facts: Facts) -> set[str]:
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


def _with_dependents(forgotten: set[str], supports: Iterable[Support]) -> set[str]:
    """Return *forgotten* and everything that rests on it, directly or through others."""
    dependents: dict[str, list[str]] = {}
    for one in supports:
        if one.by == one.of or one.by not in forgotten:  # A forgotten link no longer holds.
            dependents.setdefault(one.on, []).append(one.of)
    found, waiting = set(forgotten), list(forgotten)
    while waiting:
        for ident in dependents.get(waiting.pop(), ()):
            if ident not in found:
                found.add(ident)
                waiting.append(ident)
    return found
