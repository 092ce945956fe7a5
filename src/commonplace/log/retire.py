"""Retire records: move their lines to the archive, and leave a shorter one in the log, or none.

The lines are added to the archive before they leave the log. If the process is killed in between,
both files hold them, and readers treat equal lines as one. The shorter line takes the place of the
current one, so that rotation does not take an old record for a new one.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.log import read
from commonplace.log.append import append_once
from commonplace.records import from_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from commonplace.where.home import Home

_ID_START = b'{"id":"'


class Change(NamedTuple):
    """What becomes of a record: the digest of its current line, and the line instead of it.

    Without a line, the record is left in the archive only.
    """

    current: bytes
    line: bytes = b""


class IdLine(NamedTuple):
    """A line of a log, its number from 0, and the id of its record; "" if it holds none."""

    number: int
    ident: str
    raw: bytes


def digest(raw: bytes) -> bytes:
    """Return a digest of a line, by which it is known again."""
    return blake2b(raw, digest_size=16).digest()


def lines_with_ids(path: Path) -> Iterator[IdLine]:
    """Yield each line of the file that is not blank. Lines that we wrote are not parsed."""
    for number, line in enumerate(read.lines(path, whole=True)):
        if line.raw.strip():
            yield IdLine(number, _id_of(line.raw), line.raw)


def _id_of(raw: bytes) -> str:
    if raw.startswith(_ID_START):
        ident = raw[len(_ID_START) : raw.find(b'"', len(_ID_START))]
        if ident and b"\\" not in ident and raw.endswith(b"}"):
            return ident.decode("utf-8", "replace")
    try:
        return from_line(raw).id
    except ValueError:
        return ""


def retire(home: Home, repo: str, changes: Mapping[str, Change]) -> set[str]:
    """Move the lines of the records in *changes* to the archive; return the ids of those moved.

    A record that was changed or forgotten since its current line was read is left as it is.
    """
    path = home.log(repo)
    if not changes or not path.exists():
        return set()
    with hold(path):
        last = _unchanged(path, changes)
        # The archive comes before the log: what forgot an earlier version goes along, or it would
        # come after the later one.
        gone = {ident for ident in last if not changes[ident].line}

        def is_moved(line: IdLine) -> bool:
            return line.ident in last or _forgotten_by(line.raw) in gone

        def moved() -> Iterator[bytes]:
            return (line.raw + b"\n" for line in lines_with_ids(path) if is_moved(line))

        def left() -> Iterator[bytes]:
            for line in lines_with_ids(path):
                if not is_moved(line):
                    yield line.raw + b"\n"
                elif line.number == last.get(line.ident):
                    yield changes[line.ident].line

        if last:
            append_once(home.archive(repo), _Lines(moved))
            atomic.replace(path, filter(None, left()))
    return set(last)


def _unchanged(path: Path, changes: Mapping[str, Change]) -> dict[str, int]:
    """Return the number of the current line of each record that is still as it was."""
    last: dict[str, int] = {}
    changed: set[str] = set()
    for number, ident, raw in lines_with_ids(path):
        if ident in changes:
            last[ident] = number
            (changed.discard if digest(raw) == changes[ident].current else changed.add)(ident)
        elif forgotten := _forgotten_by(raw):
            changed.add(forgotten)
    return {ident: number for ident, number in last.items() if ident not in changed}


def _forgotten_by(raw: bytes) -> str:
    """Return the id of the record that a line forgets; "" if it forgets none."""
    if b'"forget"' not in raw:
        return ""
    try:
        record = from_line(raw)
    except ValueError:
        return ""
    return str(record.fields.get("of")) if record.kind == "forget" else ""


class _Lines:
    """Lines that are read from a file each time they are asked for: they may be a gigabyte."""

    def __init__(self, read_again: Callable[[], Iterator[bytes]]) -> None:
        self._read_again = read_again

    def __iter__(self) -> Iterator[bytes]:
        return self._read_again()
