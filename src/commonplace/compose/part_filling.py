"""As much of a part of a text as fits: what answers, what belongs to it, in the author's order."""

from __future__ import annotations

from bisect import bisect
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from commonplace.compose import tokens
from commonplace.compose.unit_uses import (
    ADVICE,
    BACKGROUND,
    CAUSE,
    FIX,
    IMPERATIVE,
    NEITHER,
    announces_fix,
    use_of_section,
    use_of_unit,
)
from commonplace.index.units import CODE, ITEM, QUOTE, REST, TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from commonplace.compose.parts import Part
    from commonplace.compose.unit_layout import Page
    from commonplace.index.units import Unit

BLOCKS = (CODE, TABLE, QUOTE)
# What a unit is worth beside what it says of the question, by what it is for. Whoever asks knows
# what was seen, and needs what to do.
USE_WEIGHTS = {FIX: 0.8, IMPERATIVE: 0.3, ADVICE: 0.2, CAUSE: 0.1, BACKGROUND: -0.3}
# If a heading says so, it is surer.
HEADING_WEIGHTS = {FIX: 0.75, ADVICE: 0.3, CAUSE: 0.15, BACKGROUND: -0.45}
# The same if the question asks why.
WHY_WEIGHTS = {FIX: 0.2, IMPERATIVE: 0.1, ADVICE: 0.1, CAUSE: 0.8, BACKGROUND: -0.3}
WHY_HEADING_WEIGHTS = {FIX: 0.2, ADVICE: 0.1, CAUSE: 0.75, BACKGROUND: -0.3}
# A message that is quoted is like the question, which often quotes it too.
MESSAGE_WORTH = -0.2
# What follows what is shown, less if that is a block, what stands before it, what it introduces
# ("Run this:"), and a block that stands behind it.
FOLLOWS, BLOCK_FOLLOWS, PRECEDES, INTRODUCED, BEHIND = 0.7, 0.4, 0.2, 2.0, 1.0
# Of these weights, the share that holds between the items of a list.
LIST_SHARE = 0.3
# A story begins with what was seen and ends with the fix: how much more its end is worth than its
# beginning, and how many parts it has at least.
LATE, STORY_MIN = 0.4, 4
# What the section with the fix begins with usually states it.
STATEMENT = 1.0
# What the unit that says most of the question is worth besides, if it says clearly more than the
# others: the question is about that, and not about what the text is about as a whole.
SAYS_MOST, LEAD_MIN = 1.0, 0.25
# Code that holds the words of the question is often a message or a transcript, which whoever asks
# has seen: what it says counts for less.
CODE_SHARE = 0.25
# Of the worth of the best, the share that what is shown needs, unless its section goes on with it:
# pieces from here and there are hard to follow.
WORTH_SHARE_MIN = 0.25
# A longer line says something by itself, even if it announces what follows: "Keep it in a cache:".
LEAD_WORDS_MAX = 5
# A paragraph is shown whole, unless it needs more than this share of the room.
WHOLE_SHARE_MAX = 0.5
# A smaller part of a block of code is not shown, unless it is this share of all that fits.
CUT_TOKENS_MIN, CUT_SHARE_MIN = 40, 0.3
ROOM_STEP = 6


class Group(NamedTuple):
    """Units that are shown together: a paragraph or an item with its parts."""

    numbers: tuple[int, ...]
    worth: float
    is_message: bool


def fill(
    page: Page,
    part: Part,
    scores: Mapping[int, float],
    tokens_max: int,
    weigh: Callable[[Sequence[str]], list[float]],
    *,
    asks_why: bool = False,
) -> set[int]:
    """Return the units of *part* that fit together, best first; those beside them count more."""
    groups = list(_groups(page, part, scores, tokens_max, asks_why=asks_why))
    share_min = 0.0 if part.is_talk else WORTH_SHARE_MIN
    chosen = _choose(page, groups, tokens_max, weigh, share_min)
    empty = {one for one in chosen if _announces_nothing(page, one, chosen)}
    if empty and len(empty) < len(chosen):
        rest = [one for one in groups if one.numbers[0] not in empty]
        chosen = _choose(page, rest, tokens_max, weigh, share_min)
    return chosen


def says_what_to_do(page: Page, numbers: Iterable[int]) -> bool:
    """Whether one of these units is instructions, or code that is no message."""
    return any(
        not page.is_message(number)
        if page.units[number].kind == CODE
        else use_of_unit(page.units[number], page.words(number), page.units[number].headings)
        >= IMPERATIVE
        for number in numbers
    )


