"""Objects: pieces of logs in files that are named by the hash of their content.

The lines of a file are cut into pieces of 8 to 64 KB. Where a piece ends depends on the lines
themselves, so a line that is added or removed changes one piece, wherever it is. The hashes of the
pieces are listed in objects that are cut in the same way, and so on until one is left: the root.
So the same lines are stored once, however many snapshots hold them.
"""

from __future__ import annotations

import os
import re
import zlib
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING

from commonplace.errors import SnapshotDamaged, unusable
from commonplace.files import atomic
from commonplace.files.plain import FILE_BYTES_MAX, read_small, sync
from commonplace.records import LINE_READ_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

# A piece may end after so many bytes, does so after one line in so many, and ends at the latest
# after so many bytes.
_PIECE_BYTES_MIN, _PIECE_ONE_IN, _PIECE_BYTES_MAX = 8 << 10, 32, 64 << 10
# The same for a list of hashes, in entries.
_LIST_MIN, _LIST_ONE_IN, _LIST_MAX = 8, 32, 512
_OBJECT_BYTES_MAX = LINE_READ_BYTES_MAX + (1 << 20)
_LEVELS_MAX = 16
_LINES, _LIST = b"lines\n", b"list\n"
_HASH = re.compile(r"[0-9a-f]{64}")


class Objects:
    """The objects in one folder. `written` are the files that this process has added."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.written: list[Path] = []
        self.bytes_written = 0

    # --- Writing ----------------------------------------------------------------------------------

    def put_lines(self, lines: Iterable[bytes]) -> str:
        """Store *lines*, each without its newline; return the root, "" if there are none."""
        hashes = [self._put(_LINES + b"".join(piece)) for piece in _pieces(lines)]
        return self._put_lists(hashes)

    def _put_lists(self, hashes: list[str]) -> str:
        while len(hashes) > 1:
            hashes = [self._put_list(part) for part in _parts(hashes)]
        return hashes[0] if hashes else ""

    def _put_list(self, hashes: list[str]) -> str:
        return self._put(_LIST + "".join(f"{one}\n" for one in hashes).encode())

    def _put(self, content: bytes) -> str:
        name = blake2b(content, digest_size=32).hexdigest()
        path = self._path(name)
        if not path.is_file():
            raw = zlib.compress(content, 1)
            try:
                atomic.write(path, [raw], durable=False)
            except OSError as error:
                raise unusable(path, error) from error
            self.written.append(path)
            self.bytes_written += len(raw)
        return name

    def sync(self) -> None:
        """Write what was added to the disk itself, before anything names it."""
        for path in self.written:
            descriptor = os.open(path, os.O_RDWR)
            try:
                sync(descriptor)
            finally:
                os.close(descriptor)

    # --- Reading ----------------------------------------------------------------------------------

    def lines(self, root: str) -> Iterator[bytes]:
        """Yield the lines that `put_lines` stored, without their newlines."""
        for content in self._leaves(root, _LEVELS_MAX) if root else ():
            # Only a newline ends a line.
            yield from content[len(_LINES) : -1].split(b"\n")

    def _leaves(self, name: str, levels: int) -> Iterator[bytes]:
        content = self._get(name)
        if content.startswith(_LINES):
            yield content
            return
        for below in self._listed(name, content, levels):
            yield from self._leaves(below, levels - 1)

    def _listed(self, name: str, content: bytes, levels: int) -> list[str]:
        hashes = content[len(_LIST) :].decode("ascii", "replace").split("\n")[:-1]
        is_list = content.startswith(_LIST) and levels > 0
        if not is_list or not all(map(_HASH.fullmatch, hashes)):
            raise SnapshotDamaged(self._path(name), "it holds neither lines nor a list of objects")
        return hashes

    def _get(self, name: str) -> bytes:
        path = self._path(name)
        try:
            raw = read_small(path, FILE_BYTES_MAX)
            decompressor = zlib.decompressobj()
            content = decompressor.decompress(raw, _OBJECT_BYTES_MAX)
        except FileNotFoundError:
            raise SnapshotDamaged(path, "it is missing") from None
        except OSError as error:
            raise unusable(path, error) from error
        except zlib.error:
            content = b""
        if blake2b(content, digest_size=32).hexdigest() != name:
            raise SnapshotDamaged(path, "its content is not what was stored")
        return content

    def _path(self, name: str) -> Path:
        if not _HASH.fullmatch(name):
            raise SnapshotDamaged(self._folder, f"`{name[:80]}` is not the name of an object")
        return self._folder / name[:2] / name

    # --- Removing text ----------------------------------------------------------------------------

    def rewrite(
        self, root: str, change: Callable[[bytes], bytes], known: dict[str, str], levels: int = 0
    ) -> str:
        """Store the lines of *root* as *change* makes them of each piece; return the new root.

        *known* has the objects that were rewritten so far, and is added to: of many snapshots,
        each object is read once.
        """
        if not root:
            return ""
        if root not in known:
            content = self._get(root)
            if content.startswith(_LINES):
                new = change(content[len(_LINES) :])
                is_same = new == content[len(_LINES) :]
                known[root] = root if is_same else self._put(_LINES + new) if new else ""
            else:
                below = self._listed(root, content, _LEVELS_MAX - levels)
                changed = [self.rewrite(one, change, known, levels + 1) for one in below]
                kept = [one for one in changed if one]
                known[root] = root if changed == below else self._put_list(kept) if kept else ""
        return known[root]

    def reach(self, root: str, found: set[str], levels: int = 0) -> None:
        """Add the names of all objects below *root* to *found*."""
        if root and root not in found:
            found.add(root)
            content = self._get(root)
            if not content.startswith(_LINES):
                for below in self._listed(root, content, _LEVELS_MAX - levels):
                    self.reach(below, found, levels + 1)

    def remove_except(self, kept: set[str]) -> int:
        """Remove every object that is not in *kept*; return how many."""
        removed = 0
        with suppress(FileNotFoundError):
            for folder in sorted(self._folder.iterdir()):
                for path in sorted(folder.iterdir()) if folder.is_dir() else ():
                    if path.name not in kept:
                        try:
                            path.unlink(missing_ok=True)
                        except OSError as error:
                            raise unusable(path, error) from error
                        removed += 1
        return removed


def _pieces(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    piece: list[bytes] = []
    size = 0
    for line in lines:
        piece.append(line + b"\n")
        size += len(line) + 1
        is_end = size >= _PIECE_BYTES_MIN and not zlib.crc32(line) % _PIECE_ONE_IN
        if is_end or size >= _PIECE_BYTES_MAX:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _parts(hashes: list[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for one in hashes:
        part.append(one)
        is_end = len(part) >= _LIST_MIN and not int(one[-4:], 16) % _LIST_ONE_IN
        if is_end or len(part) >= _LIST_MAX:
            yield part
            part = []
    if part:
        yield part
