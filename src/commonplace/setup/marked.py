"""A section of a text file between two markers that are comments there. Taking it out gives back every other byte.

Several agents may read one file, so the end marker names those it is there for; it goes with the last of them. A file
that did not end with a newline still does not, which is how undoing knows what else was put in.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from commonplace.setup.jsonc import NotEditable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Marks(NamedTuple):
    """How a comment begins and ends in a kind of file."""

    opens: str
    closes: str

    @property
    def start(self) -> str:
        return f"{self.opens}commonplace:start{self.closes}"

    def end(self, names: Iterable[str]) -> str:
        return f"{self.opens}commonplace:end ({', '.join(sorted(names))}){self.closes}"


MARKDOWN = Marks("<!-- ", " -->")
HASH = Marks("# ", "")


class Section(NamedTuple):
    """Where a section is, markers included, and whom it is there for."""

    start: int
    end: int
    names: frozenset[str]


def find(text: str, marks: Marks) -> Section | None:
    """The section in *text*, if there is one."""
    start = re.search(rf"(?m)^{re.escape(marks.start)}(?=\r?$)", text)
    end_line = rf"(?m)^{re.escape(marks.opens)}commonplace:end \(([^)\r\n]*)\){re.escape(marks.closes)}(?=\r?$)"
    end = re.search(end_line, text)
    if start is None and end is None:
        return None
    if start is None or end is None or end.start() < start.end():
        raise NotEditable(
            "one of the two lines that mark our section is missing; put it back, or take out the other"
        )
    return Section(start.start(), end.end(), frozenset(end[1].split(", ")))


def with_section(text: str | None, marks: Marks, body: str, name: str) -> str:
    """*text* with *body* in a section of ours that is there for *name*, among others."""
    found = find(text, marks) if text else None
    names = found.names | {name} if found else {name}
    newline = _newline((text or "")[found.start if found else 0 :])
    lines = [marks.start, *body.strip("\n").split("\n"), marks.end(names)]
    section = newline.join(lines)
    if text is None:
        return section + newline
    if found:
        return text[: found.start] + section + text[found.end :]
    if not text:
        return section
    return (
        f"{text}{newline}{section}{newline}"
        if text.endswith("\n")
        else f"{text}{newline * 2}{section}"
    )


def without_section(text: str, marks: Marks, name: str) -> str | None:
    """*text* less *name*'s part in the section, and less the section if it was there for *name* alone.

    Nothing at all is left of a file that was made for it.
    """
    found = find(text, marks)
    if found is None or name not in found.names:
        return text
    if len(found.names) > 1:
        end = text.rindex(marks.opens, 0, found.end)
        return text[:end] + marks.end(found.names - {name}) + text[found.end :]
    before, behind = text[: found.start], text[found.end :]
    newline = _newline(text[found.start :])
    if behind == newline and not before:
        return None
    # One empty line before it is ours, and the end of its last line; or the end of the line before, if that had none.
    if behind.startswith(newline):
        return before.removesuffix(newline) + behind.removeprefix(newline)
    return before.removesuffix(newline).removesuffix(newline) + behind


def _newline(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
