"""What was current in a snapshot, or is now, and what differs between two such states."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from commonplace.log.fold import log_lines
from commonplace.log.logs import list_repos
from commonplace.log.retire import digest
from commonplace.records import from_line
from commonplace.records.nodes import NODE_KIND, type_of
from commonplace.rules import Fold, Stamp, written_micros
from commonplace.snapshots import store
from commonplace.snapshots.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from typing import Any

    from commonplace.records import Record
    from commonplace.snapshots.store import Snapshot
    from commonplace.where.home import Home

# Fields of `meta` that say when a version was written again, not what it says.
_ABOUT_THE_LINE = ("edited", "restored")


class StateLine(NamedTuple):
    """A line of a state: its log, its position there, and its bytes."""

    repo: str
    position: int
    raw: bytes


class Value(NamedTuple):
    """What is kept of a current line: its log, a digest of its bytes, and what it counts as."""

    repo: str
    digest: bytes
    counts_as: str


class State:
    """The records that were current at a moment, without their texts, which are read again."""

    def __init__(self, lines: Callable[[], Iterable[StateLine]]) -> None:
        self._lines = lines
        self.fold: Fold[Value] = Fold()
        for line in lines():
            record = _parse(line.raw)
            if record is not None:
                stamp = Stamp(written_micros(record), line.repo, line.position)
                counts_as = type_of(record) if record.kind == NODE_KIND else record.kind
                self.fold.add(stamp, record, Value(line.repo, digest(line.raw), counts_as))

    def visible(self, *, statements: bool = False) -> dict[str, Value]:
        """Return what was not forgotten, by id; superseded records as well."""
        ids = self.fold.visible_ids(superseded=True, statements=statements)
        return {ident: self.fold.current(ident).value for ident in ids}

    def records(self, ids: Collection[str]) -> dict[str, Record]:
        """Return the current version of each of *ids*, in their order."""
        wanted = {self.fold.current(ident).value.digest for ident in ids}
        found = {
            record.id: record
            for line in (self._lines() if wanted else ())
            if digest(line.raw) in wanted and (record := _parse(line.raw)) is not None
        }
        return {ident: found[ident] for ident in ids if ident in found}


def now(home: Home) -> State:
    """Return the state of *home* as it is."""

    def lines() -> Iterator[StateLine]:
        for repo in list_repos(home):
            for one in log_lines(home, repo):
                yield StateLine(repo, one.position, one.line.raw)

    return State(lines)


def of(home: Home, snapshot: Snapshot) -> State:
    """Return the state that *snapshot* holds."""
    objects = Objects(home.snapshot_objects)

    def lines() -> Iterator[StateLine]:
        for row in store.logs(home, snapshot):
            position = 0
            for root in (row.archive, row.log):
                for raw in objects.lines(root):
                    position += 1
                    yield StateLine(row.repo, position, raw)

    return State(lines)


def describe(home: Home, ident: str) -> tuple[Snapshot, dict[str, int]]:
    """Return a snapshot, and how many records of each kind were current in it.

    Nodes count as what they are.
    """
    with store.holding(home):
        snapshot = store.find(home, ident)
        fold = of(home, snapshot).fold
    kinds = Counter(fold.current(one).value.counts_as for one in fold.visible_ids())
    return snapshot, dict(sorted(kinds.items()))


class Difference(NamedTuple):
    """What one state has and another has not, by id: records that came, went and changed."""

    added: dict[str, Record]
    removed: dict[str, Record]
    changed: dict[str, tuple[Record, Record]]


def difference(home: Home, one: str, other: str = "") -> Difference:
    """Return what differs from the snapshot named *one* in *other*, or in *home* now."""
    with store.holding(home):
        before = of(home, store.find(home, one))
        return compare(before, of(home, store.find(home, other)) if other else now(home))


def compare(one: State, other: State) -> Difference:
    """Return what differs in *other*: feedback and links are left out."""
    before, after = one.visible(), other.visible()
    return Difference(
        added=other.records([ident for ident in after if ident not in before]),
        removed=one.records([ident for ident in before if ident not in after]),
        changed=changed(one, other, [ident for ident in before if ident in after]),
    )


def changed(one: State, other: State, ids: Iterable[str]) -> dict[str, tuple[Record, Record]]:
    """Return both versions of those of *ids* that say something else in *other*."""
    differing = [
        ident
        for ident in ids
        if one.fold.current(ident).value.digest != other.fold.current(ident).value.digest
    ]
    versions = one.records(differing), other.records(differing)
    return {
        ident: (versions[0][ident], versions[1][ident])
        for ident in differing
        if content(versions[0][ident]) != content(versions[1][ident])
    }


def content(record: Record) -> dict[str, Any]:
    """Return the fields of *record* without those that are about its line and its log."""
    meta = {name: value for name, value in record.meta.items() if name not in _ABOUT_THE_LINE}
    return {**record.fields, "meta": meta, "repo": None}


def _parse(raw: bytes) -> Record | None:
    """Return the record in a line; `None` if it holds none, which `doctor` reports."""
    if not raw.strip():
        return None
    try:
        return from_line(raw)
    except ValueError:
        return None
