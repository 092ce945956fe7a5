"""The files of an import: found without following a link, opened without trusting their names, read in small parts."""

from __future__ import annotations

import os
import stat
from json import JSONDecodeError, loads
from typing import TYPE_CHECKING, Any

from commonplace.errors import CommonplaceError
from commonplace.exchange import frontmatter
from commonplace.exchange.items import Head, Item, Passed, Unread
from commonplace.files.plain import open_for_read
from commonplace.log.read import lines
from commonplace.records import check_depth, decode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES_MAX = 100_000
# A file that is read as a whole; JSON lines have no such limit, since they are read one by one.
WHOLE_BYTES_MAX = 16 << 20
HEAD_BYTES = 64 << 10
HEAD_LINES_MAX = 20
LINE_SUFFIXES = (".jsonl", ".ndjson", ".json")
TEXT_SUFFIXES = (".md", ".markdown", ".mdx")
# Other people's code, and what is derived or this machine's own.
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


class NotText(Exception):
    """A file that cannot be read as text. The message says why."""


def found(root: Path) -> Iterator[tuple[Path, Item | None]]:
    """Every file at or below *root*, in order; with a reason where it is passed over."""
    if root.is_file():
        yield root, None
        return
    count = 0
    denied: list[tuple[Path, Item | None]] = []

    def deny(error: OSError) -> None:
        denied.append(
            (root / os.fspath(error.filename), Unread(0, f"cannot be opened: {error.strerror}"))
        )

    for folder, folders, names in os.walk(root, onerror=deny):
        yield from denied
        denied.clear()
        links = [name for name in folders if (root / folder / name).is_symlink()]
        folders[:] = sorted(
            name for name in folders if name not in _FOLDERS_SKIPPED and name not in links
        )
        for name in sorted([*names, *links]):
            path = root / folder / name
            count += 1
            if count > FILES_MAX:
                yield (
                    path,
                    Unread(0, f"and what follows was not looked at: over {FILES_MAX:,} files"),
                )
                return
            yield path, _unfit(path)
    yield from denied


def _unfit(path: Path) -> Item | None:
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        return Unread(0, f"cannot be opened: {error.strerror}")
    if stat.S_ISLNK(mode):
        return Passed(0, "is a symbolic link; name what it leads to, if it is wanted")
    return None if stat.S_ISREG(mode) else Passed(0, "is no plain file")


def head(path: Path) -> Head:
    """The beginning of the file at *path*. Raises `NotText`."""
    raw = _bytes(path, HEAD_BYTES)
    if b"\x00" in raw:
        raise NotText("is binary")
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


def text(path: Path) -> str:
    """The whole text of a file. Raises `NotText`."""
    raw = _bytes(path, WHOLE_BYTES_MAX + 1)
    if len(raw) > WHOLE_BYTES_MAX:
        raise NotText(f"is longer than {WHOLE_BYTES_MAX:,} bytes")
    if b"\x00" in raw:
        raise NotText("is binary")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotText("is not valid UTF-8") from None


def _bytes(path: Path, most: int) -> bytes:
    try:
        stream = open_for_read(path)
        if stream is None:
            raise NotText("is gone")
        with stream:
            return stream.read(most)
    except OSError as error:
        raise NotText(f"cannot be opened: {error.strerror}") from None
    except CommonplaceError as error:
        raise NotText(f"cannot be opened: {_cause(error)}") from None


def _cause(error: CommonplaceError) -> str:
    cause = error.__cause__
    return cause.strerror or str(cause) if isinstance(cause, OSError) else str(error)


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]] | Unread]:
    """The objects in a file of JSON lines, with their line numbers, one at a time however long the file is."""
    try:
        for line in lines(path):
            if line.raw.strip():
                try:
                    yield line.number, decode(line.raw)
                except ValueError as error:
                    yield Unread(
                        line.number,
                        "is torn: the last line has no end" if _torn(line) else str(error),
                    )
    except CommonplaceError as error:
        yield Unread(0, f"cannot be opened: {_cause(error)}")


def _torn(line: Any) -> bool:  # noqa: ANN401 (a line of the log's reader)
    return bool(line.torn) and not line.raw.rstrip().endswith(b"}")


def json_value(path: Path) -> Any:  # noqa: ANN401 (any JSON)
    """What a JSON file holds. Raises `NotText`."""
    content = text(path)
    try:
        value = loads(content)
        check_depth({"": value}, content)
    except (JSONDecodeError, RecursionError) as error:
        raise NotText(f"is not JSON ({error})") from None
    except ValueError as error:
        raise NotText(str(error)) from None
    return value


def modified(path: Path) -> float:
    """When the file was last written, in seconds since 1970."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
