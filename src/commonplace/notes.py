"""Notes: an agent's own files, in `agents/<name>/` of a home. Only that agent writes them.

Every path stays within the folder, every write is atomic, and every text is redacted.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import normalize

from commonplace.characters import remove_hidden
from commonplace.errors import NoteChanged, NoteExists, NoteNotFound, NoteRefused, unusable
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.files.plain import make_folder, read_small
from commonplace.files.walk import walk
from commonplace.foreign import neutralise_tags, render
from commonplace.records import check_repo_name
from commonplace.redaction.text import redact_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from commonplace.where.home import Home

NOTE_BYTES_MAX = 256 << 10
# A larger file, put there by hand, is not even read.
FILE_BYTES_MAX = 16 << 20
NOTES_MAX = 500
DEPTH_MAX = 8
NAME_BYTES_MAX = 120
MATCHES_SHOWN_MAX = 20
# The length of the hash shown to a model: long enough that two versions of a note differ in it.
HASH_CHARS_MIN = 12
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")


class Note(NamedTuple):
    """A file of an agent: its path in the folder, its size, and the hash of its content.

    A later write may require that the hash is still the same.
    """

    path: str
    bytes: int
    sha256: str
    trusted: bool = True  # Whether it is in a home that the user trusts.

    @property
    def hash_start(self) -> str:
        """The start of the hash, which a model is shown and repeats."""
        return self.sha256[:HASH_CHARS_MIN]


class Reading(NamedTuple):
    """The text of a note, or of some of its lines, and the note it was read from."""

    text: str
    note: Note


class Written(NamedTuple):
    """The result of a write: the new note, the kinds of secrets removed, the first line changed."""

    note: Note
    redacted: list[str]
    line: int = 1


class Entry(NamedTuple):
    """A line of a folder's listing: a note or folder, and the size of all it holds."""

    path: str
    bytes: int
    is_folder: bool


