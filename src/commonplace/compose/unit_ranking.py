"""How well each unit of a long memory answers a question: what it says, and what it is for.

What it is for is said by `unit_uses`.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from commonplace.compose.unit_uses import (
    ADVICE,
    ANSWER,
    BACKGROUND,
    CAUSE,
    FIX,
    IMPERATIVE,
    LABEL_CHARS_MAX,
    NEITHER,
    WARNING,
    announces_fix,
    begins_with_label,
    find_fix_word,
    is_conversation,
    is_message,
    use_of_section,
    use_of_unit,
)
from commonplace.index.terms import term_set
from commonplace.index.units import CODE, ITEM, REST, TABLE, Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

# What a unit says counts as much as what its section says about the question. Instructions weigh
# more than both, and the beginning of a section more than the rest of it.
OWN_WEIGHT, SECTION_WEIGHT = 0.5, 0.5
USE_WEIGHT = 1.2
DEPTH_WEIGHT = 0.06
DEPTH_MAX = 15.0
# How much better the end of a story is than its beginning, and how many parts it has at least.
LATE_WEIGHT = 0.3
STORY_RUNS_MIN = 4
# The code below a sentence goes with it.
PAIR_GAP = 0.05
# What the section with the fix begins with usually states it.
STATEMENT_WEIGHT = 0.2
# The score of the unit with the sentence that must be shown: above all others.
STATED = 3.0
# A unit with this share of the question, rare words first, is about nothing else.
EXACT_SHARE = 0.75
# A unit after the fix with this share of the question answers it, and the fix is of something else.
ANSWER_SHARE = 0.6
ANSWER_WEIGHT = 0.3
# A warning needs this share to come before the fix.
ASKED_SHARE = 0.95
# Code with this share of the question is the message that the question quotes.
MESSAGE_SHARE = 0.6
# The first of several solutions "in order of preference".
PREFERRED_WEIGHT = 0.3
# A fix beside one that answers this much better. It is shown after that, unless they are numbered.
OTHER_FIX = 0.4
OTHER_FIX_SHARE_MAX = 0.35
# What is about other things than the rest of the text: it answers only questions about those.
_ASIDE = re.compile(
    r"\b(?:related|see also|follow.?ups?|watch out|caveats?|gotchas?|pitfalls?|notes?)\b",
    re.IGNORECASE,
)
_BY_PREFERENCE = re.compile(r"\b(?:preference|preferred|best first)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d")


class Wanted(NamedTuple):
    """The question: its terms with their weights, and how rare each is."""

    terms: Mapping[str, float]
    idf: Callable[[str], float]
    # The sentence that must be shown, if any.
    statement: str = ""


class RankedUnit(NamedTuple):
    """A unit by its number, how well it answers, and from -1 (background) to 1 (instructions)."""

    number: int
    score: float
    use: float


def rank(
    text: str, units: Sequence[Unit], numbers: Sequence[int], wanted: Wanted
) -> list[RankedUnit]:
    """Return the units by how well they answer, best first; of one in parts, the first of them."""
    held = {number: _held(units[number].of(text), wanted) for number in numbers}
    shared = count_shared([units[number].headings for number in numbers])
    named = {
        headings: _held(" ".join(headings[shared:]), wanted)
        for headings in dict.fromkeys(units[number].headings for number in numbers)
    }
    weights = _weights(wanted, [held[number] | named[units[number].headings] for number in numbers])
    sections = {headings: set(terms) for headings, terms in named.items()}
    for number in numbers:
        sections[units[number].headings] |= held[number]
    about = {headings: _share(terms, weights) for headings, terms in sections.items()}
    statement = _statement(units, numbers)
    stated = _unit_with(wanted.statement, text, units, numbers)
    labelled = {units[n].headings for n in numbers if begins_with_label(units[n].of(text))}
    others = _other_fixes(about, labelled)
    runs = list(_runs(units, numbers))
    said = {run[0]: set().union(*(held[one] for one in run)) for run in runs}
    owns = {number: _share(terms, weights) for number, terms in said.items()}
    # Code that says all of it is the message itself, or a transcript.
    exact = {one for one, own in owns.items() if own >= EXACT_SHARE and units[one].kind != CODE}
    # One word alone does not tell what a unit is about, if it is the only one that any unit holds.
    about_it = {one: owns[one] if len(said[one]) > 1 else min(owns[one], 0.5) for one in said}
    uses = _uses_for_question(text, units, _uses(text, units, runs, shared), about_it, exact)
    bonuses = {statement: STATEMENT_WEIGHT}
    preferred = _preferred(units, numbers)
    found: dict[int, RankedUnit] = {}
    section: tuple[str, ...] | None = None
    depth = 0.0
    # Nothing tells the parts of a story apart: it begins with what was seen and ends with the fix.
    parts = sum(units[run[0]].kind != ITEM for run in runs)
    is_story = len(about) == 1 and not labelled and parts >= STORY_RUNS_MIN
    is_story = is_story and not is_conversation(text)
    late = 0
    for run in runs:
        number, unit = run[0], units[run[0]]
        # A label (`Fix: …`) counts as the beginning of a section.
        begins = unit.headings != section or begins_with_label(unit.of(text))
        depth = 0.0 if begins else depth + 1
        section = unit.headings
        use = uses[number]
        score = OWN_WEIGHT * owns[number] + SECTION_WEIGHT * about[section]
        score += USE_WEIGHT * min(use, FIX) + bonuses.get(number, 0.0)
        score += PREFERRED_WEIGHT if section == preferred else 0.0
        if use == ANSWER:
            score += ANSWER_WEIGHT
        elif is_story and unit.kind != ITEM:
            late += 1
            score += LATE_WEIGHT * late / parts
        elif number not in exact:
            # What says most of the question answers it wherever it stands.
            score -= DEPTH_WEIGHT * min(depth, DEPTH_MAX)
        before = found.get(number - 1)
        if before and _goes_with(unit, use, units[number - 1]):
            score, use = max(score, before.score - PAIR_GAP), max(use, before.use)
        if section in others and use != ANSWER:
            score -= USE_WEIGHT * (FIX - OTHER_FIX)
            use = OTHER_FIX if use == FIX else use
        for one in run:
            found[one] = RankedUnit(one, STATED if one == stated else score, use)
    heads = (
        one for one in found.values() if units[one.number].kind != REST or one.number in (0, stated)
    )
    return sorted(heads, key=lambda one: (-one.score, one.number))


def weigh_lines(lines: Sequence[str], wanted: Wanted) -> list[float]:
    """Return how much of the question each line says, where rare words weigh more."""
    held = [_held(line, wanted) for line in lines]
    weights = _weights(wanted, held)
    return [_share(terms, weights) for terms in held]


def _uses(
    text: str,
    units: Sequence[Unit],
    runs: Sequence[Sequence[int]],
    shared: int,
) -> dict[int, float]:
    """Return what each unit is for, by its number; what a unit introduces is for the same."""
    found: dict[int, float] = {}
    for run in runs:
        number, unit = run[0], units[run[0]]
        use = use_of_unit(unit, unit.of(text), unit.headings[shared:])
        lead = found.get(unit.lead, NEITHER)
        if use == NEITHER and any(announces_fix(units[one], text) for one in run):
            use = IMPERATIVE
        if use == NEITHER and lead in (FIX, IMPERATIVE, BACKGROUND):
            use = lead
        found[number] = use
    return found


def _uses_for_question(
    text: str,
    units: Sequence[Unit],
    uses: Mapping[int, float],
    owns: Mapping[int, float],
    exact: Collection[int],
) -> dict[int, float]:
    """Return what each unit is for, if the question holds these shares of what they say.

    *exact* are the units that say nearly all of the question.
    """
    found = dict(uses)
    begin = next((units[one].headings for one in owns), ())
    beginning = [one for one in owns if units[one].headings == begin]
    # Without a fix, the first section usually tells what was seen.
    first = next(
        (one for one, use in uses.items() if use in (FIX, IMPERATIVE)), max(beginning, default=0)
    )
    for number, own in owns.items():
        unit, use = units[number], uses[number]
        words = unit.of(text)
        found[number] = _use_beside_fix(unit, words, use, own, is_later=number > first)
        if found[number] == BACKGROUND and found.get(unit.lead) == NEITHER:
            found[unit.lead] = BACKGROUND
    for number, use in found.items():
        # An order that shares nothing with it is about something else; but a list is one.
        introduces = number + 1 < len(units) and units[number + 1].lead == number
        is_alone = units[number].lead not in found and not introduces
        if exact and use == IMPERATIVE and is_alone and not owns[number]:
            found[number] = NEITHER
    return found


def _use_beside_fix(unit: Unit, text: str, use: float, own: float, *, is_later: bool) -> float:
    """Return what a unit is for, beside one with a fix.

    *own* is its share of the question, and *is_later* whether it stands behind the fix. What stands
    before it usually tells what was seen, which is known to whoever asks.
    """
    if unit.kind == CODE:
        is_seen = own >= MESSAGE_SHARE or is_message(text)
        return BACKGROUND if use == NEITHER and is_seen and not is_later else use
    if own < ANSWER_SHARE:
        return use
    if use == BACKGROUND:
        label = text.lstrip("*-• ")[:LABEL_CHARS_MAX].partition(":")[0]
        return ANSWER if any(map(_ASIDE.search, (*unit.headings[-1:], label))) else use
    if use == CAUSE:
        # A table of the causes may be asked for; a sentence with the cause is no fix.
        is_table = unit.kind == TABLE or text.rstrip("*_ ").endswith(":")
        return ANSWER if is_table else use
    if use == WARNING and own < ASKED_SHARE:
        return use
    # Instructions are compared by all that they say.
    return ANSWER if use < ADVICE and is_later else use


def _goes_with(unit: Unit, use: float, before: Unit) -> bool:
    """Whether a unit is a block of the section that the unit before it is in."""
    is_block = unit.kind in (CODE, TABLE) and use != BACKGROUND
    return is_block and before.headings == unit.headings


def _preferred(units: Sequence[Unit], numbers: Iterable[int]) -> tuple[str, ...] | None:
    """Return the first section below a heading such as "Solutions, in order of preference"."""
    sections = (units[number].headings for number in numbers)
    return next((one for one in sections if any(map(_BY_PREFERENCE.search, one[:-1]))), None)


def _unit_with(
    sentence: str, text: str, units: Sequence[Unit], numbers: Iterable[int]
) -> int | None:
    """Return the number of the unit in which *sentence* begins, if one is shown."""
    place = text.find(sentence) if sentence else -1
    return next((one for one in numbers if units[one].start <= place < units[one].end), None)


def _statement(units: Sequence[Unit], numbers: Iterable[int]) -> int:
    """Return the number of the unit with which the section with the fix begins; -1 if none does.

    There is none if several sections beside each other hold fixes.
    """
    first: dict[tuple[str, ...], int] = {}
    for number in numbers:
        headings = units[number].headings
        if headings and headings not in first and find_fix_word(headings[-1]):
            first[headings] = number
    least = min(map(len, first), default=0)
    top = [number for headings, number in first.items() if len(headings) == least]
    return top[0] if len(top) == 1 else -1


def same_under_others(sections: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Return the sections whose heading, such as "Fix", also stands under another heading.

    Only what they stand under tells them apart.
    """
    parents: dict[object, set[tuple[str, ...]]] = {}
    known = {headings: use_of_section(headings[-1:]) for headings in sections if headings}
    for headings, use in known.items():
        kind = headings[-1].casefold() if use is None else use
        parents.setdefault(kind, set()).add(headings[:-1])
    return {
        headings
        for headings, use in known.items()
        if len(headings) > 1 and len(parents[headings[-1].casefold() if use is None else use]) > 1
    }


def _other_fixes(
    about: Mapping[tuple[str, ...], float], labelled: Collection[tuple[str, ...]]
) -> set[tuple[str, ...]]:
    """Return the sections with a fix that answers much worse than one in a section beside it.

    *labelled* are those in which a label says so, and not their heading.
    """
    fixes = {
        one: share
        for one, share in about.items()
        if one and (one in labelled or use_of_section(one) == FIX)
    }
    same = same_under_others(fixes)
    best: dict[tuple[str, ...], float] = {}
    beside = {one: one[:-2] if one in same else one[:-1] for one in fixes}
    for headings, share in fixes.items():
        best[beside[headings]] = max(share, best.get(beside[headings], 0.0))
    return {
        headings
        for headings, share in fixes.items()
        if share < OTHER_FIX_SHARE_MAX * best[beside[headings]] and not _NUMBER.search(headings[-1])
    }


def count_shared(sections: Iterable[tuple[str, ...]]) -> int:
    """Return how many headings all sections stand under, such as the title.

    They do not tell the sections apart.
    """
    above = {headings for headings in sections if headings}
    count = 0
    while len(above) > 1 and len({headings[: count + 1] for headings in above}) == 1:
        count += 1
    return count


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
