"""The current view: the latest version wins, feedback adds up, what is forgotten hides what derives from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.log import read
from commonplace.log.view import View, fold
from commonplace.records import encode, from_line

PATH = Path("log/app.jsonl")


def view_of(*rows: dict[str, Any]) -> View:
    view = View()
    for row in rows:
        raw = encode({"timestamp": "2026-01-01T00:00:00Z", **row}).encode()
        view.add(raw, from_line(raw), PATH)
    return view


def lesson(ident: str, said: str = "x", **more: Any) -> dict[str, Any]:
    return {"id": ident, "kind": "lesson", "event_type": "error", "lesson": said, **more}


def forget(of: str) -> dict[str, Any]:
    return {"id": f"forget-{of}", "kind": "forget", "of": of}


def visible(view: View) -> set[str]:
    return {ident for ident, _raw in view.lines() if not ident.startswith("forget-")}


histories = st.lists(
    st.lists(
        st.text("xyz", min_size=1, max_size=3), min_size=1, max_size=4
    ),  # The versions of one id, in order.
    min_size=1,
    max_size=4,
)


@given(histories, st.randoms(use_true_random=False))
def test_any_interleaving_of_versions_gives_the_same_latest_view(
    histories: list[list[str]], random: Any
) -> None:
    queues = [
        [lesson(f"id{index}", f"{number} {said}") for number, said in enumerate(versions)]
        for index, versions in enumerate(histories)
    ]
    straight = view_of(*(row for queue in queues for row in queue))
    shuffled: list[dict[str, Any]] = []
    pending = [list(queue) for queue in queues]
    while any(pending):
        queue = random.choice([queue for queue in pending if queue])
        shuffled.append(queue.pop(0))

    assert dict(view_of(*shuffled).lines()) == dict(straight.lines())


@given(histories)
def test_the_same_lines_again_change_nothing(histories: list[list[str]]) -> None:
    rows = [
        lesson(f"id{index}", said) for index, versions in enumerate(histories) for said in versions
    ]

    assert dict(view_of(*rows, *rows).lines()) == dict(view_of(*rows).lines())


def test_in_two_logs_the_later_time_counts_and_in_one_the_later_line(tmp_path: Path) -> None:
    def written(name: str, *rows: tuple[str, str]) -> tuple[Path, Path]:
        lines = [
            encode(lesson("a", said, timestamp=f"2026-01-01T00:00:0{second}Z"))
            for second, said in rows
        ]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return tmp_path / "none", tmp_path / name

    pairs = [
        written("a.jsonl", ("9", "late"), ("5", "a's last word")),
        written("b.jsonl", ("7", "x"), ("3", "b's")),
    ]

    for order in (pairs, pairs[::-1]):
        (record,) = fold(order).records()
        assert record.fields["lesson"] == "a's last word"


@pytest.mark.parametrize(("second", "back"), [("1", False), ("5", True), ("7", True)])
def test_what_was_forgotten_in_one_log_is_back_once_another_says_it_later(
    second: str, back: bool
) -> None:
    for first in (True, False):
        views = [
            view_of(lesson("a"), {**forget("a"), "timestamp": "2026-01-01T00:00:05Z"}),
            view_of(lesson("a", "again", timestamp=f"2026-01-01T00:00:0{second}Z")),
        ]
        one, other = views if first else views[::-1]
        one.merge(other)
        assert visible(one) == ({"a"} if back else set())


@given(histories, st.integers(0, 4))
def test_logs_that_share_no_id_merge_into_what_one_log_would_say(
    histories: list[list[str]], cut: int
) -> None:
    rows = [
        [lesson(f"id{index}", said) for said in versions]
        + [{"id": f"fb{index}", "kind": "feedback", "of": f"id{index}", "outcome": "worked"}]
        + ([forget(f"id{index}")] if len(versions) > 2 else [])
        for index, versions in enumerate(histories)
    ]
    one, left, right = (
        view_of(*(row for group in groups for row in group))
        for groups in (rows, rows[:cut], rows[cut:])
    )

    left.merge(right)

    assert dict(left.lines()) == dict(one.lines())
    assert left.hidden() == one.hidden()
    assert [left.feedback(ident) for ident in one.ids()] == [
        one.feedback(ident) for ident in one.ids()
    ]


def test_feedback_adds_up_and_the_same_line_merged_twice_counts_once() -> None:
    said = [
        {"id": f"fb-{n}", "kind": "feedback", "of": "a", "outcome": o}
        for n, o in enumerate(["worked"] * 3 + ["failed"])
    ]

    view = view_of(lesson("a", success_rate="9/10"), *said, *said)

    assert str(view.rate(view.latest("a").record)) == "12/14"
    assert view.feedback("a") == {"worked": 3, "failed": 1, "wrong": 0, "stale": 0}


def test_a_rate_nobody_stated_and_nobody_tried_is_none() -> None:
    view = view_of(lesson("a"))

    assert view.rate(view.latest("a").record) is None


def test_forgetting_hides_a_record_and_what_derives_from_it() -> None:
    view = view_of(
        lesson("a"),
        {"id": "p", "kind": "pattern", "pattern": "x", "source_episodes": ["a"]},
        lesson("q", links=[{"to": "p", "rel": "derived_from"}]),
        {"id": "fb", "kind": "feedback", "of": "q", "outcome": "worked"},
        lesson("b", links=[{"to": "a", "rel": "related_to"}]),
        forget("a"),
    )

    assert visible(view) == {"b"}


def test_what_is_written_again_after_it_was_forgotten_is_back() -> None:
    assert visible(view_of(lesson("a"), forget("a"), lesson("a", "again"))) == {"a"}


@given(
    st.lists(
        st.one_of(
            st.builds(lambda n: b'{"id":"a%d"}' % n, st.integers(0, 30)),
            st.sampled_from(
                [
                    b"",
                    b"  ",
                    b"torn{",
                    b'{"x":"' + b"y" * 700 + b'"}',
                    b"\xef\xbb\xbf{}",
                    b'{"kind":"forget"}',
                ]
            ),
        ),
        max_size=40,
    ),
    st.booleans(),
    st.integers(20, 900),
)
def test_a_scan_for_a_needle_misses_no_line_that_holds_it_and_none_that_is_damaged(
    tmp_path_factory: pytest.TempPathFactory, raws: list[bytes], ended: bool, block: int
) -> None:
    path = tmp_path_factory.mktemp("scan") / "log.jsonl"
    path.write_bytes(b"\n".join(raws) + (b"\n" if ended else b""))
    with pytest.MonkeyPatch.context() as patch, path.open("rb") as stream:
        patch.setattr(read, "SCAN_BYTES", block)
        found = list(read.lines_with(stream, (b'"a7"', b'"forget"')))
    every = list(read.lines(path))

    assert [line for line in every if line in found] == found
    odd = [
        line
        for line in every
        if b'"a7"' in line.raw or b'"forget"' in line.raw or line.raw[:1] != b"{"
    ]
    assert [line for line in odd if line not in found] == []
