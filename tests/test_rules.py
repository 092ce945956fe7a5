"""The rules: one meaning of current, hidden, rate and count, for any lines in any order."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import rules
from commonplace.memory import Memory
from commonplace.records import Rate, encode, from_line, micros
from commonplace.rules import Fold, SeveralHomes, Stamp, Standing, Support, Tally
from histories import CASES, feedback, folded, forget, lesson, link, rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

START = "2026-01-01T00:00:00Z"


def current_text(found: Fold[bytes], ident: str) -> str:
    return str(json.loads(found.current(ident).value)["lesson"])


# --- The same moment, however a line writes it --------------------------------------------------------

# As text these sort in any order.
SAME = [
    "2026-01-01T00:00:05Z",
    "2026-01-01T00:00:05.000000Z",
    "2026-01-01T02:00:05+02:00",
    "2026-01-01T00:00:05",
]
BEFORE = ["2026-01-01T00:00:04Z", "2026-01-01T00:00:04.999999Z", "2026-01-01T01:00:04.9+01:00"]
AFTER = ["2026-01-01T00:00:06Z", "2026-01-01T00:00:05.000001Z", "2025-12-31T23:00:05.1-01:00"]


@pytest.mark.parametrize("moment", SAME)
@pytest.mark.parametrize("other", SAME)
def test_of_two_versions_at_the_same_moment_the_log_later_by_name_has_the_last_word(
    moment: str, other: str
) -> None:
    one, two = lesson("a", "one", timestamp=moment), lesson("a", "two", timestamp=other)

    assert current_text(folded([one], [two]), "a") == "two"


@pytest.mark.parametrize("moment", SAME)
@pytest.mark.parametrize("earlier", BEFORE)
def test_the_later_of_two_versions_holds_in_either_order(moment: str, earlier: str) -> None:
    late, early = lesson("a", "late", timestamp=moment), lesson("a", "early", timestamp=earlier)

    assert current_text(folded([late], [early]), "a") == "late"
    assert current_text(folded([early], [late]), "a") == "late"


@pytest.mark.parametrize("moment", SAME)
@pytest.mark.parametrize("forgotten", [*SAME, *BEFORE, *AFTER])
def test_between_logs_only_a_later_forget_hides(moment: str, forgotten: str) -> None:
    record, hides = lesson("a", timestamp=moment), forget("a", timestamp=forgotten)
    expected = [] if forgotten in AFTER else ["a"]

    assert list(folded([record], [hides]).visible_ids()) == expected
    assert list(folded([hides], [record]).visible_ids()) == expected


# --- Which version is current -----------------------------------------------------------------------


def test_in_one_log_the_later_line_is_current_whatever_its_time() -> None:
    found = folded([lesson("a", "first", at=9), lesson("a", "second", at=1)])

    assert current_text(found, "a") == "second"


@pytest.mark.parametrize("reverse", [False, True])
def test_between_logs_the_later_time_is_current(reverse: bool) -> None:
    logs = [
        [lesson("a", "late", at=9), lesson("a", "last of one", at=5)],
        [lesson("a", "x", at=7), lesson("a", "last of two", at=3)],
    ]

    assert current_text(folded(*(logs[::-1] if reverse else logs)), "a") == "last of one"


def test_between_logs_of_equal_times_the_name_of_the_log_decides() -> None:
    assert (
        current_text(folded([lesson("a", "in log0")], [lesson("a", "in log1")]), "a") == "in log1"
    )


def test_times_are_compared_as_times_and_not_as_texts() -> None:
    half = lesson("a", "later by half a second", timestamp="2026-01-01T00:00:00.5Z")
    whole = lesson("a", "earlier", timestamp="2026-01-01T00:00:00Z")
    zone = lesson("a", "earlier too", timestamp="2026-01-01T01:00:00+02:00")

    assert current_text(folded([half], [whole], [zone]), "a") == "later by half a second"


# --- What is hidden ---------------------------------------------------------------------------------

CURRENT, FORGOTTEN = Standing.CURRENT, Standing.FORGOTTEN
DERIVED, SUPERSEDED = Standing.DERIVED, Standing.SUPERSEDED


@pytest.mark.parametrize("case", CASES)
def test_how_records_stand(case: str) -> None:
    logs, expected = CASES[case]
    found = folded(*logs).standings()

    assert {ident: found[ident] for ident in expected} == expected


@pytest.mark.parametrize(
    ("kind", "owner", "reader", "private"),
    [
        ("note", "ana", "ben", True),
        ("note", "ana", "ana", False),
        ("note", "", "ben", True),
        ("lesson", "ana", "ben", False),
        ("skill", "ana", "ben", False),
    ],
)
def test_a_note_is_its_agents_alone(kind: str, owner: str, reader: str, private: bool) -> None:
    assert rules.is_private(kind, owner, reader) is private


# --- Rates ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stated", "outcomes", "rate"),
    [
        ("", [], None),
        ("0/0", [], Rate(0, 0)),
        ("9/10", [], Rate(9, 10)),
        ("9/10", ["worked"], Rate(10, 11)),
        ("9/10", ["failed"], Rate(9, 11)),
        ("", ["worked", "failed"], Rate(1, 2)),
        ("", ["wrong", "stale"], None),
        ("1/1", ["wrong", "stale", "new word"], Rate(1, 1)),
    ],
)
def test_the_rate_is_what_is_stated_plus_feedback(
    stated: str, outcomes: list[str], rate: Rate | None
) -> None:
    assert rules.rate(stated, rules.tally(outcomes)) == rate


def test_each_feedback_id_counts_once_with_its_current_outcome() -> None:
    rows = [
        lesson("a"),
        feedback("f1", "a", "worked"),
        feedback("f1", "a", "worked"),
        feedback("f2", "a", "worked"),
        feedback("f2", "a", "failed"),
        feedback("f3", "a", "stale"),
        forget("f3"),
        feedback("f4", "a", "wrong"),
        feedback("f4", "b", "wrong"),
    ]

    found = folded(rows)

    assert found.tally("a") == Tally(worked=1, failed=1)
    assert found.rate("a") == Rate(1, 2)


@pytest.mark.parametrize(
    ("feedback_given", "doubted"),
    [
        (Tally(), False),
        (Tally(wrong=1), True),
        (Tally(stale=1), True),
        (Tally(worked=1, wrong=1), False),
        (Tally(worked=1, stale=1), False),
        (Tally(worked=1, wrong=1, stale=1), True),
        (Tally(failed=5), False),
    ],
)
def test_a_record_is_doubted_when_it_was_called_wrong_more_often_than_it_worked(
    feedback_given: Tally, doubted: bool
) -> None:
    assert rules.is_doubted(feedback_given) is doubted


# --- Edges ------------------------------------------------------------------------------------------


def test_an_edge_is_kept_once_under_one_of_its_two_names() -> None:
    record = from_line(
        encode(
            {
                "timestamp": START,
                **lesson(
                    "a",
                    links=[
                        {"to": "b", "rel": "supersedes", "w": 0.5},
                        {"to": "b", "rel": "supersedes"},
                        {"to": "c", "rel": "superseded_by"},
                        {"to": "d"},
                        {"to": "e", "relation": "used_by", "w": 7},
                        {"to": "f", "rel": "said_by_nobody", "w": 0},
                    ],
                ),
            }
        ).encode()
    )

    assert [tuple(edge) for edge in rules.edges(record)] == [
        ("a", "supersedes", "b", 0.5, "a"),
        ("c", "supersedes", "a", 1.0, "a"),
        ("a", "related_to", "d", 1.0, "a"),
        ("e", "uses", "a", 1.0, "a"),
        ("a", "said_by_nobody", "f", 0.0, "a"),
    ]


@pytest.mark.parametrize(
    ("given", "weight"), [(None, 1.0), (0.25, 0.25), (0, 0.0), (1, 1.0), (7, 1.0), (-1, 0.0)]
)
def test_the_weight_of_a_link_is_between_nothing_and_one(given: float, weight: float) -> None:
    row = link("a", "used_by", "b") if given is None else link("a", "used_by", "b", w=given)
    record = from_line(encode({"timestamp": START, **row}).encode())

    assert [tuple(edge) for edge in rules.edges(record)] == [
        ("b", "uses", "a", weight, "link-a-used_by-b")
    ]


@pytest.mark.parametrize(
    ("rel", "inverse"),
    [
        ("source_of", "derived_from"),
        ("superseded_by", "supersedes"),
        ("elaborated_by", "elaborates"),
        ("has_example", "example_of"),
        ("has_instance", "is_a"),
        ("used_by", "uses"),
    ],
)
def test_a_relation_and_its_inverse_are_one_edge(rel: str, inverse: str) -> None:
    def edges(row: dict[str, Any]) -> list[tuple[str, str, str]]:
        record = from_line(encode({"timestamp": START, **row}).encode())
        return [edge[:3] for edge in rules.edges(record)]

    assert edges(link("a", rel, "b")) == edges(link("b", inverse, "a")) == [("b", inverse, "a")]
    assert edges(lesson("a", links=[{"to": "b", "rel": rel}])) == [("b", inverse, "a")]


@pytest.mark.parametrize(
    ("row", "about"),
    [
        (lesson("x", of="a", to="b"), ()),
        (feedback("x", "a", to="b"), ("a",)),
        (forget("a", to="b"), ("a",)),
        (link("a", "uses", "b"), ("a", "b")),
    ],
)
def test_what_a_statement_is_about(row: dict[str, Any], about: tuple[str, ...]) -> None:
    record = from_line(encode({"timestamp": START, **row}).encode())

    assert rules.subjects(record) == about
    assert rules.is_statement(record.kind) is bool(about)


# --- Several homes ----------------------------------------------------------------------------------


def test_of_an_id_in_two_homes_the_nearest_one_is_current() -> None:
    near, far = folded([lesson("a", "near", at=1)]), folded([lesson("a", "far", at=9)])
    facts = SeveralHomes([near, far])

    assert facts.stamps(["a"]) == {"a": Stamp(micros("2026-01-01T00:00:01Z"), "0/log0", 0)}


@pytest.mark.parametrize(
    ("near", "far", "standing"),
    [
        ([lesson("a", at=4)], [forget("a", at=5)], FORGOTTEN),
        ([lesson("a", at=6)], [forget("a", at=5)], CURRENT),
        ([forget("a", at=5)], [lesson("a", at=4)], FORGOTTEN),
        ([lesson("b", links=[{"to": "a", "rel": "supersedes"}])], [lesson("a")], SUPERSEDED),
        # The nearest home's version of the superseder no longer says so.
        (
            [lesson("b")],
            [lesson("a"), lesson("b", links=[{"to": "a", "rel": "supersedes"}])],
            CURRENT,
        ),
        (
            [lesson("a", links=[{"to": "b", "rel": "derived_from"}])],
            [lesson("b"), forget("b")],
            DERIVED,
        ),
    ],
)
def test_homes_hide_one_anothers_records(
    near: list[dict[str, Any]], far: list[dict[str, Any]], standing: Standing
) -> None:
    facts = SeveralHomes([folded(near), folded(far)])

    assert rules.standings(["a"], facts) == {"a": standing}


# --- The order in which lines are read


@given(st.lists(rows, max_size=12), st.randoms(use_true_random=False))
def test_any_interleaving_of_two_logs_gives_the_same(
    given_rows: list[dict[str, Any]], order: random.Random
) -> None:
    logs = ([], []) if not given_rows else (given_rows[::2], given_rows[1::2])
    straight = folded(*logs)
    shuffled: Fold[bytes] = Fold()
    places = [(number, position) for number, log in enumerate(logs) for position in range(len(log))]
    queues = [[place for place in places if place[0] == number] for number in range(len(logs))]
    while any(queues):
        number, position = order.choice([queue for queue in queues if queue]).pop(0)
        row = logs[number][position]
        fields = {name: value for name, value in row.items() if name != "at"}
        raw = encode({"timestamp": f"2026-01-01T00:00:{row['at']:02}Z", **fields}).encode()
        record = from_line(raw)
        shuffled.add(Stamp(micros(record.timestamp), f"log{number}", position), record, raw)

    assert shuffled.standings() == straight.standings()
    assert [shuffled.rate(one) for one in straight.ids()] == [
        straight.rate(one) for one in straight.ids()
    ]


# --- Work: each fact is asked for once ----------------------------------------------------------------


@given(st.lists(rows, max_size=12), st.randoms(use_true_random=False))
def test_records_stand_the_same_asked_about_together_or_one_after_another(
    given_rows: list[dict[str, Any]], order: random.Random
) -> None:
    facts = SeveralHomes([folded(given_rows[::2]), folded(given_rows[1::2])])
    ids = sorted({str(row["id"]) for row in given_rows})
    decided = rules.Standings(facts)
    together = rules.standings(ids, facts)

    assert {one: decided.of([one])[one] for one in order.sample(ids, len(ids))} == together
    assert decided.of(ids) == together


class CountingFacts(SeveralHomes):
    """Counts the ids that supports are asked for."""

    asked = 0

    def supports(self, ids: Collection[str]) -> Iterator[Support]:
        self.asked += len(ids)
        return super().supports(ids)


def chain(length: int, *, closed: bool) -> list[dict[str, Any]]:
    """Lessons that each derive from the one before, the first from the last if *closed*."""
    return [
        lesson(
            f"c{n}",
            links=[{"to": f"c{(n - 1) % length}", "rel": "derived_from"}] if n or closed else [],
        )
        for n in range(length)
    ]


@pytest.mark.parametrize("closed", [False, True])
def test_the_links_of_a_chain_are_followed_once_however_often_it_is_asked_about(
    *, closed: bool
) -> None:
    facts = CountingFacts([folded([*chain(300, closed=closed), forget("c0")])])
    decided = rules.Standings(facts)
    found = [decided.of([f"c{n}"])[f"c{n}"] for n in reversed(range(300))]

    assert found == [DERIVED] * 299 + [FORGOTTEN]
    assert facts.asked == 300


def test_the_feedback_of_a_record_is_counted_without_following_what_it_rests_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given_rows = [feedback(f"fb{n}", f"c{n}") for n in range(50)]
    found = folded([*chain(50, closed=True), *given_rows, forget("c0"), forget("fb1")])
    monkeypatch.setattr(found, "supports", None)

    assert [len(found.feedback(f"c{n}")) for n in range(3)] == [1, 0, 1]


# --- Every surface uses them ------------------------------------------------------------------------


def test_every_count_agrees(own_home: Path) -> None:
    with Memory.open(own_home, settings={"embedder.kind": "none"}, background=False) as memory:
        kept = memory.log(repo="app", event_type="error", lesson="use npm ci in CI").id
        other = memory.log(repo="app", event_type="error", lesson="use a lock file").id
        memory.log(
            repo="app",
            event_type="error",
            lesson="derived",
            links=[{"to": other, "rel": "derived_from"}],
        )
        memory.feedback(kept, "worked")
        memory.log(kind="link", of=kept, to=kept, rel="related_to", repo="app")
        memory.forget(other)

        (row,) = memory.repos()
        exported = [json.loads(line) for line in memory.export_lines()]

        assert row["records"] == 1
        assert memory.stats()["records"] == 1
        assert memory.stats()["kinds"] == {"lesson": 1}
        assert [record.id for record in memory.select()] == [kept]
        assert [record["id"] for record in exported if not rules.is_statement(record["kind"])] == [
            kept
        ]
        assert len(exported) == 3, "feedback and links go along, so that an import keeps the rate"


def test_a_feedback_id_written_twice_counts_once_everywhere(own_home: Path) -> None:
    with Memory.open(own_home, settings={"embedder.kind": "none"}, background=False) as memory:
        ident = memory.log(repo="app", event_type="error", lesson="use npm ci in CI").id
        for day in (1, 2):
            memory.log(
                kind="feedback",
                id="fb-once",
                of=ident,
                outcome="worked",
                repo="app",
                timestamp=f"2026-01-0{day}T00:00:00Z",
            )

        assert memory.describe(ident)["success_rate"] == "1/1"
        (hit,) = memory.recall("npm ci").hits
        assert str(hit.rate) == "1/1"


def test_another_agents_note_is_selected_by_nobody_else(own_home: Path) -> None:
    options: dict[str, Any] = {"settings": {"embedder.kind": "none"}, "background": False}
    with Memory.open(own_home, agent_id="ana", **options) as memory:
        memory.notes().write("CONTEXT.md", "the secret plan")
        assert [record.id for record in memory.select()] == ["note:ana/CONTEXT.md"]
    with Memory.open(own_home, agent_id="ben", **options) as memory:
        assert memory.select() == []
        assert memory.select(["note:ana/CONTEXT.md"]) == []
        assert memory.select(kinds="note") == []
