"""What two logs say at the same moment, however each of them writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commonplace.log.view import View
from commonplace.records import encode, from_line

# The same moment in different forms; as text they sort in any order.
SAME = [
    "2026-01-01T00:00:05Z",
    "2026-01-01T00:00:05.000000Z",
    "2026-01-01T02:00:05+02:00",
    "2026-01-01T00:00:05",
]
BEFORE = ["2026-01-01T00:00:04Z", "2026-01-01T00:00:04.999999Z", "2026-01-01T01:00:04.9+01:00"]
AFTER = ["2026-01-01T00:00:06Z", "2026-01-01T00:00:05.000001Z", "2025-12-31T23:00:05.1-01:00"]


def view_of(*rows: dict[str, Any]) -> View:
    view = View()
    for row in rows:
        raw = encode(row).encode()
        view.add(raw, from_line(raw), Path("log/app.jsonl"))
    return view


def lesson(text: str, timestamp: str) -> dict[str, Any]:
    fields = {"id": "a", "kind": "lesson", "event_type": "error", "lesson": text}
    return {**fields, "timestamp": timestamp}


def forget(timestamp: str) -> dict[str, Any]:
    return {"id": "f", "kind": "forget", "of": "a", "timestamp": timestamp}


def merged(one: View, two: View) -> list[str]:
    one.merge(two)
    return [from_line(raw).fields["lesson"] for ident, raw in one.lines() if ident == "a"]


@pytest.mark.parametrize("moment", SAME)
@pytest.mark.parametrize("other", SAME)
def test_of_two_versions_at_the_same_moment_the_later_log_has_the_last_word(
    moment: str, other: str
) -> None:
    assert merged(view_of(lesson("one", moment)), view_of(lesson("two", other))) == ["two"]


@pytest.mark.parametrize("moment", SAME)
@pytest.mark.parametrize("earlier", BEFORE)
def test_the_later_of_two_versions_holds_in_either_order(moment: str, earlier: str) -> None:
    late, early = lesson("late", moment), lesson("early", earlier)

    assert merged(view_of(late), view_of(early)) == ["late"]
    assert merged(view_of(early), view_of(late)) == ["late"]


@pytest.mark.parametrize("moment", SAME)
@pytest.mark.parametrize("forgotten", [*SAME, *BEFORE, *AFTER])
def test_a_record_is_hidden_only_by_a_later_forget(moment: str, forgotten: str) -> None:
    expected = [] if forgotten in AFTER else ["x"]

    for swap in (False, True):
        views = [view_of(lesson("x", moment)), view_of(forget(forgotten))]
        one, two = reversed(views) if swap else views
        assert merged(one, two) == expected


def test_within_one_log_the_order_of_lines_decides_whatever_the_times_say() -> None:
    view = view_of(lesson("late", "2026-01-01T00:00:09Z"), lesson("early", "2026-01-01T00:00:01Z"))

    assert merged(view, View()) == ["early"]
    assert merged(view_of(forget(AFTER[0]), lesson("x", BEFORE[0])), View()) == ["x"]
    assert merged(view_of(lesson("x", AFTER[0]), forget(BEFORE[0])), View()) == []
