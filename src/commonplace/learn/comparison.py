"""What two texts differ in: nothing, a detail, a value, a name, a negation, or much.

Texts with nearly the same words may say the opposite, or give another number, so likeness alone
decides nothing. Each caller is careful in its own direction, for its own reason: see
`have_same_meaning` (merging), `are_different_rules` (clusters) and `disagreement.py`
(contradictions).
"""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal, NamedTuple

from commonplace.index.stemmer import stem
from commonplace.index.terms import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Kind = Literal["same", "detail", "order", "value", "name", "negation", "other"]


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# A name may be a few words long; a longer difference may be anything.
VALUE_WORDS_MAX = 3
SAME_WORDS_MIN = 2
# Two texts with more names exchanged are not one sentence about two things.
NAMES_MAX = 2

_WORD = re.compile(r"[^\s`\"\u201c\u201d\u2018(),;!?\[\]{}<>|]+")
_SIGN = re.compile(r"[\w=]")
_CODE = re.compile(r"`[^`]+`")
# A digit, a flag, a path, or a character inside that no plain word has.
_VALUE = re.compile(r"\d|^-|[/\\=_]|\w[.:@#$%&+~^]+\w")
_VALUE_WORDS = word_set(
    "zero two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty"
    " fifty sixty seventy eighty ninety hundred thousand million half twice once double"
    " monday tuesday wednesday thursday friday saturday sunday"
)
_NEGATIONS = word_set(
    "no not never none nothing nor neither cannot dont without avoid stop refuse forbid"
)
# Each of them says the opposite of another.
_OPPOSITES = word_set(
    "before after sometimes enable enables enabled disable disables disabled off true"
    " false allow allows allowed deny denied minimum maximum min max above below over under more"
    " less fewer most least first last left right up down start end begin add remove delete"
    " increase decrease raise lower sync async public private read write open close client server"
    " staging production development optional required mandatory early late old new upgrade"
    " downgrade encrypt decrypt lock unlock"
)
# With words that say little by themselves and yet may turn the meaning of a rule.
_DECISIVE = _NEGATIONS | _OPPOSITES
_DECISIVE |= word_set(
    "on only also than from then longer may might except unless instead rather hardly"
)
# Words that say little by themselves, or only that something changed.
_FILLERS = STOP_WORDS - _NEGATIONS - _OPPOSITES - _VALUE_WORDS
_FILLERS |= word_set(
    "must may might always please now instead longer anymore currently already still since"
)
# Words that may stand for one another; any other word that replaces one says something else.
_INTERCHANGEABLE = word_set(
    "need needs require requires required use uses used using want wants have has make makes ensure"
    " ensures declare declares specify specifies state states define defines provide provides keep"
    " keeps prefer prefers preferred try check remember mind fail fails break breaks happen happens"
    " occur occurs get gets"
)
# In a cluster both texts are about one problem: there one of these words is as good as another.
_VERBS = word_set(
    "add added adding apply call called change changed execute fix fixed install installed made"
    " pass passed put ran run running set switch switched via"
)


class Piece(NamedTuple):
    """What stands at place *at* of the newer text, and in the older one instead."""

    at: int
    newer: Sequence[str]
    older: Sequence[str]


class Difference(NamedTuple):
    """In what two texts differ.

    `same`: in nothing but words that say little; `detail`: one says more; `order`: the same words
    in an order that says something else; `value` (a number, version, flag or path) or `name`: short
    *pieces* have others in their place; `negation`: one has a negation more, and else they differ
    in a detail or in such pieces at most; `other`: in much.
    """

    kind: Kind
    # How many meaningful words both have, and how many only one has.
    common: int
    extra: int
    # Where pieces were exchanged: the words that are equal, and the pieces that are not.
    equal: Sequence[str] = ()
    pieces: Sequence[Piece] = ()

    @property
    def newer(self) -> str:
        return " ".join(word for piece in self.pieces for word in piece.newer)

    @property
    def older(self) -> str:
        return " ".join(word for piece in self.pieces for word in piece.older)


def words_of(text: str) -> list[str]:
    """Return the words in lower case, without quotes, brackets and punctuation."""
    return _words_as_written(text.lower())


def is_value(word: str) -> bool:
    """Whether it is a number, a version, a flag, a path, an identifier or a day of the week."""
    return word.lower() in _VALUE_WORDS or _VALUE.search(word) is not None


def without_fillers(words: Iterable[str]) -> list[str]:
    return [word for word in words if word not in _FILLERS]


