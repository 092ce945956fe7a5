"""Whether two records say the same, so that one of them is enough.

Words that are nearly the same may still say the opposite, or give another number. So what two
statements must have in common is more than likeness: every number, name and flag, every "not", and
where the order of the words decides, that order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from commonplace.index.terms import term_hash, term_set, terms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commonplace.records import Record

# What a record of each kind states; these fields are compared one by one.
STATED = {
    "pattern": ("pattern", "conditions", "correct_approach", "incorrect_approach"),
    "anti_pattern": ("what_fails", "why", "prevention"),
    "lesson": ("lesson", "context", "command"),
}
# Shorter statements must have the same words; of longer ones, one may have one word more.
LONGER_BY_ONE_MIN = 10
# Of many records with the same words, each is compared with this number of the best ones.
COMPARED_MAX = 50


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_EDGES = ".,;:!?\"'`()[]{}<>*“”…"
_APOSTROPHE = "\u2019"
_CODE = re.compile(r"\d|^-|[\w][._/\\:=@#$%&+~|^]+\w|[a-z][A-Z]|^[A-Z]{2,}$")
_NUMBERS = _set(
    "zero two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty"
    " fifty sixty seventy eighty ninety hundred thousand million half twice once double"
)
_DAYS = _set("monday tuesday wednesday thursday friday saturday sunday")
_NEGATIONS = _set(
    "no not never none nothing nor neither cannot without avoid stop refuse forbid except unless"
    " instead rather hardly"
)
# Each of them says the opposite of another: two statements have the same ones, or differ.
_OPPOSITES = _set(
    "before after sometimes enable enables enabled disable disables disabled on off true"
    " false allow allows allowed deny denied minimum maximum min max above below over under more"
    " less fewer most least first last left right up down start end begin add remove delete"
    " increase decrease raise lower sync async public private read write open close client server"
    " staging production development optional required mandatory early late old new upgrade"
    " downgrade encrypt decrypt lock unlock only also than from"
)
# Words that may stand for one another; any other word that replaces one says something else.
_INTERCHANGEABLE = _set(
    "need needs require requires required use uses using want wants have has make makes ensure"
    " ensures declare declares specify specifies state states define defines provide provides keep"
    " keeps prefer prefers try check remember mind fail fails break breaks happen happens occur"
    " occurs get gets"
)


def statements(record: Record) -> tuple[str, ...]:
    """Return the texts of what *record* states, "" for what it does not."""
    return tuple(_text(record.fields.get(name)) for name in STATED[record.kind])


def _text(value: object) -> str:
    if isinstance(value, list):
        return "\n".join(sorted(str(item) for item in value))
    return value if isinstance(value, str) else ""


def have_same_values(one: Record, other: Record) -> bool:
    """Whether no field of one gives another value, or the opposite, of the other's."""
    return all(map(same_values, statements(one), statements(other)))


def same_values(one: str, other: str) -> bool:
    """Whether two texts have the same numbers, names, negations, opposites and other words.

    One of them may have more words than the other, but not others instead.
    """
    if one == other:
        return True
    words, others = _words(one), _words(other)
    if not _values(words) <= _lower(others) or not _values(others) <= _lower(words):
        return False
    if _count_negations(words) != _count_negations(others):
        return False
    turning = _lower(words) & _OPPOSITES
    if turning != _lower(others) & _OPPOSITES:
        return False
    # `npm, not yarn` has the words of `yarn, not npm`.
    is_order_needed = bool(turning) or _count_negations(words) > 0
    if is_order_needed and not _in_order(words, others):
        return False
    return not _replaces_word(one, other)


def _words(text: str) -> list[str]:
    plain = text.replace(_APOSTROPHE, "'")
    return [word for word in (run.strip(_EDGES) for run in plain.split()) if word]


def _lower(words: Sequence[str]) -> set[str]:
    return {word.lower() for word in words}


def _values(words: Sequence[str]) -> set[str]:
    return {
        word.lower()
        for word in words
        if _CODE.search(word) or word.lower() in _NUMBERS or word.lower() in _DAYS
    }


def _count_negations(words: Sequence[str]) -> int:
    lower = [word.lower() for word in words]
    return sum(word in _NEGATIONS or word.endswith(("n't", "nt'")) for word in lower)


def _in_order(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether the words that both have come in the same order."""
    first, second = (list(dict.fromkeys(map(str.lower, some))) for some in (words, others))
    common = {*first} & {*second}
    return [word for word in first if word in common] == [word for word in second if word in common]


def _replaces_word(one: str, other: str) -> bool:
    """Whether a word of one text has another word in its place in the other.

    A word more, or the same words in another order, replaces nothing.
    """
    # The matcher's answer may depend on which text is the first.
    words, others = sorted((_content(one), _content(other)))
    matcher = SequenceMatcher(None, words, others, autojunk=False)
    return any(
        {*words[start:end]} - {*others} and {*others[from_:to]} - {*words}
        for operation, start, end, from_, to in matcher.get_opcodes()
        if operation == "replace"
    )


def _content(text: str) -> list[str]:
    return terms(" ".join(word for word in _words(text) if word.lower() not in _INTERCHANGEABLE))


def words_of(record: Record) -> frozenset[int]:
    """Return the searchable words of what *record* states, as numbers."""
    return frozenset(map(term_hash, term_set("\n".join(statements(record)))))


def have_same_words(one: frozenset[int], other: frozenset[int]) -> bool:
    """Whether both have the same words, or one has one more and both are long."""
    shorter, longer = sorted((one, other), key=len)
    if not shorter or len(longer) - len(shorter) > 1:
        return False
    return shorter <= longer and (len(shorter) == len(longer) or len(longer) >= LONGER_BY_ONE_MIN)


def pairs_with_same_words(
    sets: Sequence[frozenset[int]], longer_by_one_min: int = LONGER_BY_ONE_MIN
) -> Iterator[tuple[int, int]]:
    """Yield the places of the sets for which `have_same_words`, without comparing all with all."""
    by_sum: dict[int, list[int]] = defaultdict(list)
    for place, words in enumerate(sets):
        if words:
            by_sum[sum(words)].append(place)
    for place, words in enumerate(sets):
        total = sum(words)
        for other in by_sum.get(total, ())[:COMPARED_MAX]:
            if other != place and sets[other] == words:
                yield place, other
        for word in words if len(words) >= longer_by_one_min else ():
            for other in by_sum.get(total - word, ())[:COMPARED_MAX]:
                if sets[other] == words - {word}:
                    yield place, other
