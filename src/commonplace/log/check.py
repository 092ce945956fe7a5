"""Check one home for damaged lines, permissions, leftover files and unknown kinds; and fix them."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from commonplace.errors import unusable
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.files.nofollow import is_link
from commonplace.files.plain import is_allowed_owner, read_all
from commonplace.files.walk import walk
from commonplace.log import read
from commonplace.log.append import append_once
from commonplace.log.logs import entries, files, is_of_git, log_files
from commonplace.records import KINDS
from commonplace.where import restoring
from commonplace.where.homes import GITIGNORE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from commonplace.where.home import Home


class Finding(NamedTuple):
    """A problem in a home. `fix` says what `--fix` does about it; empty if it does nothing."""

    what: str
    path: Path
    line: int
    reason: str
    fix: str


def check(home: Home) -> list[Finding]:
    """Return all problems in *home*."""
    return [
        *_in_logs(home),
        *_unused(home),
        *_permissions(home),
        *_leftovers(home),
        *_failed_events(home),
        *_gitignore(home),
        *_unfinished_restores(home),
    ]


def fix(home: Home) -> list[Finding]:
    """Fix what `check` finds, and return what was fixed.

    Damaged lines are moved to `log/damaged/`, not deleted.
    """
    fixed = [
        found
        for path in log_files(home)
        for found in _move_damaged(path, home.damaged_folder / path.name)
    ]
    for finding in (*_permissions(home), *_leftovers(home)):
        try:
            if finding.what == "permissions":
                finding.path.chmod(_mode(finding.path) & ~_forbidden_bits(home))
            else:
                finding.path.unlink(missing_ok=True)
        except OSError as error:
            raise unusable(finding.path, error) from error
        fixed.append(finding)
    return fixed


def _in_logs(home: Home) -> Iterator[Finding]:
    for path in log_files(home):
        for found in read.parse(path):
            if isinstance(found, read.Damage):
                yield _damage_finding(found)
                continue
            line, record = found
            for reason in record.unusable:
                about = f"{reason}; the record is read without it"
                yield Finding("unusable value", path, line.number, about, "")
            if record.kind not in KINDS:
                reason = (
                    f"the kind `{record.kind}` is unknown here; a newer version may have written it"
                )
                yield Finding("unknown kind", path, line.number, reason, "")


def _unused(home: Home) -> Iterator[Finding]:
    """Yield what is in the home and is not used, because somebody else may have put it there."""
    for path in sorted(walk(home.path)):
        if is_of_git(home, path):
            continue
        if is_link(path):
            yield Finding("link", path, 0, "it is a symbolic link, which is not followed", "")
        elif not (path.is_dir() or path.is_file() or _is_own_socket(home, path)):
            yield Finding("special file", path, 0, "it is no plain file, and is not used", "")
        elif not is_allowed_owner(path.stat().st_uid):
            yield Finding("owner", path, 0, "it belongs to another user, and is not used", "")


def _is_own_socket(home: Home, path: Path) -> bool:
    """Whether the server of *home* listens there, or a killed one has."""
    return path == home.server_socket and path.is_socket()


def _damage_finding(damage: read.Damage) -> Finding:
    return Finding(
        "damage", damage.path, damage.line, damage.reason, "move the line to log/damaged/"
    )


def _move_damaged(path: Path, damaged: Path) -> list[Finding]:
    if not any(isinstance(found, read.Damage) for found in read.parse(path)):
        return []
    with hold(path):
        findings = [
            _damage_finding(found) for found in read.parse(path) if isinstance(found, read.Damage)
        ]
        numbers = {finding.line for finding in findings}
        lines = [line for line in read.lines(path, whole=True) if line.raw.strip()]
        append_once(damaged, [line.raw + b"\n" for line in lines if line.number in numbers])
        atomic.replace(path, (line.raw + b"\n" for line in lines if line.number not in numbers))
    return findings


def _permissions(home: Home) -> Iterator[Finding]:
    """Yield the files that other users may read (in a repository: may write)."""
    if os.name != "posix":
        return
    forbidden = _forbidden_bits(home)
    for path in (home.path, *entries(home)):
        if is_of_git(home, path) or not (path.is_dir() or path.is_file()):
            continue
        if home.index_folder in path.parents and not _mode(home.index_folder) & forbidden:
            continue  # The mode of the index folder protects the files that the engines create.
        mode = _mode(path)
        allowed = mode & ~forbidden
        if mode != allowed:
            reason = f"the mode is {mode:04o}: others have access"
            yield Finding("permissions", path, 0, reason, f"set it to {allowed:04o}")


def _forbidden_bits(home: Home) -> int:
    """Return the mode bits that may not be set.

    The user's home is for its owner only. In a repository, git creates files that all may read.
    """
    return 0o077 if home.of_user else 0o022


def _mode(path: Path) -> int:
    with suppress(FileNotFoundError):  # A temporary file may have been renamed since.
        return path.stat().st_mode & 0o777
    return 0


def _failed_events(home: Home) -> Iterator[Finding]:
    folder = home.failed_events_folder
    count = sum(1 for _ in folder.iterdir()) if folder.is_dir() else 0
    if count:
        reason = f"{count:,} events of hooks could not be applied: please report it, then delete it"
        yield Finding("failed events", folder, 0, reason, "")


def _gitignore(home: Home) -> Iterator[Finding]:
    """Yield a `.gitignore` that lets git take this machine's state, or the index, into commits."""
    path = home.path / ".gitignore"
    if home.state_elsewhere is not None or not (home.path / ".git").exists():
        return
    wanted = [line for line in GITIGNORE.splitlines() if not line.startswith("#")]
    lines = read_all(path).decode("utf-8", "replace").split()
    missing = [line for line in wanted if line not in lines]
    if missing:
        named = ", ".join(f"`{line}`" for line in missing)
        yield Finding("gitignore", path, 0, f"it lacks the lines {named}: add them", "")


def _unfinished_restores(home: Home) -> Iterator[Finding]:
    for path in restoring.unfinished(home.path):
        reason = "a `backup restore` has not finished: remove it, unless one is running"
        yield Finding("unfinished restore", path, 0, reason, "")


def _leftovers(home: Home) -> Iterator[Finding]:
    """Yield the temporary files of killed processes. Locks end with their process."""
    for path in files(home):
        if atomic.is_leftover(path):
            yield Finding(
                "stale lock",
                path,
                0,
                "an interrupted rewrite left it; the log itself is complete",
                "remove it",
            )
