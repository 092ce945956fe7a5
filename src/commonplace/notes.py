"""Notes: an agent's own files, in `agents/<name>/` of a home. Only that agent writes them, and nobody on its behalf.

Every path is confined to the folder, every write is whole or not at all, and every text passes redaction.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import normalize

from commonplace.errors import NoteChanged, NoteExists, NoteNotFound, NoteRefused, unusable
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.files.plain import make_folder
from commonplace.records import check_repo_name
from commonplace.redaction import redact_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from commonplace.where.home import Home

NOTE_BYTES_MAX = 256 << 10
NOTES_MAX = 500
DEPTH_MAX = 8
NAME_BYTES_MAX = 120
MATCHES_SHOWN_MAX = 20
# So much of a hash is told to a model, and suffices to insist on it: no two versions of a note will share it.
HASH_CHARS_MIN = 12
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")


class Note(NamedTuple):
    """A file of an agent's: its path within the folder, its size, and the hash a later write may insist on."""

    path: str
    bytes: int
    sha256: str

    @property
    def hash_start(self) -> str:
        """As much of the hash as a model is told, and must repeat."""
        return self.sha256[:HASH_CHARS_MIN]


class Reading(NamedTuple):
    """A note's text, or the lines that were asked for, and the note they were read from."""

    text: str
    note: Note


class Written(NamedTuple):
    """What became of a write: the note as it is now, the kinds of secrets that were taken out, where it changed."""

    note: Note
    redacted: list[str]
    line: int = 1


class Entry(NamedTuple):
    """A line of a folder's listing: a note with its size, or a folder with the size of all that is in it."""

    path: str
    bytes: int
    is_folder: bool


