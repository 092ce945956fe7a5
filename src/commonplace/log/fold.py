"""Reading logs: all lines of a home, folded into what they say at their end."""

from __future__ import annotations

from contextlib import ExitStack
from typing import NamedTuple

from commonplace.files.plain import open_for_read
from commonplace.log import read
from commonplace.log.logs import repos_of
from commonplace.records import Record, from_line, micros
from commonplace.rules import Fold, Stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import BinaryIO

    from commonplace.where.home import Home

# Lines that forget are always read: they may hide what was asked for.
_FORGET = b'"forget"'


class Stored(NamedTuple):
    """A line as it lies in a log: its bytes, the repository of the log, whether it is archived."""

    raw: bytes
    repo: str
    archived: bool

    @property
    def record(self) -> Record:
        return from_line(self.raw)


class Place(NamedTuple):
    """A line, the repository of its log, and its position there, archive included."""

    repo: str
    archived: bool
    position: int
    line: read.Line


def places(home: Home, repo: str, needles: Sequence[bytes] = ()) -> Iterator[Place]:
    """Every line of a log that is not blank, the archive first; or at least those with *needles*.

    The log is opened before the archive is read: a rotation meanwhile puts lines into the archive
    first, so what leaves the log is never missed, at worst seen twice.
    """
    pair = (home.archive(repo), home.log(repo))
    with ExitStack() as stack:
        streams = [open_for_read(path) for path in reversed(pair)][::-1]
        for stream in streams:
            if stream is not None:
                stack.enter_context(stream)
        before = 0
        for stream, archived in zip(streams, (True, False), strict=True):
            last = before
            for line in _lines(stream, needles):
                last = before + line.number
                if line.raw.strip():
                    yield Place(repo, archived, last, line)
            # With needles, lines at the end may have been passed over: leave room for them.
            before = last + (1 << 40 if needles else 0)


def _lines(stream: BinaryIO | None, needles: Sequence[bytes]) -> Iterator[read.Line]:
    if stream is None:
        return iter(())
    return read.lines_with(stream, needles) if needles else read.lines_of(stream)


def fold(
    home: Home, repos: Iterable[str] | None = None, needle: bytes = b""
) -> tuple[Fold[Stored], list[read.Damage]]:
    """What the logs of *home* say, all or those of *repos*, and the lines that hold no record.

    With *needle*, only lines that hold it are folded, and those that forget something.
    """
    folded: Fold[Stored] = Fold()
    damages: list[read.Damage] = []
    for repo in repos_of(home) if repos is None else repos:
        for place in places(home, repo, (needle, _FORGET) if needle else ()):
            raw = place.line.raw
            if needle and _is_beside(raw, needle):
                continue
            try:
                record = from_line(raw)
            except ValueError as error:
                path = home.archive(repo) if place.archived else home.log(repo)
                damages.append(read.Damage(path, place.line.number, str(error)))
            else:
                stamp = Stamp(micros(record.timestamp), repo, place.position)
                folded.add(stamp, record, Stored(raw, repo, place.archived))
    return folded, damages


def _is_beside(raw: bytes, needle: bytes) -> bool:
    """Whether a line has nothing to do with *needle*.

    What does not even look like an object is damaged, and is reported whatever was asked for.
    """
    looks_whole = raw.startswith(b"{") and raw.endswith(b"}")
    return looks_whole and needle not in raw and _FORGET not in raw


def history(home: Home, ident: str) -> list[Record]:
    """Every line that carries or is about *ident*, oldest first."""
    found: list[Record] = []
    for repo in repos_of(home):
        archived: list[Record] = []
        current: list[Record] = []
        for place in places(home, repo, (ident.encode(),)):
            record = _about(ident, place.line.raw)
            lines = archived if place.archived else current
            if record is not None and lines[-1:] != [record]:  # A merge may bring a line twice.
                lines.append(record)
        found += archived + current[_moved_already(archived, current) :]
    return found


def _about(ident: str, raw: bytes) -> Record | None:
    if ident.encode() not in raw:
        return None
    try:
        record = from_line(raw)
    except ValueError:
        return None
    return record if ident in (record.id, record.fields.get("of")) else None


def _moved_already(archived: Sequence[Record], current: Sequence[Record]) -> int:
    """How many lines at the head of a log a killed rotation left at the end of its archive too."""
    longest = min(len(archived), len(current))
    return next(
        (count for count in range(longest, 0, -1) if archived[-count:] == current[:count]), 0
    )
