"""The parts of a text: its sections, what stands below a line in bold or a label, its lists.

A long memory is about several matters, and a question about one. Whoever shows a part of it shows
all of one matter, and of no other: so a text is taken apart where its author took it apart.
"""

from __future__ import annotations

import re
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

from commonplace.compose.unit_uses import is_conversation, use_of_heading
from commonplace.index.units import CODE, ITEM, NO_LEAD, QUOTE, REST, TABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.index.units import Unit

# A longer heading says what a part is about, even if it names a role, such as "Fix".
ROLE_WORDS_MAX, QUESTION_WORDS_MAX = 3, 5
# With at least this share of such headings, the sections tell of one matter.
ROLES_SHARE_MIN = 0.5
# One part with a name beside a text without one is no collection.
STARTS_MIN = 2
# What stands before the first of several parts, and is shorter, only introduces them.
PREFACE_CHARS_MAX = 200
_FIX = re.compile(
    r"\b(?:solutions?|fix|cure|resolution|remed(?:y|ies)|workarounds?|"
    r"what (?:worked|helped|fixed it))\b",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\s*(?:[-*+]\s+|\d+[.)]\s+)?(?:\*\*|__)(?P<head>[^*_\n]{2,100})(?:\*\*|__)")
_LABEL = re.compile(
    r"\s*(?P<head>(?:Q|Question|Problem|Symptom|Issue|Error|Case|Kind|Type|Title|Topic|Subject|"
    r"Entry|Record|Bug|Task|Gotcha)\b[^:\n]{0,20}):",
    re.IGNORECASE,
)
_TERM = re.compile(r"(?P<head>[^\n]{2,100})\n:\s")
_BRACKETS = re.compile(r"\s*\[(?P<head>[^\]\n]{4,100})\]\s*(?:\n|\Z)")
_ORDINAL = re.compile(
    r"(?P<head>(?:the )?(?:(?:second|third|fourth|fifth|another|unrelated|separately)\b"
    r"(?! (?:time|attempt|step|run|try|argument|line|way|option)\b)|(?:2nd|3rd|4th|5th)\b))",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"\s*(?P<head>(?:\(?\d{1,2}[.)]|\d{1,2}(?:\.\d{1,2})+)\s+\S[^\n]{0,60})")
# A heading of a part of one matter, and of its fix.
_STEP = re.compile(
    r"(?:\d+\.\s+)?(?:the\s+)?(?:"
    r"(?:root\s+)?(?:causes?|solution|fix|resolution|remedy|workaround|design|goals?)\b|"
    r"what\s+(?:happened|to|we|did|worked|was)\b|why\b|how\s+(?:it|we|to)\b)",
    re.IGNORECASE,
)
_RULE = re.compile(r"^ {0,3}(?:(?:-[ ]*){3,}|(?:\*[ ]*){3,}|(?:_[ ]*){3,})$", re.MULTILINE)


class Part(NamedTuple):
    """Units that belong together, by their numbers, and the parts that they are made of."""

    numbers: tuple[int, ...]
    parts: tuple[Part, ...] = ()
    # Whether its parts tell of one matter: what was seen, the cause, the fix.
    is_one: bool = False
    # Whether headings, lines in bold or labels say which is the fix.
    is_named: bool = False
    # Whether it is a conversation, in which the answer may be anywhere.
    is_talk: bool = False
    # Whether its parts are the items of a list.
    is_list: bool = False


def part_of_text(text: str, units: Sequence[Unit], numbers: Sequence[int]) -> Part:
    """Return the text as one part, made of its sections."""
    if is_conversation(text):
        return Part(tuple(numbers), is_one=True, is_talk=True)  # It goes to and fro.
    return _section(text, units, tuple(numbers), 0)


def _section(text: str, units: Sequence[Unit], numbers: tuple[int, ...], depth: int) -> Part:
    """Return the part of *numbers*, which all stand under the same *depth* headings."""
    while True:
        heads = [units[number].headings[depth : depth + 1] for number in numbers]
        if len(set(heads)) != 1 or not heads[0]:
            break
        depth += 1
    if not any(heads):
        return _blocks(text, units, numbers)
    groups = [
        tuple(number for number, _head in run)
        for _head, run in groupby(zip(numbers, heads, strict=True), key=lambda one: one[1])
    ]
    named = [
        units[group[0]].headings[depth] for group in groups if units[group[0]].headings[depth:]
    ]
    is_named = _are_roles(named)
    kept = groups if heads[0] else _without_preface(units, groups)
    parts = tuple(_section(text, units, group, depth) for group in kept)
    return Part(numbers, parts, is_one=is_named or _has_one_fix(named), is_named=is_named)