def _announces_nothing(page: Page, number: int, chosen: AbstractSet[int]) -> bool:
    """Whether a unit is shown that only announces another, which is not."""
    following = number + 1
    is_lead = following < len(page.units) and page.units[following].lead == number
    return is_lead and following not in chosen and _only_announces(page, number)


def _only_announces(page: Page, number: int) -> bool:
    return _announces(page, number) and len(page.words(number).split()) <= LEAD_WORDS_MAX


def _choose(
    page: Page,
    groups: Sequence[Group],
    tokens_max: int,
    weigh: Callable[[Sequence[str]], list[float]],
    share_min: float,
) -> set[int]:
    """Return the units of the best of *groups* that fit together.

    Those that stand apart need *share_min* of the worth of the best.
    """
    left = list(groups)
    best = max(one.worth for one in left) or 1.0
    chosen: set[int] = set()
    worths: dict[int, float] = {}

    def worth(one: Group) -> float:
        return one.worth + (0.0 if one.is_message else _beside(page, one.numbers, worths))

    while left:
        found = max(left, key=worth)
        left.remove(found)
        first = found.numbers[0]
        beside = chosen & {first - 1, found.numbers[-1] + 1}
        is_next = any(page.units[one].headings == page.units[first].headings for one in beside)
        is_little = worth(found) < share_min * best
        if chosen and not is_next and is_little and says_what_to_do(page, chosen):
            continue
        wider = {*chosen, *found.numbers, *page.leads(first)}
        if page.fits(wider, tokens_max):
            chosen = wider
            worths |= dict.fromkeys(wider - worths.keys(), max(0.0, found.worth) / best)
        elif _may_cut(page, first, chosen):
            chosen = _with_beginning(page, chosen, first, tokens_max, weigh)
            if first not in chosen:
                chosen = _instead_of_lead(page, chosen, first, tokens_max)
    return chosen


def _instead_of_lead(page: Page, chosen: set[int], number: int, tokens_max: int) -> set[int]:
    """Return *chosen* with a block instead of the line that announces it, if that makes it fit."""
    other = chosen - {number - 1} | {number}
    return other if _announces(page, number - 1) and page.fits(other, tokens_max) else chosen


def _groups(
    page: Page, part: Part, scores: Mapping[int, float], tokens_max: int, *, asks_why: bool
) -> Iterator[Group]:
    asked_for = CAUSE if asks_why else FIX
    by_text = WHY_WEIGHTS if asks_why else USE_WEIGHTS
    by_headings = WHY_HEADING_WEIGHTS if asks_why else HEADING_WEIGHTS
    numbers = part.numbers
    units = page.units
    # What all of them stand under says nothing of one of them.
    shared = _count_shared(units, numbers)
    uses: dict[int, float] = {}
    begun: set[str] = set()
    paragraphs = [number for number in numbers if units[number].kind not in (REST, ITEM)]
    sections = {units[number].headings for number in numbers}
    is_story = not (part.is_named or part.is_talk) and len(sections) == 1
    is_story = is_story and len(paragraphs) >= STORY_MIN
    for run in _runs(units, numbers, WHOLE_SHARE_MAX * tokens.BYTES_PER_TOKEN * tokens_max):
        uses[run[0]] = use = _use(page, run, uses, shared)
        headings = units[run[0]].headings[shared:]
        by_heading = use_of_section(headings)
        worth = max(scores[one] for one in run)
        if units[run[0]].kind in (CODE, QUOTE):
            worth *= CODE_SHARE
        elif use != BACKGROUND and not part.is_talk and _leads(run, scores):
            worth += SAYS_MOST
        weights = by_text if by_heading is None else by_headings
        worth += weights.get(use, 0.0)
        if part.is_named and by_heading == asked_for and headings[0] not in begun:
            worth += STATEMENT
            begun.add(headings[0])
        if is_story and units[run[0]].kind != ITEM:
            worth += LATE * bisect(paragraphs, run[0]) / len(paragraphs)
        is_message = page.is_message(run[0])
        yield Group(tuple(run), MESSAGE_WORTH if is_message else worth, is_message)


def _leads(run: Sequence[int], scores: Mapping[int, float]) -> bool:
    """Whether a group says clearly more of the question than all but what stands beside it."""
    others = (said for one, said in scores.items() if not run[0] - 1 <= one <= run[-1] + 1)
    return max(scores[one] for one in run) >= LEAD_MIN + max(others, default=0.0)


