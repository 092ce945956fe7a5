"""Batches: every automatic change belongs to one, and a batch can be undone.

A batch is what its records say: each carries its name in `meta.batch`. Undoing forgets what the
batch made, and writes again, as it was, what the batch changed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace import inbox
from commonplace.errors import BatchInUse, BatchUnknown, LogBusy
from commonplace.log.fold import log_lines
from commonplace.log.logs import list_logs
from commonplace.records import from_line
from commonplace.rules import find_forgotten

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime

    from commonplace.recaller import Recaller
    from commonplace.records import Record
    from commonplace.where.home import Home

PREFIX = "batch-"
# How often an undo begins again because somebody wrote meanwhile.
ATTEMPTS_MAX = 3


class Batch(NamedTuple):
    """A batch as the logs have it: when, by which step, and what it made and changed."""

    id: str
    timestamp: str
    step: str
    made: tuple[str, ...]
    changed: tuple[str, ...]
    undone: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the batch as `consolidate --log --json` prints it."""
        return {**self._asdict(), "made": list(self.made), "changed": list(self.changed)}


class _Version(NamedTuple):
    home: int
    log: str
    record: Record

    @property
    def batch(self) -> str:
        return str(self.record.meta.get("batch") or "")


class _Touched(NamedTuple):
    """A record that a batch wrote, with all its versions."""

    id: str
    versions: list[_Version]
    is_forgotten: bool


def new_name(now: datetime) -> str:
    """Return a name for a batch that begins *now*."""
    return f"{PREFIX}{now:%Y%m%d-%H%M%S}-{os.urandom(2).hex()}"


def mark(fields: Mapping[str, Any], batch: str, step: str) -> dict[str, Any]:
    """Return *fields* of a record with the batch that writes it."""
    meta = fields.get("meta")
    given = dict(meta) if isinstance(meta, dict) else {}
    return {**fields, "meta": {**given, "batch": batch, "step": step}}


def list_batches(memory: Recaller) -> list[Batch]:
    """Return every batch of the trusted homes, the newest first."""
    made: dict[str, list[str]] = {}
    changed: dict[str, list[str]] = {}
    about: dict[str, tuple[str, str]] = {}
    for touched in _touched(memory):
        before = ""
        for version in touched.versions:
            batch = version.batch
            if batch and batch != before:
                is_change = "edited" in version.record.meta
                (changed if is_change else made).setdefault(batch, []).append(touched.id)
                about.setdefault(batch, (_written(version.record), _step(version.record)))
            before = batch
    undone = _undone(memory, about)
    found = [
        Batch(
            name,
            when,
            step,
            tuple(made.get(name, ())),
            tuple(changed.get(name, ())),
            name in undone,
        )
        for name, (when, step) in about.items()
    ]
    return sorted(found, key=lambda one: (one.timestamp, one.id), reverse=True)


def undo(memory: Recaller, name: str) -> Batch:
    """Undo the batch whose name begins with *name*, and return it.

    Raises `BatchUnknown`, or `BatchInUse` if something was built on it since. If it is killed, the
    next call does the rest: that the batch is undone is written last. Of a batch that was undone
    before, nothing is undone: then it is returned without records.
    """
    known = list_batches(memory)
    batch = _find(known, name)
    if batch.undone:
        return batch._replace(made=(), changed=())
    undone = {one.id for one in known if one.undone}
    for _attempt in range(ATTEMPTS_MAX):
        by_log: dict[tuple[int, str], dict[str, dict[str, Any]]] = {}
        for touched in _touched(memory, batch.id):
            last = touched.versions[-1]
            lines = by_log.setdefault((last.home, last.log), {})
            if not touched.is_forgotten and (fields := _before(batch.id, touched, undone)):
                lines[touched.id] = fields
        if all(_write_back(memory, batch.id, *place, by_log[place]) for place in by_log):
            break
    else:
        raise LogBusy(memory.home.log_folder, 0.0)
    inbox.withdraw(memory, lambda one: one.batch == batch.id)
    home, log = next(iter(by_log), (0, memory.repository.name))
    fields = {"kind": "forget", "of": batch.id, "reason": "undone", "repo": log}
    memory.store([memory.prepare(fields)], home)
    return batch._replace(undone=True)


def _write_back(
    memory: Recaller, batch: str, home: int, log: str, lines: dict[str, dict[str, Any]]
) -> bool:
    """Append *lines*, by the ids that they concern, unless somebody changed one meanwhile."""
    before = _last_lines(memory, home, lines)
    entries = [memory.prepare(fields) for fields in lines.values()]
    return memory.append_if(
        log,
        entries,
        lambda: (
            _last_lines(memory, home, lines) == before
            and all(record.meta.get("batch") == batch for record in before.values())
        ),
        home,
    )


