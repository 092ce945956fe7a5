"""Merge the logs of two versions of a home that have a common ancestor.

git's own union merge keeps every line of a conflict, ours first: an erased line would come back,
and an older edit from there would follow a newer one from here. So a line that one side removed
(erased, rotated, moved to another log) stays removed, a line that one side added stays, and between
two lines that both have, the added ones are ordered by the time at which they were written.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import merge
from typing import TYPE_CHECKING, NamedTuple

from commonplace.erasure.erased import digest
from commonplace.records import (
    Record,
    check_repo_name,
    decode,
    encode,
    fill_identity,
    from_line,
    micros,
)
from commonplace.rules import spread, subjects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

LOGS = "log/"
SUFFIX = ".jsonl"
ALIASES = "repos.jsonl"
# The logs of packs are never renamed.
PACK_LOGS = f"{LOGS}packs/"

# The lines of each file, by its path in the home.
Logs = dict[str, list[bytes]]


def is_log(path: str) -> bool:
    """Whether the file at *path* in a home is merged line by line."""
    return path == ALIASES or (path.startswith(LOGS) and path.endswith(SUFFIX))


def split_lines(content: bytes) -> list[bytes]:
    return [line for line in content.split(b"\n") if line.strip()]


def merge_logs(base: Logs, ours: Logs, theirs: Logs, erased: Mapping[str, int]) -> Logs:
    """Return the merged logs.

    A log that one side renamed has its new name in all versions, so that what the other side wrote
    by the old name is merged into it. *erased* has the times at which records were erased here, in
    microseconds, by the digests of their ids.
    """
    versions = [base, ours, theirs]
    aliases = merge_lines(*(one.get(ALIASES, []) for one in versions))
    aliases += _joining(ours, theirs, _pairs(aliases), _names(base))
    base, ours, theirs = (_renamed(one, _pairs(aliases)) for one in versions)
    merged = {
        path: merge_lines(*(one.get(path, []) for one in (base, ours, theirs)))
        for path in sorted({*ours, *theirs})
    }
    merged[ALIASES] = aliases
    return {path: lines for path, lines in _without(merged, ours, erased).items() if lines}


# --- The lines of one file ------------------------------------------------------------------------


class _Line(NamedTuple):
    """A line that may occur more than once: a record can be shown again after a `forget`."""

    raw: bytes
    occurrence: int


def merge_lines(
    base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]
) -> list[bytes]:
    """Return the lines of both sides, without those of *base* that one of them removed.

    It does not matter which side is ours.
    """
    if ours in (base, theirs):
        return list(theirs)
    if base == theirs:
        return list(ours)
    first, second = (_numbered(lines) for lines in sorted([[*ours], [*theirs]]))
    removed = {*_numbered(base)} - ({*first} & {*second})
    first, second = ([line for line in lines if line not in removed] for lines in (first, second))
    common = _common(first, second)
    # A line that both have in another order stays where the second side has it.
    elsewhere = ({*first} & {*second}) - {*common}
    parts = zip(
        _between([line for line in first if line not in elsewhere], common),
        _between(second, common),
        [[line.raw] for line in common] + [[]],
        strict=True,
    )
    return [line for one, other, end in parts for line in (*_by_time(one, other), *end)]


def _numbered(lines: Iterable[bytes]) -> list[_Line]:
    counts: dict[bytes, int] = {}
    found = []
    for raw in lines:
        counts[raw] = counts.get(raw, 0) + 1
        found.append(_Line(raw, counts[raw]))
    return found


def _common(first: Sequence[_Line], second: Sequence[_Line]) -> list[_Line]:
    """Return the longest sequence of lines that both have in the same order."""
    place_in_first = {line: place for place, line in enumerate(first)}
    # The smallest place at which a sequence of each length ends, the line there, and for each line
    # the one before it (the longest increasing subsequence).
    ends: list[int] = []
    last: list[_Line] = []
    before: dict[_Line, _Line | None] = {}
    for line in second:
        if line in place_in_first:
            place = place_in_first[line]
            length = bisect_left(ends, place)
            before[line] = last[length - 1] if length else None
            ends[length : length + 1] = [place]
            last[length : length + 1] = [line]
    found = []
    step = last[-1] if last else None
    while step is not None:
        found.append(step)
        step = before[step]
    return found[::-1]


def _between(lines: Iterable[_Line], common: Sequence[_Line]) -> Iterator[list[bytes]]:
    """Yield the lines before each of *common*, and those after the last."""
    part: list[bytes] = []
    waiting = iter(common)
    stop = next(waiting, None)
    for line in lines:
        if line == stop:
            yield part
            part, stop = [], next(waiting, None)
        else:
            part.append(line.raw)
    yield part


def _by_time(one: Sequence[bytes], other: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the lines of both, each side's in its own order, the earlier before the later."""
    if not one or not other:
        return iter((*one, *other))
    return (raw for _time, raw in merge(_timed(one), _timed(other), key=lambda pair: pair[0]))


