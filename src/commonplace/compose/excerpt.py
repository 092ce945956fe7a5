"""Which passages of a long memory answer a question: what to do comes before how it came about."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.passages import LABEL, Block, blocks, pieces
from commonplace.index.terms import term_set

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PASSAGE_CHARS_MAX = 420
# What to do counts more than sharing words with the question, and how a section begins more than how it goes on.
USE_WEIGHT = 1.2
DEPTH_WEIGHT = 0.1
DEPTH_MAX = 15
# Headings (and openings of paragraphs) under which people write what to do, and under which they tell the story.
_DO = re.compile(
    r"\b(solution|fix(ed|es)?|resol(ution|ved?)|remed(y|ies)|workaround|guidance|what to do|how to|steps?|instead|"
    r"decision|recommend(ation|ed)?s?|correct|answer|rules?|convention|prevention|mitigations?|use|do this|lesson|"
    r"takeaways?|acceptance|approach|summary|tl;?dr|verdict)\b",
    re.IGNORECASE,
)
_STORY = re.compile(
    r"\b(context|background|problem|symptoms?|why|root cause|history|investigation|timeline|related|references?|"
    r"what (happened|didn.?t work|did not work)|see also|sources?|evidence|examples?|results?|appendix|"
    r"when to apply|files)\b",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"^\W*(fix|solution|resolution|use|run|set|add|remove|never|always|do not|don't|make|prefer|ensure|avoid)\b",
    re.IGNORECASE,
)
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


class Passage(NamedTuple):
    """A piece of a text, where it stands, and how well it answers."""

    place: int
    text: str
    score: float
    is_story: bool


def passages(
    text: str, wanted: Mapping[str, float], idf: Callable[[str], float], title: str = ""
) -> list[Passage]:
    """The passages of *text*, best first."""
    body = _FRONT_MATTER.sub("", text)
    found = list(
        dict.fromkeys(piece for block in blocks(body) for piece in pieces(block, PASSAGE_CHARS_MAX))
    )
    whole = sum(weight * idf(term) for term, weight in wanted.items()) or 1.0
    scored = []
    section: tuple[str, ...] = ()
    depth = 0
    for place, block in enumerate(found):
        # A label (`Fix: …`) begins something, wherever it stands.
        begins = block.headings != section or LABEL.match(block.text.lstrip("*-• "))
        section, depth = block.headings, 0 if begins else depth + 1
        use = _use(block)
        scored.append(
            Passage(
                place, block.text, _score(block, use, depth, wanted, idf, whole, title), use < 0
            )
        )
    return sorted(scored, key=lambda passage: (-passage.score, passage.place))


def _score(
    block: Block,
    use: float,
    depth: int,
    wanted: Mapping[str, float],
    idf: Callable[[str], float],
    whole: float,
    title: str,
) -> float:
    said = term_set(block.text)
    about = sum(weight * idf(term) for term, weight in wanted.items() if term in said) / whole
    score = about + USE_WEIGHT * use - DEPTH_WEIGHT * min(depth, DEPTH_MAX)
    # A line that only repeats the title says nothing new.
    return score - 2 if title and " ".join(block.text.split()) in title else score


def _use(block: Block) -> float:
    """From -1 (how it came about) to 1 (what to do), by the nearest heading that tells, else by the words."""
    for heading in reversed(block.headings):
        story, action = bool(_STORY.search(heading)), bool(_DO.search(heading))
        if action and not story:
            return 1.0
        if story and not action:
            return -1.0
    start = block.text.lstrip("*-• ")
    return 1.0 if LABEL.match(start) else 0.6 if _IMPERATIVE.search(start) else 0.0
