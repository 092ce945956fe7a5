"""The units of a long text: paragraphs, list items, blocks of code, tables, and their headings.

A unit makes sense by itself, so an excerpt is made of whole ones. They are found by a CommonMark
parser when a record is indexed, and kept as positions in the text. A long paragraph or list item is
several units, each of one or a few sentences: the first, and the rest of it.
"""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.passages import LABEL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

    # A fence, `HEADING` or `PROSE`.
    _Mark: TypeAlias = re.Match[str] | str

PARAGRAPH, ITEM, CODE, TABLE, QUOTE = "paragraph", "item", "code", "table", "quote"
# A part of a paragraph or list item that is not its beginning.
REST = "rest"
_KIND_OF = (PARAGRAPH, ITEM, CODE, TABLE, QUOTE, REST)
_TEXTS = (PARAGRAPH, ITEM, REST)
HEADING, PROSE = "heading", "prose"
_CODES = {kind: code for code, kind in enumerate(_KIND_OF)}
NO_LEAD = -1
# Until all units are known, the lead of what is within a list item.
_INSIDE = -2
# A longer paragraph or list item is several units, none of them shorter than the minimum.
WHOLE_CHARS_MAX = 280
PART_CHARS_MIN = 80
# No editor breaks lines at more than this.
WIDTH_MAX = 120
# Of a longer paragraph, only the last sentence introduces what follows.
LEAD_CHARS_MAX = 120
# A sentence ends here: also behind bold text (`**Do this.** Then …`).
SENTENCE = re.compile(
    r"(?:(?<=[.!?。])|(?<=[.!?:]\*\*)|(?<=[.!?][)\"']))\s+(?=[A-Z0-9`\"'(\[*_]|[^\x00-\x7f])"
)
# What looks like the end of a sentence and is none.
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|cf|vs|etc|approx|resp)\.|^\s*\d+[.)])$")
# A text without any of these has paragraphs only: the parser is not needed.
_MARKUP = re.compile(
    r"^\s*(?:[#>|`~+*-]|\d+[.)]\s|</?[a-z])|^(?: {4}|\t)|^\s*[=-]+\s*$|\||<!--", re.MULTILINE
)
_FRONT_MATTER = re.compile(r"\A---\r?\n.*?\n---\r?(?:\n|\Z)", re.DOTALL)
# A line of front matter: a field, what stands below one, a comment, the last line.
_YAML = re.compile(r"\s*$|[\w-]+:|\s|- |#|---")
_FIELDS = re.compile(r"[\w-]+:[^\n]*(?:\n[\w-]+:[^\n]*)+")
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")
# HTML that says nothing: a comment, or tags such as `</details>`.
_WITHOUT_WORDS = re.compile(r"\s*(?:<!--.*?(?:-->|\Z)|(?:</?[a-z][^<>]*>\s*)+)\s*", re.DOTALL)
_FENCE = re.compile(
    r"[\s>]*(?P<item>(?:(?:[-*+]|\d+[.)])\s+)*)(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)$"
)
# An example of Markdown may hold fences and headings.
_MARKDOWN = re.compile(r"\s*(?:md|markdown|mdx)\b", re.IGNORECASE)
_BOLD_LINE = re.compile(r"\s*(?:\*{2,3}[^*\n]+\*{2,3}|_{2,3}[^_\n]+_{2,3})[.:]?\s*")
# A line that stands alone as a heading does: a few words without an end.
_HEADING_LINE = re.compile(r"[A-Z][\w']*(?: [\w'/&-]+){1,4}\??")
# A longer line above one of dashes is no heading.
TITLE_CHARS_MAX = 100
# What ends with a line of dashes, and what marks a title.
_LINES = ("hr", "heading_close")
_TITLE_MARKS = ("=", *("#" * depth for depth in range(1, 7)))
# It is below every heading of Markdown.
_LINE_DEPTH = 7
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")
# A line of English, and not of code: some words of it are hardly ever found in a program.
_ENGLISH = re.compile(
    r"(?:the|an?|of|to|was|were|we|it|are|this|that|on|at|but|be|has|have|our|you|they|since|"
    r"because|which)[.,:;)]?",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*[.,:;!?)]*")
