"""The problems that a text tells of, each with its own fix.

A note may collect several problems, each with its fix. Where its headings show that, or its words
in bold, its labels or the items of its list, a question is answered by one of the parts.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from commonplace.compose.unit_ranking import count_shared
from commonplace.compose.unit_uses import BACKGROUND, FIX, is_conversation, use_of_heading
from commonplace.index.units import CODE, ITEM, QUOTE, REST, TABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.index.units import Unit

# A longer heading says what a part is about, even if it names a role, such as "Fix".
ROLE_WORDS_MAX, QUESTION_WORDS_MAX = 3, 5
# At least this share of the headings name a problem. Those of one or two words, such as "Overview",
# are found in any text.
NAMED_SHARE_MIN, NAME_WORDS_MIN = 0.6, 3
# One part with a name beside a text without one is no collection of problems.
STARTS_MIN = 2
_BOLD = re.compile(r"\s*(?:[-*+]\s+|\d+[.)]\s+)?(?:\*\*|__)(?P<head>[^*_\n]{2,100})(?:\*\*|__)")
_LABEL = re.compile(
    r"\s*(?P<head>(?:Q|Question|Problem|Symptom|Issue|Error|Case)\b[^:\n]{0,20}):", re.IGNORECASE
)
_TERM = re.compile(r"(?P<head>[^\n]{2,100})\n:\s")
_ORDINAL = re.compile(
    r"(?P<head>(?:the )?(?:second|third|fourth|fifth|another|unrelated|separately)\b)"
    r"(?! (?:time|attempt|step|run|try|argument|line|way|option)\b)",
    re.IGNORECASE,
)
# A heading of a part of one problem, and of its fix.
_STEP = re.compile(
    r"(?:\d+\.\s+)?(?:the\s+)?(?:(?:phase|step|part|task|option|variant)\s+\w|"
    r"(?:root\s+)?(?:causes?|solution|fix|resolution|remedy|workaround|design|goals?)\b|"
    r"what\s+(?:happened|to|we|did|worked|was)\b|why\b|how\s+(?:it|we|to)\b)",
    re.IGNORECASE,
)
_RULE = re.compile(r"^ {0,3}(?:(?:-[ ]*){3,}|(?:\*[ ]*){3,}|(?:_[ ]*){3,})$", re.MULTILINE)


def problems_of(text: str, units: Sequence[Unit]) -> list[int]:
    """Return the number of the problem that each unit is about; all are 0 if there is one only."""
    if is_conversation(text):
        return [0] * len(units)  # A conversation goes to and fro.
    shared = count_shared(unit.headings for unit in units)
    sections = [unit.headings[shared : shared + 1] for unit in units]
    if len({one for one in sections if one}) > 1:
        heads = [
            one[0] if one and (not number or one != sections[number - 1]) else ""
            for number, one in enumerate(sections)
        ]
        starts = _starts(heads) if _are_problems([head for head in heads if head]) else []
    else:
        starts = _starts([_head_of(text, units, number) for number in range(len(units))])
    found, problem = [], 0
    for number in range(len(units)):
        problem += number > 0 and bool(starts) and starts[number]
        found.append(problem)
    return found


def _are_problems(headings: Sequence[str]) -> bool:
    """Whether most headings name what their section is about, and none is a step of one fix."""
    if any(map(_STEP.match, headings)):
        return False
    naming = [one for one in headings if len(one.split()) >= NAME_WORDS_MIN and _role(one) is None]
    return len(naming) >= NAMED_SHARE_MIN * len(headings)


def _starts(heads: Sequence[str]) -> list[bool]:
    """Return where problems begin, by the head of each unit ("" if it has none).

    None begins if the heads are the parts of one problem, such as "Symptoms", "Cause" and "Fix".
    """
    roles = [_role(head) if head else None for head in heads]
    same = Counter(head.casefold() for head in heads)
    first_words = Counter(
        _first_word(head)
        for head, role in zip(heads, roles, strict=True)
        if head and role == BACKGROUND
    )
    found = [
        bool(head)
        # What comes again and again, such as "What we did", is a part of each problem.
        and (same[head.casefold()] == 1 if role is None else role == BACKGROUND)
        and (role is None or first_words[_first_word(head)] > 1)
        for head, role in zip(heads, roles, strict=True)
    ]
    # A text with one fix, or with far fewer fixes than problems, tells of one problem.
    problems, fixes = sum(found), roles.count(FIX)
    is_one = problems < STARTS_MIN or fixes == 1 or 0 < 2 * fixes < problems
    return [] if is_one else found


def _role(head: str) -> float | None:
    """Return what *head* says that follows, as `use_of_heading`; a question asks for a problem."""
    if head.casefold() in ("q", "question"):
        return BACKGROUND
    words_max = QUESTION_WORDS_MAX if head.endswith("?") else ROLE_WORDS_MAX
    return use_of_heading(head) if len(head.split()) <= words_max else None


def _first_word(head: str) -> str:
    return re.split(r"\W", head.strip().casefold(), maxsplit=1)[0]


def _head_of(text: str, units: Sequence[Unit], number: int) -> str:
    """Return the words with which a unit begins a problem of its own, if any."""
    unit = units[number]
    if unit.kind in (CODE, TABLE, QUOTE, REST):
        return ""
    words = unit.of(text)
    if number and _RULE.search(text, units[number - 1].end, unit.start):
        return words[:40]
    for pattern in (
        (_BOLD, _LABEL, _TERM) if unit.kind == ITEM else (_BOLD, _LABEL, _TERM, _ORDINAL)
    ):
        if found := pattern.match(words):
            return found["head"]
    return ""
