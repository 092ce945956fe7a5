"""The standing of records: current, or hidden and why."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, Protocol

from commonplace.rules.order import Stamp, is_after

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


class Standing(IntEnum):
    """How a line stands today. The values are stored in the index."""

    REPLACED = 0
    CURRENT = 1
    FORGOTTEN = 2
    DERIVED = 3  # It rests on something forgotten.
    SUPERSEDED = 4


def is_gone(standing: Standing) -> bool:
    """Whether the record must not be shown at all. A superseded one may be, to whoever asks."""
    return standing in (Standing.FORGOTTEN, Standing.DERIVED)


def is_private(kind: str, owner: str, reader: str) -> bool:
    """Whether a record is a note that *reader* may not see: a note is its agent's alone."""
    return kind == "note" and owner != reader


class Support(NamedTuple):
    """The record *of* rests on the record *on*, as the record *by* states."""

    of: str
    on: str
    by: str


class Facts(Protocol):
    """What has to be known to decide about some records. The log's fold and the index know it."""

    def stamps(self, ids: Collection[str]) -> Mapping[str, Stamp]:
        """The stamp of the current line of each of *ids* that has one."""

    def forgets(self, ids: Collection[str]) -> Mapping[str, Sequence[Stamp]]:
        """The stamps of all lines that forget each of *ids*."""

    def supports(self, ids: Collection[str]) -> Iterable[Support]:
        """What each of *ids* rests on: what it derives from; of a statement, what it is about."""

    def superseders(self, ids: Collection[str]) -> Iterable[Support]:
        """The records that supersede each of *ids*: `Support(superseded, superseder, by)`."""


def standings(ids: Collection[str], facts: Facts) -> dict[str, Standing]:
    """The standing of each of *ids*. Linear in what they rest on, cycles included."""
    superseding = list(facts.superseders(ids))
    supports = _reach({*ids, *(one.on for one in superseding)}, facts)
    named = {*ids, *(name for one in (*supports, *superseding) for name in one)}
    forgotten = _forgotten(named, facts)
    gone = _resting_on(forgotten, supports)
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


def _forgotten(ids: Collection[str], facts: Facts) -> set[str]:
    forgets = facts.forgets(ids)
    if not forgets:
        return set()
    stamps = facts.stamps(forgets.keys())
    return {ident for ident, lines in forgets.items() if is_forgotten(stamps.get(ident), lines)}


def is_forgotten(current: Stamp | None, forgets: Iterable[Stamp]) -> bool:
    """Whether one of the lines that forget a record came after its current line.

    What was never written here, or no longer is, stays forgotten.
    """
    return current is None or any(is_after(stamp, current) for stamp in forgets)


def _resting_on(forgotten: set[str], supports: Iterable[Support]) -> set[str]:
    """*forgotten* and everything that rests on it, directly or through others."""
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
