"""Rank the passages of a long memory for a question. Instructions rank above background."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.passages import LABEL, Block, split_block, split_blocks
from commonplace.index.terms import term_set

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PASSAGE_CHARS_MAX = 420
# Instructions weigh more than words shared with the question, and the beginning of a section more
# than the rest of it.
USE_WEIGHT = 1.2
DEPTH_WEIGHT = 0.1
DEPTH_MAX = 15
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
    r"examples?|results?|appendix|when to apply|files)\b",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"^\W*(fix|solution|resolution|use|run|set|add|remove|never|always|do not|don't|make|prefer|"
    r"ensure|avoid)\b",
    re.IGNORECASE,
)
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


class Passage(NamedTuple):
    """A part of a text, its position in the text, and how well it answers the question."""

    position: int
    text: str
    score: float
    is_background: bool


def rank_passages(
    text: str, wanted: Mapping[str, float], idf: Callable[[str], float], title: str = ""
) -> list[Passage]:
    """Return the passages of *text*, best first."""
    body = _FRONT_MATTER.sub("", text)
    found = list(
        dict.fromkeys(
            part for block in split_blocks(body) for part in split_block(block, PASSAGE_CHARS_MAX)
        )
    )
    whole = sum(weight * idf(term) for term, weight in wanted.items()) or 1.0
    scored = []
    section: tuple[str, ...] = ()
    depth = 0
    for position, block in enumerate(found):
        # A label (`Fix: …`) counts as the beginning of a section.
        begins = block.headings != section or LABEL.match(block.text.lstrip("*-• "))
        section, depth = block.headings, 0 if begins else depth + 1
        use = _use(block)
        scored.append(
            Passage(
                position, block.text, _score(block, use, depth, wanted, idf, whole, title), use < 0
            )
        )
    return sorted(scored, key=lambda passage: (-passage.score, passage.position))


def _score(
    block: Block,
    use: float,
    depth: int,
    wanted: Mapping[str, float],
    idf: Callable[[str], float],
    whole: float,
    title: str,
) -> float:
    terms = term_set(block.text)
    about = sum(weight * idf(term) for term, weight in wanted.items() if term in terms) / whole
    score = about + USE_WEIGHT * use - DEPTH_WEIGHT * min(depth, DEPTH_MAX)
    # A line that only repeats the title adds nothing.
    return score - 2 if title and " ".join(block.text.split()) in title else score


def _use(block: Block) -> float:
    """Return from -1 (background) to 1 (instructions), by the nearest heading, else by the text."""
    for heading in reversed(block.headings):
        is_background = bool(_BACKGROUND.search(heading))
        is_instruction = bool(_INSTRUCTIONS.search(heading))
        if is_instruction and not is_background:
            return 1.0
        if is_background and not is_instruction:
            return -1.0
    start = block.text.lstrip("*-• ")
    return 1.0 if LABEL.match(start) else 0.6 if _IMPERATIVE.search(start) else 0.0
