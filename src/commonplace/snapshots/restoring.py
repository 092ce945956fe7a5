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


def restore(memory: Writer, number: int, given: str, before: str, *, dry_run: bool) -> Restored:
    """Restore the snapshot *given* in a home of *memory*; *before* is one of the state before."""
    home = memory.homes[number]
    with store.holding(home):
        snapshot = store.find(home, given)
    for _try in range(_TRIES_MAX):
        with store.holding(home):
            sizes = _sizes(home)
            plan = _plan(home, snapshot)
        # Everything is checked before anything is written.
        entries = _entries(memory, snapshot, plan)
        if dry_run or _append(memory, entries, sizes, number):
            return Restored(snapshot, list(plan.changed), list(plan.returned), plan.stayed, before)
    raise UsageError(
        "other processes write to the logs all the time", "nothing was restored; try again"
    )


class _Plan(NamedTuple):
    """The versions of then to write, by id: of changed records, and of those that are gone."""

    changed: Mapping[str, tuple[str, Record]]
    returned: Mapping[str, tuple[str, Record]]
    stayed: int


def _plan(home: Home, snapshot: Snapshot) -> _Plan:
    then, now = states.of(home, snapshot), states.now(home)
    before = then.visible(statements=True)
    standings = now.fold.standings([ident for ident in before if ident in now.fold])
    # What is hidden because its source was forgotten comes back with that.
    gone = {ident: None for ident in before if standings.get(ident) in (None, Standing.FORGOTTEN)}
    changed = states.changed(then, now, [ident for ident in before if ident not in gone])

    def place(ident: str) -> str:
        """Return the log in which the record is now, else the one of then."""
        fold = now.fold if ident in now.fold else then.fold
        return fold.current(ident).value.repo

    return _Plan(
        {ident: (place(ident), versions[0]) for ident, versions in changed.items()},
        {ident: (place(ident), record) for ident, record in then.records(gone).items()},
        sum(ident not in before for ident in now.visible()),
    )


def _entries(memory: Writer, snapshot: Snapshot, plan: _Plan) -> dict[str, list[PreparedLine]]:
    """Return the lines to append to each log."""
    edited = to_utc(memory.now())
    entries: dict[str, list[PreparedLine]] = {}
    for repo, record in (*plan.changed.values(), *plan.returned.values()):
        # Between two logs the time decides, and a record of a forgotten one needs a later line.
        meta = {**record.meta, "edited": edited, "restored": snapshot.id}
        fields: dict[str, Any] = {**record.fields, "repo": repo, "meta": meta}
        entry = memory.prepare(fields)
        entries.setdefault(entry.record.repo, []).append(entry)
    return entries


def _append(
    memory: Writer,
    entries: Mapping[str, list[PreparedLine]],
    sizes: dict[str, int],
    number: int,
) -> bool:
    """Append *entries*; return whether all were, because no log has changed since."""
    home = memory.homes[number]
    for repo in sorted(entries):

        def is_current(repo: str = repo) -> bool:
            return _size(home, repo) == sizes.get(repo, 0)

        if not memory.append_if(repo, entries[repo], is_current, number):
            return False
    return True


def _sizes(home: Home) -> dict[str, int]:
    return {repo: _size(home, repo) for repo in list_repos(home)}


def _size(home: Home, repo: str) -> int:
    return sum(
        path.stat().st_size for path in (home.log(repo), home.archive(repo)) if path.is_file()
    )
