"""Whether two texts state different values of the same thing, judged by their words.

"The port is 5432" and "the port is 5433"; "use npm ci" and "use npm install"; "use X" and "never
use X". Two sentences must have the same shape but for what differs. A longer difference may be
anything, so it is none.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import NamedTuple


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# A longer text is a report; that two of them differ in a word means little.
WORDS_MAX = 50
# How much of both sentences must be the same words, and how many of these must carry meaning.
SAME_SHARE_MIN = 0.5
SAME_WORDS_MIN = 2
# A name may be a few words long.
VALUE_WORDS_MAX = 3
PIECES_MAX = 2
NEGATED_SHARE_MIN = 0.8
# A shorter word is like another by chance.
NAME_CHARS_MIN = 4
# Words by which a rule says that it replaces another. `now` and `instead` alone say too little.
_OPEN_CHANGE = re.compile(
    r"\b(no longer|any ?more|instead of|replaces|replaced|switched|migrated|moved|deprecated|"
    r"retired|took over|used to be|formerly)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_WORD = re.compile(r"[^\s`\"\u201c\u201d\u2018(),;!?\[\]{}<>|]+")
_NEGATIONS = _set(
    "never not no don't doesn't cannot can't avoid without isn't aren't shouldn't mustn't won't"
    " dont stop neither nor"
)
# Words that say little by themselves.
_FILLERS = _set(
    "a an the this that these those it its and or but so of for to in on at by with from as is are"
    " was were be been being do does did has have had will would can could should must may might"
    " always please just also then than when if we you i our your their there here all any only"
)
# Words that tell of a change and are no part of what changed.
_CHANGE_WORDS = _set("now instead longer anymore currently already still since")
_IMPERATIVES = _set("use using used uses prefer preferred run running call set")
# What comes before the value of a statement: a verb, or a word like `with`. Before it stands the
# subject; two sentences with different subjects do not disagree.
_BEFORE_VALUE = _set(
    "is are was were be use uses using run runs running set sets prefer prefers call calls needs"
    " need requires require takes take lives live listens listen reads read writes write goes go"
    " must should within under over after before than at with via by to from on in as equals costs"
    " lasts expires defaults means returns ="
)


class Difference(NamedTuple):
    """What differs: `value` (a number, version, flag or path), `name` (words) or `negation`."""

    kind: str
    newer: str
    older: str


def difference(newer: str, older: str) -> Difference | None:
    """Return in what the two texts disagree; `None` if they do not, or may be about other things.

    Their first sentences are compared, or the only ones that differ.
    """
    ours, theirs = _sentences(newer), _sentences(older)
    if max(sum(map(len, ours)), sum(map(len, theirs))) > WORDS_MAX or not ours or not theirs:
        return None
    if ours[0] == theirs[0]:
        ours, theirs = (
            [words for words in each if words not in others]
            for each, others in ((ours, theirs), (theirs, ours))
        )
        if len(ours) != 1 or len(theirs) != 1:
            return None
    elif ours[1:] and theirs[1:] and ours[1:] != theirs[1:]:
        return None  # Two reports that begin alike.
    return _negation(ours[0], theirs[0]) or _substitution(ours[0], theirs[0])


def replaces_openly(newer: str, older: str) -> bool:
    """Whether the newer text says that something is replaced which the older one names."""
    known = {word for word in _all_words(older) if len(word) >= NAME_CHARS_MIN}
    return any(
        not known.isdisjoint(_content(_all_words(newer[max(0, at.start() - 40) : at.end() + 40])))
        for at in _OPEN_CHANGE.finditer(newer)
    )


def _all_words(text: str) -> list[str]:
    return [word for words in _sentences(text) for word in words]


def _sentences(text: str) -> list[list[str]]:
    """Return the words of each sentence."""
    sentences = (_words(sentence) for sentence in _SENTENCE_END.split(text))
    return [words for words in sentences if words]


def _words(sentence: str) -> list[str]:
    plain = sentence.replace("\u2019", "'").lower()
    words = (word.strip("'").rstrip(".:,") for word in _WORD.findall(plain))
    return [word for word in words if word]


def _negation(words: list[str], others: list[str]) -> Difference | None:
    if (_negations(words) % 2) == (_negations(others) % 2):
        return None
    one, other = (set(_content(each)) - _NEGATIONS - _IMPERATIVES for each in (words, others))
    common = one & other
    if len(common) < SAME_WORDS_MIN or len(common) < NEGATED_SHARE_MIN * len(one | other):
        return None
    return Difference("negation", " ".join(words), " ".join(others))


def _negations(words: list[str]) -> int:
    return sum(word in _NEGATIONS for word in words)


def _substitution(words: list[str], others: list[str]) -> Difference | None:
    matcher = SequenceMatcher(None, others, words, autojunk=False)
    if matcher.real_quick_ratio() < SAME_SHARE_MIN or matcher.quick_ratio() < SAME_SHARE_MIN:
        return None
    same, replaced = list[str](), list[tuple[int, list[str], list[str]]]()
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        old, new = others[start:end], words[new_start:new_end]
        if kind == "equal":
            same += old
        elif _content(old) or _content(new):
            replaced.append((new_start, old, new))
    is_alike = 2 * len(same) >= SAME_SHARE_MIN * (len(words) + len(others))
    if not is_alike or len(_content(same)) < SAME_WORDS_MIN or not replaced:
        return None
    if any(not _is_exchange(old, new) for _at, old, new in replaced):
        return None
    if len(replaced) > PIECES_MAX or not _is_after_verb(words, replaced[0][0]):
        return None
    values = [_is_value(old) and _is_value(new) for _at, old, new in replaced]
    shown = [" ".join(word for _at, *sides in replaced for word in sides[side]) for side in (1, 0)]
    return Difference("value" if all(values) else "name", *shown)


def _is_exchange(old: list[str], new: list[str]) -> bool:
    """Whether a short piece took the place of another."""
    return all(
        0 < len(_content(piece)) <= VALUE_WORDS_MAX and _NEGATIONS.isdisjoint(piece)
        for piece in (old, new)
    )


def _is_value(piece: list[str]) -> bool:
    """Whether it is a number, a version, a flag, a path or an identifier."""
    return any(re.search(r"\d|^-|[/_=\\]|\w\.\w", word) for word in piece)


def _is_after_verb(words: list[str], at: int) -> bool:
    return not _BEFORE_VALUE.isdisjoint(words[:at])


def _content(words: list[str]) -> list[str]:
    return [word for word in words if word not in _FILLERS and word not in _CHANGE_WORDS]
