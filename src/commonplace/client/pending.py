"""Pending saves: what a memory server has not confirmed, kept in order until it does.

With a file, they survive the end of the program: a line of JSON for each save, and one when it is
done. A line is on the disk before the save is sent, so that nothing is lost whenever the program or
the server ends. What the server refused is in a file of its own.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import unusable
from commonplace.files import atomic
from commonplace.files.plain import open_for_append, read_all, sync

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

REFUSED_NAME = "refused.jsonl"
# Of more refused saves, the oldest are dropped: a server may refuse everything, for ever.
REFUSED_MAX = 200
# So many lines that say nothing any more are left in the file.
SPARE_LINES = 64


class Pending(NamedTuple):
    """A call of one of the seven tools that changes the memory."""

    # Chosen here, and part of what is sent: it shows whether the server has it already.
    id: str
    tool: str
    arguments: dict[str, Any]
    at: str = ""
    # Whether the server may have it: it was sent, or this program was started after it was written.
    is_unsure: bool = False
    # Why the server refused it.
    refused: str = ""


class PendingSaves:
    """The saves that wait, the oldest first; and apart from them, those that the server refused."""

    def __init__(self, path: Path | None = None) -> None:
        self._file = _Lines(path)
        self._refused_file = _Lines(path and path.with_name(REFUSED_NAME))
        self._waiting: dict[str, Pending] = {}
        self._refused: dict[str, Pending] = {}
        self._load()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Pending]:
        return iter(list(self._waiting.values()))

    @property
    def refused(self) -> list[Pending]:
        """Those that the server refused, the oldest first."""
        return list(self._refused.values())

    def has(self, ident: str) -> bool:
        """Whether this save waits, or was refused."""
        return ident in self._waiting or ident in self._refused

    def add(self, one: Pending) -> None:
        """Write *one* down; it is safe when this returns."""
        self._file.append(_line(one))
        self._waiting[one.id] = one

    def set_unsure(self, ident: str) -> None:
        """Note that the server may have this save. The file has no need of it: see `_load`."""
        self._waiting[ident] = self._waiting[ident]._replace(is_unsure=True)

    def set_aside(self, ident: str, reason: str) -> None:
        """Keep a save that the server refused apart, with the *reason*: it is not sent again."""
        one = self._waiting[ident]._replace(is_unsure=False, refused=reason)
        self._refused_file.append(_line(one))
        self._refused[ident] = one
        self._drop_oldest()
        if self._refused_file.count > REFUSED_MAX * 2:
            self._refused_file.replace(map(_line, self._refused.values()))
        self.done(ident)

    def retry_refused(self) -> None:
        """Let what was refused wait again, behind the others."""
        for one in self.refused:
            self.add(one._replace(refused=""))
        self._refused.clear()
        self._refused_file.replace(())

    def done(self, ident: str) -> None:
        """Forget a save that the server has."""
        self._file.append({"done": ident})
        del self._waiting[ident]
        # So the file is never much longer than what waits.
        if not self._waiting or self._file.count > len(self._waiting) * 2 + SPARE_LINES:
            self._file.replace(map(_line, self._waiting.values()))

    def _load(self) -> None:
        """Read the saves that were not done. Whether the server has them is not known."""
        for line in self._file.read():
            if "done" in line:
                self._waiting.pop(line["done"], None)
            else:
                self._waiting[line["add"]] = _save(line)._replace(is_unsure=True)
        for line in self._refused_file.read():
            # One that is in both was on its way from one to the other.
            if "add" in line and line["add"] not in self._waiting:
                self._refused[line["add"]] = _save(line)
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        for ident in list(self._refused)[:-REFUSED_MAX]:
            del self._refused[ident]


class _Lines:
    """A file of lines of JSON, or none."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        # How many lines it has.
        self.count = 0

    def read(self) -> list[dict[str, Any]]:
        """Return the lines that are saves, or say that one is done."""
        if self._path is None:
            return []
        content = read_all(self._path)
        # A line that was not written to its end is of a save that nobody was told is safe.
        if content and not content.endswith(b"\n"):
            content = content[: content.rfind(b"\n") + 1]
            atomic.replace(self._path, (content,))
        found = content.split(b"\n")[:-1]
        self.count = len(found)
        return [line for raw in found if (line := _read_line(raw))]

    def append(self, line: dict[str, Any]) -> None:
        """Write a line at the end; it is safe when this returns."""
        self.count += 1
        if self._path is None:
            return
        descriptor = open_for_append(self._path)
        try:
            size = os.fstat(descriptor).st_size
            try:
                _write_all(descriptor, _encoded(line))
                sync(descriptor)
            except OSError as error:
                os.ftruncate(descriptor, size)  # Half a line would spoil the next one.
                raise unusable(self._path, error) from error
        finally:
            os.close(descriptor)

    def replace(self, lines: Iterable[dict[str, Any]]) -> None:
        """Write the file anew."""
        if not self.count:
            return
        kept = list(map(_encoded, lines))
        self.count = len(kept)
        if self._path is not None:
            atomic.replace(self._path, kept)


def _line(one: Pending) -> dict[str, Any]:
    refused = {"refused": one.refused} if one.refused else {}
    return {
        "add": one.id,
        "tool": one.tool,
        "arguments": one.arguments,
        "at": one.at,
        **refused,
    }


def _save(line: dict[str, Any]) -> Pending:
    at, refused = str(line.get("at", "")), str(line.get("refused", ""))
    return Pending(line["add"], line["tool"], line["arguments"], at, refused=refused)


def _encoded(line: dict[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def _read_line(raw: bytes) -> dict[str, Any]:
    try:
        line = json.loads(raw)
    except ValueError:
        return {}
    if not isinstance(line, dict):
        return {}
    is_save = (
        isinstance(line.get("add"), str)
        and isinstance(line.get("tool"), str)
        and isinstance(line.get("arguments"), dict)
    )
    return line if is_save or isinstance(line.get("done"), str) else {}


def _write_all(descriptor: int, raw: bytes) -> None:
    while raw:
        raw = raw[os.write(descriptor, raw) :]
