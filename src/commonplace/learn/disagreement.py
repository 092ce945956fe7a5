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
_STATES = _set(
    "is are was were be needs need requires require takes lives live listens listen reads writes"
    " goes go must should equals costs lasts expires defaults means returns uses runs sets prefers"
    " calls ="
)
_PREPOSITIONS = _set("within under over after before than at with via by to from on in as")
_BEFORE_VALUE = _STATES | _PREPOSITIONS | _set("use using run running set prefer call")
# After these stands what a rule is about, or when it holds: both of two rules with another word
# there may hold.
_SCOPE = _set("for of about during per")
_CONDITIONS = _set("when whenever if unless while where because")
# After what shall be used: `run pytest in docker`. In `sessions are kept in redis` it is the value.
_PLACES = _set("in on inside within under")
_ARTICLES = _set("the a an our your their this that each every")
# Two pieces with just these words between them are one value: `stderr as JSON`.
_JOINED_BY = _set("as and")


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
    if one - other and other - one:
        return None  # Another word besides the negation: it may be about another thing.
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
    # Another value of another thing, or the same value of another thing.
    if not _are_of_one_value(words, replaced) or any(
        _is_in_scope(words, at, new) for at, _old, new in replaced
    ):
        return None
    values = [_is_value(old) and _is_value(new) for _at, old, new in replaced]
    shown = [" ".join(word for _at, *sides in replaced for word in sides[side]) for side in (1, 0)]
    return Difference("value" if all(values) else "name", *shown)


def _is_exchange(old: list[str], new: list[str]) -> bool:
    """Whether a short piece took the place of another."""
    return all(
        0 < len(_content(piece)) <= VALUE_WORDS_MAX and _NEGATIONS.isdisjoint(piece)
        for piece in (old, new)
    ) and (old[0] in _PREPOSITIONS) == (new[0] in _PREPOSITIONS)


def _is_value(piece: list[str]) -> bool:
    """Whether it is a number, a version, a flag, a path or an identifier."""
    return any(re.search(r"\d|^-|[/_=\\]|\w\.\w", word) for word in piece)


def _are_of_one_value(words: list[str], replaced: list[tuple[int, list[str], list[str]]]) -> bool:
    """Whether one or two pieces are one value, or plain numbers."""
    if len(replaced) == 1 or all(_is_number(side) for _at, *both in replaced for side in both):
        return True
    (at, _old, new), (after, _old_after, _new_after) = replaced
    return set(words[at + len(new) : after]) <= _JOINED_BY


def _is_number(piece: list[str]) -> bool:
    return all(word[0].isdigit() for word in _content(piece))


def _is_in_scope(words: list[str], at: int, piece: list[str]) -> bool:
    """Whether the piece names what the sentence is about, rather than what it says of it."""
    before, after = words[:at], words[at + len(piece) :]
    if not _CONDITIONS.isdisjoint(before):
        return True
    if _is_number(piece):
        return False
    if before[-1] in _ARTICLES and _content(after[:1]):
        return True  # `the web tests`: an attribute of something that is named.
    is_order = _STATES.isdisjoint(before)
    for word in reversed(before):
        if word in _SCOPE or (is_order and word in _PLACES):
            return True
        if word in _BEFORE_VALUE:
            return False
    return False


def _is_after_verb(words: list[str], at: int) -> bool:
    return not _BEFORE_VALUE.isdisjoint(words[:at])


def _content(words: list[str]) -> list[str]:
    return [word for word in words if word not in _FILLERS and word not in _CHANGE_WORDS]
