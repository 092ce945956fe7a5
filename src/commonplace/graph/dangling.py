"""Links and children that lead nowhere: allowed, since the other end may come later."""

from __future__ import annotations

from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from commonplace.graph.tree import NODE_KINDS
from commonplace.log.fold import fold
from commonplace.recaller import TEXT_PREFIXES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.log.fold import Stored
    from commonplace.recaller import Recaller
    from commonplace.rules import Edge, FoldedLine
    from commonplace.where.home import Home


class DanglingLink(NamedTuple):
    """A link of the record *of* to the id *to*, which no record, note or skill has."""

    of: str
    rel: str
    to: str


def dangling(memory: Recaller) -> list[DanglingLink]:
    """Return the links in the nearest home that lead to nothing in a home in use, by id.

    It reads the logs and files themselves, for `doctor`: an index may be what is wrong.
    """
    folds = [fold(home)[0] for home in memory.homes]
    found: set[DanglingLink] = set()
    for ident in folds[0].visible_ids(superseded=True, statements=True):
        line = folds[0].current(ident)
        for edge in line.edges:
            missing = [
                end
                for end in (edge.of, edge.to)
                if not any(end in one for one in folds) and not _is_text(memory.homes, end)
            ]
            if missing and _is_stated_as_link(line, edge):
                (to,) = missing[-1:]
                found.add(DanglingLink(edge.of if to == edge.to else edge.to, edge.rel, to))
    return sorted(found)


def is_of_file(ident: str) -> bool:
    """Whether an id is that of a note or skill, there or not."""
    return ident.startswith(TEXT_PREFIXES)


def _is_text(homes: Sequence[Home], ident: str) -> bool:
    """Whether it is the id of a note or skill that is there, as a plain file."""
    kind, _colon, name = ident.partition(":")
    parts = PurePosixPath(name).parts
    if not is_of_file(ident) or ".." in parts or name.startswith("/"):
        return False
    if kind == "skill" and len(parts) != 1:
        return False
    paths = [home.skill(name) if kind == "skill" else home.notes_folder / name for home in homes]
    with suppress(OSError, ValueError):  # The name may be invalid in a file system.
        return any(path.is_file() and not path.is_symlink() for path in paths)
    return False


def _is_stated_as_link(line: FoldedLine[Stored], edge: Edge) -> bool:
    """Whether it is a link. The sources of what was learned may well be elsewhere."""
    return edge.rel != "derived_from" or line.kind in (*NODE_KINDS, "link")
