"""The doctor's eye on one home: damages, permissions, leftovers, kinds nobody knows; and what would mend each."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from commonplace.errors import unusable
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.log import read
from commonplace.log.append import append_once
from commonplace.log.logs import files, log_files
from commonplace.records import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from commonplace.where.home import Home


class Finding(NamedTuple):
    """Something a person should know. `fix` says what `--fix` would do; empty when it would do nothing."""

    what: str
    path: Path
    line: int
    reason: str
    fix: str


def check(home: Home) -> list[Finding]:
    """Everything worth reporting about *home*."""
    return [*_in_logs(home), *_permissions(home), *_leftovers(home)]


def mend(home: Home) -> list[Finding]:
    """Do what `check` offers, and return what was mended. Lines are moved to `log/damaged/`, never deleted."""
    mended = [
        found
        for path in log_files(home)
        for found in _move_damaged(path, home.damaged_folder / path.name)
    ]
    for finding in (*_permissions(home), *_leftovers(home)):
        try:
            if finding.what == "permissions":
                finding.path.chmod(_mode(finding.path) & ~_forbidden(home))
            else:
                finding.path.unlink(missing_ok=True)
        except OSError as error:
            raise unusable(finding.path, error) from error
        mended.append(finding)
    return mended


def _in_logs(home: Home) -> Iterator[Finding]:
    for path in log_files(home):
        for found in read.parse(path):
            if isinstance(found, read.Damage):
                yield _damaged(found)
            elif found[1].kind not in KINDS:
                line, record = found
                reason = (
                    f"the kind `{record.kind}` is unknown here; a newer version may have written it"
                )
                yield Finding("unknown kind", path, line.number, reason, "")


def _damaged(damage: read.Damage) -> Finding:
    return Finding(
        "damage", damage.path, damage.line, damage.reason, "move the line to log/damaged/"
    )


def _move_damaged(path: Path, damaged: Path) -> list[Finding]:
    if not any(isinstance(found, read.Damage) for found in read.parse(path)):
        return []
    with hold(path):
        findings = [_damaged(found) for found in read.parse(path) if isinstance(found, read.Damage)]
        numbers = {finding.line for finding in findings}
        lines = [line for line in read.lines(path, whole=True) if line.raw.strip()]
        append_once(damaged, [line.raw + b"\n" for line in lines if line.number in numbers])
        atomic.replace(path, (line.raw + b"\n" for line in lines if line.number not in numbers))
    return findings


def _permissions(home: Home) -> Iterator[Finding]:
    """Files others may read (or, where git lays out the files, write)."""
    if os.name != "posix":
        return
    for path in (home.path, *sorted(home.path.rglob("*"))):
        if (
            path.is_symlink()
            or ".git" in path.relative_to(home.path).parts
            or not (path.is_dir() or path.is_file())
        ):
            continue
        if home.index_folder in path.parents and not _mode(home.index_folder) & _forbidden(home):
            continue  # The engines make files as they like; behind a closed door nobody reads them.
        mode = _mode(path)
        wanted = mode & ~_forbidden(home)
        if mode != wanted:
            reason = f"the mode is {mode:04o}: others have access"
            yield Finding("permissions", path, 0, reason, f"set it to {wanted:04o}")


def _forbidden(home: Home) -> int:
    """The user's home is for its owner alone; one in a repository is laid out by git, with git's modes."""
    return 0o077 if home.of_user else 0o022


def _mode(path: Path) -> int:
    with suppress(FileNotFoundError):  # A rewrite's temporary file may be gone by now.
        return path.stat().st_mode & 0o777
    return 0


def _leftovers(home: Home) -> Iterator[Finding]:
    """What a killed rewrite left behind. Locks themselves cannot: they end with their process."""
    for path in files(home):
        if atomic.is_leftover(path):
            yield Finding(
                "stale lock",
                path,
                0,
                "an interrupted rewrite left it; the log itself is whole",
                "remove it",
            )