def fix_sections(units: Sequence[Unit], numbers: Sequence[int]) -> set[tuple[str, ...]]:
    """Return the sections, by their headings, of which the heading says that they hold the fix."""
    shared = _count_shared(units, numbers)
    sections = {units[number].headings for number in numbers}
    return {one for one in sections if use_of_section(one[shared:]) == FIX}


def _count_shared(units: Sequence[Unit], numbers: Sequence[int]) -> int:
    """Return how many headings all of these units stand under."""
    columns = zip(*(units[number].headings for number in numbers), strict=False)
    return sum(1 for _one in takewhile(lambda column: len(set(column)) == 1, columns))


def _runs(units: Sequence[Unit], numbers: Sequence[int], chars_max: float) -> list[list[int]]:
    """Return the parts of each paragraph or item together, unless they are too long."""
    runs: list[list[int]] = []
    for number in numbers:
        goes_on = runs and units[number].kind == REST and number == runs[-1][-1] + 1
        if goes_on and units[number].end - units[runs[-1][0]].start <= chars_max:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _use(page: Page, run: Sequence[int], uses: Mapping[int, float], shared: int) -> float:
    """Return what a group is for; what a unit introduces is for the same."""
    unit = page.units[run[0]]
    use = use_of_unit(unit, page.words(run[0]), unit.headings[shared:])
    if use == NEITHER and any(announces_fix(page.units[one].kind, page.words(one)) for one in run):
        return FIX
    lead = uses.get(unit.lead, NEITHER)
    return lead if use == NEITHER and lead in (FIX, IMPERATIVE, BACKGROUND) else use


def _beside(page: Page, numbers: Sequence[int], worths: Mapping[int, float]) -> float:
    """Return how much more a group is worth because of what is shown beside it.

    *worths* are those of what is shown, as shares of the best: what stands beside something that
    is hardly worth showing is not worth more for it.
    """
    units = page.units
    first, following = numbers[0], numbers[-1] + 1
    lead = units[first].lead
    if lead in worths and units[first].kind in BLOCKS:
        return INTRODUCED if _announces(page, lead) else BEHIND
    if first - 1 in worths and units[first - 1].headings == units[first].headings:
        weight = BLOCK_FOLLOWS if units[first].kind in BLOCKS else FOLLOWS
        return _between(page, first - 1, first, weight) * worths[first - 1]
    if following in worths and units[following].headings == units[first].headings:
        return _between(page, first, following, PRECEDES) * worths[following]
    return 0.0


def _announces(page: Page, number: int) -> bool:
    """Whether a unit says nothing without what follows it: "Run this:"."""
    following = page.units[number + 1] if number + 1 < len(page.units) else None
    goes_on = following is not None and following.kind == CODE and following.lead == number
    return goes_on or page.words(number).rstrip().endswith(":")


def _between(page: Page, first: int, second: int, weight: float) -> float:
    """Return *weight*, or less if a list begins, goes on or ends between the two units.

    The items of a list are about several matters, unless they are numbered as steps are.
    """
    if ITEM not in (page.units[first].kind, page.units[second].kind):
        return weight
    is_step = page.words(second).lstrip()[:1].isdigit()
    return weight if is_step and page.units[second].kind == ITEM else LIST_SHARE * weight


def _may_cut(page: Page, number: int, chosen: AbstractSet[int]) -> bool:
    """Whether the beginning of a unit is shown if all of it does not fit.

    "Run this script:" says nothing without any of it; and the beginning of the best paragraph says
    more than all of a worse one.
    """
    if page.units[number].kind in BLOCKS:
        return number - 1 in chosen
    return not chosen


def _with_beginning(
    page: Page,
    chosen: set[int],
    number: int,
    tokens_max: int,
    weigh: Callable[[Sequence[str]], list[float]],
) -> set[int]:
    """Return *chosen* with the beginning of a block, if there is room for enough of it."""
    wider = {*chosen, number}
    room = tokens_max - (page.tokens_of(chosen) if chosen else 0)
    least = min(CUT_TOKENS_MIN, CUT_SHARE_MIN * tokens_max)
    while room >= least and page.shorten(number, room, weigh):
        if page.fits(wider, tokens_max):
            return wider
        room -= ROOM_STEP
    return chosen
