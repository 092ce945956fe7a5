"""In what two texts differ, whoever asks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.learn.comparison import compare, words_of

WORDS = [
    "use",
    "the",
    "port",
    "5432",
    "npm",
    "yarn",
    "never",
    "before",
    "tests",
    "in",
    "CI",
    "from",
]
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join) | st.text(max_size=60)


@given(SENTENCES)
def test_a_text_says_what_it_says_and_its_negation_the_opposite(text: str) -> None:
    words = words_of(text)

    assert compare(words, words).kind == "same"
    assert compare(["never", *words], words).kind == "negation"


@given(SENTENCES, SENTENCES)
def test_what_differs_is_counted_alike_from_either_side(one: str, other: str) -> None:
    words, others = words_of(one), words_of(other)
    found, reverse = compare(words, others), compare(others, words)

    assert (found.common, found.extra) == (reverse.common, reverse.extra)
    # Which words are equal may depend on the side when much differs.
    if found.kind not in ("value", "name", "other"):
        assert found.kind == reverse.kind


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("Close the files.", "always close `files`", "same"),
        ("Don\u2019t run it", "never run it", "same"),
        ("run the tests", "run the tests in docker", "detail"),
        ("use npm, not yarn", "use yarn, not npm", "order"),
        ("wait thirty seconds", "wait sixty seconds", "value"),
        ("edit src/app.py here", "edit src/main.py here", "value"),
        ("keep sessions in redis", "keep sessions in postgres", "name"),
        ("use npm ci in CI", "use npm install in CI", "name"),
        ("run it on Fridays", "avoid it on Fridays", "negation"),
        ("format the code", "rotate the signing key of the archive every year", "other"),
    ],
)
def test_kinds(one: str, other: str, kind: str) -> None:
    assert compare(words_of(one), words_of(other)).kind == kind
    assert compare(words_of(other), words_of(one)).kind == kind
