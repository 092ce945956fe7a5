"""How units of a long memory are laid out in an answer: title, headings, code in closed fences."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from commonplace.compose import tokens
from commonplace.compose.sections import count_shared, same_under_others
from commonplace.compose.unit_cutting import (
    FENCE,
    MORE,
    TABLE_HEAD_LINES,
    code_of,
    fenced,
    margin_of,
    part_of,
    with_more,
)
from commonplace.compose.unit_uses import begins_with_label, find_fix_word, is_message
from commonplace.foreign import block, one_line, quote, render
from commonplace.index.units import CODE, ITEM, NO_LEAD, PARAGRAPH, QUOTE, REST, Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

# A shorter sentence says nothing without what it introduces.
LEAD_CHARS_MIN = 20
# In fewer tokens, the beginning of a unit says nothing.
CUT_TOKENS_MIN = 16
HEADING_CHARS_MAX = 160
# What is longer than the title by more characters than these does not repeat it.
TITLE_SLACK = 20
METADATA_CHARS_MAX = 200
# A block of code without a fence begins with at least these spaces in each line.
CODE_SPACES = 4
MARGIN = "   "
UNDER = " > "
# What stands alone in a paragraph and tells a reader nothing: a status, addresses, tags, files.
_METADATA = re.compile(
    r"(?:closed|open(ed)?|done|resolved|completed?|in[ _-]progress|wontfix|duplicate|merged|n/a|"
    r"tbd|(?:[\w.+-]+@[\w-]+(?:\.[\w-]+)+[\s,;]*)+|(?:#[\w-]+[\s,]*)+|"
    r"(?:`?[\w./-]+\.\w{1,5}`?(?:[\s,]+|$)){2,}|"
    r"(?:(?:[-*+] )?\W{0,2}(?:date|owner|authors?|status|severity|ticket|reviewed|deciders|"
    r"updated|tags|impact|duration|participants)\W{0,2}:\W{0,2}\s[^\n:]{1,80}[\s|·,;]*)+)[.\s]*|"
    r"(?-i:[a-z\d-]+(?:, ?[a-z\d-]+)+)",
    re.IGNORECASE,
)


class Page:
    """What is shown of one text: its title, and units below their headings."""

    def __init__(self, text: str, units: Sequence[Unit], title: str) -> None:
        self.units = units
        self._text = text
        self._title = title
        self._shown: dict[int, str] = {}
        self._shown_headings: dict[tuple[str, ...], str] = {}

    def fits(self, numbers: Iterable[int], tokens_max: int) -> bool:
        """Whether these units fit in so many tokens, in their order."""
        found = sorted(numbers)
        # To sum up lengths is quicker; only the last ones are not much too long.
        least = sum(len(self._show(number)) for number in found)
        return least <= tokens.BYTES_PER_TOKEN * tokens_max and self.tokens_of(found) <= tokens_max

    def words(self, number: int) -> str:
        """Return a unit as it stands in the text."""
        return self.units[number].of(self._text)

    def is_message(self, number: int) -> bool:
        """Whether a unit quotes what a program said: whoever asks has seen it."""
        return self._is(number, CODE, QUOTE) and is_message(self.words(number))

    def tokens_of(self, numbers: Iterable[int]) -> int:
        return tokens.count(self.show(sorted(numbers)))

    def leads(self, number: int) -> set[int]:
        """Return what introduces a unit, and what introduces that.

        "Fix: …" within a paragraph is the fix of what that begins with.
        """
        found: set[int] = set()
        if self._is_in_paragraph(number) and begins_with_label(self.words(number)):
            found.add(number - 1)
        lead = self.units[number].lead
        while lead != NO_LEAD:
            found.add(lead)
            lead = self.units[lead].lead
        return found

    def _is_in_paragraph(self, number: int) -> bool:
        """Whether a unit goes on with the paragraph or the item of the one before it."""
        if number == 0:
            return False
        gap = self._text[self.units[number - 1].end : self.units[number].start]
        return gap.count("\n") < 2 and self._is(number, REST, PARAGRAPH)

    def _is(self, number: int, *kinds: str) -> bool:
        return 0 <= number < len(self.units) and self.units[number].kind in kinds

    def show(self, numbers: Sequence[int]) -> str:
        """Return the title and these units in this order."""
        parts: list[str] = []
        before, under = -1, ""
        for number in numbers:
            unit, shown = self.units[number], self._show(number)
            is_below = before >= 0 and self.units[before].headings == unit.headings
            if is_below and self._go_on(parts, before, number):
                before = number
                continue
            # A status or a line of tags between them is never shown.
            is_near = before < number and all(map(self._is_title, range(before + 1, number)))
            if not is_near:
                self._end(parts, before, is_followed=is_below)
            heading = "" if is_below else self._heading(unit)
            if before >= 0 and unit.headings[:-1] in _and_above(self.units[before].headings):
                heading = heading.rpartition(UNDER)[2]  # What it stands under has been shown.
            if heading:
                parts.append(heading)
                under = heading
            elif under and not is_below and not heading:
                # What stands under none is set apart from what is below a heading.
                _add_more(parts)
                under = ""
            if self._has_begun(number, numbers):
                _add_more(parts)
            is_cut = unit.kind == REST and not self._is_title(number - 1)
            parts.append(f"{MORE} {shown.lstrip()}" if is_cut else shown)
            before = number
        self._end(parts, before, is_followed=self._has_more(before))
        body = "\n".join(map(_with_margin, parts))
        first = one_line(parts[0]) if parts else ""
        if first.startswith(self._title.removesuffix(f" {MORE}")) and not FENCE.match(first):
            return body.removeprefix(MARGIN)  # The text begins with the title.
        return f"{self._title}\n{body}" if body else self._title

    def _has_begun(self, number: int, numbers: Collection[int]) -> bool:
        """Whether the section that a unit is in begins before it, with what is not shown."""
        before = number - 1
        if before < 0 or before in numbers or self._is_title(before):
            return False
        return self.units[before].headings == self.units[number].headings

    def _go_on(self, parts: list[str], before: int, number: int) -> bool:
        """Add a unit to the paragraph or item that *before* is of; return whether it is of that."""
        between = range(before + 1, number + 1)
        if not between or not all(self._is(one, REST) for one in between):
            return False
        shown = self._show(number)
        # The end of a paragraph goes on in its line, if it did in the text.
        gap = self._text[self.units[before].end : self.units[number].start]
        if number > before + 1:
            parts[-1] += f" {MORE} {shown.lstrip()}"
        elif gap.count("\n") < 2:
            # In code without a fence, the line ends matter.
            parts[-1] += render(gap) + shown.lstrip()
        else:
            parts.append(shown)
        return True

    def _is_title(self, number: int) -> bool:
        """Whether the title says what this unit does, or it says nothing."""
        unit = self.units[number]
        return not says_something(unit, self._text, self._title)

    def _end(self, parts: list[str], last: int, *, is_followed: bool) -> None:
        """Say with `…` that the last unit goes on, or that what it introduces is left out.

        So too if a unit of its section follows that is not the next one.
        """
        if last < 0:
            return
        if self._is(last + 1, REST) and not parts[-1].endswith(MORE):
            parts[-1] = with_more(parts[-1])
        elif (
            is_followed
            or self._goes_on(last)
            or (last + 1 < len(self.units) and self.units[last + 1].lead == last)
        ):
            _add_more(parts)

    def _has_more(self, number: int) -> bool:
        """Whether the section that a unit is in goes on behind it."""
        following = number + 1
        if number < 0 or following >= len(self.units) or self._is_title(following):
            return False
        return self.units[following].headings == self.units[number].headings

    def _goes_on(self, number: int) -> bool:
        """Whether the next unit is a further item of the list that this one is in."""
        if number < 0 or not self._is(number + 1, ITEM):
            return False
        unit, following = self.units[number], self.units[number + 1]
        is_item = unit.kind == ITEM or (unit.kind == REST and unit.lead == following.lead)
        return is_item and unit.headings == following.headings and not self._is_title(number)

    def show_part(
        self, number: int, tokens_max: int, weigh: Callable[[Sequence[str]], list[float]]
    ) -> str:
        """Return the title, and as much of one unit as fits; "" if that is nothing.

        *weigh* says how well rows of a table answer.
        """
        unit = self.units[number]
        heading = self._heading(unit)
        above = [part for part in (self._title, heading and f"{MARGIN}{heading}") if part]
        room = tokens_max - tokens.count("\n".join(above)) - 1
        text = unit.of(self._text)
        # The margin needs tokens, too.
        while room >= CUT_TOKENS_MIN and (short := part_of(unit, text, room, weigh, is_alone=True)):
            found = "\n".join([*above, _with_margin(short)])
            if tokens.count(found) <= tokens_max:
                return found
            room -= max(1, tokens.count(found) - tokens_max)
        return ""

    def shorten(
        self, number: int, tokens_max: int, weigh: Callable[[Sequence[str]], list[float]]
    ) -> bool:
        """Show only as much of a unit as fits from now on; return whether that is anything."""
        unit = self.units[number]
        part = part_of(unit, unit.of(self._text), tokens_max, weigh)
        if part:
            self._shown[number] = part
        return bool(part)

    def shorten_table(
        self, number: int, tokens_max: int, weigh: Callable[[Sequence[str]], list[float]]
    ) -> None:
        """Show only the rows that answer from now on, if not all fit and some answer better."""
        rows = self.units[number].of(self._text).split("\n")[TABLE_HEAD_LINES:]
        if tokens.count(self._show(number)) > tokens_max and len(set(weigh(rows))) > 1:
            self.shorten(number, tokens_max, weigh)

    def _show(self, number: int) -> str:
        if number not in self._shown:
            unit = self.units[number]
            shown = show_unit(unit, text := unit.of(self._text))
            if unit.kind == CODE and self._is(unit.lead, ITEM, REST):
                # It belongs to a list item, and keeps its place below the words of that.
                shown = _put_before_lines(_place_of_code(text), shown)
            self._shown[number] = shown
        return self._shown[number]

    def _heading(self, unit: Unit) -> str:
        """Return the heading that a unit stands under, if the title does not say as much."""
        if unit.headings not in self._shown_headings:
            self._shown_headings[unit.headings] = self._show_heading(unit)
        return self._shown_headings[unit.headings]

    @cached_property
    def _shared(self) -> tuple[str, ...]:
        """The headings that all sections stand under, if there are several sections."""
        count = count_shared(unit.headings for unit in self.units)
        return next((one.headings[:count] for one in self.units if one.headings), ())

    @cached_property
    def _same(self) -> set[tuple[str, ...]]:
        return same_under_others({one.headings for one in self.units})

    def _show_heading(self, unit: Unit) -> str:
        last = one_line(unit.headings[-1]) if unit.headings else ""
        # A word of the title may still tell which of several sections it is.
        is_told = last in self._title and len(last) > len(self._title) // 2
        if not last or is_told or (self._title and self._title in last):
            return ""
        if self._title and unit.headings == self._shared:
            return ""  # It stands above all sections, and says of none what it is about.
        last = last.rstrip(":")
        above = [one for one in unit.headings[:-1] if one not in self._title]
        says = [one for one in above if find_fix_word(one)]
        if above and unit.headings in self._same:
            last = f"{_short(one_line(above[-1]).rstrip(':'), HEADING_CHARS_MAX)}{UNDER}{last}"
        elif says and not find_fix_word(last):
            first = one_line(says[-1]).rstrip(":")
            # Of a long heading, the word that says what it is.
            word = find_fix_word(first)
            if word and len(first) + len(last) > HEADING_CHARS_MAX:
                first = word[0]
            last = f"{first}{UNDER}{last}"
        short = _short(last, 2 * HEADING_CHARS_MAX if UNDER in last else HEADING_CHARS_MAX)
        return short if short.endswith(MORE) else f"{short}:"


def _add_more(parts: list[str]) -> None:
    """Add a line with `…`, unless the last part ends with one already."""
    if not parts or not parts[-1].endswith(MORE):
        parts.append(MORE)


def _short(heading: str, chars_max: int) -> str:
    if len(heading) <= chars_max:
        return heading
    return with_more(heading[:chars_max].rpartition(" ")[0] or heading)


def _and_above(headings: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return headings, headings[:-1]


def _with_margin(text: str) -> str:
    """Return *text* with the margin of an entry before every line that is not blank."""
    return _put_before_lines(MARGIN, text)


def _put_before_lines(margin: str, text: str) -> str:
    return "\n".join(margin + line if line.strip() else "" for line in text.split("\n"))


def show_unit(unit: Unit, text: str) -> str:
    """Return a unit as it may be shown: code in fences that nothing in it closes."""
    if unit.kind == CODE:
        return fenced(*code_of(text))
    text = text.replace("\r\n", "\n")
    if not any(map(FENCE.match, text.split("\n"))):
        return block(text)
    # A fence in it could reach over what follows; within a quotation it cannot.
    return (unit.kind in (ITEM, REST) and _show_with_code(text)) or quote(text)


def _show_with_code(text: str) -> str:
    """Return a list item with its blocks of code, each in its place; "" if that is not possible.

    A fence may be open at its end, and a line like a heading or an entry of ours must be quoted.
    """
    shown: list[str] = []
    held: list[str] = []
    fence: re.Match[str] | None = None
    for line in text.split("\n"):
        found = FENCE.match(line)
        if fence is None and found:
            shown.append("\n".join(held))
            held, fence = [], found
        held.append(line)
        if fence is not None and len(held) > 1 and _closes(found, line, fence):
            code = "\n".join(held)
            shown.append(_put_before_lines(_place_of_code(code), fenced(*code_of(code))))
            held, fence = [], None
    if fence is not None:
        return ""
    shown += ["\n".join(held)] if held else []
    words = shown[::2]
    shown[::2] = map(render, words)
    return "" if shown[::2] != list(map(block, words)) else "\n".join(shown)


def _closes(found: re.Match[str] | None, line: str, fence: re.Match[str]) -> bool:
    return bool(found and found[1].startswith(fence[1]) and not line[found.end() :].strip())


def _place_of_code(text: str) -> str:
    """Return the spaces before a block of code, without those that mark it as code."""
    first = text.split("\n", 1)[0].expandtabs(4)
    return " " * max(0, margin_of(first) - (0 if FENCE.match(first) else CODE_SPACES))


def says_something(unit: Unit, text: str, title: str) -> bool:
    """Whether a unit is more than a status, an address or tags, and more than the title says."""
    if unit.end - unit.start > max(METADATA_CHARS_MAX, len(title) + TITLE_SLACK):
        return True
    words = one_line(unit.of(text))
    if unit.kind == CODE and not words.strip("`~ "):
        return False  # A fence around nothing.
    if unit.kind == PARAGRAPH and _METADATA.fullmatch(words):
        return False
    return not (title and words.strip("*_ .") in title)
