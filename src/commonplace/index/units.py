"""The units of a long text: paragraphs, list items, blocks of code, tables, and their headings.

A unit makes sense by itself, so an excerpt is made of whole ones. They are found by a CommonMark
parser when a record is indexed, and kept as positions in the text.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.passages import LABEL, SENTENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

PARAGRAPH, ITEM, CODE, TABLE, QUOTE = "paragraph", "item", "code", "table", "quote"
_KIND_OF = (PARAGRAPH, ITEM, CODE, TABLE, QUOTE)
_CODES = {kind: code for code, kind in enumerate(_KIND_OF)}
NO_LEAD = -1
# A longer paragraph is several units.
PARAGRAPH_CHARS_MAX = 600
# A text without any of these has paragraphs only: the parser is not needed.
_MARKUP = re.compile(
    r"^\s*(?:[#>|`~+*-]|\d+[.)]\s)|^(?: {4}|\t)|^\s*[=-]+\s*$|\||<!--", re.MULTILINE
)
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---(?:\n|\Z)", re.DOTALL)
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")
_COMMENT = re.compile(r"\s*<!--.*?(?:-->|\Z)\s*", re.DOTALL)
_FENCE = re.compile(r"\s*(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)$")
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_KINDS = {
    "paragraph_open": PARAGRAPH,
    "fence": CODE,
    "code_block": CODE,
    "table_open": TABLE,
    "blockquote_open": QUOTE,
    "html_block": PARAGRAPH,
}


class Unit(NamedTuple):
    """A part of a text: what it is, from where to where, and under which headings it stands.

    *lead* is the number of the unit that introduces it (`Run this:`), -1 if none does.
    """

    kind: str
    start: int
    end: int
    headings: tuple[str, ...] = ()
    lead: int = NO_LEAD

    def of(self, text: str) -> str:
        """Return the unit itself; *text* is the whole that it was found in."""
        return text[self.start : self.end]


def has_markup(text: str) -> bool:
    """Whether a parser is needed to find the units of *text*."""
    front = _FRONT_MATTER.match(text)
    return _MARKUP.search(text, front.end() if front else 0) is not None


def dump(units: list[Unit]) -> str:
    """Return *units* as text, to keep them."""
    headings = list(dict.fromkeys(unit.headings for unit in units))
    places = {one: place for place, one in enumerate(headings)}
    rows = [
        (_CODES[unit.kind], unit.start, unit.end, places[unit.headings], unit.lead)
        for unit in units
    ]
    return json.dumps([headings, rows], ensure_ascii=False, separators=(",", ":"))


def load(kept: str) -> list[Unit]:
    """Return what `dump` made a text of."""
    listed, rows = json.loads(kept)
    headings = [tuple(one) for one in listed]
    return [
        Unit(_KIND_OF[kind], start, end, headings[place], lead)
        for kind, start, end, place, lead in rows
    ]


def units_of(text: str) -> list[Unit]:
    """Return the units of *text* in their order. Headings are no units, nor is front matter."""
    front = _FRONT_MATTER.match(text)
    begin = front.end() if front else 0
    if not _MARKUP.search(text, begin):
        return list(_paragraphs(text, begin))
    found: list[Unit] = []
    headings: list[tuple[int, str]] = []
    for start, end in _segments(text, begin):
        found += _parse(text, start, end, headings)
    return _with_leads(found, text)


def _paragraphs(text: str, begin: int) -> Iterator[Unit]:
    """Yield the paragraphs of a text without markup."""
    start = begin
    for match in [*_BLANK_LINES.finditer(text, begin), None]:
        end = match.start() if match else len(text)
        if text[start:end].strip():
            for part in _sentences(text, *_stripped(text, start, end)):
                yield Unit(PARAGRAPH, *part)
        start = match.end() if match else end


def _sentences(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return a paragraph in parts: a label such as `Fix:` begins one, and none is very long."""
    found = [(start, start)]
    for match in [*SENTENCE.finditer(text, start, end), None]:
        stop = match.start() if match else end
        begin = found[-1][1] if found[-1][0] == found[-1][1] else _after_space(text, found[-1][1])
        is_label = LABEL.match(text, begin) and begin > start
        is_long = stop - found[-1][0] > PARAGRAPH_CHARS_MAX and begin > found[-1][0]
        if is_label or is_long:
            found.append((begin, stop))
        else:
            found[-1] = found[-1][0], stop
    return found


