"""How much each unit of a long memory says of a question, by its words and by its meaning."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.terms import term_set

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from commonplace.index.units import Unit

# What stands beside a unit that answers is likelier to answer, too.
BESIDE_WEIGHT = 0.3
# The share of a score that is what a unit means; the rest is the words of the question in it.
MEANING_SHARE = 0.5
# The score of the unit with the sentence that must be shown: above all others.
STATED = 4.0
_WHY = re.compile(
    r"\bwhy\b(?! not\b)|\bhow come\b|\bwhat (?:causes?|caused|is the (?:cause|reason)|"
    r"does (?:it|this|that) mean)\b|\b(?:root )?cause of\b|\breason for\b",
    re.IGNORECASE,
)


class Wanted(NamedTuple):
    """The question: its terms with their weights, and how rare each is."""

    terms: Mapping[str, float]
    idf: Callable[[str], float]
    # The sentence that must be shown, if any.
    statement: str = ""
    # How well units say the question by their meaning: number → cosine. Empty without vectors.
    likeness: Mapping[int, float] = {}
    # Whether it asks why something is so: then the cause is what must be shown.
    asks_why: bool = False


def asks_why(question: str) -> bool:
    """Whether a question asks for a cause, not for what to do."""
    return _WHY.search(question) is not None


def score_units(
    text: str, units: Sequence[Unit], numbers: Sequence[int], wanted: Wanted
) -> dict[int, float]:
    """Return how much each unit says of the question; the best about 1."""
    found = _by_words(text, units, numbers, wanted)
    if wanted.likeness:
        meant = _by_meaning(numbers, wanted.likeness)
        found = {
            number: (1 - MEANING_SHARE) * found[number] + MEANING_SHARE * meant[number]
            for number in numbers
        }
    scores = {}
    for place, number in enumerate(numbers):
        beside = [
            found[one]
            for one in (*numbers[max(0, place - 1) : place], *numbers[place + 1 : place + 2])
        ]
        scores[number] = found[number] + BESIDE_WEIGHT * max(beside, default=0.0)
    if wanted.statement:
        place = text.find(wanted.statement)
        stated = (one for one in numbers if units[one].start <= place < units[one].end)
        scores |= dict.fromkeys(stated, STATED)
    return scores


def _by_words(
    text: str, units: Sequence[Unit], numbers: Sequence[int], wanted: Wanted
) -> dict[int, float]:
    """Return the share of the question that each unit holds, the best as 1.

    Its heading counts as its own words: often it alone says what a unit is about.
    """
    lines = [" ".join([*units[one].headings[-1:], units[one].of(text)]) for one in numbers]
    shares = weigh_lines(lines, wanted)
    best = max(shares, default=0.0) or 1.0
    return {one: share / best for one, share in zip(numbers, shares, strict=True)}


def _by_meaning(numbers: Sequence[int], likeness: Mapping[int, float]) -> dict[int, float]:
    """Return how far each unit is above the middle one, the best as 1.

    All units of a text are somewhat like a question about its subject. One without a likeness,
    far down in a long text, counts as the middle one.
    """
    known = sorted(likeness[one] for one in numbers if one in likeness)
    if not known:
        return dict.fromkeys(numbers, 0.0)
    middle = known[len(known) // 2]
    span = (known[-1] - middle) or 1.0
    return {one: max(-1.0, (likeness.get(one, middle) - middle) / span) for one in numbers}


def weigh_lines(lines: Sequence[str], wanted: Wanted) -> list[float]:
    """Return how much of the question each line says, where rare words weigh more."""
    held = [wanted.terms.keys() & term_set(line) for line in lines]
    weights = _weights(wanted, held)
    return [sum(weights[term] for term in terms) for terms in held]


def _weights(wanted: Wanted, held: Collection[Collection[str]]) -> dict[str, float]:
    """Return what each term of the question weighs, in all 1.

    One that is in every line does not tell which of them answers.
    """
    found = {}
    for term, weight in wanted.terms.items():
        count = sum(term in terms for terms in held)
        rare = math.log(1 + len(held) / count) if count else 0.0
        found[term] = weight * wanted.idf(term) * rare
    whole = sum(found.values()) or 1.0
    return {term: weight / whole for term, weight in found.items()}
