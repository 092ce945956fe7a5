"""The files that an index is made from, and cheap checks whether one has changed."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from commonplace.files.plain import is_ours_by, open_for_read
from commonplace.files.walk import DEPTH_MAX
from commonplace.where.home import LOG_SUFFIX, repo_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from commonplace.where.home import Home

    # What changes when a file does: inode, size, time of change.
    Stat = tuple[int, int, int]

TAIL_BYTES = 64
NOTE_SUFFIX = ".md"
SKILL_FILE = "SKILL.md"
# A folder's modification time is rounded. Within this time after a change it is not reliable.
_SETTLED_NS = 2_000_000_000


class ReadPosition(NamedTuple):
    """How far a file was read: its stat, where the next line starts, and the bytes before that."""

    inode: int
    size: int
    mtime: int
    end: int
    tail: bytes


class TextFile(NamedTuple):
    """A note or a skill: a file that is one document."""

    path: str
    ident: str
    kind: str


class Sources:
    """The files of one home. It remembers the names in folders that have not changed."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._names: dict[Path, tuple[int, list[str]]] = {}
        # The note or skill in each file below their folders; `None` for other files.
        self._texts: dict[str, TextFile | None] = {}

    def logs(self) -> dict[str, Stat]:
        """Return the stat of every log and archive, by its path."""
        found: dict[str, Stat] = {}
        home = self._home
        for folder in (home.log_folder, home.archive_folder, home.pack_logs_folder):
            for path in self._log_paths(folder):
                try:  # Not `suppress`: every question does this for every log.
                    stat = os.stat(path, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if is_ours_by(stat):
                    found[path] = stat_of(stat)
        return found

    def _log_paths(self, folder: Path) -> list[str]:
        try:
            changed = os.stat(folder).st_mtime_ns
            known = self._names.get(folder)
            if known is not None and known[0] == changed:
                return known[1]
            with os.scandir(folder) as entries:
                paths = [
                    entry.path
                    for entry in entries
                    if entry.name.endswith(LOG_SUFFIX)
                    and not entry.name.startswith(".")
                    and entry.is_file(follow_symlinks=False)
                ]
        except (FileNotFoundError, NotADirectoryError):
            return []
        if time.time_ns() - changed > _SETTLED_NS:
            self._names[folder] = (changed, paths)
        return paths

    def texts(self) -> dict[TextFile, Stat]:
        """Return the stat of every note and skill."""
        found: dict[TextFile, Stat] = {}
        for folder, describe in (
            (str(self._home.notes_folder), _note),
            (str(self._home.skills_folder), _skill),
        ):
            for path, stat in _files_below(folder):
                if path not in self._texts:
                    self._texts[path] = describe(path, path[len(folder) + 1 :].replace(os.sep, "/"))
                text = self._texts[path]
                if text is not None:
                    found[text] = stat
        return found


def _note(path: str, name: str) -> TextFile | None:
    is_note = name.endswith(NOTE_SUFFIX) and "/" in name
    return TextFile(path, f"note:{name}", "note") if is_note else None


def _skill(path: str, name: str) -> TextFile | None:
    folder, _slash, rest = name.partition("/")
    return TextFile(path, f"skill:{folder}", "skill") if rest == SKILL_FILE else None


def _files_below(folder: str, depth: int = 1) -> list[tuple[str, Stat]]:
    """Return the plain files below *folder*, in order, without following a link.

    Folders that are too deep for a note are left out; `doctor` names them.
    """
    found: list[tuple[str, Stat]] = []
    if depth > DEPTH_MAX:
        return found
    try:
        with os.scandir(folder) as entries:
            in_order = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return found
    for entry in in_order:
        try:
            if entry.is_dir(follow_symlinks=False):
                found += _files_below(entry.path, depth + 1)
            elif is_ours_by(stat := entry.stat(follow_symlinks=False)):
                found.append((entry.path, stat_of(stat)))
        except OSError:  # It was removed meanwhile.
            continue
    return found


def stat_of(found: os.stat_result) -> Stat:
    return found.st_ino, found.st_size, found.st_mtime_ns


def changed_files(stats: dict[str, Stat], seen: dict[str, ReadPosition]) -> set[str]:
    """Return the files that changed, were added or removed; unreadable ones are unchanged."""
    changed = {path for path, stat in stats.items() if path not in seen or seen[path][:3] != stat}
    if not changed and len(stats) == len(seen):
        return changed
    return {path for path in changed if os.access(path, os.R_OK)} | (seen.keys() - stats.keys())


def is_unchanged(seen: dict[str, ReadPosition], path: str | Path) -> bool:
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return str(path) not in seen
    known = seen.get(str(path))
    return known is not None and known[:3] == stat_of(found)


def has_only_grown(stream: BinaryIO, known: ReadPosition | None) -> bool:
    """Whether the file only has more lines at its end, so that reading on is enough."""
    if known is None:
        return True
    found = os.fstat(stream.fileno())
    if found.st_ino != known.inode or found.st_size < known.size:
        return False
    if found.st_size == known.size:
        return found.st_mtime_ns == known.mtime
    stream.seek(max(0, known.end - TAIL_BYTES))
    same = stream.read(min(TAIL_BYTES, known.end)) == known.tail
    # A last line that was read without a newline must have got one; else the line changed.
    return same and (known.tail[-1:] in (b"", b"\n") or stream.read(1) == b"\n")


def position_of(stream: BinaryIO, end: int) -> ReadPosition:
    """Return how far a file was read: to *end*, or to the stream's position if its end is torn."""
    size = stream.tell()
    found = os.fstat(stream.fileno())
    stream.seek(max(0, end - TAIL_BYTES))
    tail = stream.read(min(TAIL_BYTES, end))
    return ReadPosition(found.st_ino, size, found.st_mtime_ns, end, tail)


def open_log(path: Path) -> BinaryIO | None:
    """Return the log, open for reading; `None` if `Sources.logs` skips it (`doctor` names it)."""
    with suppress(FileNotFoundError):
        if is_ours_by(os.stat(path, follow_symlinks=False)):
            return open_for_read(path)
    return None


def pairs(home: Home, paths: Iterable[str]) -> Iterator[tuple[str, Path, Path]]:
    """Yield (repository, archive, log) of every log among *paths*."""
    for repo in sorted({repo_of(Path(path)) for path in paths if path.endswith(LOG_SUFFIX)}):
        yield repo, home.archive(repo), home.log(repo)


def log_of(name: str) -> str:
    """Return the name that a file's lines have: a log's repository, or a text's own path."""
    return repo_of(Path(name)) if name.endswith(LOG_SUFFIX) else name
