"""How well each unit of a long memory answers a question: what it says, and what it is for.

What a unit is for, such as a fix, a cause or background, is told by the headings it stands under,
or else by how its text begins.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.passages import LABEL
from commonplace.index.terms import term_set
from commonplace.index.units import CODE, REST, Unit

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
LABEL_CHARS_MAX = 24
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
_NUMBER = re.compile(r"\d")


class Wanted(NamedTuple):
    """The question: its terms with their weights, and how rare each is."""

    terms: Mapping[str, float]
    idf: Callable[[str], float]


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
    found: dict[int, RankedUnit] = {}
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
            found[one] = RankedUnit(one, score, use)
    heads = (one for one in found.values() if units[one.number].kind != REST or one.number == 0)
    return sorted(heads, key=lambda one: (-one.score, one.number))


def find_fix_word(heading: str) -> re.Match[str] | None:
    """Return where *heading* says that a fix follows, as in "Solution"; `None` if it does not."""
    return _USES[FIX].search(heading)


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
