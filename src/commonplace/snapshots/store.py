"""Make, list and read snapshots. A snapshot is a small file that names the root of its objects.

Its id is a hash of what it holds and of its name: the same state twice is one snapshot. Only an
erasure changes what it holds (see `removal.py`); its id stays then, and it says so.
"""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from commonplace.errors import SnapshotDamaged, SnapshotNotFound, UsageError, unusable
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.files.plain import is_ours, read_small
from commonplace.log import read
from commonplace.log.check import Finding
from commonplace.log.hold import hold_logs
from commonplace.snapshots.objects import Objects
from commonplace.where.home import is_pack_log, repo_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commonplace.where.home import Home

FORMAT = 1
NAME_CHARS_MAX = 200
_ID_CHARS = 16
_MANIFEST_BYTES_MAX = 64 << 10


class Snapshot(NamedTuple):
    """A snapshot: its id and name, when it was made, and how much it holds.

    *root* leads to its table of logs. *number* counts the snapshots of the home, *erased* the
    erasures that changed what it holds.
    """

    id: str
    number: int
    name: str
    created: str
    root: str
    logs: int
    lines: int
    bytes: int
    erased: int = 0


class Made(NamedTuple):
    """A snapshot, whether it is new, and how many bytes were written for it."""

    snapshot: Snapshot
    is_new: bool
    bytes_written: int


class LogOfThen(NamedTuple):
    """A row of the table of logs: a repository, and the roots of its archive and its log."""

    repo: str
    archive: str
    log: str


def create(home: Home, created: str, name: str = "", *, durable: bool = True) -> Made:
    """Make a snapshot of the logs of *home*, or return the one that holds the same."""
    if len(name) > NAME_CHARS_MAX or not name.isprintable():
        raise UsageError(
            f"the name of a snapshot has at most {NAME_CHARS_MAX} printable characters"
        )
    objects = Objects(home.snapshot_objects)
    with holding(home):
        _keep_from_git(home)
        rows: list[LogOfThen] = []
        counted = _Counted()
        # No line is half written, and no log is renamed before it is read. A log that begins after
        # the others were held may have newer lines than they have: the next snapshot takes it.
        with hold_logs(home) as held:
            logs_held = [path for path in held if path != home.repos_file]
            # A pack can be installed again, and restoring must not bring back one that was removed.
            repos = {repo for repo in map(repo_of, logs_held) if not is_pack_log(repo)}
            for repo in sorted(repos):
                parts = (home.archive(repo), home.log(repo))
                roots = [
                    objects.put_lines(counted(line.raw for line in read.lines(path)))
                    if path in logs_held
                    else ""
                    for path in parts
                ]
                rows.append(LogOfThen(repo, *roots))
        root = objects.put_lines(table(rows))
        ident = _ident(root, name)
        with suppress(SnapshotNotFound, SnapshotDamaged):
            found = _read(home, ident)
            # An erasure may have changed what the other snapshot of this id holds.
            if found.root == root:
                return Made(found, is_new=False, bytes_written=objects.bytes_written)
        number = max((one.number for one in listed(home)), default=0) + 1
        made = Snapshot(ident, number, name, created, root, len(rows), counted.lines, counted.bytes)
        if durable:
            objects.sync()
        size = save(home, made)
    return Made(made, is_new=True, bytes_written=objects.bytes_written + size)


class _Counted:
    """Counts the lines that pass, and their bytes."""

    def __init__(self) -> None:
        self.lines = self.bytes = 0

    def __call__(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        for line in lines:
            self.lines += 1
            self.bytes += len(line) + 1
            yield line


@contextmanager
def holding(home: Home) -> Iterator[None]:
    """Hold the snapshots of *home*: no other process adds or removes objects meanwhile."""
    with hold(home.snapshots_lock):
        yield


def save(home: Home, snapshot: Snapshot) -> int:
    """Write the file of *snapshot*; return how many bytes it has."""
    raw = json.dumps({"format": FORMAT, **snapshot._asdict()}, ensure_ascii=False).encode()
    atomic.replace(home.snapshot(snapshot.id), [raw])
    return len(raw)


def listed(home: Home) -> list[Snapshot]:
    """Return all snapshots of *home* that can be read, the newest first."""
    found = [one for one in _all(home) if isinstance(one, Snapshot)]
    return sorted(found, key=lambda one: (one.number, one.id), reverse=True)


def damaged(home: Home) -> list[SnapshotDamaged]:
    """Return what is wrong with the snapshots of *home* that cannot be read."""
    return [one for one in _all(home) if isinstance(one, SnapshotDamaged)]


def findings(home: Home) -> list[Finding]:
    """Return what is wrong with them as `doctor` tells it."""
    return [Finding("snapshot", Path(one.path), 0, one.reason, "") for one in damaged(home)]


def _all(home: Home) -> Iterator[Snapshot | SnapshotDamaged]:
    for ident in _ids(home):
        try:
            yield _read(home, ident)
        except SnapshotDamaged as error:
            yield error


def find(home: Home, given: str) -> Snapshot:
    """Return the snapshot with the id *given*, or the start of it, or the newest of that name."""
    ids = [ident for ident in _ids(home) if given and ident.startswith(given)]
    if len(ids) == 1 or given in ids:
        return _read(home, given if given in ids else ids[0])
    named = next((one for one in listed(home) if given and one.name == given), None)
    if named is None:
        raise SnapshotNotFound(given, len(ids))
    return named


def logs(home: Home, snapshot: Snapshot) -> list[LogOfThen]:
    """Return the table of logs of *snapshot*."""
    rows: list[LogOfThen] = []
    for raw in Objects(home.snapshot_objects).lines(snapshot.root):
        try:
            row = json.loads(raw)
        except ValueError:
            row = None
        is_row = isinstance(row, list) and len(row) == len(LogOfThen._fields)
        if not is_row or not all(isinstance(one, str) for one in row):
            raise SnapshotDamaged(home.snapshot(snapshot.id), "its table of logs is not valid")
        rows.append(LogOfThen(*row))
    return rows


def table(rows: list[LogOfThen]) -> list[bytes]:
    """Return the lines of a table of logs."""
    return [json.dumps(list(row)).encode() for row in rows]


def _ident(root: str, name: str) -> str:
    content = f"{root}\n{name}".encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=_ID_CHARS // 2).hexdigest()


def _ids(home: Home) -> list[str]:
    try:
        paths = sorted(home.snapshots_folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unusable(home.snapshots_folder, error) from error
    return [path.stem for path in paths if path.suffix == ".json" and is_ours(path)]


def _read(home: Home, ident: str) -> Snapshot:
    path = home.snapshot(ident)
    try:
        fields = json.loads(read_small(path, _MANIFEST_BYTES_MAX))
        if fields.pop("format") > FORMAT:
            raise SnapshotDamaged(path, "a newer version of Commonplace made it", is_newer=True)
        found = Snapshot(**fields)
    except FileNotFoundError:
        raise SnapshotNotFound(ident) from None
    except OSError as error:
        raise unusable(path, error) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise SnapshotDamaged(path, "it does not describe a snapshot") from None
    types = (str, int, str, str, str, int, int, int, int)
    if found.id != ident or not all(map(isinstance, found, types)):
        raise SnapshotDamaged(path, "it does not describe a snapshot")
    return found


def _keep_from_git(home: Home) -> None:
    """Have git leave out the snapshots of a home in a repository: they are this machine's own."""
    path = home.snapshots_folder / ".gitignore"
    if not path.is_file():
        atomic.replace(path, [b"*\n"])