def _last_lines(memory: Recaller, home: int, ids: Collection[str]) -> dict[str, Record]:
    with memory.engine().reading() as readers:
        versions = readers[home].versions(ids)
    return {ident: lines[-1][1] for ident, lines in versions.items()}


def _before(batch: str, touched: _Touched, undone: Collection[str]) -> dict[str, Any] | None:
    """Return the line that makes a record what it was before *batch*; `None` if it is that.

    Versions of batches that are *undone* no longer count.
    """
    last = touched.versions[-1]
    own = [one for one in touched.versions if one.batch == batch][-1]
    if last.batch != batch:
        if _written(last.record) < _written(own.record):
            return None  # An undo that was killed has done this.
        raise BatchInUse(batch, touched.id, last.batch)
    gone = {batch, *undone}
    before = next((one for one in reversed(touched.versions) if one.batch not in gone), None)
    if before is None:
        reason = f"undone with {batch}"
        return {"kind": "forget", "of": touched.id, "reason": reason, "repo": last.log}
    return {**before.record.fields, "repo": before.record.repo or before.log}


def _find(known: Collection[Batch], name: str) -> Batch:
    found = [one for one in known if name and one.id.startswith(name)]
    exact = [one for one in found if one.id == name]
    if len(exact or found) != 1:
        raise BatchUnknown(name, [one.id for one in found])
    return (exact or found)[0]


def was_forgotten(memory: Recaller, kind: str, sources: Collection[str]) -> bool:
    """Whether a record of *kind* that a batch made of most of *sources* was forgotten since."""
    with memory.engine().reading() as readers:
        for home, reader in zip(memory.homes, readers, strict=True):
            if not memory.trusts(home):
                continue
            edges = reader.edges(sources, "derived_from")
            forgotten = find_forgotten({edge.of for edge in edges}, reader)
            for lines in reader.versions(forgotten).values():
                record = lines[-1][1]
                common = len({*record.sources} & {*sources})
                is_same = 2 * common >= min(len(record.sources), len(sources))
                # Somebody may have edited or restored it, and forgotten it then.
                is_learned = any(version.meta.get("batch") for _log, version in lines)
                if record.kind == kind and is_learned and is_same:
                    return True
    return False


def sources_taken_back(memory: Recaller, ident: str, step: str) -> set[str]:
    """Return the sources that undone batches of *step* had given to the record *ident*."""
    with memory.engine().reading() as readers:
        versions = [
            _Version(number, log, record)
            for number, reader in enumerate(readers)
            if memory.trusts(memory.homes[number])
            for log, record in reader.versions([ident]).get(ident, ())
            if _step(record) == step
        ]
    undone = _undone(memory, {one.batch for one in versions})
    return {source for one in versions if one.batch in undone for source in one.record.sources}


def _touched(memory: Recaller, batch: str = "") -> Iterator[_Touched]:
    """Yield the records that *batch*, or any, wrote.

    The files say which records those are, the index has their versions.
    """
    needle = f'"{batch}"'.encode() if batch else b'"batch"'
    with memory.engine().reading() as readers:
        for number, (home, reader) in enumerate(zip(memory.homes, readers, strict=True)):
            if not memory.trusts(home):
                continue
            ids = {
                record.id
                for record in _records_with(home, needle)
                if (record.meta.get("batch") == batch if batch else record.meta.get("batch"))
            }
            forgotten = find_forgotten(ids, reader)
            for ident, lines in reader.versions(ids).items():
                versions = [_Version(number, log, record) for log, record in lines]
                yield _Touched(ident, versions, ident in forgotten)


def _undone(memory: Recaller, names: Collection[str]) -> set[str]:
    with memory.engine().reading() as readers:
        return {
            name
            for home, reader in zip(memory.homes, readers, strict=True)
            if memory.trusts(home)
            for name in reader.forgets(names)
        }


def _records_with(home: Home, needle: bytes) -> Iterator[Record]:
    for repo in list_logs(home):
        for line in log_lines(home, repo, (needle,)):
            with suppress(ValueError):  # A damaged line: `doctor` tells of it.
                yield from_line(line.line.raw)


def _written(record: Record) -> str:
    edited = record.meta.get("edited")
    return edited if isinstance(edited, str) else record.timestamp


def _step(record: Record) -> str:
    return str(record.meta.get("step") or "")
