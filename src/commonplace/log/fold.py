"""Read all log lines of a home and fold them: the latest version of each record."""

from __future__ import annotations

from contextlib import ExitStack
from operator import itemgetter
from typing import NamedTuple

from commonplace.files.plain import open_for_read
from commonplace.log import read
from commonplace.log.logs import list_logs
from commonplace.records import Record, encode, from_line
from commonplace.rules import Fold, Stamp, subjects, written_micros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import BinaryIO

    from commonplace.where.home import Home

# Lines with a `forget` are always read: they may hide the records that were asked for.
_FORGET = b'"forget"'


class Stored(NamedTuple):
    """The bytes of a log line, the repository of the log, and whether it is in the archive."""

    raw: bytes
    repo: str
    archived: bool

    @property
    def record(self) -> Record:
        return from_line(self.raw)


class LogLine(NamedTuple):
    """A line, the repository of its log, and its position in archive and log together."""

    repo: str
    archived: bool
    position: int
    line: read.Line


def log_lines(home: Home, repo: str, needles: Sequence[bytes] = ()) -> Iterator[LogLine]:
    """Yield every line of a log that is not blank, the archive first.

    With *needles*, lines that hold none of them may be left out. The log is opened before the
    archive is read: a rotation adds lines to the archive before it removes them from the log, so
    no line is missed, but one may be read twice.
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
                    yield LogLine(repo, archived, last, line)
            # With needles, lines at the end may have been skipped: leave positions for them.
            before = last + (1 << 40 if needles else 0)


def _lines(stream: BinaryIO | None, needles: Sequence[bytes]) -> Iterator[read.Line]:
    if stream is None:
        return iter(())
    return read.lines_with(stream, needles) if needles else read.lines_of(stream)


def fold(
    home: Home,
    repos: Iterable[str] | None = None,
    needle: bytes = b"",
    *,
    whole: bool = False,
) -> tuple[Fold[Stored], list[read.Damage]]:
    """Fold the logs of *home*, all or those of *repos*; return the damaged lines, too.

    With *needle*, only lines that hold it and lines that forget a record are folded. With *whole*,
    the line kept of an episode that was summarized is the one from before that.
    """
    folded: Fold[Stored] = Fold()
    damages: list[read.Damage] = []
    episodes: dict[str, bytes] = {}
    for repo in list_logs(home) if repos is None else repos:
        for log_line in log_lines(home, repo, (needle, _FORGET) if needle else ()):
            raw = log_line.line.raw
            if needle and _is_unrelated(raw, needle):
                continue
            try:
                record = from_line(raw)
            except ValueError as error:
                path = home.archive(repo) if log_line.archived else home.log(repo)
                damages.append(read.Damage(path, log_line.line.number, str(error)))
            else:
                stamp = Stamp(written_micros(record), repo, log_line.position)
                if whole and record.kind == "episode":
                    raw = _whole(record, raw, episodes.get(record.id))
                    episodes[record.id] = raw
                folded.add(stamp, record, Stored(raw, repo, log_line.archived))
    return folded, damages


def _whole(record: Record, raw: bytes, before: bytes | None) -> bytes:
    """Return the line of an episode as it was *before* it was summarized.

    What was changed in the summary since stays changed.
    """
    if before is None or "summarized" not in record.meta or record.fields.get("action_log"):
        return raw
    episode = from_line(before)
    actions = episode.fields.get("action_log", [])
    fields = {**record.fields, "action_log": actions}
    # A line that somebody else wrote may lack what every line of ours has.
    given = {"repo": record.repo, "agent_id": record.agent_id, **episode.fields, "meta": None}
    return before if {**fields, "meta": None} == given else encode(fields).encode()


def _is_unrelated(raw: bytes, needle: bytes) -> bool:
    """Whether a line neither holds *needle* nor forgets a record.

    A line that does not look like an object is damaged, and damaged lines are always reported. One
    that does not begin with its id may be a lesson without an id, which gets one when it is read.
    """
    looks_whole = raw.startswith(read.ID_FIRST) and raw.endswith(b"}")
    return looks_whole and needle not in raw and _FORGET not in raw


def history(home: Home, ident: str) -> list[Record]:
    """Return every version of the record *ident* and every record about it, oldest first.

    Within a log its order applies, between two logs the time at which lines were written.
    """
    found: list[tuple[int, Record]] = []
    for repo in list_logs(home):
        archived: list[Record] = []
        current: list[Record] = []
        for log_line in log_lines(home, repo, (ident.encode(),)):
            record = _parse_if_about(ident, log_line.line.raw)
            lines = archived if log_line.archived else current
            if record is not None and lines[-1:] != [record]:  # A merge may repeat a line.
                lines.append(record)
        latest = 0
        for record in archived + current[_count_overlap(archived, current) :]:
            latest = max(latest, written_micros(record))
            found.append((latest, record))
    return [record for _written, record in sorted(found, key=itemgetter(0))]


def _parse_if_about(ident: str, raw: bytes) -> Record | None:
    if ident.encode() not in raw and raw.startswith(read.ID_FIRST):
        return None
    try:
        record = from_line(raw)
    except ValueError:
        return None
    return record if ident == record.id or ident in subjects(record) else None


def _count_overlap(archived: Sequence[Record], current: Sequence[Record]) -> int:
    """Return how many lines are at the end of the archive and again at the start of the log.

    A rotation that was killed between its two writes leaves such lines.
    """
    longest = min(len(archived), len(current))
    return next(
        (count for count in range(longest, 0, -1) if archived[-count:] == current[:count]), 0
    )
