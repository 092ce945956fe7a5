"""The logs of one home: one file a repository, its archive beside it."""

from __future__ import annotations

from contextlib import suppress

from commonplace.errors import DiskFull, unusable
from commonplace.files.lock import LOCK_S_MAX
from commonplace.log.append import Appender
from commonplace.log.view import Version, View, all_lines, fold
from commonplace.records import from_line
from commonplace.where.home import LOG_SUFFIX, repo_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from commonplace.log.prepare import Entry
    from commonplace.log.read import Damage
    from commonplace.records import Record
    from commonplace.where.home import Home

OPEN_FILES_MAX = 64


def log_files(home: Home) -> list[Path]:
    """The logs of a home, then their archives, in order."""
    return [path for folder in (home.log_folder, home.archive_folder) for path in _logs_in(folder)]


def files(home: Home) -> list[Path]:
    """Every file of the home. Of links, those that readers follow: to the folder `log/` and to the logs."""
    found = {
        path
        for path in (*home.path.rglob("*"), *home.log_folder.rglob("*"))
        if not path.is_symlink()
    }
    return sorted(path for path in found.union(log_files(home)) if path.is_file())


def _logs_in(folder: Path) -> list[Path]:
    try:
        return sorted(
            path
            for path in folder.iterdir()
            if path.suffix == LOG_SUFFIX and not path.name.startswith(".")
        )
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unusable(folder, error) from error


class Logs:
    """The folder `log/` of a home, open for reading and appending."""

    def __init__(self, home: Home, *, fsync: str, wait_s_max: float = LOCK_S_MAX) -> None:
        self.home = home
        self.fsync = fsync
        self.wait_s_max = wait_s_max
        # What was damaged in the lines read so far.
        self.damages: set[Damage] = set()
        self._appenders: dict[str, Appender] = {}

    def repos(self) -> list[str]:
        """The names of all logs, archived ones included, in order."""
        return sorted({repo_of(path) for path in log_files(self.home)})

    def append(self, entries: Sequence[Entry]) -> None:
        """Add *entries* to the logs of their repositories, in their order; all of one log's, or none."""
        by_repo: dict[str, list[bytes]] = {}
        for entry in entries:
            by_repo.setdefault(entry.record.repo, []).append(entry.line)
        stored = 0
        for repo, lines in by_repo.items():
            try:
                self._appender(repo).append_many(lines)
            except DiskFull as error:
                raise DiskFull(error.path, stored) from error
            stored += len(lines)

    def view(self, repo: str | None = None, *, needle: bytes = b"", archive: bool = True) -> View:
        """The current view of one log or of all."""
        view = fold(self._pairs(repo, archive=archive), needle)
        self.damages.update(view.damages)
        return view

    def history(self, ident: str) -> list[Version]:
        """Every line that carries or is about *ident*, oldest first."""
        versions: list[Version] = []
        for archive, log in self._pairs(None, archive=True):
            found: dict[Path, list[Version]] = {archive: [], log: []}
            for path, record in _about(ident, archive, log):
                if (
                    not found[path] or found[path][-1].record != record
                ):  # A merge may bring a line twice.
                    found[path].append(Version(record, path))
            versions += found[archive] + found[log][_moved_already(found[archive], found[log]) :]
        return versions

    def flush(self) -> None:
        for appender in self._appenders.values():
            appender.flush()

    def close(self) -> None:
        for appender in self._appenders.values():
            appender.close()
        self._appenders.clear()

    def _pairs(self, repo: str | None, *, archive: bool) -> list[tuple[Path, Path]]:
        repos = self.repos() if repo is None else [repo]
        nothing = self.home.log_folder / ".none"
        return [
            (self.home.archive(name) if archive else nothing, self.home.log(name)) for name in repos
        ]

    def _appender(self, repo: str) -> Appender:
        appender = self._appenders.get(repo)
        if appender is None:
            if len(self._appenders) >= OPEN_FILES_MAX:
                self._appenders.pop(next(iter(self._appenders))).close()
            appender = self._appenders[repo] = Appender(
                self.home.log(repo), fsync=self.fsync, wait_s_max=self.wait_s_max
            )
        return appender


def _about(ident: str, archive: Path, log: Path) -> Iterator[tuple[Path, Record]]:
    needle = ident.encode()
    for path, line in all_lines([(archive, log)], (needle,)):
        if needle in line.raw:
            with suppress(ValueError):
                record = from_line(line.raw)
                if ident in (record.id, record.fields.get("of")):
                    yield path, record


def _moved_already(archived: Sequence[Version], current: Sequence[Version]) -> int:
    """How many versions at the head of a log a rotation, killed half-way, left at the end of its archive as well."""
    old, new = ([version.record for version in versions] for versions in (archived, current))
    return next(
        (count for count in range(min(len(old), len(new)), 0, -1) if old[-count:] == new[:count]), 0
    )
