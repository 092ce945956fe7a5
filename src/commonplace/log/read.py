"""Read a log file as records and damages. A damaged line raises no exception."""

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
# How every line begins that we write. Others may hold their id anywhere, or lack it.
ID_FIRST = b'{"id":'
_NEWLINE = ord("\n")
# Some editors write one before the first line.
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """One line of a file: its number from 1, its offset, its bytes without the newline.

    A line is *torn* if it does not end with a newline.
    """

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
    """Return the records and the damages in the file at *path*, each in order."""
    records: list[Record] = []
    damages: list[Damage] = []
    for found in parse(path):
        if isinstance(found, Damage):
            damages.append(found)
        else:
            records.append(found[1])
    return records, damages


def parse(path: Path, start: int = 0) -> Iterator[tuple[Line, Record] | Damage]:
    """Yield each line from the offset *start* on as a record or a damage; skip blank lines."""
    for line in lines(path, start):
        if not line.raw.strip():
            continue
        try:
            yield line, from_line(line.raw)
        except ValueError as error:
            reason = "is torn: the last line has no end" if line.torn else str(error)
            yield Damage(path, line.number, reason)


def lines(path: Path, start: int = 0, *, whole: bool = False) -> Iterator[Line]:
    """Yield the lines of the file from the offset *start* on; none if the file is missing.

    The first of them has the number 1.
    """
    stream = open_for_read(path)
    if stream is not None:
        with stream:
            yield from lines_of(stream, start, whole=whole)


def lines_with(stream: BinaryIO, needles: Iterable[bytes]) -> Iterator[Line]:
    """Yield the lines of an open file that hold one of *needles* or cannot be records, and others.

    A block of lines is skipped as a whole if every line begins with its id and none holds a
    needle. That is ten times as fast as looking at each line.
    """
    wanted = tuple(needles)
    number, offset = 0, 0
    while block := stream.read(SCAN_BYTES):
        block = block[: block.rfind(b"\n") + 1]
        if not block:
            break  # A line longer than a block, or one without an end: `lines_of` reads it.
        count = block.count(b"\n")
        objects = count == block.count(b"}\n")
        if not objects or may_lack_ids(block) or any(needle in block for needle in wanted):
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


def may_lack_ids(content: bytes) -> bool:
    """Whether a line of *content* may be a lesson without an id, which cannot be searched for."""
    ids = content.count(b"\n" + ID_FIRST) + content.startswith(ID_FIRST)
    return ids < content.count(b"\n") + (not content.endswith(b"\n"))


def lines_of(stream: BinaryIO, start: int = 0, *, whole: bool = False) -> Iterator[Line]:
    """Yield the lines of an open file.

    A line longer than any record may be is cut, unless the caller wants it *whole* to write it
    back. Only a newline ends a line; str.splitlines() would also cut at a U+2028 inside a text.
    """
    bytes_max = -1 if whole else LINE_READ_BYTES_MAX + 1
    number, offset = 0, start
    try:
        if start:
            stream.seek(start)  # A pipe cannot seek, and is read only from its start.
        while raw := stream.readline(bytes_max):
            number += 1
            size, torn = len(raw), raw[-1] != _NEWLINE
            if size == bytes_max:
                while torn and (rest := stream.readline(READ_BUFFER_BYTES)):
                    size, torn = size + len(rest), rest[-1] != _NEWLINE
            text = raw if offset else raw.removeprefix(_BYTE_ORDER_MARK)
            yield Line(number, offset, text.rstrip(b"\n"), torn)
            if torn:
                return  # The rest of this line may still be appended.
            offset += size
    except OSError as error:
        raise unusable(stream.name, error) from error
