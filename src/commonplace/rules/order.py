"""The order of lines: which of two came later."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from commonplace.records import micros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from commonplace.records import Record


class Stamp(NamedTuple):
    """The place of a line: its time, its log, and its position there.

    The archive of a log comes before the log itself, and positions count through both. The fields
    are in the order in which the last lines of several logs are compared.
    """

    micros: int
    log: str
    position: int


def written_micros(record: Record) -> int:
    """Return when the line of *record* was written, to compare it with the lines of other logs.

    An edit keeps the timestamp of its record, and says in `meta.edited` when it was made.
    """
    written = micros(record.timestamp)
    edited = record.meta.get("edited")
    if isinstance(edited, str):
        with suppress(ValueError):
            written = max(written, micros(edited))
    return written


def is_after(one: Stamp, other: Stamp) -> bool:
    """Whether the line at *one* came after the line at *other*.

    Within a log the position decides: clocks go backwards, and events are logged after the fact.
    Two logs have no common order, so between them the time decides.
    """
    if one.log == other.log:
        return one.position > other.position
    return one.micros > other.micros


def newest(last_lines: Iterable[Stamp]) -> Stamp:
    """Return the current one of the last lines that several logs have of one id.

    Where the times are equal, the name of the log decides, so that every reader chooses the same.
    """
    return max(last_lines)
