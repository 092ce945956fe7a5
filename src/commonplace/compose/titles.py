"""The title of a long memory: what its front matter, its headings or its first line call it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from commonplace import frontmatter
from commonplace.compose.unit_uses import use_of_heading
from commonplace.index.units import CODE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.index.units import Unit

SOUGHT_CHARS_MAX = 2000
# The fields of front matter that name a text, the best first.
_NAMES = ("title", "name", "subject")
_TITLE_LINE = re.compile(r"^\s*title:\s*(.+?)\s*$", re.MULTILINE)
_FIRST_HEADING = re.compile(r"\s*#{1,6}\s")
_MAIN_HEADING = re.compile(r"^ {0,3}#\s+(.+?)\s*$", re.MULTILINE)
# A longer heading says what the text is about, even if it names a part, such as "Fix".
_PART_WORDS_MAX = 3


def title_of(text: str, units: Sequence[Unit]) -> str:
    """Return the title of *text*: of its front matter, else its first heading, else its first line.

    The *units* of the text tell a heading from a comment in code.
    """
    fields, body = frontmatter.split(text)
    named = (fields or {}).get(next((one for one in _NAMES if (fields or {}).get(one)), ""))
    if isinstance(named, str):
        return named
    body = body[:SOUGHT_CHARS_MAX]
    line = _TITLE_LINE.match(body)
    title = line[1] if line else _heading(body, units)
    if not title:
        told = (unit.of(text) for unit in units if unit.kind != CODE)
        title = next(told, "").strip().split("\n", 1)[0]
    return _without_quotes(title)


def _heading(body: str, units: Sequence[Unit]) -> str:
    """Return the heading that a text begins with, if it is of no part of it, else the main one."""
    first = units[0].headings[0] if units and units[0].headings else ""
    if first and not _is_part(first):
        return first
    if not units:
        return body.lstrip("# \n").split("\n", 1)[0] if _FIRST_HEADING.match(body) else ""
    headings = {unit.headings[0] for unit in units if unit.headings}
    found = (" ".join(one[1].rstrip("# ").split()) for one in _MAIN_HEADING.finditer(body))
    return next((one for one in found if one in headings and not _is_part(one)), "")


def _is_part(heading: str) -> bool:
    """Whether *heading* says which part of a text follows, and not what the text is about."""
    return len(heading.split()) <= _PART_WORDS_MAX and use_of_heading(heading) is not None


def _without_quotes(title: str) -> str:
    """Return *title* without the quotation marks around all of it."""
    mark, inner = title[:1], title[1:-1]
    is_quoted = len(title) > 1 and mark in ("'", '"') and title[-1] == mark and mark not in inner
    return inner if is_quoted else title
