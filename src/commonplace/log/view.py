"""The current view: the log folded into the latest version of each record, what was forgotten, what feedback says."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import datetime
from typing import NamedTuple

from commonplace.files.plain import open_for_read
from commonplace.log import read
from commonplace.records import (
    OUTCOMES,
    Feedback,
    Forget,
    Lesson,
    Rate,
    Record,
    from_line,
    parse_rate,
    to_utc,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO


class Version(NamedTuple):
    """One line of a record's history, and the log it lies in."""

    record: Record
    path: Path


class View:
    """What a log says at its end. Feed it lines in their order: archive first, then the log."""

    def __init__(self) -> None:
        self.damages: list[read.Damage] = []
        self.forgotten: dict[str, Forget] = {}
        self._latest: dict[str, tuple[bytes, Path]] = {}
        self._derived: dict[str, tuple[str, ...]] = {}
        self._of: dict[str, str] = {}
        self._feedback: dict[str, dict[str, str]] = {}

    def add(self, raw: bytes, record: Record, path: Path) -> None:
        """Take the next line; it replaces an earlier one with its id."""
        ident = record.id
        if isinstance(record, Forget):
            self.forgotten[record.of] = record
        elif isinstance(record, Feedback):
            self._feedback.setdefault(record.of, {}).setdefault(ident, record.outcome)
        if not isinstance(record, Forget) and isinstance(of := record.fields.get("of"), str):
            self._of[ident] = of
        # Written again after it was forgotten: it was learned again.
        self.forgotten.pop(ident, None)
        self._latest[ident] = (raw, path)
        if record.sources:
            self._derived[ident] = record.sources
        else:
            self._derived.pop(ident, None)

    def merge(self, other: View) -> None:
        """Take in what another log says. The lines of two logs have no order, so here the later time counts."""
        self.damages += other.damages
        for of, said in other._feedback.items():
            self._feedback[of] = {**said, **self._feedback.get(of, {})}
        self.forgotten = other._not_written_since(self.forgotten) | self._not_written_since(
            other.forgotten
        )
        for ident, line in other._latest.items():
            if ident in self._latest and _moment(other.latest(ident).record) < _moment(
                self.latest(ident).record
            ):
                continue
            self._latest[ident] = line
            self._derived.pop(ident, None)
            self._of.pop(ident, None)
            if ident in other._derived:
                self._derived[ident] = other._derived[ident]
            if ident in other._of:
                self._of[ident] = other._of[ident]

    def _not_written_since(self, forgotten: Mapping[str, Forget]) -> dict[str, Forget]:
        return {
            of: forget
            for of, forget in forgotten.items()
            if of not in self._latest or _moment(self.latest(of).record) < _moment(forget)
        }

    def ids(self) -> Iterable[str]:
        """Every id there is, hidden ones included, in the order of their first appearance."""
        return self._latest.keys()

    def latest(self, ident: str) -> Version:
        raw, path = self._latest[ident]
        return Version(from_line(raw), path)

    def lines(self) -> Iterator[tuple[str, bytes]]:
        """The latest line of every record that is not hidden."""
        hidden = self.hidden()
        for ident, (raw, _path) in self._latest.items():
            if ident not in hidden:
                yield ident, raw

    def records(self) -> Iterator[Record]:
        for _ident, raw in self.lines():
            yield from_line(raw)

    def hidden(self) -> set[str]:
        """What was forgotten, what derives from it, and the feedback and links that speak of it."""
        hidden = self.closure(self.forgotten.keys())
        return hidden | {ident for ident, of in self._of.items() if of in hidden}

    def closure(self, ids: Iterable[str]) -> set[str]:
        """*ids* and everything that derives from them, directly or not."""
        found = set(ids)
        grown = True
        while grown:
            more = {
                ident
                for ident, sources in self._derived.items()
                if ident not in found and found & set(sources)
            }
            grown = bool(more)
            found |= more
        return found

    def feedback(self, ident: str) -> dict[str, int]:
        """How often a use of the record ended in each outcome."""
        counts = dict.fromkeys(OUTCOMES, 0)
        for outcome in self._feedback.get(ident, {}).values():
            counts[outcome] = counts.get(outcome, 0) + 1
        return counts

    def rate(self, record: Record) -> Rate | None:
        """`success_rate` with the feedback added; `None` when nobody ever tried."""
        stated = record.success_rate if isinstance(record, Lesson) else ""
        base = parse_rate(stated) if stated else Rate(0, 0)
        counts = self.feedback(record.id)
        rate = Rate(
            base.worked + counts["worked"], base.tried + counts["worked"] + counts["failed"]
        )
        return rate if stated or rate.tried else None


def fold(pairs: Iterable[tuple[Path, Path]], needle: bytes = b"") -> View:
    """The view of the logs in *pairs* of (archive, log). With *needle*, only of lines that hold it.

    Lines that forget are always taken: they may hide what was asked for.
    """
    first, *rest = [_folded(pair, needle) for pair in pairs] or [View()]
    for view in rest:
        first.merge(view)
    return first


def _folded(pair: tuple[Path, Path], needle: bytes) -> View:
    view = View()
    for path, line in all_lines([pair], (needle, b'"forget"') if needle else ()):
        raw = line.raw
        # What does not even look like an object is damaged, and told whatever was asked for.
        if (
            needle
            and needle not in raw
            and b'"forget"' not in raw
            and raw.startswith(b"{")
            and raw.endswith(b"}")
        ):
            continue
        try:
            record = from_line(raw)
        except ValueError as error:
            view.damages.append(read.Damage(path, line.number, str(error)))
        else:
            view.add(raw, record, path)
    return view


def _moment(record: Record) -> datetime:
    return datetime.fromisoformat(to_utc(record.timestamp))


def all_lines(
    pairs: Iterable[tuple[Path, Path]], needles: Sequence[bytes] = ()
) -> Iterator[tuple[Path, read.Line]]:
    """Every line that is not blank, each archive before its log; with *needles*, at least those `lines_with` gives.

    The log is opened before the archive is read: a rotation meanwhile puts lines into the archive first, so what
    leaves the log is never missed, at worst seen twice.
    """

    def lines_in(stream: BinaryIO) -> Iterator[read.Line]:
        return read.lines_with(stream, needles) if needles else read.lines_of(stream)

    for pair in pairs:
        with ExitStack() as stack:
            streams = [open_for_read(path) for path in reversed(pair)][::-1]
            for stream in streams:
                if stream is not None:
                    stack.enter_context(stream)
            for path, stream in zip(pair, streams, strict=True):
                for line in lines_in(stream) if stream is not None else ():
                    if line.raw.strip():
                        yield path, line
