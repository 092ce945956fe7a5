"""Scoring: laws of the score and of relevance, whatever the numbers are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.index import bm25
from commonplace.recall import scoring
from commonplace.recall.scoring import Circumstances, Scale

shares = st.floats(0, 1)
cosines = st.floats(-1, 1)
scores = st.floats(0, 100)
circumstances = st.builds(
    Circumstances,
    st.floats(0, 100),
    st.integers(0, 500),
    st.floats(1, 5_000),
    st.integers(0, 2_000_000),
)


@st.composite
def scales(draw: st.DrawFn) -> Scale:
    words = draw(st.lists(st.floats(0.01, 100), min_size=1, max_size=4))
    return Scale.measure(words, draw(scores), draw(st.floats(0.01, 1)), draw(shares))


@given(scales(), shares, st.none() | cosines, shares)
def test_a_score_is_the_sum_of_its_parts_and_a_share(
    scale: Scale, said: float, meaning: float | None, covered: float
) -> None:
    meant = None if meaning is None else min(meaning, scale.best_meaning)
    parts = scale.parts(said * scale.best_words, meant, covered)

    assert parts.keys() == {"by_words", "by_meaning", "by_coverage"}
    assert all(part >= 0 for part in parts.values())
    assert sum(parts.values()) <= 1 + 1e-9


@given(scales(), st.tuples(shares, shares), cosines, shares)
def test_more_words_never_lower_a_score(
    scale: Scale, said: tuple[float, float], meaning: float, covered: float
) -> None:
    less, more = (
        sum(scale.parts(share * scale.best_words, meaning, covered).values())
        for share in sorted(said)
    )

    assert less <= more


@given(scales(), shares, st.tuples(cosines, cosines), shares)
def test_more_meaning_never_lowers_a_score(
    scale: Scale, said: float, meaning: tuple[float, float], covered: float
) -> None:
    less, more = (
        sum(scale.parts(said * scale.best_words, one, covered).values()) for one in sorted(meaning)
    )

    assert less <= more


@given(st.floats(0.01, 100), shares, shares, st.floats(0.01, 100))
def test_words_are_trusted_more_the_more_the_best_match_says_and_leads(
    best: float, second: float, less: float, whole: float
) -> None:
    def trust(*words: float) -> float:
        return Scale.measure(words, whole, 1.0, 0.3).trust

    assert 0 <= trust(best, best * second) <= 1
    assert trust(best, best * second) <= trust(best, best * second * less)
    assert trust(best * less, best * less * second) <= trust(best, best * second) + 1e-9
    assert trust(whole, whole) == 1


def test_a_question_without_weight_is_trusted() -> None:
    scale = Scale.measure([], 0.0, 0.0, 0.3)

    assert scale.trust == 1
    assert sum(scale.parts(0.0, 0.5, 0.0).values()) == 0


def test_a_document_without_a_vector_is_judged_by_its_words() -> None:
    scale = Scale.measure([8.0], 8.0, 0.9, 0.25)

    assert scale.parts(8.0, None, 0.0)["by_meaning"] == scale.parts(8.0, 0.9, 0.0)["by_meaning"]
    assert scale.parts(0.0, None, 1.0)["by_meaning"] == 0


@given(st.floats(0, 50), st.integers(1, 2_000), st.floats(1, 2_000))
def test_estimated_words_are_those_of_terms_that_come_once(
    held: float, terms: int, average: float
) -> None:
    length = scoring.REPEATS * terms
    exact = bm25.score({"a": 1}, round(length), {"a": held}, average)

    assert scoring.estimate_words(held, terms, average) == pytest.approx(exact, rel=0.3)


@given(st.none() | cosines, shares, circumstances)
def test_relevance_is_a_probability(
    meaning: float | None, covered: float, given_: Circumstances
) -> None:
    assert 0 < scoring.relevance(meaning, given_.whole, covered, given_) < 1


@given(st.tuples(cosines, cosines), st.tuples(shares, shares), scores, circumstances)
def test_what_is_nearer_and_matches_more_is_not_less_relevant(
    meanings: tuple[float, float],
    covered: tuple[float, float],
    words: float,
    given_: Circumstances,
) -> None:
    (far, near), (little, much) = sorted(meanings), sorted(covered)

    def of(meaning: float | None, share: float, more: float = 0.0) -> float:
        return scoring.relevance(meaning, words + more, share, given_)

    assert of(far, little) <= of(near, little) <= of(near, much)
    assert of(near, much) <= of(near, much, 1.0)
    assert of(None, little) <= of(None, much)


def test_common_words_in_a_long_memory_are_not_relevant() -> None:
    """A long memory contains them all, and scores little by them."""
    given_ = Circumstances(20.0, 4, 200.0, 2_500)

    assert scoring.relevance(0.1, 2.0, 0.6, given_) < scoring.relevance(0.1, 12.0, 0.6, given_)


@given(cosines, shares, circumstances, st.integers(1, 1_000_000))
def test_the_same_likeness_says_less_among_more_memories(
    meaning: float, covered: float, given_: Circumstances, more: int
) -> None:
    grown = given_._replace(memories=given_.memories + more)
    before, after = (scoring.relevance(meaning, one.whole, covered, one) for one in (given_, grown))

    assert after <= before


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 2), st.integers(0, 300))
def test_pieces_lift_a_score_by_their_share_and_never_above_one(
    fused: float, share: float, weight: float, asked: int
) -> None:
    weight = scoring.pieces_weight(weight, asked)
    parts = scoring.add_pieces({"by_words": fused}, share, weight)

    assert 0 <= sum(parts.values()) <= 1 + 1e-9
    assert sum(scoring.add_pieces({"by_words": fused}, 1.0, weight).values()) >= sum(parts.values())


def test_the_pieces_of_a_long_question_weigh_less() -> None:
    weights = [scoring.pieces_weight(0.3, asked) for asked in (0, 1, scoring.PIECES_FULL, 40)]

    assert weights[0] == weights[1] == weights[2] == 0.3
    assert weights[3] < 0.1
