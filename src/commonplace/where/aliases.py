"""Which log a repository has: the one it had before its remote or its folder changed.

`repos.jsonl` in a home has one line for each alias of a log: the hash of a repository's id, a name
made from an address or a folder, or an older name of the log. A later line replaces an earlier one
about the same alias, and lines are only added, so that git merges two versions by keeping all
lines (docs/decisions/0017). The file of a home that is not trusted is not read: it could name any
log of the user's own home.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cached_property

from commonplace.errors import unusable
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.files.plain import open_for_append, read_all
from commonplace.records import check_repo_name, decode, encode
from commonplace.where import identity
from commonplace.where.repository import Repository, at_common_directory, hashed_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from commonplace.where.home import Home

_FILE_BYTES_MAX = 16 << 20
_ORIGINS_MAX = 5


class Aliases:
    """The aliases in some homes, the nearest first. They are read once they are asked for."""

    def __init__(self, homes: Sequence[Home]) -> None:
        self._homes = [home for home in homes if home.trusted]

    @cached_property
    def _logs(self) -> dict[str, str]:
        """The log that each alias stands for."""
        found: dict[str, str] = {}
        # The nearest home's lines come last, so they replace those of the others.
        for home in reversed(self._homes):
            for line in read_all(home.repos_file, _FILE_BYTES_MAX).splitlines():
                if (pair := _pair_in(line)) is not None:
                    found[pair[0]] = pair[1]
        return found

    @cached_property
    def _aliases(self) -> dict[str, list[str]]:
        """The aliases of each log."""
        found: dict[str, list[str]] = {}
        for alias, log in self._logs.items():
            found.setdefault(log, []).append(alias)
        return found

    def log_of(self, alias: str) -> str:
        """Return the log that *alias* stands for, through any number of renamings; else ""."""
        seen: set[str] = set()
        found = ""
        while alias in self._logs and alias not in seen:
            seen.add(alias)
            found = alias = self._logs[alias]
        return found

    def of_log(self, log: str) -> list[str]:
        """Return all aliases of *log*, those of its older names too; none if it was renamed."""
        if self.log_of(log) not in ("", log):
            return []
        found = {log: None}
        waiting = [log]
        while waiting:
            for alias in self._aliases.get(waiting.pop(), ()):
                if alias not in found:
                    found[alias] = None
                    waiting.append(alias)
        return [alias for alias in found if alias != log]

    def names_of(self, log: str) -> list[str]:
        """Return *log* and its older names, which the lines of another machine may still have."""
        return [log, *(name for name in self.of_log(log) if not name.startswith(identity.PREFIX))]

    def has_log(self, name: str) -> bool:
        return any(path.is_file() for path in self._paths(name))

    def resolve(self, here: Repository) -> Repository:
        """Return *here* with the name of the log that it has, else with one for a new log."""
        if here.common is None:
            return here._replace(name=self.log_of(here.name) or here.name)
        return here._replace(name=self._known_log(here, _ORIGINS_MAX) or self._new_name(here))

    def _known_log(self, here: Repository, origins_max: int) -> str:
        """Return the log that this repository has; "" if it has none.

        Where its remote is known to have another log than its id, the remote decides: the folder is
        a copy that was given to another repository, or became a clone of it.
        """
        assert here.common is not None
        by_id = self.log_of(identity.key_of(here.common))
        if here.origin is not None:
            origin = at_common_directory(here.origin)
            by_remote = self._known_log(origin, origins_max - 1) if origins_max else ""
            return by_remote or by_id
        if here.address_name:
            by_remote = self.log_of(here.address_name)
            if not by_remote and self.has_log(here.address_name):
                by_remote = here.address_name
            return by_remote or by_id or self._log_by_path(here)
        return by_id or self.log_of(place_name(here)) or self._log_by_path(here)

    def _log_by_path(self, here: Repository) -> str:
        """Return the log named after the path, if it is not known to be another repository's.

        Such a log has an id among its aliases, unless it was written before there were ids or where
        git's folder cannot be written.
        """
        name = here.path_name
        if not self.has_log(name) or self._has_id(name):
            return ""
        return "" if here.address_name and self._is_older(name, here) else name

    def _has_id(self, log: str) -> bool:
        return any(alias.startswith(identity.PREFIX) for alias in self.of_log(log))

    def _is_older(self, log: str, here: Repository) -> bool:
        """Whether the last line of *log* is older than the repository, made at the same path."""
        with suppress(OSError):
            # git writes this file when it makes the repository, and never again.
            assert here.common is not None
            made = (here.common / "description").stat().st_mtime
            lines = [path.stat().st_mtime for path in self._paths(log) if path.is_file()]
            return max(lines, default=made) < made
        return False

    def _new_name(self, here: Repository) -> str:
        """Return a name for a new log. The usual one may be that of a repository which moved."""
        is_taken = self.has_log(here.name) or self.log_of(here.name)
        return place_name(here) if is_taken else here.name

    def _paths(self, name: str) -> Iterator[Path]:
        for home in self._homes:
            yield home.log(name)
            yield home.archive(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._logs)


def resolve(here: Repository, homes: Sequence[Home]) -> Repository:
    """Return *here* with the name of the log that it has in *homes*."""
    return Aliases(homes).resolve(here)


def place_name(here: Repository) -> str:
    """Return a name made from the path of the folder and its inode.

    A folder in which git is set up again keeps both; another one at the same path has another
    inode.
    """
    assert here.common is not None
    folder = here.main_root or here.common
    with suppress(OSError):
        found = os.stat(folder)
        return hashed_name(here.short, f"{folder}\0{found.st_dev}:{found.st_ino}")
    return hashed_name(here.short, str(folder))


def bind(here: Repository, home: Home, aliases: Aliases) -> None:
    """Note in *home* that this repository has its log, so that it keeps it.

    Called when a record is written. What *aliases* of that home know already is not written again.
    """
    if here.common is None or not home.trusted:
        return
    own = identity.ensure(here.common)
    # A clone of a folder on this machine has the log of that folder's repository.
    names = [own, *([] if here.origin else [here.address_name or place_name(here)])]
    unknown = {name: here.name for name in names if name and not aliases.log_of(name)}
    add(home, {alias: log for alias, log in unknown.items() if alias != log})


def add(home: Home, pairs: Mapping[str, str]) -> None:
    """Add a line for each of *pairs*, from an alias to its log."""
    lines = [encode({"alias": alias, "repo": log}) for alias, log in pairs.items()]
    data = "".join(f"{line}\n" for line in lines if not _holds_secret(line)).encode()
    if not data:
        return
    path = home.repos_file
    with hold(path):
        before = read_all(path, _FILE_BYTES_MAX)
        descriptor = open_for_append(path)
        try:
            # A writer that was killed may have left a line without its end.
            os.write(descriptor, data if before[-1:] in (b"", b"\n") else b"\n" + data)
        except OSError as error:
            raise unusable(path, error) from error
        finally:
            os.close(descriptor)


def remove(home: Home, log: str) -> None:
    """Remove every line that names *log* or one of its aliases."""
    path = home.repos_file
    if not path.exists():
        return
    with hold(path):
        gone = {log, *Aliases([home._replace(trusted=True)]).of_log(log)}
        kept = [
            line
            for line in read_all(path, _FILE_BYTES_MAX).splitlines(keepends=True)
            if gone.isdisjoint(_pair_in(line) or ())
        ]
        atomic.replace(path, kept)


def _pair_in(line: bytes) -> tuple[str, str] | None:
    """Return the alias and the log in *line*; `None` if it has none."""
    try:
        fields = decode(line)
        alias, repo = fields.get("alias"), check_repo_name(fields.get("repo"))
    except ValueError:
        return None
    return (alias, repo) if isinstance(alias, str) else None


def _holds_secret(line: str) -> bool:
    from commonplace.redaction.suspicion import may_hold_secret  # noqa: PLC0415 (seldom needed)

    if not may_hold_secret(line):
        return False
    from commonplace.redaction.text import redact_text  # noqa: PLC0415

    return bool(redact_text(line)[1])
