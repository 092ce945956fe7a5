"""The doctor's eye on one home: damages, permissions, leftovers, kinds nobody knows; and what would mend each."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from commonplace.errors import unusable
from commonplace.log import read, rewrite
from commonplace.log.append import held
from commonplace.log.logs import files, log_files
from commonplace.records import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Finding(NamedTuple):
    """Something a person should know. `fix` says what `--fix` would do; empty when it would do nothing."""

    what: str
    path: Path
    line: int
    reason: str
    fix: str


def check(home: Path, log: Path, *, private: bool) -> list[Finding]:
    """Everything worth telling about the home. *private*: only its owner should be able to read it."""
    return [*_in_logs(log), *_permissions(home, private=private), *_leftovers(home)]


def mend(home: Path, log: Path, *, private: bool) -> list[Finding]:
    """Do what `check` offers, and return what was mended. Lines are moved to `log/damaged/`, never deleted."""
    mended = [finding for path in log_files(log) for finding in _move_damaged(path, log / "damaged" / path.name)]
    for finding in (*_permissions(home, private=private), *_leftovers(home)):
        try:
            if finding.what == "permissions":
                finding.path.chmod(_mode(finding.path) & ~_forbidden(private=private))
            else:
                finding.path.unlink(missing_ok=True)
        except OSError as error:
            raise unusable(finding.path, error) from error
        mended.append(finding)
    return mended


def _in_logs(log: Path) -> Iterator[Finding]:
    for path in log_files(log):
        for found in read.parse(path):
            if isinstance(found, read.Damage):
                yield _damaged(found)
            elif found[1].kind not in KINDS:
                line, record = found
                reason = f"the kind `{record.kind}` is unknown here; a newer version may have written it"
                yield Finding("unknown kind", path, line.number, reason, "")


def _damaged(damage: read.Damage) -> Finding:
    return Finding("damage", damage.path, damage.line, damage.reason, "move the line to log/damaged/")


def _move_damaged(path: Path, damaged: Path) -> list[Finding]:
    if not any(isinstance(found, read.Damage) for found in read.parse(path)):
        return []
    with held(path):
        findings = [_damaged(found) for found in read.parse(path) if isinstance(found, read.Damage)]
        numbers = {finding.line for finding in findings}
        lines = [line for line in read.lines(path, whole=True) if line.raw.strip()]
        rewrite.append_once(damaged, [line.raw + b"\n" for line in lines if line.number in numbers])
        rewrite.replace(path, (line.raw + b"\n" for line in lines if line.number not in numbers))
    return findings


def _permissions(home: Path, *, private: bool) -> Iterator[Finding]:
    """Files others may read (or, where git lays out the files, write)."""
    if os.name != "posix":
        return
    for path in (home, *sorted(home.rglob("*"))):
        parts = path.relative_to(home).parts
        if path.is_symlink() or ".git" in parts or not (path.is_dir() or path.is_file()):
            continue
        if parts[:1] == (".index",) and len(parts) > 1 and not _mode(home / ".index") & _forbidden(private=private):
            continue  # The engines make files as they like; behind a closed door nobody reads them.
        mode = _mode(path)
        wanted = mode & ~_forbidden(private=private)
        if mode != wanted:
            reason = f"the mode is {mode:04o}: others have access"
            yield Finding("permissions", path, 0, reason, f"set it to {wanted:04o}")


def _forbidden(*, private: bool) -> int:
    return 0o077 if private else 0o022


def _mode(path: Path) -> int:
    with suppress(FileNotFoundError):  # A rewrite's temporary file may be gone by now.
        return path.stat().st_mode & 0o777
    return 0


def _leftovers(home: Path) -> Iterator[Finding]:
    """What a killed rewrite left behind. Locks themselves cannot: they end with their process."""
    for path in files(home):
        if path.name.endswith(rewrite.TEMPORARY_SUFFIX) and not rewrite.in_progress(path):
            yield Finding("stale lock", path, 0, "an interrupted rewrite left it; the log itself is whole", "remove it")
