"""Scoring: what the engines found becomes one score, and how likely a hit is to help.

Every number was fitted by tools/fit_ranking.py on pairs of questions and texts from public
documentation, never on a set that is measured (docs/decisions/0039).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.bm25 import K1, B

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Self

# How fast the trust in words falls with what even the best match leaves unsaid: by this power of
# the share of the question that it says.
WORDS_TRUST_POWER = 1.5
# The weight of the covered share of a question, beside words and meaning, which weigh 1 together.
COVERED_WEIGHT = 0.2
# Up to this many word pieces of a question have their full weight together.
PIECES_FULL = 8
# A document has about this many times as many terms as different ones.
REPEATS = 1.3
# Above this number of memories, more of them say nothing new about a hit; below the lower one, the
# rarity of a word is chance, and the regression would be too sure.
MEMORIES_MIN, MEMORIES_MAX = 700, 10_000
# Nor is a store of very short memories taken to be easier than those of the fit.
AVERAGE_TERMS_MIN = 40.0


class Scale(NamedTuple):
    """What the scores of one question are measured by, and the weight of meaning."""

    best_words: float
    best_meaning: float
    dense: float
    # How far words are to be trusted, from 0 to 1.
    trust: float

    @classmethod
    def measure(
        cls, words: Collection[float], whole: float, best_meaning: float, dense: float
    ) -> Self:
        """Return the scale of these scores by words.

        *whole* is the score of saying the whole question. The more of it the best match says, and
        the more it leads, the more are words trusted.
        """
        first, second = (*sorted(words, reverse=True)[:2], 0.0, 0.0)[:2]
        said = min(1.0, first / whole) if whole else 1.0
        lead = 1 - second / first if first else 0.0
        trust = min(1.0, said**WORDS_TRUST_POWER * (1 + lead))
        return cls(first, best_meaning, dense, float(trust))

    def parts(self, words: float, meaning: float | None, covered: float) -> dict[str, float]:
        """Return what each engine adds to the score of a document; together from 0 to 1.

        Each counts as a share of its best; a document without a vector is judged by its words
        instead of its meaning.
        """
        said = words / self.best_words if self.best_words else 0.0
        if meaning is None:
            meant = said
        else:
            meant = max(0.0, meaning) / self.best_meaning if self.best_meaning else 0.0
        # Without meaning, the order is that of plain BM25.
        extra = COVERED_WEIGHT if self.dense else 0.0
        whole = 1 + extra
        return {
            "by_words": (1 - self.dense) * self.trust * said / whole,
            "by_meaning": self.dense * meant / whole,
            "by_coverage": extra * covered / whole,
        }


def pieces_weight(weight: float, asked: int) -> float:
    """Return what pieces weigh for a question of *asked* pieces.

    In a long one, such as a pasted message, most pieces say nothing about its answer.
    """
    return weight * min(1.0, PIECES_FULL / max(1, asked))


def add_pieces(parts: Mapping[str, float], share: float, weight: float) -> dict[str, float]:
    """Return *parts* with what the word pieces of a document add, as a *share* of the best."""
    whole = 1 + weight
    return {name: part / whole for name, part in parts.items()} | {
        "by_pieces": weight * share / whole
    }


def add_reading(parts: Mapping[str, float], added: float) -> dict[str, float]:
    """Return *parts* with what reading a memory together with the question adds."""
    return {**parts, "by_reading": added}


def estimate_words(held: float, terms: int, average_terms: float) -> float:
    """Return about the BM25 score of a document that only its meaning proposed.

    *held* is the weight of the question's terms in it, each counted once; *terms* says how many
    different terms it has.
    """
    norm = K1 * (1 - B + B * REPEATS * terms / average_terms)
    return held * (K1 + 1) / (1 + norm)


class Circumstances(NamedTuple):
    """What else bears on the relevance of a hit: the question and the store."""

    # The score by words of an average document that says the whole question once.
    whole: float
    question_terms: int
    # The average length of a memory: chance covers more of a question in long ones.
    average_terms: float
    # How many memories there are: among more, one is like the question by chance.
    memories: int


class Relevance(NamedTuple):
    """The weights of a logistic regression: the probability that a hit answers its question."""

    bias: float
    # The cosine of the best passage.
    meaning: float
    # How much of the question its words match: the share of the terms, weighed by rarity, that the
    # memory contains; or what it scores of a whole match, if that is less, as in a long memory
    # that contains common words of any question.
    matched: float
    # The logarithm of the number of the question's terms: a long one is never covered whole.
    question_terms: float
    # The logarithm of the average length, and of the number of memories to the base of 10.
    average_terms: float
    memories: float

    def of(self, meaning: float, matched: float, given: Circumstances) -> float:
        """Return the probability, from 0 to 1."""
        odds = (
            self.bias
            + self.meaning * max(0.0, meaning)
            + self.matched * matched
            + self.question_terms * math.log(given.question_terms + 1)
            + self.average_terms * math.log(max(AVERAGE_TERMS_MIN, given.average_terms))
            + self.memories * math.log10(min(MEMORIES_MAX, max(MEMORIES_MIN, given.memories)))
        )
        return 1 / (1 + math.exp(-odds))


WITH_MEANING = Relevance(
    bias=1.13, meaning=8.67, matched=4.12, question_terms=0.33, average_terms=-0.73, memories=-1.54
)
# Where a memory or the question has no vector: as for a memory with a cosine of about 0.4. A
# regression over words alone is too sure, since the foreign questions of the fit share no word with
# a small store.
BY_WORDS = WITH_MEANING._replace(bias=4.6, meaning=0.0)


def relevance(meaning: float | None, words: float, covered: float, given: Circumstances) -> float:
    """Return the probability that a hit answers the question, from 0 to 1."""
    matched = min(covered, words / given.whole) if given.whole else 0.0
    if meaning is None:
        return BY_WORDS.of(0.0, matched, given)
    return WITH_MEANING.of(meaning, matched, given)