class Notes:
    """The folder of one agent in one home. The first write creates it."""

    def __init__(self, home: Home, agent: str) -> None:
        try:
            check_repo_name(agent)
        except ValueError as error:
            raise NoteRefused(agent, f"is not a valid name for an agent: it {error}") from None
        self.folder = home.notes(agent)
        self._lock = home.notes_lock(agent)
        if not self.folder.exists():
            _check_new_name(agent)

    def read(self, path: str, view_range: tuple[int, int] | None = None) -> str:
        """Return the text of a note, or its lines in *view_range*: first and last (-1: the end)."""
        return self.read_with_hash(path, view_range).text

    def read_with_hash(self, path: str, view_range: tuple[int, int] | None = None) -> Reading:
        """Return the same as `read`, with the hash of the whole note."""
        target = self._find_file(path)
        text = self._read_text(path, target)
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
        """Create or replace a note.

        With *if_sha256*, raise `NoteChanged` unless the note's hash starts with it (`""`: unless
        there is no note).
        """
        with hold(self._lock):
            return self._write(path, content, if_sha256)

    def replace(self, path: str, old: str, new: str, if_sha256: str | None = None) -> Written:
        """Replace *old*, which must occur exactly once, with *new*."""
        self._find_file(path)
        with hold(self._lock):
            text = remove_hidden(self._read_text(path, self._find_file(path)))
            # An agent may repeat the text as it was shown, in which tags look different, in code
            # less than elsewhere.
            forms = (text, render(text), neutralise_tags(text))
            shown = next((one for one in forms if old in one and len(one) == len(text)), text)
            lines = _lines_of_matches(shown, old)
            if not old:
                raise NoteRefused(
                    path,
                    "cannot be searched for an empty text; `insert` adds without replacing",
                    (),
                )
            if not lines:
                raise NoteRefused(
                    path, "does not hold the text to replace; it must match exactly", ()
                )
            if len(lines) > 1:
                is_more = len(lines) > MATCHES_SHOWN_MAX
                count = f"more than {MATCHES_SHOWN_MAX}" if is_more else len(lines)
                shown = ", ".join(map(str, lines[:MATCHES_SHOWN_MAX]))
                raise NoteRefused(
                    path,
                    f"holds the text to replace {count} times, in lines {shown}; give more of it",
                    lines,
                )
            at = shown.index(old)
            content = text[:at] + new + text[at + len(old) :]
            return self._write(path, content, if_sha256)._replace(line=lines[0])

    def insert(self, path: str, line: int, text: str, if_sha256: str | None = None) -> Written:
        """Insert *text* after the line with the number *line*; 0 inserts at the top."""
        self._find_file(path)
        with hold(self._lock):
            lines = _lines(self._read_text(path, self._find_file(path)))
            if not 0 <= line <= len(lines):
                raise NoteRefused(
                    path, f"has {len(lines)} lines; there is no line {line} to insert after"
                )
            if line and not lines[line - 1].endswith("\n"):
                lines[line - 1] += "\n"
            whole = text if text.endswith("\n") or line == len(lines) else text + "\n"
            content = "".join([*lines[:line], whole, *lines[line:]])
            return self._write(path, content, if_sha256)._replace(line=line + 1)

    def delete(self, path: str) -> None:
        """Delete a note, or a folder with all that is in it."""
        self._find(path)
        with hold(self._lock):
            target = self._find(path)
            try:
                if target.is_dir():
                    shutil.rmtree(target)  # It deletes a link, not the link's target.
                else:
                    target.unlink()
            except OSError as error:
                raise unusable(target, error) from error

    def rename(self, path: str, new_path: str) -> None:
        """Move a note or a folder to *new_path*, at which there is nothing yet."""
        self._find(path)
        with hold(self._lock):
            source, target = self._find(path), self._resolve(new_path)
            if target.exists():
                raise NoteExists(new_path)
            _check_new_name(target.relative_to(self.folder).as_posix())
            if target.is_relative_to(source):
                raise NoteRefused(new_path, f"is within `{path}` itself")
            below = max(
                (len(found.relative_to(source).parts) for found in _below(source)), default=0
            )
            if len(target.relative_to(self.folder).parts) + below > DEPTH_MAX:
                raise NoteRefused(
                    new_path, f"would be more than {DEPTH_MAX} folders deep with its content"
                )
            try:
                make_folder(target.parent)
                source.rename(target)
            except OSError as error:
                raise unusable(target, error) from error

    def entries(self, path: str = "", depth: int = 1) -> list[Entry]:
        """Return the notes and folders below *path*, at most *depth* levels deep, in order."""
        start = self._folder(path)
        seen = sorted(_below(start, depth))
        listed: list[Entry] = []
        for found in filter(self._is_shown, seen):
            # Another process of this agent may have removed it.
            with suppress(FileNotFoundError):
                size = sum(
                    one.stat().st_size
                    for one in ([found] if found.is_file() else self._files(found))
                )
                listed.append(
                    Entry(found.relative_to(self.folder).as_posix(), size, found.is_dir())
                )
        return listed

    def has(self, path: str) -> bool:
        """Whether there is a note at *path*."""
        try:
            self._find_file(path)
        except NoteNotFound:
            return False
        return True

    def list(self, path: str = "") -> list[Note]:
        """Return the notes below *path*, in order."""
        listed: list[Note] = []
        for found in self._files(self._folder(path)):
            with suppress(FileNotFoundError):
                listed.append(self._note(found))
        return listed

    def optional(self, path: str) -> str:
        """Return the text of a note; an empty text if there is no note."""
        try:
            return self.read(path)
        except NoteNotFound:
            return ""

    # --- Private ----------------------------------------------------------------------------------

    def _write(self, path: str, content: str, if_sha256: str | None) -> Written:
        target = self._resolve(path)
        if target.is_dir():
            raise NoteRefused(path, "is a folder")
        current_hash = ""
        with suppress(FileNotFoundError):
            current_hash = self._note(target).sha256
        if if_sha256 is not None and not _is_hash(if_sha256.lower(), current_hash):
            raise NoteChanged(path)
        if not current_hash:
            _check_new_name(target.relative_to(self.folder).as_posix())
        if "\x00" in content:
            raise NoteRefused(path, "would hold a NUL character; notes are text")
        visible = remove_hidden(content)
        clean, redacted = redact_text(visible)
        if visible != content:
            redacted = ["control-character", *redacted]
        try:
            raw = clean.encode("utf-8")
        except UnicodeEncodeError:
            raise NoteRefused(path, "would not be valid UTF-8 (a lone surrogate)") from None
        if len(raw) > NOTE_BYTES_MAX:
            raise NoteRefused(path, f"would have {len(raw):,} bytes, over {NOTE_BYTES_MAX:,}")
        if not current_hash and sum(1 for _ in self._files(self.folder)) >= NOTES_MAX:
            raise NoteRefused(
                path, f"would be one more than the {NOTES_MAX} notes an agent may have"
            )
        atomic.replace(target, [raw])
        return Written(self._note(target, raw), redacted)

    def _find(self, path: str) -> Path:
        """Return the note or folder at *path*. Raises `NoteNotFound`."""
        target = self._resolve(path)
        if not target.exists():
            raise NoteNotFound(path)
        return target

    def _folder(self, path: str) -> Path:
        """Return the folder at *path*; for an empty path, the agent's own, which may not exist."""
        if not path.strip("/"):
            self._check_own(path)
            return self.folder
        target = self._resolve(path.rstrip("/"))
        if target.is_file():
            raise NoteRefused(path, "is a note, not a folder")
        if not target.is_dir():
            raise NoteNotFound(path)
        return target

    def _find_file(self, path: str) -> Path:
        """Return the note at *path*. Raises `NoteNotFound`."""
        target = self._resolve(path)
        if not target.is_file():
            raise NoteNotFound(path)
        return target

    def _read_text(self, path: str, target: Path) -> str:
        try:
            # A larger file was not written here, and is too long for an agent to read.
            if (size := target.stat().st_size) > NOTE_BYTES_MAX:
                raise NoteRefused(path, f"has {size:,} bytes, over {NOTE_BYTES_MAX:,}")
            return _read_bytes(target).decode("utf-8")
        except FileNotFoundError:
            raise NoteNotFound(path) from None
        except UnicodeDecodeError:
            raise NoteRefused(path, "is not UTF-8 text") from None

    def _resolve(self, path: str) -> Path:
        """Return the file for *path*. Raises `NoteRefused` if it is not within the folder."""
        if not isinstance(path, str) or not path.strip():
            raise NoteRefused(str(path), "is empty: give a path such as CONTEXT.md")
        if "\\" in path or path.startswith(("/", "~")) or ":" in path or _ENCODED.search(path):
            raise NoteRefused(path, "is not a relative path: use names with `/` between folders")
        self._check_own(path)
        parts = normalize("NFC", path).split("/")
        if len(parts) > DEPTH_MAX:
            raise NoteRefused(path, f"is more than {DEPTH_MAX} folders deep")
        target = self.folder
        for part in parts:
            _check_name(path, part)
            target = self._child(path, target, part)
        return target

    def _check_own(self, path: str) -> None:
        """Raise `NoteRefused` if the agent's folder is another agent's.

        It may be a link, or on a case-insensitive disk a folder whose name differs in case.
        """
        if self.folder.is_symlink() or (
            self.folder.is_dir() and self.folder.name not in os.listdir(self.folder.parent)
        ):
            raise NoteRefused(
                path, f"cannot be reached: the folder of `{self.folder.name}` is another agent's"
            )

    def _child(self, path: str, folder: Path, name: str) -> Path:
        """Return *name* in *folder*. Refuse links, and names that differ only in case."""
        target = folder / name
        if target.is_symlink():
            raise NoteRefused(path, "leads through a symbolic link")
        if folder.is_file():
            raise NoteRefused(path, f"leads through `{folder.name}`, which is not a folder")
        if not target.exists() and folder.is_dir():
            twin = next(
                (other for other in os.listdir(folder) if other.casefold() == name.casefold()), None
            )
            if twin is not None and twin != name:
                raise NoteRefused(path, f"differs from `{twin}` only in case")
        elif folder.is_dir() and name not in os.listdir(folder):
            raise NoteRefused(
                path, "differs from an existing name only in case or Unicode composition"
            )
        return target

    def _files(self, folder: Path) -> Iterator[Path]:
        for found in sorted(_below(folder)):
            if found.is_file() and self._is_shown(found):
                yield found

    def _is_shown(self, found: Path) -> bool:
        hidden = any(part.startswith(".") for part in found.relative_to(self.folder).parts)
        return not hidden and not found.is_symlink() and (found.is_file() or found.is_dir())

    def _note(self, target: Path, raw: bytes | None = None) -> Note:
        raw = _read_bytes(target) if raw is None else raw
        return Note(target.relative_to(self.folder).as_posix(), len(raw), sha256(raw).hexdigest())