_BEGINS_CODE = re.compile(r"\s|#|//|--|/\*|[$>%]\s|[<@\[{(]")
_ENDS_CODE = ("{", ";", ",", "\\", "(", "[")
PROSE_WORDS_MIN, PROSE_SHARE_MIN = 5, 0.6
# What such a block holds may well be prose.
_OUTPUT = re.compile(
    r"\s*(?:text|txt|console|log|output|plain\w*|none|shell-session)?\s*", re.IGNORECASE
)
# A line of a drawing: a box, or an arrow to one.
_DRAWN = re.compile(r"[│┌└┐┘├┤┬┴┼─═▼▲►◄]|\|-{2,}\|\s?\w|\+-{2,}|-{2,}\+|[|+]\s{2,}[|+]|--+>\s|<--+")
DRAWN_LINES_MIN, DRAWN_SHARE_MIN = 3, 0.5
# What stands behind code and goes on with its sentence: "(since 3.3)", "and run it again".
_GOES_ON = re.compile(r"\(?[a-z][a-z']+\b[^(:=]")
# A sentence that goes on with code: "so we run".
_UNFINISHED = re.compile(r"(?<![.!?])\s[a-z]+,?\Z")
_LABEL_LINE = re.compile(r"[A-Z][^\n]{0,80}:\s*")
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_KINDS = {
    "paragraph_open": PARAGRAPH,
    "heading_open": PARAGRAPH,  # If it is no heading.
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
    return _MARKUP.search(text, _end_of_front_matter(text)) is not None


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
    begin = _end_of_front_matter(text)
    if not _MARKUP.search(text, begin):
        return list(_paragraphs(text, begin))
    found: list[Unit] = []
    headings: list[tuple[int, str]] = []
    for start, end in _segments(text, begin):
        found += _parse(text, start, end, headings)
    return _with_leads(_join_drawn(found, text), text)


def _end_of_front_matter(text: str) -> int:
    """Return where the front matter of a text ends. If more fields follow, all are records."""
    front = _FRONT_MATTER.match(text)
    if front is None or not all(map(_YAML.match, front[0].split("\n")[1:-1])):
        return 0
    rest = text[front.end() :].lstrip()
    return front.end() if rest and not _FRONT_MATTER.match(rest) else 0


def _paragraphs(text: str, begin: int) -> Iterator[Unit]:
    """Yield the paragraphs of a text without markup."""
    start = begin
    for match in [*_BLANK_LINES.finditer(text, begin), None]:
        end = match.start() if match else len(text)
        if text[start:end].strip():
            yield from _in_parts(text, PARAGRAPH, *_stripped(text, start, end))
        start = match.end() if match else end


def _in_parts(
    text: str, kind: str, start: int, end: int, above: tuple[str, ...] = ()
) -> Iterator[Unit]:
    """Yield a paragraph or an item in units, none of them very long.

    A label such as `Fix:` begins one, and so does the sentence that introduces a block.
    """
    if kind == PARAGRAPH and len(lines := list(_lines_by_hand(text, start, end))) > 1:
        for begin, stop in lines:
            yield from _in_parts(text, kind, begin, stop, above)
        return
    is_long = end - start > WHOLE_CHARS_MAX
    introduces = end - start > LEAD_CHARS_MAX and _introduces(text[start:end])
    sentences = list(_sentences(text, start, end))
    found = [Unit(kind, *sentences[0], above)]
    for place, (begin, stop) in enumerate(sentences[1:], start=2):
        last = found[-1]
        is_lead = introduces and place == len(sentences)
        is_enough = last.end - last.start >= PART_CHARS_MIN and end - begin >= PART_CHARS_MIN // 2
        if LABEL.match(text, begin):
            found.append(Unit(PARAGRAPH if kind == PARAGRAPH else REST, begin, stop, above))
        elif is_lead or (is_long and is_enough):
            found.append(Unit(REST, begin, stop, above))
        else:
            found[-1] = last._replace(end=stop)
    yield from found


def _lines_by_hand(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the lines that an author broke himself, each from where to where; short ones together.

    An editor breaks a line where the next word does not fit into its width.
    """
    lines = [(at, at + len(line)) for at, line in _lines(text[:end], start)]
    if end - start <= WHOLE_CHARS_MAX:
        yield start, end
        return
    width = max(stop - begin for begin, stop in lines)
    begin = start
    for (_, stop), (after, after_stop) in pairwise(lines):
        word = text[after:after_stop].split(" ", 1)[0]
        last = text.rfind("\n", start, stop) + 1
        is_broken = width > WIDTH_MAX or stop - max(last, start) + 1 + len(word) <= width
        if is_broken and stop - begin >= PART_CHARS_MIN:
            yield begin, stop
            begin = after
    yield begin, end


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield from where to where each sentence goes, without the space between them."""
    begin = start
    for match in SENTENCE.finditer(text, start, end):
        if not _ABBREVIATION.search(text, begin, match.start()):
            yield begin, match.start()
            begin = match.end()
    yield begin, end


def _segments(text: str, begin: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of *text* to parse: a fence that nobody closed ends with its part.

    By the rules of CommonMark, all text up to the next fence, or to the end, would be code.
    """
    ends = set(_ends_of_unclosed(list(_marks(text, begin))))
    opened, start, in_list = "", begin, False
    for at, line in _lines(text, begin):
        if at in ends:
            yield start, at
            start, opened, in_list = at, "", False
        fence = _FENCE.match(line)
        if fence and not opened:
            opened = fence["marks"]
        elif fence and _closes(fence, opened):
            opened = ""
        if opened:
            in_list = False
        elif in_list and _LABEL_LINE.fullmatch(line):
            # By the rules of CommonMark, it would go on with the item above it.
            yield start, at
            start, in_list = at, False
        else:
            in_list = bool(_ITEM.match(line)) or (in_list and bool(line.strip()))
    yield start, len(text)


def _lines(text: str, begin: int) -> Iterator[tuple[int, str]]:
    """Yield each line and where it begins."""
    for line in text[begin:].split("\n"):
        yield begin, line
        begin += len(line) + 1


def _closes(fence: re.Match[str], opened: str) -> bool:
    is_bare = not fence["item"] and not fence["info"].strip()
    return is_bare and fence["marks"].startswith(opened)


def _marks(text: str, begin: int) -> Iterator[tuple[int, _Mark]]:
    """Yield where fences are, and where a heading or a line of prose seems to be.

    A comment in code looks like a heading of the first level, but code follows it at once.
    """
    lines = [*_lines(text, begin), (len(text), "")]
    for (_, before), (at, line), (_, after) in zip(
        [(begin, ""), *lines], lines, lines[1:], strict=False
    ):
        if fence := _FENCE.match(line):
            yield at, fence
            continue
        is_alone = not before.strip() and ("##" in line[:5] or not after.strip())
        if is_alone and _HEADING.match(line):
            yield at, HEADING
        elif _is_prose(line):
            yield at, PROSE


def _is_prose(line: str) -> bool:
    """Whether a line reads as English, not as code."""
    if _BEGINS_CODE.match(line) or line.rstrip().endswith(_ENDS_CODE):
        return False
    words = line.split()
    told = [word for word in words if _WORD.fullmatch(word)]
    return len(told) >= max(PROSE_WORDS_MIN, PROSE_SHARE_MIN * len(words)) and any(
        map(_ENGLISH.fullmatch, told)
    )


def _ends_of_unclosed(marks: Sequence[tuple[int, _Mark]]) -> Iterator[int]:
    """Yield where each fence ends that nobody closed: before a heading, prose or another fence.

    It was not closed if another one is opened within it, or if one is open at the end of the text.
    """
    begin: int | None = 0
    while begin is not None and begin < len(marks):
        begin = _end_of_unclosed(marks, begin)
        if begin is not None:
            yield marks[begin][0]


def _end_of_unclosed(marks: Sequence[tuple[int, _Mark]], begin: int) -> int | None:
    """Return the number of the mark before which the first such fence ends; `None` without one."""
    opened: re.Match[str] | None = None
    end: int | None = None  # The first heading or line of prose within the fence that is open.
    earlier: int | None = None  # The first one within a fence that was closed.
    for number in range(begin, len(marks)):
        mark = marks[number][1]
        if isinstance(mark, str):
            end = number if opened and end is None else end
        elif opened is None:
            opened, end = mark, None
        elif _closes(mark, opened["marks"]):
            # Where any output may stand, prose says nothing.
            is_sure = end is not None and (
                marks[end][1] == HEADING or not _OUTPUT.fullmatch(opened["info"])
            )
            opened, earlier = None, end if earlier is None and is_sure else earlier
        elif mark["marks"].startswith(opened["marks"]) and not _MARKDOWN.match(opened["info"]):
            return number if end is None else end
    if opened is None:
        return None
    return end if earlier is None else earlier


def _parse(text: str, begin: int, end: int, headings: list[tuple[int, str]]) -> Iterator[Unit]:
    """Yield the units of a part of *text*; *headings* are those it stands under, and changes."""
    part = text[begin:end]
    starts = [begin]
    for line in part.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    starts[-1] = end
    tokens = _block_tokens(part)
    for number, token in enumerate(tokens):
        if heading := _heading_at(tokens, number):
            headings[:] = [one for one in headings if one[0] < heading[0]]
            headings.append(heading)
            continue
        is_item = token.type == "list_item_open" and token.level == 1
        kind = ITEM if is_item else _KINDS.get(token.type, "") if token.level == 0 else ""
        if not kind or token.map is None or _is_front_matter(tokens, number):
            continue
        first, last = (starts[min(line, len(starts) - 1)] for line in token.map)
        if token.type == "heading_open":
            last = starts[token.map[1] - 1]  # Without the line of dashes.
        if token.type == "html_block" and _WITHOUT_WORDS.fullmatch(text, first, last):
            continue
        above = tuple(title for _, title in headings)
        start, stop = _stripped(text, first, last)
        if kind == PARAGRAPH:
            yield from _in_parts(text, kind, start, stop, above)
        elif kind == ITEM and stop - start > WHOLE_CHARS_MAX:
            yield from _item_parts(text, tokens, number, starts, above)
        else:
            yield Unit(kind, start, stop, above)


def _heading_at(tokens: Sequence[Token], number: int) -> tuple[int, str] | None:
    """Return the depth and the text of the heading that a token begins, if it does."""
    token = tokens[number]
    if token.type == "heading_open" and not _is_underlined(tokens, number):
        return int(token.tag[1:]), " ".join(tokens[number + 1].content.split())
    if token.type == "paragraph_open" and token.level == 0 and _stands_alone(tokens, number):
        return _LINE_DEPTH, tokens[number + 1].content.strip("*_ ")
    return None


def _is_underlined(tokens: Sequence[Token], number: int) -> bool:
    """Whether a heading is text above a line that was meant to separate it from what follows."""
    if tokens[number].markup != "-":
        return False
    content = tokens[number + 1].content
    before = tokens[number - 1] if number else None
    is_between = before is not None and before.markup.startswith("-") and before.type in _LINES
    if is_between or "\n" in content or len(content) > TITLE_CHARS_MAX:
        return True
    if content.endswith((".", "!")):
        return True
    # A title stands above a text.
    following = tokens[number + 3] if number + 3 < len(tokens) else None
    return following is None or (
        following.type == "heading_open" and following.tag <= tokens[number].tag
    )


def _is_front_matter(tokens: Sequence[Token], number: int) -> bool:
    """Whether these are the fields of a text that has a title above them.

    The line below them makes them a heading.
    """
    if tokens[number].type != "heading_open" or not number or tokens[number - 1].type != "hr":
        return False
    # Behind a text they are no front matter, and several of them are records.
    if any(one.type in _KINDS and one.markup not in _TITLE_MARKS for one in tokens[:number]):
        return False
    rest = (one.content for one in tokens[number + 2 :] if one.type == "inline")
    is_one = _FIELDS.fullmatch(tokens[number + 1].content) is not None
    return is_one and not any(map(_FIELDS.fullmatch, rest))


def _stands_alone(tokens: Sequence[Token], number: int) -> bool:
    """Whether a paragraph is a line that stands above others as a heading does."""
    line = tokens[number + 1].content
    is_followed = number + 3 < len(tokens) and tokens[number + 3].type != "heading_open"
    return is_followed and number > 0 and _HEADING_LINE.fullmatch(line) is not None


def _item_parts(
    text: str, tokens: list[Token], number: int, starts: list[int], above: tuple[str, ...]
) -> Iterator[Unit]:
    """Yield a long list item in units: its sentences, then the blocks and items within it."""
    item = tokens[number]
    begin, end = (starts[min(line, len(starts) - 1)] for line in item.map or (0, 0))
    blocks: list[tuple[str, int, int]] = []
    for token in tokens[number + 1 :]:
        if token.type == "list_item_close" and token.level == item.level:
            break
        is_item = token.type == "list_item_open" and token.level == item.level + 2
        kind = _KINDS.get(token.type, "") if token.level == item.level + 1 else ""
        if token.map is not None and (is_item or kind):
            first, last = (starts[min(line, len(starts) - 1)] for line in token.map)
            blocks.append((ITEM if is_item else kind, *_stripped(text, first, last)))
    # The first block begins behind the mark of the item.
    if not blocks or blocks[0][0] != PARAGRAPH or _stripped(text, begin, end)[0] != blocks[0][1]:
        yield Unit(ITEM, *_stripped(text, begin, end), above)
        return
    yield from _in_parts(text, ITEM, *blocks[0][1:], above)
    for kind, start, stop in blocks[1:]:
        if kind == PARAGRAPH:
            yield from _in_parts(text, REST, start, stop, above)
        else:
            yield Unit(kind, start, stop, above, _INSIDE)


def _block_tokens(text: str) -> list[Token]:
    from markdown_it.rules_block import StateBlock  # noqa: PLC0415 (most commands index nothing)

    tokens: list[Token] = []
    parser = _parser()
    # Only the blocks are needed: what is within a line stays as it is. A null is kept: the parser
    # would replace it by a character of the same length. A line end of two characters would keep
    # fences and headings from being seen; the lines that the tokens name stay the same.
    text = text.replace("\r\n", "\n")
    parser.block.tokenize(state := StateBlock(text, parser, {}, tokens), 0, state.lineMax)
    return tokens


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 (most commands index nothing)

    return MarkdownIt("commonmark").enable("table")


def _join_drawn(units: Sequence[Unit], text: str) -> list[Unit]:
    """Return *units* with each drawing as one block of code, which keeps its spaces.

    Without a fence, the margins of its lines make it paragraphs and code by turns.
    """
    found: list[Unit] = []
    for unit in units:
        before = found[-1] if found else None
        if before and _goes_on_drawing(before, unit, text):
            found[-1] = before._replace(kind=CODE, end=unit.end)
        elif unit.kind == PARAGRAPH and is_drawn(unit.of(text).split("\n")):
            found.append(unit._replace(kind=CODE))
        else:
            found.append(unit)
    return found


def _goes_on_drawing(before: Unit, unit: Unit, text: str) -> bool:
    if not (_may_be_drawn(before, text) and _may_be_drawn(unit, text)):
        return False
    is_near = text[before.end : unit.start].strip(" ") == "\n"
    return is_near and is_drawn(text[before.start : unit.end].split("\n"))


def _may_be_drawn(unit: Unit, text: str) -> bool:
    return unit.kind in (CODE, PARAGRAPH, REST) and not _FENCE.match(text, unit.start, unit.end)


def is_drawn(lines: Sequence[str]) -> bool:
    """Whether the lines draw something: boxes, arrows."""
    drawn = sum(_DRAWN.search(one) is not None for one in lines)
    return drawn >= max(DRAWN_LINES_MIN, DRAWN_SHARE_MIN * len(lines))


def _with_leads(units: list[Unit], text: str) -> list[Unit]:
    """Return *units*, each with what introduces it.

    That is a paragraph with a colon at its end, for all items of a list; for what is within an
    item, it is that item.
    """
    found: list[Unit] = []
    item = of_list = NO_LEAD  # The last unit of the item's own text, and what introduces the list.
    for number, unit in enumerate(units):
        before = units[number - 1] if number else None
        if before is None or before.headings != unit.headings:
            before, item = None, NO_LEAD
        lead = NO_LEAD
        if before and before.kind == CODE and _GOES_ON.match(text, unit.start):
            lead = number - 1
        elif unit.kind == REST:
            item = number if item == number - 1 and number else item
        elif unit.lead == _INSIDE:
            lead = item
        else:
            if unit.kind == ITEM and item != NO_LEAD:
                lead = of_list
            elif (
                before
                and before.kind in _TEXTS
                and (
                    _introduces(before.of(text))
                    or (unit.kind == CODE and _UNFINISHED.search(text, before.start, before.end))
                )
            ):
                lead = number - 1
            of_list, item = (lead, number) if unit.kind == ITEM else (NO_LEAD, NO_LEAD)
        found.append(unit._replace(lead=lead))
    return found


def _introduces(text: str) -> bool:
    """Whether *text* ends with a colon, or is a line in bold, which people use as a heading."""
    # Chinese and Japanese have a wide colon.
    return text.rstrip("*_ ").endswith((":", "\uff1a")) or _BOLD_LINE.fullmatch(text) is not None


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the positions without blank lines at either end; the first line keeps its indent."""
    while (
        start < end and (line := text.find("\n", start, end)) >= 0 and not text[start:line].strip()
    ):
        start = line + 1
    return start, start + len(text[start:end].rstrip())
