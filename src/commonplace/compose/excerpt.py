"""An excerpt of a long memory: whole units of its text that answer a question.

If all of it fits, all of it is shown. Else the units that say what to do come first, then what is
about the question, then the background; within each in the order of the text, below the heading
they stand under. A unit is cut only if nothing fits whole, at a line of code or a sentence.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from commonplace.compose import tokens
from commonplace.foreign import block, longer_fence, one_line, quote, render
from commonplace.index.passages import LABEL, SENTENCE
from commonplace.index.terms import term_set
from commonplace.index.units import CODE, NO_LEAD, TABLE, Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

# What a unit says counts as much as what its section says about the question. Instructions weigh
# more than both, and the beginning of a section more than the rest of it.
SECTION_WEIGHT = 0.5
USE_WEIGHT = 1.2
DEPTH_WEIGHT = 0.1
DEPTH_MAX = 15
# The code below a sentence goes with it.
PAIR_GAP = 0.05
# What is this much worse than the best unit does not stand for it.
INSTEAD_MAX = 0.6
# Background that shares no words with the question.
SCORE_MIN = -1.0
# In fewer tokens, the beginning of a unit says nothing.
CUT_TOKENS_MIN = 16
HEADING_CHARS_MAX = 80
LABEL_CHARS_MAX = 24
INFO_CHARS_MAX = 20
MORE = "…"
MARGIN = "   "
# Headings under which people write instructions, and headings under which they write background.
_INSTRUCTIONS = re.compile(
    r"\b(solution|fix(ed|es)?|resol(ution|ved?)|remed(y|ies)|workaround|guidance|what to do|"
    r"how to|steps?|instead|decision|recommend(ation|ed)?s?|correct|answer|rules?|convention|"
    r"prevention|mitigations?|use|do this|lesson|takeaways?|acceptance|approach|summary|tl;?dr|"
    r"verdict)\b",
    re.IGNORECASE,
)
_BACKGROUND = re.compile(
    r"\b(context|background|problem|symptoms?|why|root cause|history|investigation|timeline|"
    r"related|references?|what (happened|didn.?t work|did not work)|see also|sources?|evidence|"
    r"examples?|results?|appendix|when to apply)\b|^(?:\w+ )?files$",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"^\W*(fix|solution|resolution|use|run|set|add|remove|never|always|do not|don't|make|prefer|"
    r"ensure|avoid)\b",
    re.IGNORECASE,
)
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_INFO = re.compile(r"[\w.+#-]*")


class Wanted(NamedTuple):
    """The question: its terms with their weights, and how rare each is."""

    terms: Mapping[str, float]
    idf: Callable[[str], float]

    def share_in(self, text: str) -> float:
        """Return which share of the question *text* covers."""
        held = term_set(text)
        whole = sum(weight * self.idf(term) for term, weight in self.terms.items()) or 1.0
        return sum(w * self.idf(term) for term, w in self.terms.items() if term in held) / whole


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
    body = [number for number, unit in enumerate(units) if not _repeats(unit.of(text), title)]
    page = _Page(text, units, title)
    everything = page.show(body)
    if tokens.count(everything) <= tokens_max:
        return everything
    ranked = _rank(text, units, body, wanted)
    chosen = _choose(page, ranked, tokens_max)
    if chosen:
        return page.show(_in_order(chosen, ranked))
    return page.show_beginning(ranked[0].number, tokens_max) if ranked and may_cut else ""


# --- Choosing -------------------------------------------------------------------------------------


def _rank(
    text: str, units: Sequence[Unit], numbers: Sequence[int], wanted: Wanted
) -> list[_Ranked]:
    """Return the units by how well they answer, best first."""
    sections: dict[tuple[str, ...], list[str]] = {}
    for number in numbers:
        unit = units[number]
        sections.setdefault(unit.headings, list(unit.headings[1:])).append(unit.of(text))
    about = {headings: wanted.share_in("\n".join(held)) for headings, held in sections.items()}
    found: dict[int, _Ranked] = {}
    section: tuple[str, ...] | None = None
    depth = 0
    for number in numbers:
        unit = units[number]
        words = unit.of(text)
        # A label (`Fix: …`) counts as the beginning of a section.
        begins = unit.headings != section or LABEL.match(words.lstrip("*-• "))
        section, depth = unit.headings, 0 if begins else depth + 1
        use = _use(unit, words)
        own = wanted.share_in(words)
        score = (1 - SECTION_WEIGHT) * own + SECTION_WEIGHT * about[unit.headings]
        score += USE_WEIGHT * use - DEPTH_WEIGHT * min(depth, DEPTH_MAX)
        before = found.get(number - 1)
        if unit.kind == CODE and before and units[number - 1].headings == unit.headings:
            score, use = max(score, before.score - PAIR_GAP), max(use, before.use)
        found[number] = _Ranked(number, score, use)
    return sorted(found.values(), key=lambda one: (-one.score, one.number))


def _use(unit: Unit, text: str) -> float:
    """Return from -1 (background) to 1 (instructions), by the nearest heading, else by the text."""
    for heading in reversed(unit.headings):
        is_background = bool(_BACKGROUND.search(heading))
        is_instruction = bool(_INSTRUCTIONS.search(heading))
        if is_instruction != is_background:
            return 1.0 if is_instruction else -1.0
    start = text.lstrip("*-• ")
    label = start.partition(":")[0]
    if len(label) < LABEL_CHARS_MAX and _BACKGROUND.search(label):
        return -1.0
    return 1.0 if LABEL.match(start) else 0.6 if _IMPERATIVE.search(start) else 0.0


def _choose(page: _Page, ranked: Sequence[_Ranked], tokens_max: int) -> set[int]:
    """Return the best units that fit together, each with what introduces it."""
    chosen: set[int] = set()
    for one in ranked:
        worst = SCORE_MIN if chosen else max(SCORE_MIN, ranked[0].score - INSTEAD_MAX)
        if one.score < worst:
            break
        wider = chosen | page.with_lead(one.number)
        if tokens.count(page.show(_in_order(wider, ranked))) <= tokens_max:
            chosen = wider
    return chosen


def _in_order(chosen: Collection[int], ranked: Sequence[_Ranked]) -> list[int]:
    """Return the numbers as they are shown: what to do, what else is about it, the background."""
    use = {one.number: one.use for one in ranked}

    def place(number: int) -> tuple[int, int]:
        return (0 if use.get(number, 0.0) > 0 else 1 if use.get(number, 0.0) == 0 else 2), number

    return sorted(chosen, key=place)


def _repeats(text: str, title: str) -> bool:
    """Whether *text* says no more than the title above it."""
    return bool(title) and one_line(text).strip("*_ .") in title


# --- Showing --------------------------------------------------------------------------------------


class _Page:
    """What is shown of one text: its title, and units below their headings."""

    def __init__(self, text: str, units: Sequence[Unit], title: str) -> None:
        self._text = text
        self._units = units
        self._title = title
        self._shown: dict[int, str] = {}

    def with_lead(self, number: int) -> set[int]:
        """Return the unit and what introduces it; of one that introduces others, the first."""
        lead = self._units[number].lead
        group = {number} if lead == NO_LEAD else {number, lead}
        if number + 1 < len(self._units) and self._units[number + 1].lead == number:
            group.add(number + 1)
        return group

    def show(self, numbers: Iterable[int]) -> str:
        """Return the title and these units in this order."""
        parts: list[str] = []
        before: Unit | None = None
        for number in numbers:
            unit = self._units[number]
            shown = self._show(number)
            heading = "" if before and before.headings == unit.headings else self._heading(unit)
            if heading and not LABEL.match(shown.lstrip("*-•> ")):
                parts.append(heading)
            parts.append(shown)
            before = unit
        body = "\n".join(map(_with_margin, parts))
        first = one_line(parts[0]) if parts else ""
        if first.startswith(self._title.removesuffix(f" {MORE}")) and not _FENCE.match(first):
            return body.removeprefix(MARGIN)  # The text begins with the title.
        return f"{self._title}\n{body}" if body else self._title

    def show_beginning(self, number: int, tokens_max: int) -> str:
        """Return the title, and as much of one unit as fits; "" if that is nothing."""
        unit = self._units[number]
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
            unit = self._units[number]
            self._shown[number] = show_unit(unit, unit.of(self._text))
        return self._shown[number]

    def _heading(self, unit: Unit) -> str:
        """Return the heading that a unit stands under, if the title does not say as much."""
        last = one_line(unit.headings[-1]) if unit.headings else ""
        if not last or last in self._title or self._title in last:
            return ""
        says = [one for one in unit.headings[1:-1] if _INSTRUCTIONS.search(one)]
        if says and not _INSTRUCTIONS.search(last):
            last = f"{one_line(says[-1])}: {last}"
        last = last.rstrip(":")
        if len(last) > HEADING_CHARS_MAX:
            last = f"{last[: HEADING_CHARS_MAX - 1]}{MORE}"
        return f"{last}:"


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