def compare(newer: Sequence[str], older: Sequence[str]) -> Difference:
    """Return in what two lists of words differ."""
    if sum(map(_is_negation, (*newer, *older))) % 2:
        found = compare(
            *([word for word in each if not _is_negation(word)] for each in (newer, older))
        )
        return found._replace(kind="other" if found.kind in ("order", "other") else "negation")
    # Counted, as `CI` is twice in `use npm ci in CI`.
    ours, theirs = (Counter(map(_stem, _meaningful(each))) for each in (newer, older))
    common = (ours & theirs).total()
    extra = ours.total() + theirs.total() - 2 * common
    if common in (ours.total(), theirs.total()):
        if not _are_in_order(newer, older):
            return Difference("order", common, extra)
        return Difference("detail" if extra else "same", common, extra)
    equal, pieces = _align(newer, older)
    sides = [side for piece in pieces for side in (piece.newer, piece.older)]
    kind: Kind = "value" if all(any(map(is_value, side)) for side in sides) else "name"
    return Difference(kind if all(map(_is_short, sides)) else "other", common, extra, equal, pieces)


def have_same_meaning(one: str, other: str) -> bool:
    """Whether one of the two texts is enough, as far as words can tell.

    Merging hides one of them, so whatever may be a rule of its own keeps them apart: a value or a
    name that only one has, a word that may turn the meaning. One may have more plain words.
    """
    words, others = words_of(one), words_of(other)
    return one == other or (
        _decisive(words) == _decisive(others)
        and _exact(one).issubset(others)
        and _exact(other).issubset(words)
        and compare(words, others).kind in ("same", "detail")
    )


def are_different_rules(one: str, other: str) -> bool:
    """Whether two texts that are alike say different things: `start redis`, `start postgres`.

    A cluster joins texts in different words, so only a difference within the same sentence keeps
    them apart. A value that only one of them states is more detail.
    """
    codes, other_codes = (set(_CODE.findall(text)) for text in (one, other))
    if codes - other_codes and other_codes - codes:
        rests = (words_of(_CODE.sub(" ", text)) for text in (one, other))
        if compare(*rests).kind == "same":
            return True
    found = compare(words_of(one), words_of(other))
    if found.kind == "other":
        return False
    pieces = [(_meaningful(piece.newer), _meaningful(piece.older)) for piece in found.pieces]
    names = [word for piece in pieces for side in piece for word in side]
    are_few = len(names) <= 2 * NAMES_MAX
    if not names:
        return found.kind in ("negation", "order") and not found.extra
    if all(map(is_value, names)):
        # A message with another path and another line may still tell of the same problem.
        return are_few or all(word[0].isdigit() for word in names)
    return (
        are_few
        and all(len(newer) == len(older) for newer, older in pieces)
        and len(found.equal) >= SAME_WORDS_MIN
        and _VERBS.isdisjoint(names)
    )


def _words_as_written(text: str) -> list[str]:
    runs = _WORD.findall(text.replace("\u2019", "'"))
    words = (run.strip("'*:\u2026").rstrip(".'*:") for run in runs)
    return [word for word in words if _SIGN.search(word)]


def _exact(text: str) -> set[str]:
    """Return the values, and the names that have a capital inside: `getUser`, `POST`."""
    words = _words_as_written(text)
    return {word.lower() for word in words if is_value(word) or word[1:] != word[1:].lower()}


def _is_negation(word: str) -> bool:
    return word in _NEGATIONS or word.endswith("n't")


def _decisive(words: Iterable[str]) -> list[str]:
    return sorted(_stem(word) for word in words if word in _DECISIVE or _is_negation(word))


def _meaningful(words: Iterable[str]) -> list[str]:
    return [word for word in without_fillers(words) if word not in _INTERCHANGEABLE]


def _stem(word: str) -> str:
    """Return the same for words that mean the same, as all negations do."""
    return "not" if _is_negation(word) else stem(word)


def _are_in_order(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether the words come in the same order, or nothing depends on it.

    `npm, not yarn` has the words of `yarn, not npm`, and `copy A to B` those of `copy B to A`.
    """
    kept = _DECISIVE.union(_meaningful((*words, *others)))
    first, second = ([_stem(word) for word in each if word in kept] for each in (words, others))
    common = {*first} & {*second}
    pairs = zip_longest(*(filter(common.__contains__, each) for each in (first, second)))
    moved = sum(one != other for one, other in pairs)
    are_two_exchanged = moved == 2 < min(len(first), len(second))  # noqa: PLR2004 (A and B)
    return not moved or not (are_two_exchanged or _decisive((*words, *others)))


def _align(newer: Sequence[str], older: Sequence[str]) -> tuple[list[str], list[Piece]]:
    """Return the words that are equal, and the pieces that are not and say something."""
    old_stems, stems = ([*map(_stem, words)] for words in (older, newer))
    equal, pieces = list[str](), list[Piece]()
    matcher = SequenceMatcher(None, old_stems, stems, autojunk=False)
    for kind, old_start, old_end, start, end in matcher.get_opcodes():
        piece = Piece(start, newer[start:end], older[old_start:old_end])
        if kind == "equal":
            equal += piece.newer
        elif _meaningful((*piece.newer, *piece.older)):
            pieces.append(piece)
    return equal, pieces


def _is_short(side: Sequence[str]) -> bool:
    """Whether a side of a piece may be a value or a name."""
    return 0 < len(_meaningful(side)) <= VALUE_WORDS_MAX and not any(map(_is_negation, side))
