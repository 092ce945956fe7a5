"""Pending saves: what a memory server has not confirmed, kept in order until it does.

With a file, they survive the end of the program: a line of JSON for each save, and one when it is
done. A line is on the disk before the save is sent, so that nothing is lost whenever the program or
the server ends.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import unusable
from commonplace.files import atomic
from commonplace.files.plain import open_for_append, read_all, sync

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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
    """The saves that wait, the oldest first."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._waiting: dict[str, Pending] = {}
        if path is not None:
            self._load(path)

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Pending]:
        return iter(list(self._waiting.values()))

    def add(self, one: Pending) -> None:
        """Write *one* down; it is safe when this returns."""
        self._append({"add": one.id, "tool": one.tool, "arguments": one.arguments, "at": one.at})
        self._waiting[one.id] = one

    def set_unsure(self, ident: str) -> None:
        """Note that the server may have this save. The file has no need of it: see `_load`."""
        self._waiting[ident] = self._waiting[ident]._replace(is_unsure=True)

    def set_refused(self, ident: str, reason: str) -> None:
        """Note why the server refused this save. It stays, so that nothing is lost."""
        self._waiting[ident] = self._waiting[ident]._replace(refused=reason)

    def done(self, ident: str) -> None:
        """Forget a save that the server has."""
        self._append({"done": ident})
        del self._waiting[ident]
        if not self._waiting and self._path is not None:
            atomic.replace(self._path, ())

    def _append(self, line: dict[str, Any]) -> None:
        if self._path is None:
            return
        raw = json.dumps(line, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        descriptor = open_for_append(self._path)
        try:
            size = os.fstat(descriptor).st_size
            try:
                _write_all(descriptor, raw)
                sync(descriptor)
            except OSError as error:
                os.ftruncate(descriptor, size)  # Half a line would spoil the next one.
                raise unusable(self._path, error) from error
        finally:
            os.close(descriptor)

    def _load(self, path: Path) -> None:
        """Read the saves that were not done. Whether the server has them is not known."""
        content = read_all(path)
        for raw in content.split(b"\n"):
            line = _read_line(raw)
            if "done" in line:
                self._waiting.pop(line["done"], None)
            elif isinstance(line.get("add"), str):
                self._waiting[line["add"]] = Pending(
                    line["add"], line["tool"], line["arguments"], line.get("at", ""), is_unsure=True
                )
        # A line that was not written to its end is of a save that nobody was told is safe.
        if content and not content.endswith(b"\n"):
            end = content.rfind(b"\n") + 1
            atomic.replace(path, (content[:end],))


def _read_line(raw: bytes) -> dict[str, Any]:
    try:
        line = json.loads(raw)
    except ValueError:
        return {}
    if not isinstance(line, dict):
        return {}
    is_save = isinstance(line.get("tool"), str) and isinstance(line.get("arguments"), dict)
    return line if is_save or isinstance(line.get("done"), str) else {}


def _write_all(descriptor: int, raw: bytes) -> None:
    while raw:
        raw = raw[os.write(descriptor, raw) :]