def _without_preface(
    units: Sequence[Unit], groups: Sequence[tuple[int, ...]]
) -> Sequence[tuple[int, ...]]:
    first = groups[0]
    is_short = units[first[-1]].end - units[first[0]].start < PREFACE_CHARS_MAX
    return groups[1:] if is_short and len(groups) > 1 else groups


def _are_roles(heads: Sequence[str]) -> bool:
    """Whether these are the parts of one matter, such as "Symptoms", "Cause" and "Fix"."""
    roles = sum(_role(one) is not None or _STEP.match(one) is not None for one in heads)
    return roles >= ROLES_SHARE_MIN * len(heads)


def _has_one_fix(heads: Sequence[str]) -> bool:
    """Whether only one of the parts is a fix: then it is that of all of them."""
    return sum(_FIX.search(head) is not None for head in heads) == 1


def _role(head: str) -> float | None:
    words_max = QUESTION_WORDS_MAX if head.endswith("?") else ROLE_WORDS_MAX
    return use_of_heading(head) if len(head.split()) <= words_max else None


def _blocks(text: str, units: Sequence[Unit], numbers: tuple[int, ...]) -> Part:
    """Return the part of *numbers*, which stand under one heading, by how its blocks begin."""
    heads = [_head_of(text, units, number) for number in numbers]
    starts = [place for place, head in enumerate(heads) if head]
    if len(starts) < STARTS_MIN:
        return _lists(units, numbers)
    named = [head for head in heads if head]
    is_named = _are_roles(named)
    ends = pairwise([0, *starts, len(numbers)])
    groups = [numbers[begin:end] for begin, end in ends if begin < end]
    kept = groups if heads[0] else _without_preface(units, groups)
    parts = tuple(_lists(units, group) for group in kept)
    return Part(numbers, parts, is_one=is_named or _has_one_fix(named), is_named=is_named)


def _lists(units: Sequence[Unit], numbers: tuple[int, ...]) -> Part:
    """Return the part of *numbers*: its lists, each made of its items, and what is between them."""
    items: list[list[int]] = []
    found: list[Part] = []
    for number in numbers:
        unit = units[number]
        if unit.kind == ITEM and not _is_inner(units, number):
            items.append([number])
        elif items and (unit.kind == REST or _is_inner(units, number)):
            items[-1].append(number)
        else:
            if items:
                found.append(_list(items))
                items = []
            found.append(Part((number,)))
    if items:
        found.append(_list(items))
    if len(found) == 1:
        return found[0]
    return Part(numbers, tuple(found), is_one=True)


def _list(items: Sequence[Sequence[int]]) -> Part:
    numbers = tuple(number for item in items for number in item)
    return Part(numbers, tuple(Part(tuple(item)) for item in items), is_list=True)


def _is_inner(units: Sequence[Unit], number: int) -> bool:
    """Whether a unit stands within a list item."""
    at = units[number].lead
    while at != NO_LEAD:
        unit = units[at]
        if unit.kind == ITEM:
            return True
        # The rest of a paragraph, or of an item: what it goes on with is before it.
        at = at - 1 if unit.kind == REST else unit.lead
    return False


def _head_of(text: str, units: Sequence[Unit], number: int) -> str:
    """Return the words with which a unit begins a matter of its own, if any."""
    unit = units[number]
    if unit.kind in (CODE, TABLE, QUOTE, ITEM):
        return ""
    words = unit.of(text)
    if unit.kind == REST:
        found = _ORDINAL.match(words)
        return found["head"] if found else ""
    if number and _RULE.search(text, units[number - 1].end, unit.start):
        return words[:40]
    for pattern in (_BOLD, _LABEL, _TERM, _BRACKETS, _ORDINAL, _NUMBERED):
        if found := pattern.match(words):
            return found["head"]
    return ""
