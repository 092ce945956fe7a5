"""Whether the line ends of a text matter: they do not in prose that was wrapped at some width.

Commands and code without a fence, lists and tables keep them: in one line they could not be used.
"""

from __future__ import annotations

import re
from itertools import pairwise

# Nobody wraps prose at less.
WIDTH_MIN = 40
# The share of plain words in a line of prose; in a command there are fewer.
PLAIN_SHARE_MIN = 0.7
_MARKUP = re.compile(r"```|~~~|\n(?: {4}|\t)|\n\s*(?:[-*+|#>]|\d+[.)])\s")
_BLANK_LINES = re.compile(r"\n\s*\n")
_CODE_SPAN = re.compile(r"(`+)(?:(?!`).)+\1")
# A word, a number or a dash; and whatever is not ASCII, such as words without spaces between them.
_PLAIN = re.compile(
    r"[(\"'*_]*[^\W\d_][\w'/-]*[)\"'*_.,;:!?]*|\(?\d[\d.,:%]*\)?[.,;:]?|-|.*[^\x00-\x7f].*"
)
_HEADING = re.compile(r"^ {0,3}(?:#{1,6}\s+\S.*|\S.*\n {0,3}=+ *)\n", re.MULTILINE)
_LABEL = re.compile(
    r"^ {0,3}[*_]{0,2}[^\W\d_][\w /-]{0,24}[*_]{0,2}[:\uff1a][*_]{0,2}\s", re.MULTILINE
)
_ITEM = re.compile(r"\s*(?:>\s*)*(?:[-*+]|\d+[.)])\s")
_END = re.compile(r"[^\w\s]\s*$")


def has_lines(text: str) -> bool:
    """Whether the line ends of *text* must be kept."""
    text = text.replace("\r\n", "\n").strip()
    if "\n" not in text:
        return False
    return _MARKUP.search(text) is not None or not all(
        map(_is_wrapped, _BLANK_LINES.split(text.strip()))
    )


def has_parts(text: str) -> bool:
    """Whether *text* has a heading, or several lines that begin with what they are (`Cause: …`)."""
    text = text.replace("\r\n", "\n")
    return _HEADING.search(text) is not None or len(_LABEL.findall(text)) > 1


def ends_prose(line: str) -> bool:
    """Whether *line* ends a sentence or a list item, so that more words may follow in it."""
    return is_prose(line) and bool(_ITEM.match(line) or _END.search(line))


def is_prose(line: str) -> bool:
    """Whether *line* is made of words, as a sentence is and most commands are not."""
    words = _CODE_SPAN.sub("code", line).split()
    plain = sum(_PLAIN.fullmatch(word) is not None for word in words)
    return plain >= PLAIN_SHARE_MIN * len(words)


def _is_wrapped(paragraph: str) -> bool:
    """Whether *paragraph* is prose of which each line ends where the next word did not fit."""
    lines = paragraph.split("\n")
    width = max(map(len, lines))
    if len(lines) == 1:
        return True
    if width < WIDTH_MIN or not all(map(is_prose, lines)):
        return False
    return all(
        not after[:1].isspace() and len(line) + 1 + len(after.split(" ", 1)[0]) > width
        for line, after in pairwise(lines)
    )
