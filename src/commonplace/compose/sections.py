"""What the headings of a text tell of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.compose.unit_uses import use_of_section

if TYPE_CHECKING:
    from collections.abc import Iterable


def same_under_others(sections: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Return the sections whose heading, such as "Fix", also stands under another heading.

    Only what they stand under tells them apart.
    """
    parents: dict[object, set[tuple[str, ...]]] = {}
    known = {headings: use_of_section(headings[-1:]) for headings in sections if headings}
    for headings, use in known.items():
        kind = headings[-1].casefold() if use is None else use
        parents.setdefault(kind, set()).add(headings[:-1])
    return {
        headings
        for headings, use in known.items()
        if len(headings) > 1 and len(parents[headings[-1].casefold() if use is None else use]) > 1
    }


def count_shared(sections: Iterable[tuple[str, ...]]) -> int:
    """Return how many headings all sections stand under, such as the title.

    They do not tell the sections apart.
    """
    above = {headings for headings in sections if headings}
    count = 0
    while len(above) > 1 and len({headings[: count + 1] for headings in above}) == 1:
        count += 1
    return count
