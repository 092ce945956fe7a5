"""Whether two texts state different values of the same thing, judged by their words.

"The port is 5432" and "the port is 5433"; "use npm ci" and "use npm install"; "use X" and "never
use X". A false alarm makes an agent doubt what holds, so not every difference is a disagreement:
both sentences must have the same subject, and what differs must be what they say of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from commonplace.learn.comparison import (
    SAME_WORDS_MIN,
    compare,
    without_fillers,
    word_set,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.learn.comparison import Difference, Piece

# A longer text is a report; that two of them differ in a word means little.
WORDS_MAX = 50
# How much of both sentences must be the same words.
SAME_SHARE_MIN = 0.5
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
# What comes before the value of a statement: a verb, or a word like `with`. Before it stands the
# subject; two sentences with different subjects do not disagree.
_STATES = word_set(
    "is are was were be needs need requires require takes lives live listens listen reads writes"
    " goes go must should equals costs lasts expires defaults means returns uses runs sets prefers"
    " calls ="
)
_PREPOSITIONS = word_set("within under over after before than at with via by to from on in as")
_BEFORE_VALUE = _STATES | _PREPOSITIONS | word_set("use using run running set prefer call")
# After these stands what a rule is about, or when it holds: both of two rules with another word
# there may hold.
_SCOPE = word_set("for of about during per")
_CONDITIONS = word_set("when whenever if unless while where because")
# After what shall be used: `run pytest in docker`. In `sessions are kept in redis` it is the value.
_PLACES = word_set("in on inside within under")
_ARTICLES = word_set("the a an our your their this that each every")
# Two pieces with just these words between them are one value: `stderr as JSON`.
_JOINED_BY = word_set("as and")


def disagreement(newer: str, older: str) -> Difference | None:
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
    found = compare(ours[0], theirs[0])
    if found.kind == "negation" and not found.pieces:
        least = max(SAME_WORDS_MIN, NEGATED_SHARE_MIN * (found.common + found.extra))
        return found if found.common >= least else None
    is_alike = 2 * len(found.equal) >= SAME_SHARE_MIN * (len(ours[0]) + len(theirs[0]))
    is_other = found.kind in ("value", "name") and is_alike and _states_another(ours[0], found)
    return found if is_other else None


def replaces_openly(newer: str, older: str) -> bool:
    """Whether the newer text says that something is replaced which the older one names."""
    known = {word for word in words_of(older) if len(word) >= NAME_CHARS_MIN}
    return any(
        not known.isdisjoint(
            without_fillers(words_of(newer[max(0, at.start() - 40) : at.end() + 40]))
        )
        for at in _OPEN_CHANGE.finditer(newer)
    )


def _sentences(text: str) -> list[list[str]]:
    """Return the words of each sentence."""
    return [words for words in map(words_of, _SENTENCE_END.split(text)) if words]


def _states_another(words: Sequence[str], found: Difference) -> bool:
    """Whether the pieces are what the sentence says of its subject, and of one thing."""
    pieces = found.pieces
    return (
        len(without_fillers(found.equal)) >= SAME_WORDS_MIN
        and len(pieces) <= PIECES_MAX
        and not _BEFORE_VALUE.isdisjoint(words[: pieces[0].at])
        and all(
            (piece.newer[0] in _PREPOSITIONS) == (piece.older[0] in _PREPOSITIONS)
            and not _is_in_scope(words, piece)
            for piece in pieces
        )
        and _are_of_one_value(words, pieces)
    )


def _are_of_one_value(words: Sequence[str], pieces: Sequence[Piece]) -> bool:
    """Whether one or two pieces are one value, or plain numbers."""
    if len(pieces) == 1 or all(_is_number(side) for piece in pieces for side in piece[1:]):
        return True
    first, second = pieces
    return _JOINED_BY.issuperset(words[first.at + len(first.newer) : second.at])


def _is_number(piece: Sequence[str]) -> bool:
    return all(word[0].isdigit() for word in without_fillers(piece))


def _is_in_scope(words: Sequence[str], piece: Piece) -> bool:
    """Whether the piece names what the sentence is about, rather than what it says of it."""
    before, after = words[: piece.at], words[piece.at + len(piece.newer) :]
    if not _CONDITIONS.isdisjoint(before):
        return True
    if _is_number(piece.newer):
        return False
    if before[-1] in _ARTICLES and without_fillers(after[:1]):
        return True  # `the web tests`: an attribute of something that is named.
    is_order = _STATES.isdisjoint(before)
    for word in reversed(before):
        if word in _SCOPE or (is_order and word in _PLACES):
            return True
        if word in _BEFORE_VALUE:
            return False
    return False
