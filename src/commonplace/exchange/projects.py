"""Which project a file of another system belongs to, so that its records get that project's log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.where import repository

if TYPE_CHECKING:
    from commonplace.memory import Memory

_DRIVE_CHARS = 3


class Projects:
    """Finds the log of the project that a file is in; *memory*'s own for files in none."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._logs: dict[Path, str] = {}

    def log_of(self, file: Path) -> str:
        """Return the log for records of *file*."""
        folder = file.parent
        if folder not in self._logs:
            self._logs[folder] = self._find(folder)
        return self._logs[folder]

    def _find(self, folder: Path) -> str:
        named = _claude_project(folder)
        if named:
            path = _folder_called(named)
            return self._log_at(path) if path else repository.safe_name(named.strip("-"))
        root = repository.find(folder).root
        # Somebody who keeps their own folder in git has no project in it.
        if root is None or root == Path.home():
            return self._memory.repository.name
        return self._log_at(folder)

    def _log_at(self, folder: Path) -> str:
        return self._memory.beside(cwd=folder).repository.name


def _claude_project(folder: Path) -> str:
    """Return the name of a project in `.claude/projects/<name>/memory/`, else ""."""
    parts = folder.parts
    found = (
        name
        for above, name, below in zip(parts, parts[1:], parts[2:], strict=False)
        if above == "projects" and below == "memory" and "-" in name
    )
    return next(found, "")


def _folder_called(name: str) -> Path | None:
    """Return the folder whose path Claude Code writes as *name*: other characters are hyphens."""
    if name.startswith("-"):
        return _walk(Path(os.sep), name[1:])
    if name[1:_DRIVE_CHARS] == "--":  # `C:\`
        return _walk(Path(f"{name[0]}:{os.sep}"), name[_DRIVE_CHARS:])
    return None


def _walk(folder: Path, rest: str) -> Path | None:
    """Return the folder below *folder* whose path is written as *rest*."""
    if not rest:
        return folder
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir())
    except OSError:
        return None
    for name in names:
        written = "".join(c if c.isascii() and c.isalnum() else "-" for c in name)
        if rest == written or rest.startswith(f"{written}-"):
            found = _walk(folder / name, rest[len(written) + 1 :])
            if found is not None:
                return found
    return None