class Notes:
    """The folder of one agent in one home. It is made by the first write."""

    def __init__(self, home: Home, agent: str) -> None:
        try:
            check_repo_name(agent)
        except ValueError as error:
            raise NoteRefused(agent, f"is no name for an agent: it {error}") from None
        self.folder = home.notes(agent)
        self._lock = home.notes_lock(agent)

    def read(self, path: str, view_range: tuple[int, int] | None = None) -> str:
        """The text of a note, or the lines from the first to the last of *view_range* (from 1; -1 is the end)."""
        return self.reading(path, view_range).text

    def reading(self, path: str, view_range: tuple[int, int] | None = None) -> Reading:
        """The same, with the hash that the whole note had at that moment."""
        target = self._found(path)
        text = self._text(path, target)
        note = self._note(target, text.encode())
        if view_range is None:
            return Reading(text, note)
        lines = _lines(text)
        first, last = view_range
        last = len(lines) if last == -1 else last
        if not 1 <= first <= last <= len(lines):
            raise NoteRefused(
                path, f"has {len(lines)} lines; the range {list(view_range)} is not within them"
            )
        return Reading("".join(lines[first - 1 : last]), note)

    def write(self, path: str, content: str, if_sha256: str | None = None) -> Written:
        """Make or replace a note. With *if_sha256*, only if its hash still begins so (`""`: only if there is none)."""
        with hold(self._lock):
            return self._put(path, content, if_sha256)

    def replace(self, path: str, old: str, new: str, if_sha256: str | None = None) -> Written:
        """Put *new* in the place of *old*, which must occur exactly once."""
        self._found(path)
        with hold(self._lock):
            text = self._text(path, self._found(path))
            places = _lines_of_matches(text, old)
            if not old:
                raise NoteRefused(
                    path,
                    "cannot be searched for an empty text; `insert` adds without replacing",
                    (),
                )
            if not places:
                raise NoteRefused(
                    path, "does not hold the text to replace; it must match to the letter", ()
                )
            if len(places) > 1:
                shown = ", ".join(map(str, places[:MATCHES_SHOWN_MAX]))
                said = f"holds the text to replace {len(places)} times, in lines {shown}; give more of it"
                raise NoteRefused(path, said, places)
            return self._put(path, text.replace(old, new, 1), if_sha256)._replace(line=places[0])

    def insert(self, path: str, line: int, text: str, if_sha256: str | None = None) -> Written:
        """Put *text* behind the line with that number; 0 is the top."""
        self._found(path)
        with hold(self._lock):
            lines = _lines(self._text(path, self._found(path)))
            if not 0 <= line <= len(lines):
                raise NoteRefused(
                    path, f"has {len(lines)} lines; there is no line {line} to insert behind"
                )
            if line and not lines[line - 1].endswith("\n"):
                lines[line - 1] += "\n"
            whole = text if text.endswith("\n") or line == len(lines) else text + "\n"
            return self._put(
                path, "".join([*lines[:line], whole, *lines[line:]]), if_sha256
            )._replace(line=line + 1)

    def delete(self, path: str) -> None:
        """Remove a note, or a folder with all that is in it."""
        self._there(path)
        with hold(self._lock):
            target = self._there(path)
            try:
                if target.is_dir():
                    shutil.rmtree(target)  # A link in it goes; what it leads to stays.
                else:
                    target.unlink()
            except OSError as error:
                raise unusable(target, error) from error

    def rename(self, path: str, new_path: str) -> None:
        """Give a note or a folder another path, in this or another folder, where nothing is yet."""
        self._there(path)
        with hold(self._lock):
            source, target = self._there(path), self._checked(new_path)
            if target.exists():
                raise NoteExists(new_path)
            if target.is_relative_to(source):
                raise NoteRefused(new_path, f"lies within `{path}` itself")
            below = max(
                (len(found.relative_to(source).parts) for found in source.rglob("*")), default=0
            )
            if len(target.relative_to(self.folder).parts) + below > DEPTH_MAX:
                raise NoteRefused(
                    new_path, f"would be more than {DEPTH_MAX} folders deep with all that is in it"
                )
            try:
                make_folder(target.parent)
                source.rename(target)
            except OSError as error:
                raise unusable(target, error) from error

    def entries(self, path: str = "", depth: int = 1) -> list[Entry]:
        """The notes and folders in the folder, or in a folder of it, at most *depth* levels down, in order."""
        start = self._folder(path)
        seen = [
            found
            for found in sorted(start.rglob("*"))
            if len(found.relative_to(start).parts) <= depth
        ]
        listed: list[Entry] = []
        for found in filter(self._is_shown, seen):
            with suppress(
                FileNotFoundError
            ):  # Another process of this agent's may have removed it.
                size = sum(
                    one.stat().st_size
                    for one in ([found] if found.is_file() else self._files(found))
                )
                listed.append(
                    Entry(found.relative_to(self.folder).as_posix(), size, found.is_dir())
                )
        return listed

    def list(self, path: str = "") -> list[Note]:
        """The notes in the folder, or in a folder of it, in order."""
        listed: list[Note] = []
        for found in self._files(self._folder(path)):
            with suppress(FileNotFoundError):
                listed.append(self._note(found))
        return listed

    def optional(self, path: str) -> str:
        """A note's text, or nothing if there is none."""
        try:
            return self.read(path)
        except NoteNotFound:
            return ""

    # --- Inside ---------------------------------------------------------------------------------------------------

    def _put(self, path: str, content: str, if_sha256: str | None) -> Written:
        target = self._checked(path)
        if target.is_dir():
            raise NoteRefused(path, "is a folder")
        now = ""
        with suppress(FileNotFoundError):
            now = self._note(target).sha256
        if if_sha256 is not None and not _is_hash(if_sha256.lower(), now):
            raise NoteChanged(path)
        clean, redacted = redact_text(content)
        try:
            raw = clean.encode("utf-8")
        except UnicodeEncodeError:
            raise NoteRefused(path, "would not be valid UTF-8 (a lone surrogate)") from None
        if b"\x00" in raw:
            raise NoteRefused(path, "would hold a NUL character; notes are text")
        if len(raw) > NOTE_BYTES_MAX:
            raise NoteRefused(path, f"would have {len(raw):,} bytes, over {NOTE_BYTES_MAX:,}")
        if not now and sum(1 for _ in self._files(self.folder)) >= NOTES_MAX:
            raise NoteRefused(
                path, f"would be one more than the {NOTES_MAX} notes an agent may have"
            )
        atomic.replace(target, [raw])
        return Written(self._note(target, raw), redacted)

    def _there(self, path: str) -> Path:
        """The note or folder at *path*."""
        target = self._checked(path)
        if not target.exists():
            raise NoteNotFound(path)
        return target

    def _folder(self, path: str) -> Path:
        """The folder at *path*; the agent's own, which need not be there yet, if it is empty."""
        if not path.strip("/"):
            self._check_own(path)
            return self.folder
        target = self._checked(path.rstrip("/"))
        if target.is_file():
            raise NoteRefused(path, "is a note and no folder")
        if not target.is_dir():
            raise NoteNotFound(path)
        return target

    def _found(self, path: str) -> Path:
        target = self._checked(path)
        if not target.is_file():
            raise NoteNotFound(path)
        return target

    def _text(self, path: str, target: Path) -> str:
        try:
            # Whatever is larger was put there by hand; no agent could take it in.
            if (size := target.stat().st_size) > NOTE_BYTES_MAX:
                raise NoteRefused(path, f"has {size:,} bytes, over {NOTE_BYTES_MAX:,}")
            return _raw(target).decode("utf-8")
        except FileNotFoundError:
            raise NoteNotFound(path) from None
        except UnicodeDecodeError:
            raise NoteRefused(path, "is not UTF-8 text") from None

    def _checked(self, path: str) -> Path:
        """The file behind *path*, which lies in the folder and nowhere else, whatever the path says."""
        if not isinstance(path, str) or not path.strip():
            raise NoteRefused(str(path), "is empty: give a path such as CONTEXT.md")
        if "\\" in path or path.startswith(("/", "~")) or ":" in path or _ENCODED.search(path):
            raise NoteRefused(path, "is no plain relative path: names, with `/` between folders")
        self._check_own(path)
        parts = normalize("NFC", path).split("/")
        if len(parts) > DEPTH_MAX:
            raise NoteRefused(path, f"is more than {DEPTH_MAX} folders deep")
        target = self.folder
        for part in parts:
            _check_name(path, part)
            target = self._stepped(path, target, part)
        return target

    def _check_own(self, path: str) -> None:
        """Raise `NoteRefused` if the agent's folder is another's by a link, or by a name that differs in case alone."""
        if self.folder.is_symlink() or (
            self.folder.is_dir() and self.folder.name not in os.listdir(self.folder.parent)
        ):
            raise NoteRefused(
                path, f"cannot be reached: the folder of `{self.folder.name}` is another agent's"
            )

    def _stepped(self, path: str, folder: Path, name: str) -> Path:
        """One step down: never through a link, never to a file whose name differs in case alone."""
        target = folder / name
        if target.is_symlink():
            raise NoteRefused(path, "leads through a symbolic link")
        if folder.is_file():
            raise NoteRefused(path, f"leads through `{folder.name}`, which is a note and no folder")
        if not target.exists() and folder.is_dir():
            twin = next(
                (other for other in os.listdir(folder) if other.casefold() == name.casefold()), None
            )
            if twin is not None and twin != name:
                raise NoteRefused(path, f"differs from `{twin}` in case alone")
        elif folder.is_dir() and name not in os.listdir(folder):
            raise NoteRefused(path, "differs from what is there in case or composition alone")
        return target

    def _files(self, folder: Path) -> Iterator[Path]:
        for found in sorted(folder.rglob("*")):
            if found.is_file() and self._is_shown(found):
                yield found

    def _is_shown(self, found: Path) -> bool:
        hidden = any(part.startswith(".") for part in found.relative_to(self.folder).parts)
        return not hidden and not found.is_symlink() and (found.is_file() or found.is_dir())

    def _note(self, target: Path, raw: bytes | None = None) -> Note:
        raw = _raw(target) if raw is None else raw
        return Note(target.relative_to(self.folder).as_posix(), len(raw), sha256(raw).hexdigest())


def _raw(target: Path) -> bytes:
    """What is in the file; that it is gone is for the caller to judge."""
    try:
        return target.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unusable(target, error) from error


def _is_hash(given: str, whole: str) -> bool:
    return given == whole or (len(given) >= HASH_CHARS_MIN and whole.startswith(given))


def _check_name(path: str, name: str) -> None:
    try:
        check_repo_name(name)
    except ValueError as error:
        raise NoteRefused(path, f"may not be used: a part of it {error}") from None
    if len(name.encode("utf-8", "replace")) > NAME_BYTES_MAX:
        raise NoteRefused(path, f"has a part of over {NAME_BYTES_MAX} bytes")


def _lines(text: str) -> list[str]:
    """The lines with their ends; only a newline ends one."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _lines_of_matches(text: str, wanted: str) -> list[int]:
    """The number of the line in which each match begins."""
    found: list[int] = []
    at = text.find(wanted) if wanted else -1
    while at >= 0:
        found.append(text.count("\n", 0, at) + 1)
        at = text.find(wanted, at + 1)
    return found
