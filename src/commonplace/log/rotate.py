"""Rotation: move the least recently changed records of a long log to its archive.

All lines about one id move together: its versions, its feedback, its forgetting. The lines are
added to the archive before they are removed from the log. If the process is killed in between,
both files hold them, and readers treat equal lines as one.
"""

from __future__ import annotations

from typing import NamedTuple

from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.log import read
from commonplace.log.append import append_once
from commonplace.records import from_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from commonplace.where.home import Home


class Rotation(NamedTuple):
    """What one rotation did to the log of a repository."""

    repo: str
    lines_moved: int
    lines_left: int


def rotate(
    home: Home, repo: str, *, lines_max: int, move: int, dry_run: bool = False
) -> Rotation | None:
    """Move about *move* lines of a log with more than *lines_max* to its archive; 0 means never.

    With *dry_run*, return what would be moved, and move nothing.
    """
    path, archive = home.log(repo), home.archive(repo)
    if lines_max <= 0 or move <= 0 or not path.exists():
        return None
    with hold(path):
        lines = [line.raw for line in read.lines(path, whole=True) if line.raw.strip()]
        if len(lines) <= lines_max:
            return None
        moving = _oldest_groups(_groups(lines), move)
        moved = [raw + b"\n" for index, raw in enumerate(lines) if index in moving]
        left = [raw + b"\n" for index, raw in enumerate(lines) if index not in moving]
        if moved and not dry_run:
            append_once(archive, moved)
            atomic.replace(path, left)
    return Rotation(repo, len(moved), len(left))


def _groups(lines: list[bytes]) -> list[list[int]]:
    """Return the indices of the lines about each id. Unreadable lines are left for `doctor`."""
    roots: dict[str, str] = {}

    def root(ident: str) -> str:
        while (parent := roots.setdefault(ident, ident)) != ident:
            roots[ident] = ident = roots[parent]  # Halves the way for the next one.
        return ident

    idents: list[str | None] = []
    for raw in lines:
        try:
            record = from_line(raw)
        except ValueError:
            idents.append(None)
            continue
        of = record.fields.get("of")
        if isinstance(of, str):
            roots[root(record.id)] = root(of)
        idents.append(record.id)
    groups: dict[str, list[int]] = {}
    for index, ident in enumerate(idents):
        if ident is not None:
            groups.setdefault(root(ident), []).append(index)
    return list(groups.values())


def _oldest_groups(groups: list[list[int]], move: int) -> set[int]:
    """Return the groups that fit into *move* lines, least recently changed first; at least one."""
    oldest = sorted(groups, key=lambda indices: indices[-1])
    chosen: set[int] = set()
    for group in oldest:
        if len(chosen) + len(group) <= move:
            chosen.update(group)
    return chosen or set(*oldest[:1])
