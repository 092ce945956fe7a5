"""`Values`: what frozen data classes are, without what importing them costs."""

from __future__ import annotations

import pytest

from commonplace.index.ports import Filter
from commonplace.recall.query import Query


def test_values_are_equal_by_their_fields_and_their_class() -> None:
    assert Query(text="x", limit=3) == Query(limit=3, text="x")
    assert hash(Query(text="x")) == hash(Query(text="x"))
    assert Query(text="x") != Query(text="y")
    assert Filter() != Query()
    assert Filter() != object()


def test_values_never_change_and_a_copy_may_differ() -> None:
    one = Query(text="x", limit=3)

    with pytest.raises(AttributeError, match="never changes"):
        one.limit = 4  # type: ignore[misc]

    assert one.with_(limit=4) == Query(text="x", limit=4)
    assert one.limit == 3
    assert "text='x'" in repr(one)


def test_a_field_that_is_not_there_is_refused() -> None:
    with pytest.raises(TypeError, match="Query has no field txet"):
        Query(txet="x")  # type: ignore[call-arg]