def _below(folder: Path, depth_max: int = DEPTH_MAX) -> Iterator[Path]:
    """Yield what is below *folder*; no path leads deeper than `DEPTH_MAX`."""
    return walk(folder, depth_max=min(depth_max, DEPTH_MAX), skip_deeper=True)


def _read_bytes(target: Path) -> bytes:
    """Return the content of the file. Raises `FileNotFoundError`, and our error for any other."""
    try:
        return read_small(target, FILE_BYTES_MAX)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unusable(target, error) from error


def _is_hash(given: str, whole: str) -> bool:
    return given == whole or (len(given) >= HASH_CHARS_MIN and whole.startswith(given))


def _check_new_name(name: str) -> None:
    """Raise `NoteRefused` if *name*, of an agent or a note that is new, has a secret in it.

    A name cannot be redacted as a text is, since it would name something else. What is already
    there can be read, moved and deleted.
    """
    clean, kinds = redact_text(name)
    if kinds:
        raise NoteRefused(clean, f"has a secret in its name ({kinds[0]}): choose another name")


def _check_name(path: str, name: str) -> None:
    try:
        check_repo_name(name)
    except ValueError as error:
        raise NoteRefused(path, f"may not be used: a part of it {error}") from None
    if len(name.encode("utf-8", "replace")) > NAME_BYTES_MAX:
        raise NoteRefused(path, f"has a part of over {NAME_BYTES_MAX} bytes")


def _lines(text: str) -> list[str]:
    """Return the lines with their ends; only a newline ends a line."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _lines_of_matches(text: str, old: str) -> list[int]:
    """Return the number of the line in which each match begins, at most one more than is shown.

    Each match costs a search of the text, so there may not be as many as it has characters.
    """
    found: list[int] = []
    line, counted = 1, 0
    at = text.find(old) if old else -1
    while at >= 0 and len(found) <= MATCHES_SHOWN_MAX:
        line, counted = line + text.count("\n", counted, at), at
        found.append(line)
        at = text.find(old, at + 1)
    return found
