"""Search terms fit developer text; the count of tokens rather errs upwards."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.compose import tokens as counting
from commonplace.index.terms import query_terms, term_set, terms


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("getUserById", {"getuserbyid", "user", "id"}),
        ("snake_case_name", {"snake_case_name", "snake", "case", "name"}),
        ("kebab-case-name", {"kebab-case-name", "kebab", "case"}),
        ("commonplace.index.terms", {"commonplace.index.terms", "index"}),
        ("error E0308 and TS2345", {"e0308", "ts2345"}),
        ("npm ERR! EACCES", {"eacc"}),
        ("config/prod.yaml", {"config/prod.yaml", "prod.yaml", "config", "prod"}),
        ("use --no-cache", {"no-cache", "cach"}),
        ("react@18.2.0", {"react@18.2.0", "18.2.0", "react"}),
        ("日本語のエラー", {"日本", "エラ"}),
        ("running installed caches", {"run", "instal", "cach"}),
        ("ERR_OSSL_EVP_UNSUPPORTED", {"err_ossl_evp_unsupported", "ossl"}),
        ("مرحبا بالعالم", {"مرحبا"}),
    ],
)
def test_a_text_gives_the_terms_somebody_would_search_for(text: str, wanted: set[str]) -> None:
    assert wanted <= set(terms(text))


@given(st.text(max_size=200))
def test_any_text_has_terms_without_spaces_and_asking_uses_the_same(text: str) -> None:
    found = terms(text)

    assert all(term and not any(char.isspace() for char in term) for term in found)
    assert set(query_terms(text)) == set(found) == term_set(text)


def test_an_identifier_counts_about_once_in_a_question() -> None:
    assert sum(query_terms("getUserById").values()) < 2.2
    assert query_terms("cache cache") == {"cach": 2.0}


@given(st.text(max_size=300))
def test_a_token_is_at_most_four_bytes(text: str) -> None:
    assert counting.count(text) >= math.floor(len(text.encode("utf-8", "replace")) / 4)


@given(st.text(max_size=300), st.integers(0, 60))
def test_a_cut_text_is_within_its_bound(text: str, bound: int) -> None:
    assert counting.count(counting.cut(text, bound)) <= bound
