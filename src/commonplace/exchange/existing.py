"""The records that the homes hold already, by id.

An import compares with them: is a record new, an older version, or the user's own?
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from commonplace.foreign import OUTSIDE
from commonplace.log.fold import log_lines
from commonplace.log.logs import list_logs
from commonplace.records import from_line
from commonplace.rules import Fold, Stamp, is_forgotten, subjects, written_micros

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from commonplace.records import Record
    from commonplace.where.home import Home

# Fields of `meta` that say where a record was found, not what it says.
_PROVENANCE = ("origin", "file", "dated")
_NOWHERE: frozenset[str] = frozenset()
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def is_outside(fields: Mapping[str, Any]) -> bool:
    meta = fields.get("meta")
    origin = meta.get("origin") if isinstance(meta, dict) else None
    return isinstance(origin, str) and origin.startswith(OUTSIDE)


def digest(fields: Mapping[str, Any]) -> int:
    """Return a hash of *fields* without their provenance.

    Two versions with the same content have the same hash, wherever they came from.
    """
    content = dict(fields)
    meta = content.get("meta")
    if isinstance(meta, dict):
        if meta.get("dated") == "file":
            content.pop("timestamp", None)  # A copy of a file is no newer than the file.
        content["meta"] = {name: value for name, value in meta.items() if name not in _PROVENANCE}
    content = {name: value for name, value in content.items() if value not in (None, {})}
    return int.from_bytes(blake2b(_ENCODER.encode(content).encode(), digest_size=8).digest(), "big")


@cache
def _logs_with(known: frozenset[str], log: str) -> frozenset[str]:
    return known | {log}


class Existing:
    """The versions of every record in some homes, as digests to save memory."""

    def __init__(self) -> None:
        # The ids of the user's own records: those that were not imported.
        self.own: set[str] = set()
        self._fold: Fold[int] = Fold()
        self._older: dict[str, set[int]] = {}
        self._own_forgets: dict[str, list[Stamp]] = {}
        self._positions: dict[str, int] = {}
        # The logs of each id; most ids of one log share one value.
        self._logs: dict[str, frozenset[str]] = {}

    def load(self, home: Home, *, nearest: bool) -> None:
        """Read a home. If it is not the *nearest*, record only which ids are the user's own."""
        for repo in list_logs(home):
            for log_line in log_lines(home, repo):
                try:
                    record = from_line(log_line.line.raw)
                except ValueError:
                    continue
                self._note_log(record.id, repo)
                if nearest:
                    self.add(record, repo)
                elif not is_outside(record.fields):
                    self.own.add(record.id)

    def add(self, record: Record, log: str, version: int | None = None) -> None:
        """Add the next line of *log*; *version* is its digest, if the caller has computed it."""
        ident = record.id
        self._note_log(ident, log)
        position = self._positions[log] = self._positions.get(log, 0) + 1
        stamp = Stamp(written_micros(record), log, position)
        if not is_outside(record.fields):
            self.own.add(ident)
            for subject in subjects(record) if record.kind == "forget" else ():
                self._own_forgets.setdefault(subject, []).append(stamp)
        now = digest(record.fields) if version is None else version
        if ident in self._fold and (before := self._fold.current(ident).value) != now:
            self._older.setdefault(ident, set()).add(before)
        self._fold.add(stamp, record, now)

    def _note_log(self, ident: str, log: str) -> None:
        known = self._logs.get(ident, _NOWHERE)
        if log not in known:
            self._logs[ident] = _logs_with(known, log)

    def is_elsewhere(self, ident: str, log: str) -> bool:
        """Whether other logs have that id, and this one does not."""
        logs = self._logs.get(ident, _NOWHERE)
        return bool(logs) and log not in logs

    def __contains__(self, ident: str) -> bool:
        return ident in self._fold

    def count_shown(self, ids: Iterable[str]) -> Counter[str]:
        """Return how many of *ids* are records that `stats` counts, by kind."""
        wanted = set(ids)
        shown = (ident for ident in self._fold.visible_ids() if ident in wanted)
        return Counter(self._fold.current(ident).kind for ident in shown)

    def is_forgotten(self, ident: str) -> bool:
        forgets = self._fold.forgets([ident])
        return bool(forgets) and is_forgotten(self._fold.stamps([ident]).get(ident), forgets[ident])

    def is_forgotten_by_user(self, ident: str) -> bool:
        """Whether the user forgot it, rather than the system it came from."""
        forgets = self._own_forgets.get(ident, ())
        return bool(forgets) and is_forgotten(self._fold.stamps([ident]).get(ident), forgets)

    def is_current(self, ident: str, version: int) -> bool:
        return ident in self._fold and self._fold.current(ident).value == version

    def is_older_version(self, ident: str, version: int) -> bool:
        """Whether *version* was once the current version of *ident* and no longer is."""
        return version in self._older.get(ident, ())
