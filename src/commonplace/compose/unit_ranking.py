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
# The score of the unit with the sentence that must be shown: above all others.
STATED = 3.0
LABEL_CHARS_MAX = 24
# A unit with this share of the question, rare words first, is about nothing else.
EXACT_SHARE = 0.75
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
    r"rules?|convention|use|do this|approach|summary|tl;?dr|verdict|lösung(en)?|behebung|abhilfe|"
    r"soluci(ón|ones)|arreglo|correctif|soluções|solução|correção)\b|"
    r"解决|解決|修复|修復|处理|対処|対策|해결",
    ADVICE: r"\b(prevention|prevent(ing)?|mitigations?|lessons?|takeaways?|acceptance|"
    r"best practices?|guardrails?|vorbeugung|prevención|prévention|prevenção)\b|"
    r"预防|預防|防止|예방",
    CAUSE: r"\b((root )?causes?|ursachen?|grund|causas?)\b|^why\b|原因|원인",
    BACKGROUND: r"\b(context|background|problem|symptoms?|history|investigation|timeline|related|"
    r"references?|what (happened|didn.?t work|did not work|failed)|see also|sources?|evidence|"
    r"examples?|results?|appendix|when to apply|verification|tests?|where it landed|alternatives?|"
    r"scope|hintergrund|symptome?|contexto|problema|síntomas|contexte|problème|symptômes)\b|"
    r"^(?:\w+ )?files$|问题|問題|背景|症状|现象|문제",
}
_USES = {use: re.compile(words, re.IGNORECASE) for use, words in _HEADINGS.items()}
_IMPERATIVE = re.compile(
    r"^\W*(fix|solution|resolution|use|run|set|add|remove|never|always|do not|don't|make|prefer|"
    r"ensure|avoid)\b",
    re.IGNORECASE,
)
# Advice that begins with where or when it holds: "In the Dockerfile use …", "… use it instead".
_ADVICE = re.compile(
    r"(?:^|[.!?]\s+)(?:in|on|for|with|to|instead|better|so|then|after that|afterwards)\b"
    r"[^.!?:;]{0,50}?[\s,](?:use|run|set|add|remove|never|always|do not|don't|prefer|ensure|avoid|"
    r"replace|install|pin|delete|restart|disable|enable)\s(?!of\b)|\buse\s[^.!?]{1,60}\binstead\b",
    re.IGNORECASE,
)
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
    shared = _count_shared([units[number].headings for number in numbers])
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
    owns = {run[0]: _share(set().union(*(held[one] for one in run)), weights) for run in runs}
    # Code that says all of it is the message itself, or a transcript.
    exact = {one for one, own in owns.items() if own >= EXACT_SHARE and units[one].kind != CODE}
    found: dict[int, RankedUnit] = {}
    section: tuple[str, ...] | None = None
    depth = 0.0
    for run in runs:
        number, unit = run[0], units[run[0]]
        words = unit.of(text)
        # A label (`Fix: …`) counts as the beginning of a section.
        begins = unit.headings != section or begins_with_label(words)
        depth = 0.0 if begins else depth + 1
        section = unit.headings
        use, own = _use(unit, words, unit.headings[shared:]), owns[number]
        if use == IMPERATIVE and exact and not own:
            use = NEITHER  # It is about something else.
        score = OWN_WEIGHT * own + SECTION_WEIGHT * about[unit.headings] + USE_WEIGHT * use
        # What says most of the question answers it wherever it stands.
        score -= 0.0 if number in exact else DEPTH_WEIGHT * min(depth, DEPTH_MAX)
        if number == statement:
            score += STATEMENT_WEIGHT
        before = found.get(number - 1)
        if unit.kind == CODE and before and units[number - 1].headings == unit.headings:
            score, use = max(score, before.score - PAIR_GAP), max(use, before.use)
        if unit.headings in others:
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


def find_fix_word(heading: str) -> re.Match[str] | None:
    """Return where *heading* says that a fix follows, as in "Solution"; `None` if it does not."""
    return _USES[FIX].search(heading)


def use_of_heading(heading: str) -> float | None:
    """Return what *heading* says that follows, such as `FIX`; `None` if it does not say."""
    return _use_of_section((heading,))


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


def begins_with_label(text: str) -> bool:
    """Whether *text* begins with a label that says what it is, such as `Fix:`."""
    start = text.lstrip("*-•> ")
    if LABEL.match(start):
        return True
    label, colon, _rest = start[: LABEL_CHARS_MAX + 1].replace("\uff1a", ":").partition(":")
    return bool(colon) and not label.isascii() and _USES[FIX].search(label) is not None


def same_under_others(sections: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Return the sections whose heading, such as "Fix", also stands under another heading.

    Only what they stand under tells them apart.
    """
    parents: dict[object, set[tuple[str, ...]]] = {}
    known = {headings: _use_of_section(headings[-1:]) for headings in sections if headings}
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
        if one and (one in labelled or _use_of_section(one) == FIX)
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


def _count_shared(sections: Iterable[tuple[str, ...]]) -> int:
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


def _use(unit: Unit, text: str, headings: tuple[str, ...]) -> float:
    """Return from -1 (background) to 1 (instructions), by the nearest heading, else by the text."""
    if (by_heading := _use_of_section(headings)) is not None:
        return by_heading
    start = text.lstrip("*-• ")
    label = start.replace("\uff1a", ":").partition(":")[0]
    if len(label) < LABEL_CHARS_MAX:
        for use in (BACKGROUND, CAUSE):
            if _USES[use].search(label):
                return use
    if begins_with_label(start):
        return FIX
    is_advice = _IMPERATIVE.search(start) or (unit.kind != CODE and _ADVICE.search(start))
    return IMPERATIVE if is_advice else NEITHER


@lru_cache(maxsize=1000)
def _use_of_section(headings: tuple[str, ...]) -> float | None:
    for heading in reversed(headings):
        uses = [use for use, words in _USES.items() if words.search(heading)]
        if uses and not (FIX in uses and BACKGROUND in uses):
            return uses[0]
    return None
