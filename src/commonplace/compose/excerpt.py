"""An excerpt of a long memory: whole units of its text that answer a question.

If all of it fits, all of it is shown. Else the units that say what to do come first, then what is
about the question and the cause, then the background; within each in the order of the text, below
the heading they stand under. What does not fit whole is left out. Only a long paragraph or list
item that says what to do, or is the best, is cut: at a sentence, and `…` says so.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from commonplace.compose import tokens
from commonplace.foreign import block, longer_fence, one_line, quote, render
from commonplace.index.passages import LABEL
from commonplace.index.terms import term_set
from commonplace.index.units import CODE, ITEM, NO_LEAD, PARAGRAPH, REST, SENTENCE, TABLE, Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

# What a unit says counts as much as what its section says about the question. Instructions weigh
# more than both, and the beginning of a section more than the rest of it.
OWN_WEIGHT, SECTION_WEIGHT = 0.5, 0.5
USE_WEIGHT = 1.2
DEPTH_WEIGHT = 0.06
DEPTH_MAX = 15.0
# The code below a sentence goes with it.
PAIR_GAP = 0.05
# What the section with the fix begins with usually states it.
STATEMENT_WEIGHT = 0.2
# What is this much worse than the best unit does not stand for it.
INSTEAD_MAX = 0.6
# What is this much worse than the best unit is not shown in part.
PART_GAP_MAX = 0.6
# A shorter sentence says nothing without what it introduces.
LEAD_CHARS_MIN = 60
# Background that shares no words with the question.
SCORE_MIN = -0.8
# In fewer tokens, the beginning of a unit says nothing.
CUT_TOKENS_MIN = 16
HEADING_CHARS_MAX = 100
# What is longer than the title by more characters than these does not repeat it.
TITLE_SLACK = 20
METADATA_CHARS_MAX = 200
LABEL_CHARS_MAX = 24
INFO_CHARS_MAX = 20
MORE = "…"
MARGIN = "   "
UNDER = " > "
# How useful a unit is, by the heading it stands under: what to do, how to prevent it and what
# follows from it, neither, the cause, background.
FIX, ADVICE, NEITHER, CAUSE, BACKGROUND = 1.0, 0.5, 0.0, -0.3, -1.0
# Without a heading that says so: a sentence that begins with a verb such as "use".
IMPERATIVE = 0.6
# A fix beside one that answers this much better. It is shown after that, unless they are numbered.
OTHER_FIX = 0.4
OTHER_FIX_SHARE_MAX = 0.35
_HEADINGS = {
    FIX: r"\b(solution|fix(ed|es)?|resol(ution|ved?)|remed(y|ies)|workaround|guidance|what to do|"
    r"what (worked|works)|how to|steps?|instead|decision|recommend(ation|ed)?s?|correct|answer|"
    r"rules?|convention|use|do this|approach|summary|tl;?dr|verdict)\b",
    ADVICE: r"\b(prevention|prevent(ing)?|mitigations?|lessons?|takeaways?|acceptance|"
    r"best practices?|guardrails?)\b",
    CAUSE: r"\b(root )?causes?\b|^why\b",
    BACKGROUND: r"\b(context|background|problem|symptoms?|history|investigation|timeline|related|"
    r"references?|what (happened|didn.?t work|did not work|failed)|see also|sources?|evidence|"
    r"examples?|results?|appendix|when to apply|verification|tests?|where it landed|alternatives?|"
    r"scope)\b|^(?:\w+ )?files$",
}
_USES = {use: re.compile(words, re.IGNORECASE) for use, words in _HEADINGS.items()}
_IMPERATIVE = re.compile(
    r"^\W*(fix|solution|resolution|use|run|set|add|remove|never|always|do not|don't|make|prefer|"
    r"ensure|avoid)\b",
    re.IGNORECASE,
)
# What stands alone in a paragraph and tells a reader nothing: a status, addresses, tags, files.
_METADATA = re.compile(
    r"(?:closed|open(ed)?|done|resolved|completed?|in[ _-]progress|wontfix|duplicate|merged|n/a|"
    r"tbd|(?:[\w.+-]+@[\w-]+(?:\.[\w-]+)+[\s,;]*)+|(?:#[\w-]+[\s,]*)+|"
    r"(?:`?[\w./-]+\.\w{1,5}`?(?:[\s,]+|$)){2,})[.\s]*",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_INFO = re.compile(r"[\w.+#-]*")


class Wanted(NamedTuple):
    """The question: its terms with their weights, and how rare each is."""

    terms: Mapping[str, float]
    idf: Callable[[str], float]


class _Ranked(NamedTuple):
    """A unit by its number, how well it answers, and from -1 (background) to 1 (instructions)."""

    number: int
    score: float
    use: float


def excerpt(
    text: str,
    units: Sequence[Unit],
    wanted: Wanted,
    title: str,
    tokens_max: int,
    *,
    may_cut: bool = False,
) -> str:
    """Return what of *text* fits in *tokens_max*, with *title* above it; "" if nothing does.

    With *may_cut*, the beginning of the best unit if none fits whole.
    """
    body = [number for number, unit in enumerate(units) if _says_something(unit, text, title)]
    page = _Page(text, units, title)
    # What is shown of a unit is hardly shorter than the unit.
    if sum(units[number].end - units[number].start for number in body) <= 5 * tokens_max:
        everything = page.show(body)
        if tokens.count(everything) <= tokens_max:
            return everything
    ranked = _rank(text, units, body, wanted)
    chosen = _choose(page, ranked, tokens_max)
    if chosen:
        return page.show(_in_order(chosen, units, ranked))
    return page.show_beginning(ranked[0].number, tokens_max) if ranked and may_cut else ""


# --- Choosing -------------------------------------------------------------------------------------


def _rank(
    text: str, units: Sequence[Unit], numbers: Sequence[int], wanted: Wanted
) -> list[_Ranked]:
    """Return the units by how well they answer, best first; of one in parts, the first of them."""
    held = {number: _held(units[number].of(text), wanted) for number in numbers}
    weights = _weights(wanted, held.values())
    sections: dict[tuple[str, ...], set[str]] = {}
    for number in numbers:
        headings = units[number].headings
        if headings not in sections:
            sections[headings] = _held(" ".join(headings[1:]), wanted)
        sections[headings] |= held[number]
    about = {headings: _share(terms, weights) for headings, terms in sections.items()}
    statement = _statement(units, numbers)
    others = _other_fixes(about)
    found: dict[int, _Ranked] = {}
    section: tuple[str, ...] | None = None
    depth = 0.0
    for run in _runs(units, numbers):
        number, unit = run[0], units[run[0]]
        words = unit.of(text)
        # A label (`Fix: …`) counts as the beginning of a section.
        begins = unit.headings != section or LABEL.match(words.lstrip("*-• "))
        depth = 0.0 if begins else depth + 1
        section = unit.headings
        use = _use(unit, words)
        own = _share(set().union(*(held[one] for one in run)), weights)
        score = OWN_WEIGHT * own + SECTION_WEIGHT * about[unit.headings]
        score += USE_WEIGHT * use - DEPTH_WEIGHT * min(depth, DEPTH_MAX)
        if number == statement:
            score += STATEMENT_WEIGHT
        before = found.get(number - 1)
        if unit.kind == CODE and before and units[number - 1].headings == unit.headings:
            score, use = max(score, before.score - PAIR_GAP), max(use, before.use)
        if use == FIX and unit.headings in others:
            use = OTHER_FIX
        for one in run:
            found[one] = _Ranked(one, score, use)
    heads = (one for one in found.values() if units[one.number].kind != REST or one.number == 0)
    return sorted(heads, key=lambda one: (-one.score, one.number))


def _statement(units: Sequence[Unit], numbers: Iterable[int]) -> int:
    """Return the number of the unit with which the section with the fix begins; -1 if none does.

    There is none if several sections beside each other hold fixes.
    """
    first: dict[tuple[str, ...], int] = {}
    for number in numbers:
        headings = units[number].headings
        if headings and headings not in first and _USES[FIX].search(headings[-1]):
            first[headings] = number
    least = min(map(len, first), default=0)
    top = [number for headings, number in first.items() if len(headings) == least]
    return top[0] if len(top) == 1 else -1


def _other_fixes(about: Mapping[tuple[str, ...], float]) -> set[tuple[str, ...]]:
    """Return the sections with a fix that answers much worse than one in a section beside it."""
    fixes = {one: share for one, share in about.items() if _use_of_section(one) == FIX}
    best: dict[tuple[str, ...], float] = {}
    for headings, share in fixes.items():
        best[headings[:-1]] = max(share, best.get(headings[:-1], 0.0))
    return {
        headings
        for headings, share in fixes.items()
        if share < OTHER_FIX_SHARE_MAX * best[headings[:-1]] and not _NUMBER.search(headings[-1])
    }


def _held(text: str, wanted: Wanted) -> set[str]:
    """Return the terms of the question that *text* holds."""
    return wanted.terms.keys() & term_set(text)


def _weights(wanted: Wanted, held: Collection[set[str]]) -> dict[str, float]:
    """Return what each term of the question weighs, in all 1.

    One that is in every unit does not tell which of them answers.
    """
    found = {}
    for term, weight in wanted.terms.items():
        count = sum(term in terms for terms in held)
        rare = math.log(1 + len(held) / count) if count else 0.0
        found[term] = weight * wanted.idf(term) * rare
    whole = sum(found.values()) or 1.0
    return {term: weight / whole for term, weight in found.items()}


def _share(terms: Iterable[str], weights: Mapping[str, float]) -> float:
    return sum(weights[term] for term in terms)


def _runs(units: Sequence[Unit], numbers: Iterable[int]) -> Iterator[list[int]]:
    """Yield the parts of each paragraph or item together."""
    run: list[int] = []
    for number in numbers:
        if run and (units[number].kind != REST or number != run[-1] + 1):
            yield run
            run = []
        run.append(number)
    if run:
        yield run


def _use(unit: Unit, text: str) -> float:
    """Return from -1 (background) to 1 (instructions), by the nearest heading, else by the text."""
    if (by_heading := _use_of_section(unit.headings)) is not None:
        return by_heading
    start = text.lstrip("*-• ")
    label = start.partition(":")[0]
    if len(label) < LABEL_CHARS_MAX:
        for use in (BACKGROUND, CAUSE):
            if _USES[use].search(label):
                return use
    return FIX if LABEL.match(start) else IMPERATIVE if _IMPERATIVE.search(start) else NEITHER


@lru_cache(maxsize=1000)
def _use_of_section(headings: tuple[str, ...]) -> float | None:
    for heading in reversed(headings):
        uses = [use for use, words in _USES.items() if words.search(heading)]
        if uses and not (FIX in uses and BACKGROUND in uses):
            return uses[0]
    return None


def _choose(page: _Page, ranked: Sequence[_Ranked], tokens_max: int) -> set[int]:
    """Return the best units that fit together, each with what introduces it."""
    chosen: set[int] = set()
    # What introduces the list of which items are shown in part; at first, any may be.
    parted: int | None = None
    best = ranked[0].score if ranked else 0.0
    is_block = bool(ranked) and page.units[ranked[0].number].kind in (CODE, TABLE)
    for one in ranked:
        # A whole unit is better than a part of a table or of code.
        if one.score < (min(SCORE_MIN, best) if chosen or is_block else best - INSTEAD_MAX):
            break
        lead = page.units[one.number].lead
        may_part = one.use == FIX and one.score >= best - PART_GAP_MAX
        may_part = may_part and (parted is None or parted == lead != NO_LEAD)
        for place, group in enumerate(page.groups(one.number, may_part=may_part or not chosen)):
            wider = chosen | group
            if wider == chosen:
                break
            # To sum up lengths is quicker; only the last ones are not much too long.
            if page.bytes_min(wider) > tokens.BYTES_PER_TOKEN * tokens_max:
                continue
            if tokens.count(page.show(_in_order(wider, page.units, ranked))) <= tokens_max:
                chosen = wider
                if place > 0 and parted is None:
                    parted = lead if lead != NO_LEAD else page.units[max(group)].lead
                break
    return chosen


def _in_order(
    chosen: Collection[int], units: Sequence[Unit], ranked: Sequence[_Ranked]
) -> list[int]:
    """Return the numbers as they are shown: what to do, what else is about it, the background.

    The items of a list stay together, and so do the parts of a paragraph.
    """
    use = {one.number: one.use for one in ranked}
    places: dict[int, int] = {}
    place, before = 1, -2
    for number in sorted(chosen):
        unit = units[number]
        value = use.get(number, 0.0)
        if unit.kind == ITEM and value == IMPERATIVE:
            value = NEITHER  # A list stays where it is, whatever its items begin with.
        goes_on = unit.kind == REST or (
            unit.kind == ITEM and units[number - 1].kind in (ITEM, REST)
        )
        if unit.lead in places:
            place = places[unit.lead]
        elif not (goes_on and number and units[before].headings == unit.headings):
            place = 0 if value >= ADVICE else 2 if value == BACKGROUND else 1
        places[number] = place
        before = number
    return sorted(chosen, key=lambda number: (places[number], number))


def _says_something(unit: Unit, text: str, title: str) -> bool:
    """Whether a unit is more than a status, an address or tags, and more than the title says."""
    if unit.end - unit.start > max(METADATA_CHARS_MAX, len(title) + TITLE_SLACK):
        return True
    words = one_line(unit.of(text))
    if unit.kind == PARAGRAPH and _METADATA.fullmatch(words):
        return False
    return not (title and words.strip("*_ .") in title)


# --- Showing --------------------------------------------------------------------------------------


class _Page:
    """What is shown of one text: its title, and units below their headings."""

    def __init__(self, text: str, units: Sequence[Unit], title: str) -> None:
        self.units = units
        self._text = text
        self._title = title
        self._shown: dict[int, str] = {}
        self._shown_headings: dict[tuple[str, ...], str] = {}

    def groups(self, number: int, *, may_part: bool) -> Iterator[set[int]]:
        """Yield what may be shown of a unit, best first: all of it with what introduces it.

        Then, if it may be shown in part, without what it introduces, and without its end.
        """
        run = self._run(number)
        leads = self._leads(number)
        whole = {*run, *leads}
        first = run[-1] + 1
        introduces = first < len(self.units) and self.units[first].lead == run[-1]
        if not introduces:
            yield whole
        else:
            yield {*whole, *self._run(first)}
        if may_part:
            if introduces:
                yield {*whole, first}
            if introduces and self.units[run[-1]].end - self.units[number].start >= LEAD_CHARS_MIN:
                yield whole
            for end in range(len(run) - 1, 0, -1):
                yield {*run[:end], *leads}

    def _run(self, number: int) -> list[int]:
        """Return the parts of a unit, from this one on."""
        run = [number]
        while self._is(run[-1] + 1, REST):
            run.append(run[-1] + 1)
        return run

    def bytes_min(self, numbers: Iterable[int]) -> int:
        """Return how long a text with these units is at least."""
        return sum(len(self._show(number)) for number in numbers) + len(self._title)

    def _leads(self, number: int) -> set[int]:
        """Return what introduces a unit, and what introduces that."""
        found: set[int] = set()
        lead = self.units[number].lead
        while lead != NO_LEAD:
            found.add(lead)
            lead = self.units[lead].lead
        return found

    def _is(self, number: int, kind: str) -> bool:
        return number < len(self.units) and self.units[number].kind == kind

    def show(self, numbers: Sequence[int]) -> str:
        """Return the title and these units in this order."""
        parts: list[str] = []
        before = -1
        for number in numbers:
            unit, shown = self.units[number], self._show(number)
            is_next = before >= 0 and number == before + 1
            is_below = before >= 0 and self.units[before].headings == unit.headings
            if is_below and all(self._is(one, REST) for one in range(before + 1, number + 1)):
                # The end of a paragraph goes on in its line, if it did in the text.
                gap = self._text[self.units[before].end : unit.start]
                if not is_next:
                    parts[-1] += f" {MORE} {shown.lstrip()}"
                elif "\n\n" not in gap:
                    parts[-1] += f" {shown.lstrip()}"
                else:
                    parts.append(shown)
                before = number
                continue
            if not is_next:
                self._end(parts, before, is_followed=is_below)
            heading = "" if is_below else self._heading(unit)
            if before >= 0 and unit.headings[:-1] in _and_above(self.units[before].headings):
                heading = heading.rpartition(UNDER)[2]  # What it stands under has been shown.
            if heading and not LABEL.match(shown.lstrip("*-•> ")):
                parts.append(heading)
            is_cut = unit.kind == REST and not self._is_title(number - 1)
            parts.append(f"{MORE} {shown.lstrip()}" if is_cut else shown)
            before = number
        self._end(parts, before, is_followed=False)
        body = "\n".join(map(_with_margin, parts))
        first = one_line(parts[0]) if parts else ""
        if first.startswith(self._title.removesuffix(f" {MORE}")) and not _FENCE.match(first):
            return body.removeprefix(MARGIN)  # The text begins with the title.
        return f"{self._title}\n{body}" if body else self._title

    def _is_title(self, number: int) -> bool:
        """Whether the title says what this unit does."""
        unit = self.units[number]
        return not _says_something(unit, self._text, self._title)

    def _end(self, parts: list[str], last: int, *, is_followed: bool) -> None:
        """Say with `…` that the last unit goes on, or that what it introduces is left out.

        So too if a later unit of its section follows.
        """
        if last < 0:
            return
        if self._is(last + 1, REST):
            parts[-1] += f" {MORE}"
        elif is_followed or (last + 1 < len(self.units) and self.units[last + 1].lead == last):
            parts.append(MORE)

    def show_beginning(self, number: int, tokens_max: int) -> str:
        """Return the title, and as much of one unit as fits; "" if that is nothing."""
        unit = self.units[number]
        heading = self._heading(unit)
        above = [part for part in (self._title, heading and f"{MARGIN}{heading}") if part]
        room = tokens_max - tokens.count("\n".join(above)) - 1
        text = unit.of(self._text)
        # The margin needs tokens, too.
        while room >= CUT_TOKENS_MIN and (short := _beginning(unit, text, room)):
            found = "\n".join([*above, _with_margin(short)])
            if tokens.count(found) <= tokens_max:
                return found
            room -= max(1, tokens.count(found) - tokens_max)
        return ""

    def _show(self, number: int) -> str:
        if number not in self._shown:
            unit = self.units[number]
            self._shown[number] = show_unit(unit, unit.of(self._text))
        return self._shown[number]

    def _heading(self, unit: Unit) -> str:
        """Return the heading that a unit stands under, if the title does not say as much."""
        if unit.headings not in self._shown_headings:
            self._shown_headings[unit.headings] = self._show_heading(unit)
        return self._shown_headings[unit.headings]

    def _show_heading(self, unit: Unit) -> str:
        last = one_line(unit.headings[-1]) if unit.headings else ""
        if not last or last in self._title or (self._title and self._title in last):
            return ""
        last = last.rstrip(":")
        above = [one for one in unit.headings[:-1] if one not in self._title]
        says = [one for one in above if _USES[FIX].search(one)]
        if says and not _USES[FIX].search(last):
            first = one_line(says[-1]).rstrip(":")
            # Of a long heading, the word that says what it is.
            word = _USES[FIX].search(first)
            if word and len(first) + len(last) > HEADING_CHARS_MAX:
                first = word[0]
            last = f"{first}{UNDER}{last}"
        if len(last) > HEADING_CHARS_MAX:
            last = f"{last[:HEADING_CHARS_MAX].rpartition(' ')[0] or last} {MORE}"
        return f"{last}:"


def _and_above(headings: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return headings, headings[:-1]


def _with_margin(text: str) -> str:
    """Return *text* with the margin of an entry before every line that is not blank."""
    return "\n".join(MARGIN + line if line.strip() else "" for line in text.split("\n"))


def show_unit(unit: Unit, text: str) -> str:
    """Return a unit as it may be shown: code in fences that nothing in it closes."""
    if unit.kind != CODE:
        # A fence in it could reach over what follows; within a quotation it cannot.
        return quote(text) if any(map(_FENCE.match, text.split("\n"))) else block(text)
    info, lines = _code(text)
    return _fenced(info, lines)


def _code(text: str) -> tuple[str, list[str]]:
    """Return the language and the lines of a block of code, whichever way it was marked."""
    lines = render(text).split("\n")
    fence = _FENCE.match(lines[0])
    if fence is None:
        margin = min((len(one) - len(one.lstrip()) for one in lines if one.strip()), default=0)
        return "", [line[margin:] for line in lines]
    margin = len(lines[0]) - len(lines[0].lstrip())
    info = _INFO.match(lines[0][fence.end() :].strip())
    closes = (
        len(lines) > 1 and lines[-1].strip().startswith(fence[1]) and not lines[-1].strip("`~ ")
    )
    held = lines[1:-1] if closes else lines[1:]
    language = info.group()[:INFO_CHARS_MAX] if info else ""
    return language, [one[margin:] if not one[:margin].strip() else one for one in held]


def _fenced(info: str, lines: Sequence[str]) -> str:
    text = "\n".join(lines).strip("\n")
    fence = longer_fence(text, "```")
    return f"{fence}{info}\n{text}\n{fence}"


# --- Cutting --------------------------------------------------------------------------------------


def _beginning(unit: Unit, text: str, tokens_max: int) -> str:
    """Return as much of a unit as fits, cut where a line of code, a row or a sentence ends."""
    if unit.kind == CODE:
        info, lines = _code(text)
        kept = _longest(
            len(lines), lambda count: f"{_fenced(info, lines[:count])}\n{MORE}", tokens_max
        )
        return f"{_fenced(info, _whole_statements(lines, kept))}\n{MORE}" if kept else ""
    least = 3 if unit.kind == TABLE else 1  # The names of the columns say nothing by themselves.
    for glue, parts in (("\n", text.split("\n")), (" ", SENTENCE.split(text))):

        def show(count: int, glue: str = glue, parts: Sequence[str] = parts) -> str:
            return f"{block(glue.join(parts[:count]))} {MORE}"

        kept = _longest(len(parts), show, tokens_max)
        if kept >= least:
            return show(kept)
        if unit.kind == TABLE:
            return ""
    return tokens.cut(block(text), tokens_max)


def _longest(count: int, show: Callable[[int], str], tokens_max: int) -> int:
    """Return how many parts fit, fewer than *count*; of a very long text, most are not tried."""
    kept = 0
    while kept + 1 < count and tokens.count(show(kept + 1)) <= tokens_max:
        kept += 1
    return kept


def _whole_statements(lines: Sequence[str], count: int) -> Sequence[str]:
    """Return at most *count* lines, up to where the next line is not inside what came before."""
    for end in range(count, count // 2, -1):
        after = lines[end]
        if after.strip() and _margin(after) <= min(
            _margin(one) for one in lines[:end] if one.strip()
        ):
            return lines[:end]
    return lines[:count]


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())
