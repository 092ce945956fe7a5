"""What the homes hold already, by id: enough to tell new from old, and the user's own from what was brought."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from commonplace.log.fold import places
from commonplace.log.logs import repos_of
from commonplace.records import from_line, micros
from commonplace.rules import Fold, Stamp, is_forgotten, subjects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commonplace.records import Record
    from commonplace.where.home import Home

# How `meta.origin` begins for what came from outside.
OUTSIDE = ("import:", "pack:")
# Where something was found says nothing about what it says.
_PROVENANCE = ("origin", "file", "dated")
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def is_outside(fields: Mapping[str, Any]) -> bool:
    meta = fields.get("meta")
    origin = meta.get("origin") if isinstance(meta, dict) else None
    return isinstance(origin, str) and origin.startswith(OUTSIDE)


def digest(fields: Mapping[str, Any]) -> int:
    """A number that is the same for two versions that say the same, wherever they came from."""
    said = dict(fields)
    meta = said.get("meta")
    if isinstance(meta, dict):
        if meta.get("dated") == "file":
            said.pop("timestamp", None)  # A copy of a file is no newer than the file.
        said["meta"] = {name: value for name, value in meta.items() if name not in _PROVENANCE}
    said = {name: value for name, value in said.items() if value not in (None, {})}
    return int.from_bytes(blake2b(_ENCODER.encode(said).encode(), digest_size=8).digest(), "big")


class Existing:
    """The versions of every record in some homes.

    Only digests are kept of them, so that a large home fits into memory.
    """

    def __init__(self) -> None:
        # The ids of records that are the user's own, not brought from outside.
        self.own: set[str] = set()
        self._fold: Fold[int] = Fold()
        self._older: dict[str, set[int]] = {}
        self._own_forgets: dict[str, list[Stamp]] = {}
        self._positions: dict[str, int] = {}

    def load(self, home: Home, *, nearest: bool) -> None:
        """Take in a home. Of one that is not written to, only which records are the user's own."""
        for repo in repos_of(home):
            for place in places(home, repo):
                try:
                    record = from_line(place.line.raw)
                except ValueError:
                    continue
                if nearest:
                    self.add(record, repo)
                elif not is_outside(record.fields):
                    self.own.add(record.id)

    def add(self, record: Record, log: str, version: int | None = None) -> None:
        """Take in the next line of *log*; *version* is its digest, where that is known."""
        ident = record.id
        position = self._positions[log] = self._positions.get(log, 0) + 1
        stamp = Stamp(micros(record.timestamp), log, position)
        if not is_outside(record.fields):
            self.own.add(ident)
            for subject in subjects(record) if record.kind == "forget" else ():
                self._own_forgets.setdefault(subject, []).append(stamp)
        now = digest(record.fields) if version is None else version
        if ident in self._fold and (before := self._fold.current(ident).value) != now:
            self._older.setdefault(ident, set()).add(before)
        self._fold.add(stamp, record, now)

    def __contains__(self, ident: str) -> bool:
        return ident in self._fold

    def is_forgotten(self, ident: str) -> bool:
        forgets = self._fold.forgets([ident])
        return bool(forgets) and is_forgotten(self._fold.stamps([ident]).get(ident), forgets[ident])

    def is_forgotten_by_user(self, ident: str) -> bool:
        """Whether the user forgot it, and not the system it came from."""
        forgets = self._own_forgets.get(ident, ())
        return bool(forgets) and is_forgotten(self._fold.stamps([ident]).get(ident), forgets)

    def is_current(self, ident: str, version: int) -> bool:
        return ident in self._fold and self._fold.current(ident).value == version

    def was_before(self, ident: str, version: int) -> bool:
        return version in self._older.get(ident, ())
