"""What the homes hold already, by id: enough to tell new from old, and the user's own from what was brought."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from commonplace.log.logs import Logs
from commonplace.log.view import all_lines
from commonplace.records import from_line

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


class Known:
    """The versions of every record in some homes. Only digests are kept, so that a large home fits."""

    def __init__(self) -> None:
        self.own: set[str] = set()
        self.forgotten: set[str] = set()
        self.forgotten_by_own: set[str] = set()
        self._latest: dict[str, int] = {}
        self._older: dict[str, set[int]] = {}

    def load(self, home: Home, *, nearest: bool) -> None:
        """Take in a home. Of a home that is not written to, only which records are the user's own."""
        logs = Logs(home, fsync="never")
        pairs = [(home.archive(repo), home.log(repo)) for repo in logs.repos()]
        for _path, line in all_lines(pairs):
            try:
                record = from_line(line.raw)
            except ValueError:
                continue
            if nearest:
                self.add(record)
            elif not is_outside(record.fields):
                self.own.add(record.id)

    def add(self, record: Record, version: int | None = None) -> None:
        """Take in the next line; *version* is its digest, where that is known."""
        fields, ident = record.fields, record.id
        outside = is_outside(fields)
        if not outside:
            self.own.add(ident)
        of = fields.get("of")
        if record.kind == "forget" and isinstance(of, str):
            self.forgotten.add(of)
            if not outside:
                self.forgotten_by_own.add(of)
        self.forgotten.discard(ident)
        self.forgotten_by_own.discard(ident)
        now = digest(fields) if version is None else version
        before = self._latest.get(ident)
        if before is not None and before != now:
            self._older.setdefault(ident, set()).add(before)
        self._latest[ident] = now

    def __contains__(self, ident: str) -> bool:
        return ident in self._latest

    def is_latest(self, ident: str, version: int) -> bool:
        return self._latest.get(ident) == version

    def was_before(self, ident: str, version: int) -> bool:
        return version in self._older.get(ident, ())
