"""An excerpt of a long memory: whole units of its text that answer a question.

If all of it fits, all of it is shown. Of a text about several problems, that is the one that is
asked for. Else the units that say what to do come first, then what is about the question and the
cause, then the background; within each in the order of the text, below the heading they stand
under. What does not fit whole is left out. Only a long paragraph or list item that says what to do,
or is the best, is cut, and so is a block that what is shown introduces: `…` says so.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from commonplace.compose import tokens
from commonplace.compose.problems import problems_of
from commonplace.compose.unit_layout import Page, says_something
from commonplace.compose.unit_ranking import rank, weigh_lines
from commonplace.compose.unit_uses import (
    ADVICE,
    ANSWER,
    BACKGROUND,
    FIX,
    IMPERATIVE,
    NEITHER,
    is_message,
)
from commonplace.index.units import CODE, ITEM, NO_LEAD, QUOTE, REST, TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from commonplace.compose.unit_ranking import RankedUnit, Wanted
    from commonplace.index.units import Unit

    Weigh = Callable[[Sequence[str]], list[float]]

# A longer table is shown by the rows that answer.
TABLE_SHARE_MAX = 0.5
# How much less a unit is worth that needs all of the room.
LENGTH_WEIGHT = 0.15
# A smaller part of a block of code is not shown.
PART_TOKENS_MIN, ROOM_STEP = 40, 6
# What is this much worse than the best unit does not stand for it.
INSTEAD_MAX = 0.6
# What is this much worse than the best unit is not shown in part.
PART_GAP_MAX = 0.6
# Background that shares no words with the question.
SCORE_MIN = -0.8
# A problem with less than this share of what the best one says of the question is not shown beside
# it; a smaller share does if even the best says less than so much of the question.
PROBLEM_SHARE_MIN, DOUBTFUL_SHARE_MIN, SURE_SHARE = 0.5, 0.3, 0.6


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
    body = [number for number, unit in enumerate(units) if says_something(unit, text, title)]
    page = Page(text, units, title)
    # What is shown of a unit is hardly shorter than the unit.
    if sum(units[number].end - units[number].start for number in body) <= 5 * tokens_max:
        everything = page.show(body)
        if tokens.count(everything) <= tokens_max:
            return everything
    weigh = partial(weigh_lines, wanted=wanted)
    for number in body:
        if units[number].kind == TABLE:
            # Its other rows are about something else, and it is rarely read as a whole.
            page.shorten_table(number, int(TABLE_SHARE_MAX * tokens_max), weigh)
    if not wanted.statement and not page.has_parted_problems:
        shown = _show_problems(page, text, body, wanted, tokens_max)
        if shown:
            return shown
    ranked = _by_worth(rank(text, units, body, wanted), units, tokens_max)
    chosen = _choose(page, ranked, tokens_max, weigh)
    if chosen:
        in_order = partial(_in_order, page=page, ranked=ranked)
        numbers = [one.number for one in ranked]
        return page.show(in_order(_with_part(page, chosen, numbers, weigh, tokens_max, in_order)))
    if not (ranked and may_cut):
        return ""
    return page.show_part(ranked[0].number, tokens_max, weigh)


def _show_problems(
    page: Page, text: str, body: Sequence[int], wanted: Wanted, tokens_max: int
) -> str:
    """Return the problems of a text that answer, best first, each whole and in its order.

    If the best does not fit, its units that do. "" if the text has one problem, or none answers.
    """
    units = page.units
    problems: dict[int, list[int]] = {}
    for number, found in zip(body, problems_of(text, [units[one] for one in body]), strict=True):
        problems.setdefault(found, []).append(number)
    if len(problems) <= 1:
        return ""
    shares = weigh_lines(
        [
            "\n".join([*units[numbers[0]].headings, *(units[one].of(text) for one in numbers)])
            for numbers in problems.values()
        ],
        wanted,
    )
    order = sorted(zip(shares, problems.values(), strict=True), key=lambda one: -one[0])
    best = order[0][0]
    if not best:
        return ""
    least = best * (PROBLEM_SHARE_MIN if best >= SURE_SHARE else DOUBTFUL_SHARE_MIN)
    shown: list[int] = []
    for share, problem in order:
        if share < least:
            break
        if tokens.count(page.show([*shown, *problem])) <= tokens_max:
            shown += problem
        elif not shown:
            return _show_part_of_problem(page, text, problem, wanted, tokens_max)
    return page.show(shown)


def _show_part_of_problem(
    page: Page, text: str, problem: Sequence[int], wanted: Wanted, tokens_max: int
) -> str:
    """Return what fits of a problem: at best all but the messages quoted before its code."""
    blocks = [number for number in problem if page.units[number].kind in (CODE, QUOTE)]
    quoted = {one for one in blocks[:-1] if is_message(page.units[one].of(text))}
    shown = page.show([number for number in problem if number not in quoted])
    if quoted and tokens.count(shown) <= tokens_max:
        return shown
    ranked = _by_worth(rank(text, page.units, problem, wanted), page.units, tokens_max)
    weigh = partial(weigh_lines, wanted=wanted)
    chosen = _choose(page, ranked, tokens_max, weigh)
    if not chosen:
        return page.show_part(ranked[0].number, tokens_max, weigh)
    numbers = [one.number for one in ranked]
    return page.show(sorted(_with_part(page, chosen, numbers, weigh, tokens_max, sorted)))


def _with_part(
    page: Page,
    chosen: set[int],
    numbers: Iterable[int],
    weigh: Weigh,
    tokens_max: int,
    in_order: Callable[[Collection[int]], list[int]],
) -> set[int]:
    """Return *chosen* with the beginning of a block that follows one of them, if there is room.

    "Run this script:" says nothing without any of it. The best of *numbers* is taken.
    """
    for number in numbers:
        unit = page.units[number]
        if unit.kind not in (CODE, TABLE) or number in chosen:
            continue
        if not chosen & {unit.lead, number - 1}:
            continue
        wider = {*chosen, number}
        room = tokens_max - tokens.count(page.show(in_order(chosen)))
        while room >= PART_TOKENS_MIN and page.shorten(number, room, weigh):
            if tokens.count(page.show(in_order(wider))) <= tokens_max:
                return wider
            room -= ROOM_STEP
    return chosen


def _by_worth(
    ranked: Sequence[RankedUnit], units: Sequence[Unit], tokens_max: int
) -> list[RankedUnit]:
    """Return the units in the order in which they are chosen: a long one leaves less for others.

    What says what to do is worth its length.
    """

    def worth(one: RankedUnit) -> float:
        unit = units[one.number]
        share = (unit.end - unit.start) / (tokens.BYTES_PER_TOKEN * tokens_max)
        return one.score - (LENGTH_WEIGHT * share if one.use < ADVICE else 0.0)

    return sorted(ranked, key=lambda one: (-worth(one), one.number))


def _choose(page: Page, ranked: Sequence[RankedUnit], tokens_max: int, weigh: Weigh) -> set[int]:
    """Return the best units that fit together, each with what introduces it."""
    in_order = partial(_in_order, page=page, ranked=ranked)
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
            if tokens.count(page.show(in_order(wider))) <= tokens_max:
                chosen = wider
                if place > 0:
                    # The fix it announces is worth more than what would come next.
                    block = page.introduced_by(max(group)) if one.use >= ADVICE else []
                    chosen = _with_part(page, chosen, block, weigh, tokens_max, in_order)
                    parted = parted if parted is not None else lead
                    if parted == NO_LEAD:
                        parted = page.units[max(group)].lead
                break
    return chosen


def _in_order(chosen: Collection[int], page: Page, ranked: Sequence[RankedUnit]) -> list[int]:
    """Return the numbers as they are shown: what answers, what to do, the rest, the background.

    The items of a list stay together, and so do the parts of a paragraph. Of a text about several
    problems, all about the one that is asked for comes before the others.
    """
    units = page.units
    sections = {units[number].headings for number in chosen}
    if len(sections) == 1 and not sections & page.labelled:
        return sorted(chosen)  # Neither a heading nor a label would tell what is out of its place.
    use = {one.number: one.use for one in ranked}
    for number in chosen:
        lead = units[number].lead
        if lead in chosen and use.get(number) == ANSWER:
            use[lead] = ANSWER
    problems = dict.fromkeys(page.problem_of(one.number) for one in ranked)
    asked = {problem: place for place, problem in enumerate(filter(None, problems))}
    places: dict[int, int] = {}
    place, before = 2, -2
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
            place = _place(value)
        places[number] = place
        before = number

    def key(number: int) -> tuple[int, int, int]:
        problem = page.problem_of(number)
        # What is said of all problems comes behind the one that is asked for.
        group = (asked[problem] and asked[problem] + 1) if problem else 1
        return group if places[number] else -1, places[number], number

    return sorted(chosen, key=key)


def _place(use: float) -> int:
    if use >= ADVICE:
        return 0 if use == ANSWER else 1
    return 3 if use == BACKGROUND else 2
