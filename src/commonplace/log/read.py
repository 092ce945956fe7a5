"""Reading a log file: records and damages, never an exception half-way."""

from __future__ import annotations

from typing import NamedTuple

from commonplace.records import Record, from_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

BLOCK_BYTES = 1 << 20
LINE_BYTES_MAX = 1 << 20
# A reader takes longer lines than a writer makes: the limit may have been higher once.
READ_BYTES_MAX = 64 << 20


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


def lines(path: Path, start: int = 0) -> Iterator[Line]:
    """The lines of the file from the offset *start* on (numbers count from there). A missing file has none."""
    try:
        stream = path.open("rb")
    except FileNotFoundError:
        return
    with stream:
        yield from lines_of(stream, start)


def lines_of(stream: BinaryIO, start: int = 0) -> Iterator[Line]:
    """The lines of an open file. Only a newline ends one; str.splitlines() would also cut at a U+2028 inside a text."""
    number, offset, rest = 0, start, b""
    if start:
        stream.seek(start)  # A pipe cannot seek, and is only ever read from its start.
    while block := stream.read(BLOCK_BYTES):
        *whole, rest = (rest + block).split(b"\n")
        for raw in whole:
            number += 1
            yield Line(number, offset, raw)
            offset += len(raw) + 1
        if len(rest) > READ_BYTES_MAX:
            number += 1
            yield Line(number, offset, rest[:100], torn=True)
            offset, rest = _skip_line(stream, offset + len(rest))
    if rest:
        yield Line(number + 1, offset, rest, torn=True)


def _skip_line(stream: BinaryIO, offset: int) -> tuple[int, bytes]:
    """Pass over the rest of a line too long to hold; returns where the next begins and what was read of it."""
    while block := stream.read(BLOCK_BYTES):
        end = block.find(b"\n")
        if end >= 0:
            return offset + end + 1, block[end + 1 :]
        offset += len(block)
    return offset, b""
