"""Links and children that lead nowhere: allowed, since the other end may come later."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commonplace.graph.tree import NODE_KINDS
from commonplace.log.fold import fold
from commonplace.recaller import TEXT_PREFIXES

if TYPE_CHECKING:
    from commonplace.log.fold import Stored
    from commonplace.recaller import Recaller
    from commonplace.rules import Edge, FoldedLine


class DanglingLink(NamedTuple):
    """A link of the record *of* to the id *to*, which no record has."""

    of: str
    rel: str
    to: str


def dangling(memory: Recaller) -> list[DanglingLink]:
    """Return the links in the nearest home that lead to no record of a home in use, by id.

    It reads the logs themselves, for `doctor`: an index may be what is wrong.
    """
    folds = [fold(home)[0] for home in memory.homes]
    found: set[DanglingLink] = set()
    for ident in folds[0].visible_ids(superseded=True, statements=True):
        line = folds[0].current(ident)
        for edge in line.edges:
            missing = [
                end
                for end in (edge.of, edge.to)
                if not end.startswith(TEXT_PREFIXES) and not any(end in one for one in folds)
            ]
            if missing and _is_stated_as_link(line, edge):
                (to,) = missing[-1:]
                found.add(DanglingLink(edge.of if to == edge.to else edge.to, edge.rel, to))
    return sorted(found)


def _is_stated_as_link(line: FoldedLine[Stored], edge: Edge) -> bool:
    """Whether it is a link. The sources of what was learned may well be elsewhere."""
    return edge.rel != "derived_from" or line.kind in (*NODE_KINDS, "link")