def _after_space(text: str, at: int) -> int:
    return at + len(text[at:]) - len(text[at:].lstrip())


def _segments(text: str, begin: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of *text* to parse: a fence that nobody closed ends before a heading.

    By the rules of CommonMark, all the rest of the text would be code.
    """
    opened, start, after_blank = "", begin, False
    # Where the text may go on if the fence that is open now is never closed.
    stop = None
    at = begin
    for line in text[begin:].split("\n"):
        fence = _FENCE.match(line)
        if fence and not opened:
            opened, stop = fence["marks"], None
        elif fence and not fence["info"].strip() and fence["marks"].startswith(opened):
            opened, stop = "", None
        elif opened and stop is None and after_blank and _HEADING.match(line):
            stop = at
        after_blank = not line.strip()
        at += len(line) + 1
    if opened and stop is not None:
        yield start, stop
        yield from _segments(text, stop)
    else:
        yield start, len(text)


def _parse(text: str, begin: int, end: int, headings: list[tuple[int, str]]) -> Iterator[Unit]:
    """Yield the units of a part of *text*; *headings* are those it stands under, and changes."""
    part = text[begin:end]
    starts = [begin]
    for line in part.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    starts[-1] = end
    tokens = _block_tokens(part)
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            depth = int(token.tag[1:])
            headings[:] = [one for one in headings if one[0] < depth]
            headings.append((depth, " ".join(tokens[number + 1].content.split())))
            continue
        is_item = token.type == "list_item_open" and token.level == 1
        kind = ITEM if is_item else _KINDS.get(token.type, "") if token.level == 0 else ""
        if not kind or token.map is None:
            continue
        first, last = (starts[min(line, len(starts) - 1)] for line in token.map)
        if token.type == "html_block" and _COMMENT.fullmatch(text, first, last):
            continue
        above = tuple(title for _, title in headings)
        start, stop = _stripped(text, first, last)
        parts = _sentences(text, start, stop) if kind == PARAGRAPH else [(start, stop)]
        yield from (Unit(kind, *part, above) for part in parts)


def _block_tokens(text: str) -> list[Token]:
    from markdown_it.rules_block import StateBlock  # noqa: PLC0415 (most commands index nothing)

    tokens: list[Token] = []
    parser = _parser()
    # Only the blocks are needed: what is within a line stays as it is. A null is kept: the parser
    # would replace it by a character of the same length.
    parser.block.tokenize(state := StateBlock(text, parser, {}, tokens), 0, state.lineMax)
    return tokens


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 (most commands index nothing)

    return MarkdownIt("commonmark").enable("table")


def _with_leads(units: list[Unit], text: str) -> list[Unit]:
    """Return *units*; what a paragraph with a colon at its end introduces names it."""
    found: list[Unit] = []
    lead = NO_LEAD
    for number, unit in enumerate(units):
        before = units[number - 1] if number else None
        if before is None or before.headings != unit.headings:
            lead = NO_LEAD
        elif before.kind == PARAGRAPH:
            lead = number - 1 if before.of(text).rstrip("*_ ").endswith(":") else NO_LEAD
        elif not (before.kind == unit.kind == ITEM):
            lead = NO_LEAD  # All items of a list have the same one, what follows has none.
        found.append(unit._replace(lead=lead))
    return found


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the positions without blank lines at either end; the first line keeps its indent."""
    while (
        start < end and (line := text.find("\n", start, end)) >= 0 and not text[start:line].strip()
    ):
        start = line + 1
    return start, start + len(text[start:end].rstrip())
