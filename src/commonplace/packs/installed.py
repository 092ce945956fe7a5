"""The packs that are installed or in quarantine: list them, and remove one with all its traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import PackUnknown
from commonplace.log import pack_logs
from commonplace.packs import importing, quarantine
from commonplace.packs.removal import Removed, edited_ids, remove_records
from commonplace.packs.review import signer_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from commonplace.memory import Memory
    from commonplace.where.home import Home


class Installed(NamedTuple):
    """A row of `pack list`."""

    name: str
    version: str
    place: str
    records: int
    title: str
    licence: str
    authors: tuple[str, ...]
    domain_tags: tuple[str, ...]
    signer: str
    # Why its signer is known: `you`, `trusted`, or "" if it is not.
    signed_by: str
    installed_at: str
    # Records whose text reads like instructions to a model.
    flagged: int
    # Whether the process that installed or removed it was interrupted.
    is_broken: bool

    def as_dict(self) -> dict[str, Any]:
        return self._asdict()


def list_packs(memory: Memory) -> list[Installed]:
    """Return the packs of the user's home, the installed ones first, each in the order of names."""
    home = importing.home_of(memory)
    return [
        _row(memory, place, name)
        for place in (home, home.quarantine)
        for name in pack_logs.names(place)
    ]


def _row(memory: Memory, home: Home, name: str) -> Installed:
    found = pack_logs.describe(home, name) or pack_logs.Description(name, {})
    manifest = found.manifest
    return Installed(
        name,
        found.version,
        importing.QUARANTINED if home.is_quarantine else importing.INSTALLED,
        pack_logs.count(home, name),
        str(manifest.get("title") or manifest.get("name") or ""),
        str(manifest.get("licence") or ""),
        tuple(map(str, manifest.get("authors") or ())),
        tuple(map(str, manifest.get("domain_tags") or ())),
        found.signer,
        signer_name(memory, found.signer),
        found.installed_at,
        found.flagged,
        not manifest,
    )


def find(memory: Memory, name: str) -> list[Home]:
    """Return the places that have the pack: the home, the quarantine. Raises `PackUnknown`."""
    home = importing.home_of(memory)
    places = [place for place in (home, home.quarantine) if name in pack_logs.names(place)]
    if not places:
        names = {*pack_logs.names(home), *pack_logs.names(home.quarantine)}
        raise PackUnknown(name, sorted(names))
    return places


def count_edited(memory: Memory, name: str) -> int:
    """Return how many records of the pack were edited here, which `remove` removes as well."""
    return len(edited_ids(importing.home_of(memory), name))


def remove(
    memory: Memory, name: str, progress: Callable[[int], None] = lambda _count: None
) -> Removed:
    """Remove the pack with everything that came with it, also what was edited here.

    If it is interrupted, the pack is listed until the next `remove` has done the rest.
    """
    places = find(memory, name)
    home = importing.home_of(memory)
    with pack_logs.holding(home):
        done = [remove_records(place, name, progress) for place in places]
        for place in places:
            pack_logs.remove_description(place, name)
    quarantine.withdraw_review(memory, name)
    return Removed(
        name,
        sum(one.records for one in done),
        sum(one.edited for one in done),
        sum(one.lines_about for one in done),
        sorted({where for one in done for where in one.left_in}),
    )
