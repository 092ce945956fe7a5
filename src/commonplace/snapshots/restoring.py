"""Restore a snapshot: append what it held and what is no longer current. Nothing is deleted.

Records that were changed since get their version of then as a new version, and those that were
forgotten since come back. Records that were added since stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from commonplace.errors import UsageError
from commonplace.log.logs import list_repos
from commonplace.records import to_utc
from commonplace.rules import Standing
from commonplace.snapshots import states, store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from commonplace.log.prepare import PreparedLine
    from commonplace.records import Record
    from commonplace.snapshots.store import Snapshot
    from commonplace.where.home import Home

_TRIES_MAX = 5


class Restored(NamedTuple):
    """What a restore wrote, by id, how many records stayed, and a snapshot of the state before."""

    snapshot: Snapshot
    changed: list[str]
    returned: list[str]
    stayed: int
    before: str = ""


class Writer(Protocol):
    """What a restore needs of the memory."""

    homes: list[Home]

    def now(self) -> datetime: ...
    def prepare(self, given: Mapping[str, Any]) -> PreparedLine: ...
    def append_if(
        self,
        log: str,
        entries: Sequence[PreparedLine],
        is_current: Callable[[], bool],
        home_number: int = 0,
    ) -> bool: ...


def restore(
    memory: Writer, number: int, given: str, keep: Callable[[], str], *, dry_run: bool
) -> Restored:
    """Restore the snapshot *given* in a home of *memory*.

    *keep* makes a snapshot of the state before, and returns its id.
    """
    home = memory.homes[number]
    with store.holding(home):
        snapshot = store.find(home, given)
    written: dict[str, _Version] = {}
    before = ""
    for _try in range(_TRIES_MAX):
        with store.holding(home):
            sizes = _sizes(home)
            versions, stayed = _plan(home, snapshot)
        # Everything is checked before anything is written.
        lines = _prepare(memory, snapshot, versions)
        written |= {ident: versions[ident] for ident in lines}
        if lines and not before and not dry_run:
            before = keep()
        if dry_run or _append(memory, lines, sizes, number):
            changed = [ident for ident, one in written.items() if one.now is not None]
            returned = [ident for ident, one in written.items() if one.now is None]
            return Restored(snapshot, changed, returned, stayed, before)
    raise UsageError(
        "other processes write to the logs all the time", "try again; what was restored stays"
    )


class _Version(NamedTuple):
    """A version of then to write to a log, and the one it replaces, unless the record is gone."""

    repo: str
    then: Record
    now: Record | None


def _plan(home: Home, snapshot: Snapshot) -> tuple[dict[str, _Version], int]:
    """Return the versions to write, by id, and how many records were added since."""
    then, now = states.of(home, snapshot), states.now(home)
    before = then.visible(statements=True)
    standings = now.fold.standings([ident for ident in before if ident in now.fold])
    # What is hidden because its source was forgotten comes back with that.
    gone = {ident: None for ident in before if standings.get(ident) in (None, Standing.FORGOTTEN)}
    changed = states.changed(then, now, [ident for ident in before if ident not in gone])

    def version(ident: str, record: Record, current: Record | None) -> _Version:
        # The log in which the record is now, else the one of then.
        fold = now.fold if ident in now.fold else then.fold
        return _Version(fold.current(ident).value.repo, record, current)

    versions = {ident: version(ident, one, other) for ident, (one, other) in changed.items()}
    returned = then.records(gone)
    versions |= {ident: version(ident, record, None) for ident, record in returned.items()}
    return versions, sum(ident not in before for ident in now.visible())


def _prepare(
    memory: Writer, snapshot: Snapshot, versions: Mapping[str, _Version]
) -> dict[str, PreparedLine]:
    """Return the line to append for each record, by its id."""
    edited = to_utc(memory.now())
    lines: dict[str, PreparedLine] = {}
    for ident, (repo, then, now) in versions.items():
        # Between two logs the time decides.
        meta = {**then.meta, "edited": edited, "restored": snapshot.id}
        line = memory.prepare({**then.fields, "repo": repo, "meta": meta})
        # Redaction may leave what is there already.
        if now is None or states.content(line.record) != states.content(now):
            lines[ident] = line
    return lines


def _append(
    memory: Writer, lines: Mapping[str, PreparedLine], sizes: Mapping[str, int], number: int
) -> bool:
    """Append *lines*; return whether all were, because no log has changed since it was read."""
    home = memory.homes[number]
    by_log: dict[str, list[PreparedLine]] = {}
    for line in lines.values():
        by_log.setdefault(line.record.repo, []).append(line)
    for repo, some in sorted(by_log.items()):

        def is_current(repo: str = repo) -> bool:
            return _size(home, repo) == sizes.get(repo, 0)

        if not memory.append_if(repo, some, is_current, number):
            return False
    return True


def _sizes(home: Home) -> dict[str, int]:
    return {repo: _size(home, repo) for repo in list_repos(home)}


def _size(home: Home, repo: str) -> int:
    return sum(
        path.stat().st_size for path in (home.log(repo), home.archive(repo)) if path.is_file()
    )
