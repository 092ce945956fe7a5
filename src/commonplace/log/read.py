"""Reading a log file: records and damages, never an exception half-way."""

from __future__ import annotations

from typing import NamedTuple

from commonplace.errors import unusable
from commonplace.files.plain import READ_BUFFER_BYTES, open_for_read
from commonplace.records import LINE_READ_BYTES_MAX, Record, from_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import BinaryIO

SCAN_BYTES = 1 << 16
_NEWLINE = ord("\n")
# Some editors put one before the first line.
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """One line as it lies in the file: its number from 1, its offset, its bytes without the newline."""

    number: int
    offset: int
    raw: bytes
    torn: bool = False


class Damage(NamedTuple):
    """A line that holds no record, and why."""

    path: Path
    line: int
    reason: str


def read(path: Path) -> tuple[list[Record], list[Damage]]:
    """Everything in the file at *path*, in its order."""
    records: list[Record] = []
    damages: list[Damage] = []
    for found in parse(path):
        if isinstance(found, Damage):
            damages.append(found)
        else:
            records.append(found[1])
    return records, damages


def parse(path: Path, start: int = 0) -> Iterator[tuple[Line, Record] | Damage]:
    """Each line from the offset *start* on, as a record or as a damage; blank lines are nothing."""
    for line in lines(path, start):
        if not line.raw.strip():
            continue
        try:
            yield line, from_line(line.raw)
        except ValueError as error:
            torn = "is torn: the last line has no end" if line.torn else str(error)
            yield Damage(path, line.number, torn)


def lines(path: Path, start: int = 0, *, whole: bool = False) -> Iterator[Line]:
    """The lines of the file from the offset *start* on (numbers count from there). A missing file has none."""
    stream = open_for_read(path)
    if stream is not None:
        with stream:
            yield from lines_of(stream, start, whole=whole)


def lines_with(stream: BinaryIO, needles: Iterable[bytes]) -> Iterator[Line]:
    """The lines of an open file that hold one of *needles*, those that cannot be records, and some others.

    Whole blocks in which every line looks like an object and none holds a needle are passed over, which is ten times
    as quick as looking at each of their lines.
    """
    wanted = tuple(needles)
    number, offset = 0, 0
    while block := stream.read(SCAN_BYTES):
        block = block[: block.rfind(b"\n") + 1]
        if not block:
            break  # A line longer than a block, or one without an end: read it as such.
        count = block.count(b"\n")
        objects = count == block.count(b"}\n") == block.count(b"\n{") + block.startswith(b"{")
        if not objects or any(needle in block for needle in wanted):
            at = offset
            for raw in block.split(b"\n")[:-1]:
                number += 1
                yield Line(number, at, raw if at else raw.removeprefix(_BYTE_ORDER_MARK))
                at += len(raw) + 1
        else:
            number += count
        offset += len(block)
        stream.seek(offset)
    stream.seek(offset)
    for line in lines_of(stream, offset):
        yield line._replace(number=line.number + number)


def lines_of(stream: BinaryIO, start: int = 0, *, whole: bool = False) -> Iterator[Line]:
    """The lines of an open file. Only a newline ends one; str.splitlines() would also cut at a U+2028 inside a text.

    A line longer than any record may be is cut, unless it is wanted *whole*: by those who write back what they read.
    """
    bytes_max = -1 if whole else LINE_READ_BYTES_MAX + 1
    number, offset = 0, start
    try:
        if start:
            stream.seek(start)  # A pipe cannot seek, and is only ever read from its start.
        while raw := stream.readline(bytes_max):
            number += 1
            size, torn = len(raw), raw[-1] != _NEWLINE
            if size == bytes_max:
                while torn and (rest := stream.readline(READ_BUFFER_BYTES)):
                    size, torn = size + len(rest), rest[-1] != _NEWLINE
            text = raw if offset else raw.removeprefix(_BYTE_ORDER_MARK)
            yield Line(number, offset, text.rstrip(b"\n"), torn)
            if torn:
                return  # What is appended from here on belongs to this line.
            offset += size
    except OSError as error:
        raise unusable(stream.name, error) from error
