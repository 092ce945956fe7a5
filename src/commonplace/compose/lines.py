"""A line of a frame: whatever it says, it begins nothing that reaches beyond it.

Frames are printed as Markdown, each below its heading. A heading of its own, a code fence or HTML
that is left open, or a line of `===` below another would move what a memory says out of its frame,
or swallow the frames after it. In front of each of those goes a backslash, which Markdown shows as
nothing and readers know. Lists and quotations stay: they end with the frame, but what they hold is
looked at in the same way.
"""

from __future__ import annotations

import re

_LINE_END = re.compile(r"\r\n?|\n")
# The marks of quotations and lists, behind which a block may begin as at the start of a line.
_MARKS = re.compile(r"(?:\s*(?:>|(?:[-*+]|\d{1,9}[.)])(?=\s+\S)))*\s*")
# A heading, the line below a heading, a fence, HTML; and the heading of an answer.
_BEGINS = re.compile(r"#{1,6}(?=\s|$)|=+\s*$|-+\s*$|`{3}|~{3}|<|\*\*Relevant Memories")
# An entry of an answer. Others are steps of a list.
_ENTRY = re.compile(r"\s*\d+(?=\. \[)")


def inside(line: str) -> str:
    """Return *line* as it may be in a frame. What was returned before stays as it is."""
    return "\n".join(map(_inside, _LINE_END.split(line)))


def _inside(line: str) -> str:
    if entry := _ENTRY.match(line):
        return f"{entry[0]}\\{line[entry.end() :]}"
    marks = _MARKS.match(line)
    end = marks.end() if marks else 0
    return f"{line[:end]}\\{line[end:]}" if _BEGINS.match(line, end) else line
