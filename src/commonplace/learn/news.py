"""The lines that logs have gained since a step of learning looked at them last.

A mark keeps for each log how far it was read, and a digest of the bytes before that place. If these
have changed (the log was rotated, merged or rewritten), the log is read from its beginning: a step
must bear to meet a record again.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from commonplace.files import atomic
from commonplace.files.plain import open_for_read, read_small
from commonplace.log.logs import list_repos
from commonplace.log.read import Damage, parse

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from commonplace.records import Record
    from commonplace.where.home import Home

MARK_BYTES_MAX = 4 << 20
_BEFORE_BYTES = 256


class News(NamedTuple):
    """New records, in the order of their lines, and the mark after them."""

    records: list[Record]
    mark: dict[str, list[int | str]]


def read(home: Home, mark: Path, kinds: Collection[str], count: int) -> News:
    """Return up to *count* records of *kinds* that the logs have gained since *mark*."""
    before, after = _read_mark(mark), dict[str, list[int | str]]()
    records: list[Record] = []
    for repo in list_repos(home):
        path = home.log(repo)
        start = _start(path, before.get(repo))
        end = start
        for found in parse(path, start):
            if isinstance(found, Damage):
                continue
            if len(records) >= count:
                break
            line, record = found
            if line.torn:
                break
            end = line.offset + len(line.raw) + 1
            if record.kind in kinds:
                records.append(record)
        after[repo] = [end, _digest(path, end)]
    return News(records, after)


def write_mark(mark: Path, news: News) -> None:
    """Note that *news* were read, unless that is noted already."""
    if _read_mark(mark) != news.mark:
        atomic.replace(mark, [json.dumps(news.mark).encode()])


def _read_mark(mark: Path) -> dict[str, list[int | str]]:
    try:
        found = json.loads(read_small(mark, MARK_BYTES_MAX))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _start(path: Path, known: object) -> int:
    match known:
        case [int(end), str(digest)] if end >= 0 and _digest(path, end) == digest:
            return end
    return 0


def _digest(path: Path, end: int) -> str:
    """Return a digest of the bytes before *end*; "" if the file is shorter."""
    stream = open_for_read(path)
    if stream is None:
        return ""
    with stream:
        size = stream.seek(0, 2)
        start = max(0, end - _BEFORE_BYTES)
        stream.seek(start)
        raw = stream.read(end - start)
    return blake2b(raw, digest_size=8).hexdigest() if end <= size else ""
