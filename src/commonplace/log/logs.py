"""The logs of one home: one file for each repository, its archive beside it."""

from __future__ import annotations

from contextlib import contextmanager

from commonplace.errors import DiskFull, unusable
from commonplace.files import lock
from commonplace.files.plain import is_ours
from commonplace.files.walk import walk
from commonplace.log.append import Appender
from commonplace.where.home import LOG_SUFFIX, repo_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from commonplace.log.prepare import PreparedLine
    from commonplace.where.home import Home

OPEN_FILES_MAX = 64


def log_files(home: Home) -> list[Path]:
    """Return the paths of the logs of a home, of their archives and of packs, each in order."""
    folders = (home.log_folder, home.archive_folder, home.pack_logs_folder)
    return [path for folder in folders for path in _logs_in(folder)]


def list_logs(home: Home) -> list[str]:
    """Return the names of all logs of *home*, in order: of repositories and of packs."""
    return sorted({repo_of(path) for path in log_files(home)})


def list_repos(home: Home) -> list[str]:
    """Return the names of the repositories with a log or archive in *home*, in order."""
    folders = (home.log_folder, home.archive_folder)
    return sorted({repo_of(path) for folder in folders for path in _logs_in(folder)})


def files(home: Home) -> list[Path]:
    """Return every plain file of the home and of its state. No link is followed."""
    return [path for path in entries(home) if path.is_file()]


def entries(home: Home) -> list[Path]:
    """Return the files and folders of *home* and of its state, in order, without links."""
    others = home.other_states_folder
    roots = [home.path] if home.state_elsewhere is None else [home.path, home.state_elsewhere]
    return sorted(
        path
        for root in roots
        for path in walk(root)
        if not path.is_symlink() and others not in path.parents
    )


def is_of_git(home: Home, path: Path) -> bool:
    """Whether *path* belongs to git, in a home that is a repository."""
    return path.is_relative_to(home.path) and ".git" in path.relative_to(home.path).parts


def _logs_in(folder: Path) -> list[Path]:
    try:
        return sorted(
            path
            for path in folder.iterdir()
            if path.suffix == LOG_SUFFIX and not path.name.startswith(".") and is_ours(path)
        )
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unusable(folder, error) from error


def size_of(path: Path) -> int | None:
    """Return the size of a file; `None` if it is missing, which another process may cause now."""
    try:
        return path.stat().st_size
    except OSError:
        return None


class Logs:
    """The logs of a home, open for appending."""

    def __init__(self, home: Home, *, fsync: str, wait_s_max: float = lock.LOCK_S_MAX) -> None:
        self.home = home
        self._fsync = fsync
        self._wait_s_max = wait_s_max
        self._appenders: dict[str, Appender] = {}

    def append(self, entries: Sequence[PreparedLine]) -> None:
        """Append *entries* to the logs of their repositories; for each log all or none."""
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

    @contextmanager
    def hold(self, repo: str) -> Iterator[Callable[[Iterable[bytes]], None]]:
        """Hold the log of *repo* and yield the function that appends lines to it.

        If the log was renamed before we held it, taking the lock created it anew: an empty file is
        removed again.
        """
        try:
            with self._appender(repo).hold() as write:
                yield write
        finally:
            path = self.home.log(repo)
            if size_of(path) == 0:
                with lock.hold(path):
                    if size_of(path) == 0:
                        path.unlink(missing_ok=True)

    def flush(self) -> None:
        for appender in self._appenders.values():
            appender.flush()

    def close(self) -> None:
        for appender in self._appenders.values():
            appender.close()
        self._appenders.clear()

    def _appender(self, repo: str) -> Appender:
        appender = self._appenders.get(repo)
        if appender is None:
            if len(self._appenders) >= OPEN_FILES_MAX:
                self._appenders.pop(next(iter(self._appenders))).close()
            path = self.home.log(repo)
            appender = Appender(path, fsync=self._fsync, wait_s_max=self._wait_s_max)
            self._appenders[repo] = appender
        return appender
