"""A section of a text file between two markers, which are comments in that kind of file.

Removing it restores every other byte. Several agents may read one file, so the end marker names the
agents that the section is for; it is removed with the last of them. A file that did not end with a
newline still does not, which shows how many line ends were added.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class NotEditable(ValueError):
    """A text that cannot be edited: damaged, or laid out so that nothing can be added. Says why."""


class Marks(NamedTuple):
    """How a comment begins and ends in a kind of file, and the name of our section in it."""

    opens: str
    closes: str
    name: str = "commonplace"

    @property
    def start(self) -> str:
        return f"{self.opens}{self.name}:start{self.closes}"

    def end(self, names: Iterable[str]) -> str:
        return f"{self.opens}{self.name}:end ({', '.join(sorted(names))}){self.closes}"


MARKDOWN = Marks("<!-- ", " -->")
HASH = Marks("# ", "")
CONTINUITY = Marks("<!-- ", " -->", "commonplace:continuity")


class Section(NamedTuple):
    """Where a section is, markers included, and the agents it is for."""

    start: int
    end: int
    names: frozenset[str]


def find(text: str, marks: Marks) -> Section | None:
    """Return the section in *text*, if there is one."""
    start = re.search(rf"(?m)^{re.escape(marks.start)}(?=\r?$)", text)
    opens, closes = re.escape(marks.opens), re.escape(marks.closes)
    name = re.escape(marks.name)
    end = re.search(rf"(?m)^{opens}{name}:end \(([^)\r\n]*)\){closes}(?=\r?$)", text)
    if start is None and end is None:
        return None
    if start is None or end is None or end.start() < start.end():
        raise NotEditable(
            "one of the two lines that mark our section is missing; restore it, or delete the other"
        )
    return Section(start.start(), end.end(), frozenset(end[1].split(", ")))


def add(text: str | None, marks: Marks, body: str, name: str) -> str:
    """Return *text* with *body* in our section, which is for the agent *name* among others."""
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


def remove(text: str, marks: Marks, name: str) -> str | None:
    """Return *text* without *name* in the end marker, and without a section for *name* only.

    `None` if the file was created for the section.
    """
    found = find(text, marks)
    if found is None or name not in found.names:
        return text
    if len(found.names) > 1:
        end = text.rindex(marks.opens, 0, found.end)
        return text[:end] + marks.end(found.names - {name}) + text[found.end :]
    before, after = text[: found.start], text[found.end :]
    newline = _newline(text[found.start :])
    if after == newline and not before:
        return None
    # The empty line before the section is ours, and its last line end; in a file without a final
    # newline, the two line ends before it.
    if after.startswith(newline):
        return before.removesuffix(newline) + after.removeprefix(newline)
    return before.removesuffix(newline).removesuffix(newline) + after


def _newline(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