def _timed(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield each line with the latest time up to it."""
    latest = 0
    for raw in lines:
        latest = max(latest, _written(_record(raw)))
        yield latest, raw


def _record(raw: bytes) -> Record | None:
    try:
        return from_line(raw)
    except ValueError:
        return None


def _written(record: Record | None) -> int:
    """Return when the line of *record* was written: an edit keeps the time of the record."""
    if record is None:
        return 0
    edited = record.meta.get("edited")
    try:
        return micros(edited if isinstance(edited, str) else record.timestamp)
    except ValueError:
        return micros(record.timestamp)


# --- Logs that were renamed -----------------------------------------------------------------------


def _pairs(lines: Iterable[bytes]) -> dict[str, str]:
    found: dict[str, str] = {}
    for raw in lines:
        try:
            fields = decode(raw)
            alias, repo = fields.get("alias"), check_repo_name(fields.get("repo"))
        except ValueError:
            continue
        if isinstance(alias, str):
            found[alias] = repo
    return found


def _log_of(name: str, pairs: Mapping[str, str]) -> str:
    seen: set[str] = set()
    while name in pairs and name not in seen:
        seen.add(name)
        name = pairs[name]
    return name


def _names(logs: Logs) -> set[str]:
    return {
        path.rpartition("/")[2].removesuffix(SUFFIX)
        for path in logs
        if path != ALIASES and not path.startswith(PACK_LOGS)
    }


def _joining(
    ours: Logs, theirs: Logs, merged: Mapping[str, str], names: Iterable[str]
) -> list[bytes]:
    """Return an alias for each log of *names* that both sides renamed: one new name leads on."""
    sides = [_pairs(one.get(ALIASES, [])) for one in (ours, theirs)]
    found: dict[str, str] = {}
    for name in sorted(names):
        log = _log_of(name, merged)
        others = [_log_of(name, pairs) for pairs in sides]
        if name not in others:
            found |= {other: log for other in others if _log_of(other, merged) == other != log}
    return [encode({"alias": alias, "repo": log}).encode() for alias, log in found.items()]


def _renamed(logs: Logs, pairs: Mapping[str, str]) -> Logs:
    """Return *logs* with the lines of each in the log that its name is an alias of."""
    found: Logs = {}
    for path, lines in sorted(logs.items()):
        folder, _, file = path.rpartition("/")
        old = file.removesuffix(SUFFIX)
        new = _log_of(old, pairs)
        if path == ALIASES or path.startswith(PACK_LOGS) or new == old:
            place, moved = path, lines
        else:
            place, moved = f"{folder}/{new}{SUFFIX}", [_with_repo(raw, old, new) for raw in lines]
        found[place] = merge_lines([], found[place], moved) if place in found else moved
    return found


def _with_repo(raw: bytes, old: str, new: str) -> bytes:
    try:
        fields = decode(raw)
    except ValueError:
        return raw
    if fields.get("repo") != old:
        return raw
    return encode({**fill_identity(fields), "repo": new}).encode()  # An id is made with the repo.


# --- Records that were erased here ----------------------------------------------------------------


def _without(merged: Logs, ours: Logs, erased: Mapping[str, int]) -> Logs:
    """Return *merged* without lines from elsewhere of erased records, and what rests on these.

    Our own lines stay: a record that was erased may have been logged again. So may it elsewhere,
    and then it is newer than the erasure; an edit keeps the time of the record, so it goes.
    """
    if not erased:
        return merged
    known = {raw for lines in ours.values() for raw in lines}
    records = {raw: _record(raw) for lines in merged.values() for raw in lines}
    dependents: dict[str, set[str]] = {}
    gone: set[str] = set()
    present: set[str] = set()
    for raw, record in records.items():
        if record is None:
            continue
        for ident in (*record.sources, *subjects(record)):
            dependents.setdefault(ident, set()).add(record.id)
            gone.update([ident] if digest(ident) in erased else [])
        is_old = raw not in known and micros(record.timestamp) <= erased.get(digest(record.id), -1)
        (gone if is_old else present).add(record.id)
    old = gone - present
    reached: set[str] = set()
    spread(old, lambda ids: (one for i in ids for one in dependents.get(i, ())), reached)

    def stays(raw: bytes) -> bool:
        record = records[raw]
        if record is None or raw in known:
            return True
        is_old = micros(record.timestamp) <= erased.get(digest(record.id), -1)
        return not is_old and record.id not in reached

    return {path: [raw for raw in lines if stays(raw)] for path, lines in merged.items()}
