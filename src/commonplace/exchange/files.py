"""Find and read the files of an import: follow no links, open only plain files, limit the size."""

from __future__ import annotations

import os
import stat
from json import JSONDecodeError, loads
from typing import TYPE_CHECKING, Any

from commonplace import frontmatter
from commonplace.errors import CommonplaceError
from commonplace.exchange.items import Head, Skipped, Unreadable
from commonplace.files.plain import open_named
from commonplace.log.read import Line, lines
from commonplace.records import check_depth, decode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES_MAX = 100_000
# Walking a folder recurses once per level.
FOLDERS_DEEP_MAX = 100
# The limit for files that are read as a whole; files of JSON lines are read line by line.
WHOLE_BYTES_MAX = 16 << 20
HEAD_BYTES = 64 << 10
HEAD_LINES_MAX = 20
LINE_SUFFIXES = (".jsonl", ".ndjson", ".json")
TEXT_SUFFIXES = (".md", ".markdown", ".mdx")
# Folders with other people's code, derived files, or the state of one machine.
_FOLDERS_SKIPPED = frozenset(
    [
        ".git",
        ".hg",
        ".svn",
        "node_modules",
        ".venv",
        "venv",
        "__pycache__",
        ".index",
        ".state",
        "site-packages",
    ]
)


class UnreadableFile(Exception):
    """A file that cannot be read as text. The message says why."""


class BinaryFile(UnreadableFile):
    def __init__(self) -> None:
        super().__init__("is binary")


def find_files(root: Path) -> Iterator[tuple[Path, Unreadable | Skipped | None]]:
    """Yield every file at or below *root*, in order, with the reason if it must be skipped."""
    if root.is_file():
        yield root, None
        return
    count = 0
    denied: list[tuple[Path, Unreadable | Skipped | None]] = []

    def deny(error: OSError) -> None:
        denied.append(
            (root / os.fspath(error.filename), Unreadable(0, f"cannot be opened: {error.strerror}"))
        )

    for folder, folders, names in os.walk(root, onerror=deny):
        yield from denied
        denied.clear()
        links = [name for name in folders if (root / folder / name).is_symlink()]
        folders[:] = sorted(
            name for name in folders if name not in _FOLDERS_SKIPPED and name not in links
        )
        if folders and len((root / folder).relative_to(root).parts) >= FOLDERS_DEEP_MAX:
            reason = f"was not read: it is over {FOLDERS_DEEP_MAX} folders deep"
            yield from ((root / folder / name, Unreadable(0, reason)) for name in folders)
            folders.clear()
        for name in sorted([*names, *links]):
            path = root / folder / name
            count += 1
            if count > FILES_MAX:
                yield (
                    path,
                    Unreadable(0, f"and later files were not read: over {FILES_MAX:,} files"),
                )
                return
            yield path, _skip_reason(path)
    yield from denied


def _skip_reason(path: Path) -> Unreadable | Skipped | None:
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        return Unreadable(0, f"cannot be opened: {error.strerror}")
    if stat.S_ISLNK(mode):
        return Skipped(0, "is a symbolic link; to import its target, give the target's path")
    return None if stat.S_ISREG(mode) else Skipped(0, "is not a plain file")


def read_head(path: Path) -> Head:
    """Return the beginning of the file at *path*. Raises `UnreadableFile`."""
    raw = _read_bytes(path, HEAD_BYTES)
    if b"\x00" in raw:
        raise BinaryFile
    if path.suffix in TEXT_SUFFIXES:
        text = raw.decode("utf-8-sig", "replace")
        return Head(front=frontmatter.split(text)[0], text=text)
    return Head(objects=tuple(_objects(raw)))


def _objects(raw: bytes) -> Iterator[dict[str, Any]]:
    for line in raw.removeprefix(b"\xef\xbb\xbf").split(b"\n")[:HEAD_LINES_MAX]:
        try:
            yield decode(line)
        except ValueError:
            continue


def read_text(path: Path) -> str:
    """Return the whole text of a file. Raises `UnreadableFile`."""
    raw = _read_bytes(path, WHOLE_BYTES_MAX + 1)
    if len(raw) > WHOLE_BYTES_MAX:
        raise UnreadableFile(f"is longer than {WHOLE_BYTES_MAX:,} bytes")
    if b"\x00" in raw:
        raise BinaryFile
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableFile("is not valid UTF-8") from None


def _read_bytes(path: Path, bytes_max: int) -> bytes:
    try:
        stream = open_named(path)
        if stream is None:
            raise UnreadableFile("is gone")
        with stream:
            return stream.read(bytes_max)
    except OSError as error:
        raise UnreadableFile(f"cannot be opened: {error.strerror}") from None
    except CommonplaceError as error:
        raise UnreadableFile(f"cannot be opened: {_cause(error)}") from None


def _cause(error: CommonplaceError) -> str:
    cause = error.__cause__
    return cause.strerror or str(cause) if isinstance(cause, OSError) else str(error)


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]] | Unreadable]:
    """Yield the objects in a file of JSON lines with their line numbers, reading line by line."""
    try:
        for line in lines(path):
            if line.raw.strip():
                try:
                    yield line.number, decode(line.raw)
                except ValueError as error:
                    yield Unreadable(
                        line.number,
                        "is torn: the last line has no end" if _is_torn(line) else str(error),
                    )
    except CommonplaceError as error:
        yield Unreadable(0, f"cannot be opened: {_cause(error)}")


def _is_torn(line: Line) -> bool:
    return line.torn and not line.raw.rstrip().endswith(b"}")


def read_json(path: Path) -> object:
    """Return the value in a JSON file. Raises `UnreadableFile`."""
    content = read_text(path)
    try:
        value = loads(content)
        check_depth({"": value}, content)
    except (JSONDecodeError, RecursionError) as error:
        raise UnreadableFile(f"is not JSON ({error})") from None
    except ValueError as error:
        raise UnreadableFile(str(error)) from None
    return value


def modification_time(path: Path) -> float:
    """Return when the file was last written, in seconds since 1970."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
