"""Move the lines of a log: to another name, into another log, to its archive, or away for good.

Lines are in their new place before they leave the old one. If the process is killed in between,
both files hold them; running the same command again leaves each of them once.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress

from commonplace.errors import unusable
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.log import read
from commonplace.log.append import append_once
from commonplace.records import decode, encode, fill_identity, from_line
from commonplace.rules import written_micros
from commonplace.where import aliases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from commonplace.where.home import Home


def move(home: Home, source: str, target: str) -> int:
    """Move all lines of the log *source* to *target*; return how many.

    The old name becomes an alias first: a process that writes by it meanwhile starts a log of that
    name, which is read as part of *target*. Such logs of older names are moved too.
    """
    # The target may have been an alias itself: of the log that is renamed back.
    renamed_back = {target: target} if _aliases(home).log_of(target) else {}
    if source != target:
        aliases.add(home, {**renamed_back, source: target})
    return _gather(home, target)


def archive(home: Home, log: str) -> int:
    """Move all lines of *log* to its archive; return how many."""
    _gather(home, log)
    path = home.log(log)
    if not path.exists():
        return 0
    with hold(path):
        lines = [raw + b"\n" for raw in _lines(path)]
        if lines:
            append_once(home.archive(log), lines)
        _unlink(path)
    return len(lines)


def delete(home: Home, log: str) -> int:
    """Remove *log*, its archive, its damaged lines and its aliases; return how many lines.

    The log itself goes last, and its aliases before it: while it is there, its name finds it, so
    the command can be run again; and the aliases find the logs of older names.
    """
    count = sum(_delete_files(home, name) for name in _aliases(home).names_of(log)[1:])
    aliases.remove(home, log)
    return count + _delete_files(home, log)


def _delete_files(home: Home, log: str) -> int:
    count = 0
    for path_of in _files_of(home):
        path = path_of(log)
        if path.exists():
            with hold(path):
                count += len(_lines(path))
                _unlink(path)
    return count


def _gather(home: Home, log: str) -> int:
    """Move the lines of the logs that have older names of *log* to it; return how many."""
    names = _aliases(home).names_of(log)
    # A record's older lines are in the archive: it goes first, so that they are never the only ones
    # left under the old name.
    return sum(_move_file(path, old, log, names) for old in names[1:] for path in _files_of(home))


def _aliases(home: Home) -> aliases.Aliases:
    return aliases.Aliases([home._replace(trusted=True)])


def _files_of(home: Home) -> tuple[Callable[[str], Path], ...]:
    return (home.damaged, home.archive, home.log)


def _move_file(path_of: Callable[[str], Path], old: str, new: str, names: Sequence[str]) -> int:
    source, target = path_of(old), path_of(new)
    if not source.exists():
        return 0
    with ExitStack() as locks:
        for path in sorted((source, target)):  # Two commands never wait for each other.
            locks.enter_context(hold(path))
        moving = [_renamed(raw, names, new) for raw in _lines(source)]
        there = _lines(target)
        rest = moving[_moved_before(moving, there) :]
        if rest:
            first, second = (there, rest) if new < old else (rest, there)
            atomic.replace(target, (raw + b"\n" for raw in _interleave(first, second)))
        _unlink(source)
    return len(moving)


def _moved_before(moving: Sequence[bytes], there: Sequence[bytes]) -> int:
    """Return how many of *moving* a process moved before it was killed: a log only grows."""
    rest = iter(there)
    return next((at for at, raw in enumerate(moving) if raw not in rest), len(moving))


def _interleave(first: Sequence[bytes], second: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the lines of both, the earlier before the later, each log's in its own order.

    Between two logs the later time decides which line about an id is current, and then the name of
    the log; in one log the order of the lines does.
    """
    by_time = [
        (stamp, number, at, raw)
        for number, lines in enumerate((first, second))
        for at, (stamp, raw) in enumerate(_with_times(lines))
    ]
    return (raw for _stamp, _number, _at, raw in sorted(by_time))


def _with_times(lines: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield each line with the latest time up to it."""
    latest = 0
    for raw in lines:
        with suppress(ValueError):  # A damaged line stays where it is.
            latest = max(latest, written_micros(from_line(raw)))
        yield latest, raw


def _renamed(raw: bytes, names: Sequence[str], new: str) -> bytes:
    """Return the line of a record of one of *names* as one of *new*; other lines as they are."""
    try:
        fields = decode(raw)
    except ValueError:
        return raw
    if fields.get("repo") not in names:
        return raw
    # An id that is made from the fields must not change with the repository: so it is written down.
    return encode({**fill_identity(fields), "repo": new}).encode()


def _lines(path: Path) -> list[bytes]:
    return [line.raw for line in read.lines(path, whole=True) if line.raw.strip()]


def _unlink(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise unusable(path, error) from error
