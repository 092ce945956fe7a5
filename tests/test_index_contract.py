"""The contract of an index: what every engine behind `index/ports.py` must answer.

A test gets the engine as `index_engine` and speaks to it through the protocol alone. Nothing here may
know how an engine stores anything, so that a new engine passes this file as it stands.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.embed.embedder import Encoded
from commonplace.errors import EmbedderUnavailable
from commonplace.index import bm25
from commonplace.index.ports import Card, Filter
from commonplace.index.terms import term_hash, terms
from commonplace.log.fold import fold
from commonplace.log.rotate import rotate
from commonplace.memory import Memory
from commonplace.records import Rate, micros
from commonplace.rules import Edge, Standing, Tally, standings
from commonplace.where.home import Home
from histories import CASES, append, feedback, forget, lesson, link, pattern, steps

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from commonplace.index.ports import Index, Reader
    from commonplace.records import Record

    Engine = Callable[[Home], Index]

START_MICROS = micros("2026-01-01T00:00:00Z")


def at(second: int) -> int:
    """The moment of a row with that `at`."""
    return START_MICROS + second * 1_000_000


@pytest.fixture
def home(own_home: Path) -> Home:
    return Home(own_home)


@pytest.fixture
def index(index_engine: Engine, home: Home) -> Index:
    """The index of an empty home."""
    home.log_folder.mkdir(parents=True)
    return index_engine(home)


def note(home: Home, agent: str, name: str, text: str) -> None:
    path = home.notes(agent) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def skill(home: Home, name: str, text: str) -> None:
    path = home.skill(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


# --- Asking, by ids instead of keys -------------------------------------------------------------------


def cards(reader: Reader, ids: Collection[str]) -> dict[str, Card]:
    return {card.id: card for card in reader.cards(reader.keys(ids).values()).values()}


def records(reader: Reader, ids: Collection[str]) -> dict[str, Record]:
    keys = reader.keys(ids)
    found = reader.records(keys.values())
    return {ident: found[key] for ident, key in keys.items()}


def selected(index: Index, as_of: int | None = None, **conditions: Any) -> list[str]:
    filter_ = Filter(**conditions)
    with index.reading(None if as_of is None else at(as_of)) as reader:
        return [card.id for card in reader.select(filter_)]


def matched(reader: Reader, text: str, limit: int = 10, **conditions: Any) -> dict[str, float]:
    """What the words of *text* find: id → score, the best first."""
    wanted = dict.fromkeys(terms(text), 1.0)
    found = reader.match(wanted, reader.statistics(wanted), Filter(**conditions), limit)
    known = reader.cards([key for key, _score in found])
    return {known[key].id: score for key, score in found}


def ids_matched(index: Index, text: str, as_of: int | None = None, **conditions: Any) -> list[str]:
    with index.reading(None if as_of is None else at(as_of)) as reader:
        return list(matched(reader, text, **conditions))


# --- Records ------------------------------------------------------------------------------------------


def test_an_empty_home_is_answered_with_nothing(index: Index) -> None:
    index.catch_up()

    assert index.is_empty()
    assert index.missing_vectors() == 0
    with index.reading() as reader:
        assert reader.keys(["a"]) == {}
        assert reader.cards([1]) == {}
        assert reader.records([1]) == {}
        assert reader.select(Filter(archived=True, superseded=True)) == []
        assert reader.counts(Filter()) == []
        assert reader.edges(["a"]) == []
        assert reader.feedback(["a"]) == {}
        assert not reader.has_statements()
        assert reader.newest_micros() is None
        assert reader.log_bytes(None, archived=True) == 0
        assert matched(reader, "anything") == {}
        assert reader.term_sets([1]) == {}
        assert not reader.has_vectors()


def test_a_record_is_read_by_its_key_as_its_line_has_it(index: Index, home: Home) -> None:
    row = lesson("a", "two  spaces, é and \u2028", tags=["Web", "db"], success_rate="1/2", at=3)
    append(home, "app", {**row, "agent_id": "ana"}, lesson("b"))
    index.catch_up()

    with index.reading() as reader:
        keys = reader.keys(["a", "b", "nobody"])
        assert set(keys) == {"a", "b"}
        record = reader.records([keys["a"]])[keys["a"]]
        card = reader.cards([keys["a"]])[keys["a"]]

    assert record.fields["lesson"] == "two  spaces, é and \u2028"
    assert record.fields["tags"] == ["Web", "db"]
    assert card == Card(
        key=keys["a"],
        id="a",
        log="app",
        repo="app",
        kind="lesson",
        timestamp="2026-01-01T00:00:03Z",
        micros=at(3),
        agent="ana",
        event_type="error",
        tags=("web", "db"),
        archived=False,
        standing=Standing.CURRENT,
        stated=Rate(1, 2),
        feedback=Tally(),
    )


def test_a_record_belongs_to_the_repository_it_names_or_else_to_its_log(
    index: Index, home: Home
) -> None:
    append(home, "app", lesson("a"), lesson("b", repo="lib"))
    index.catch_up()

    with index.reading() as reader:
        assert {ident: card.repo for ident, card in cards(reader, ["a", "b"]).items()} == {
            "a": "app",
            "b": "lib",
        }


def test_the_current_line_of_an_id_has_the_key(index: Index, home: Home) -> None:
    append(home, "app", lesson("a", "old"), lesson("a", "new"))
    append(home, "lib", lesson("b", "early", at=1))
    append(home, "zoo", lesson("b", "late", at=2))
    index.catch_up()

    with index.reading() as reader:
        found = records(reader, ["a", "b"])
    assert {ident: record.fields["lesson"] for ident, record in found.items()} == {
        "a": "new",
        "b": "late",
    }


def test_many_ids_and_keys_are_asked_for_at_once(index: Index, home: Home) -> None:
    append(home, "app", *(lesson(f"l{n}", f"quokka {n}") for n in range(1500)))
    index.catch_up()
    ids = [f"l{n}" for n in range(3000)]

    with index.reading() as reader:
        keys = reader.keys(ids)
        assert len(keys) == 1500
        assert len(reader.cards(keys.values())) == 1500
        assert len(reader.records(keys.values())) == 1500
        assert len(reader.term_sets(keys.values())) == 1500
        assert reader.feedback(ids) == {}
        assert len(reader.select(Filter(without=frozenset(ids[:1000])))) == 500


def test_lines_of_one_log_are_selected_in_their_order_and_the_newest_first_by_time(
    index: Index, home: Home
) -> None:
    append(home, "app", lesson("a", at=5), lesson("b", at=1), lesson("c", at=9), lesson("d", at=5))
    index.catch_up()

    with index.reading() as reader:
        assert [card.id for card in reader.select(Filter())] == ["a", "b", "c", "d"]
        for newest, expected in [(0, []), (1, ["c"]), (3, ["c", "d", "a"]), (9, [*"cdab"])]:
            found = reader.select(Filter(), newest=newest)
            assert [card.id for card in found] == expected


def test_the_newest_time_and_the_size_of_the_logs(index: Index, home: Home) -> None:
    append(home, "app", *(lesson(f"a{n}", at=n) for n in range(6)))
    append(home, "lib", lesson("b", at=2))
    rotate(home, "app", lines_max=3, move=2)
    sizes = {path: path.stat().st_size for path in home.log_folder.rglob("*.jsonl")}
    app, lib, old = (
        sizes[path] for path in (home.log("app"), home.log("lib"), home.archive("app"))
    )
    index.catch_up()

    with index.reading() as reader:
        assert reader.newest_micros() == at(5)
        assert reader.log_bytes(None, archived=False) == app + lib
        assert reader.log_bytes(None, archived=True) == app + lib + old
        assert reader.log_bytes(["app"], archived=True) == app + old
        assert reader.log_bytes(["lib", "nobody"], archived=True) == lib
        assert reader.log_bytes([], archived=True) == 0
    with index.reading(at(3)) as reader:
        assert reader.newest_micros() == at(3)
    with index.reading(at(0) - 1) as reader:
        assert reader.newest_micros() is None


# --- Filters ------------------------------------------------------------------------------------------


def write_varied(home: Home) -> None:
    """Records that differ in everything a filter looks at."""
    append(
        home,
        "app",
        lesson("old", at=0),
        lesson("moved", at=0, tags=["web"]),
        lesson("web", at=1, tags=["Web", "cache"], agent_id="ana"),
        lesson("webber", at=2, tags=["webber"], agent_id="ben", event_type="success"),
        pattern("pattern", at=3, tags=["cache"]),
        lesson("stale", at=4),
        lesson("newer", at=5, links=[{"to": "stale", "rel": "supersedes"}]),
        lesson("gone", at=5),
        pattern("resting", at=5, source_episodes=["gone"]),
        forget("gone", at=6),
    )
    rotate(home, "app", lines_max=2, move=2)
    append(
        home,
        "lib",
        lesson("lib", at=7, agent_id="ana", event_type="success"),
        lesson("named", at=8, repo="else"),
        feedback("f", "lib", at=9),
        link("lib", "uses", "named", at=9),
    )
    note(home, "ana", "plan.md", "# Plan\n\nThe quokka plan.")
    skill(home, "debug", "# Debug\n\nHow to bisect.")


VARIED = [
    "old", "moved", "web", "webber", "pattern", "stale", "newer", "gone", "resting", "forget-gone",
    "lib", "named", "f", "link-lib-uses-named", "note:ana/plan.md", "skill:debug",
]  # fmt: skip
SHOWN = {"web", "webber", "pattern", "newer", "lib", "named"}
STATEMENTS = {"f", "link-lib-uses-named"}
SKILL, NOTE = "skill:debug", "note:ana/plan.md"


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, {*SHOWN, *STATEMENTS, SKILL}),
        ({"archived": True}, {*SHOWN, *STATEMENTS, SKILL, "old", "moved"}),
        ({"superseded": True}, {*SHOWN, *STATEMENTS, SKILL, "stale"}),
        ({"repos": {"app"}}, {"web", "webber", "pattern", "newer", SKILL}),
        ({"repos": {"lib"}}, {"lib", *STATEMENTS, SKILL}),
        ({"repos": {"lib", "else"}}, {"lib", "named", *STATEMENTS, SKILL}),
        ({"repos": set()}, {SKILL}),
        ({"repos": {"LIB"}}, {SKILL}),
        ({"kinds": {"pattern"}}, {"pattern"}),
        ({"kinds": {"pattern", "skill"}}, {"pattern", SKILL}),
        ({"kinds": {"link"}}, {"link-lib-uses-named"}),
        ({"kinds": {"forget"}}, set()),
        ({"kinds": set()}, set()),
        ({"types": {"success"}}, {"webber", "lib"}),
        ({"types": {"success", "error"}}, SHOWN - {"pattern"}),
        ({"tags": {"web"}}, {"web"}),
        ({"tags": {"webber"}}, {"webber"}),
        ({"tags": {"cache"}}, {"web", "pattern"}),
        ({"tags": {"web", "webber"}}, {"web", "webber"}),
        ({"tags": {"we"}}, set()),
        ({"tags": {"web"}, "archived": True}, {"web", "moved"}),
        ({"agent": "ana"}, {"web", "lib", NOTE}),
        ({"agent": "ben"}, {"webber"}),
        ({"agent": "nobody"}, set()),
        ({"agent": "ben", "reader": "ana"}, {"webber"}),
        ({"reader": "ana"}, {*SHOWN, *STATEMENTS, SKILL, NOTE}),
        ({"reader": "ben"}, {*SHOWN, *STATEMENTS, SKILL}),
        ({"since_micros": at(7), "kinds": {"lesson"}}, {"lib", "named"}),
        ({"since_micros": at(7) + 1, "kinds": {"lesson"}}, {"named"}),
        ({"without": {"lib", "nobody"}, "kinds": {"lesson"}}, {"web", "webber", "newer", "named"}),
        ({"repos": {"app"}, "kinds": {"lesson"}, "types": {"error"}}, {"web", "newer"}),
    ],
)
def test_a_filter_chooses(
    index: Index, home: Home, conditions: dict[str, Any], expected: set[str]
) -> None:
    write_varied(home)
    index.catch_up()
    frozen: dict[str, Any] = {
        name: frozenset(value) if isinstance(value, set) else value
        for name, value in conditions.items()
    }

    found = selected(index, **frozen)

    assert len(found) == len(set(found))
    assert set(found) == expected


def some(*values: str) -> st.SearchStrategy[frozenset[str]]:
    return st.frozensets(st.sampled_from(values), max_size=2)


filters = st.builds(
    Filter,
    repos=st.none() | some("app", "lib", "else"),
    kinds=st.none() | some("lesson", "pattern", "note", "link", "forget"),
    types=st.none() | some("error", "success", ""),
    tags=some("web", "cache", "webber"),
    agent=st.sampled_from([None, "ana", "ben", ""]),
    since_micros=st.none() | st.integers(0, 9).map(at),
    archived=st.booleans(),
    superseded=st.booleans(),
    without=some(*VARIED),
    reader=st.sampled_from(["", "ana", "ben"]),
)


@given(st.lists(filters, min_size=5, max_size=5), st.none() | st.integers(0, 9))
def test_an_engine_lets_through_what_the_filter_admits(
    index_engine: Engine,
    tmp_path_factory: pytest.TempPathFactory,
    wanted: list[Filter],
    as_of: int | None,
) -> None:
    home = Home(tmp_path_factory.mktemp("any"))
    write_varied(home)
    index = index_engine(home)
    index.catch_up()

    with index.reading(None if as_of is None else at(as_of)) as reader:
        known = cards(reader, VARIED).values()
        for filter_ in wanted:
            expected = {
                card
                for card in known
                if card.kind != "forget" and filter_.admits(card) and filter_.shows(card.standing)
            }
            found = reader.select(filter_)
            assert set(found) == expected
            times = sorted((card.micros for card in found), reverse=True)
            assert [card.micros for card in reader.select(filter_, newest=2)] == times[:2]
            assert counted(reader, filter_) == Counter(
                (card.repo, card.kind, card.event_type, card.archived)
                for card in expected
                if card.kind not in ("feedback", "link")
            )
    index.close()


def counted(reader: Reader, filter_: Filter) -> Counter[tuple[str, str, str, bool]]:
    """How many records of each repository, kind and type; none is listed twice."""
    found = reader.counts(filter_)
    assert len({count[:4] for count in found}) == len(found)
    return Counter({tuple(count[:4]): count.records for count in found})  # type: ignore[misc]


# --- Standings, edges, feedback -------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_how_records_stand(index: Index, home: Home, case: str) -> None:
    logs, expected = CASES[case]
    for number, rows in enumerate(logs):
        append(home, f"log{number}", *rows)
    index.catch_up()

    with index.reading() as reader:
        assert {i: card.standing for i, card in cards(reader, expected).items()} == {
            ident: standing for ident, standing in expected.items() if ident in reader.keys([ident])
        }
        # The index knows the facts that the rules decide by, and they decide alike.
        assert standings(list(expected), reader) == expected
        shown = {card.id for card in reader.select(Filter(superseded=True))}
    hidden = {i for i, one in expected.items() if one in (Standing.FORGOTTEN, Standing.DERIVED)}
    assert shown.isdisjoint(hidden)


def test_statements_are_known_to_be_there(index: Index, home: Home) -> None:
    append(home, "app", lesson("a"))
    index.catch_up()
    with index.reading() as reader:
        assert not reader.has_statements()

    append(home, "app", forget("a"))
    index.catch_up()
    with index.reading() as reader:
        assert reader.has_statements()


def test_a_link_in_a_record_is_a_statement(index: Index, home: Home) -> None:
    append(home, "app", lesson("a", links=[{"to": "b", "rel": "supersedes"}]))
    index.catch_up()

    with index.reading() as reader:
        assert reader.has_statements()


def test_edges_are_found_from_either_end_with_their_weights(index: Index, home: Home) -> None:
    append(
        home,
        "app",
        lesson("a", links=[{"to": "b", "rel": "uses", "w": 0.25}, {"to": "c", "rel": "used_by"}]),
        pattern("p", source_episodes=["b"]),
        link("b", "related_to", "c", w=0.5),
        link("x", "uses", "y"),
    )
    index.catch_up()
    a_b, c_a = Edge("a", "uses", "b", 0.25, "a"), Edge("c", "uses", "a", 1.0, "a")
    p_b = Edge("p", "derived_from", "b", 1.0, "p")
    b_c = Edge("b", "related_to", "c", 0.5, "link-b-related_to-c")

    with index.reading() as reader:
        assert sorted(reader.edges(["a"])) == sorted([a_b, c_a])
        assert sorted(reader.edges(["b"])) == sorted([a_b, p_b, b_c])
        assert sorted(reader.edges(["a", "b"])) == sorted([a_b, c_a, p_b, b_c])
        assert reader.edges(["b"], "related_to") == [b_c]
        assert reader.edges(["b"], "supersedes") == []
        assert reader.edges([]) == []


def test_only_a_current_line_states_its_edges(index: Index, home: Home) -> None:
    append(home, "app", lesson("a", at=1, links=[{"to": "b", "rel": "uses"}]))
    index.catch_up()
    append(home, "app", lesson("a", at=3, links=[{"to": "c", "rel": "uses", "w": 0.5}]))
    index.catch_up()

    with index.reading() as reader:
        assert reader.edges(["a"]) == [Edge("a", "uses", "c", 0.5, "a")]
        assert reader.edges(["b"]) == []
    with index.reading(at(2)) as reader:
        assert reader.edges(["a"]) == [Edge("a", "uses", "b", 1.0, "a")]
        assert reader.edges(["c"]) == []


def test_feedback_is_counted_once_for_each_id_with_its_last_outcome(
    index: Index, home: Home
) -> None:
    append(
        home,
        "app",
        lesson("a", success_rate="1/2"),
        feedback("f1", "a", "worked", at=1),
        feedback("f1", "a", "failed", at=2),
        feedback("f2", "a", "worked", at=2),
        feedback("f3", "a", "stale", at=3),
        feedback("f4", "a", "wrong", at=3),
        feedback("f5", "a", "worked", at=4),
        forget("f5", at=5),
    )
    append(home, "lib", lesson("b"), feedback("f6", "a", "worked", at=4))
    index.catch_up()

    with index.reading() as reader:
        assert reader.feedback(["a", "b", "nobody"]) == {
            "a": {"f1": "failed", "f2": "worked", "f3": "stale", "f4": "wrong", "f6": "worked"}
        }
        card = cards(reader, ["a"])["a"]
    assert card.feedback == Tally(worked=2, failed=1, wrong=1, stale=1)
    assert card.rate == Rate(3, 5)
    with index.reading(at(1)) as reader:
        assert reader.feedback(["a"]) == {"a": {"f1": "worked"}}
        assert cards(reader, ["a"])["a"].rate == Rate(2, 3)


def test_feedback_that_is_forgotten_later_no_longer_counts(index: Index, home: Home) -> None:
    append(home, "app", lesson("a"), feedback("f", "a", "worked"))
    index.catch_up()
    append(home, "app", forget("f", at=1))
    index.catch_up()
    with index.reading() as reader:
        assert cards(reader, ["a"])["a"].feedback == Tally()

    append(home, "app", feedback("f", "a", "failed", at=2))
    index.catch_up()
    with index.reading() as reader:
        assert cards(reader, ["a"])["a"].feedback == Tally(failed=1)


# --- The past -------------------------------------------------------------------------------------------


def test_the_past_is_what_had_been_written_by_then(index: Index, home: Home) -> None:
    append(
        home,
        "app",
        lesson("a", "about quokkas", at=2, success_rate="1/1"),
        lesson("b", "about quokkas", at=3),
        feedback("f", "a", "failed", at=4),
        lesson("a", "about wombats", at=5),
        forget("b", at=6),
        lesson("c", "quokkas again", at=7, links=[{"to": "a", "rel": "supersedes"}]),
        lesson("b", "about wombats", at=8),
    )
    index.catch_up()

    for moment, shown, quokka, wombat in [
        (1, [], [], []),
        (2, ["a"], ["a"], []),
        (3, ["a", "b"], ["a", "b"], []),
        (5, ["a", "b"], ["b"], ["a"]),
        (6, ["a"], ["b"], ["a"]),
        (7, ["c"], ["b", "c"], ["a"]),
        (8, ["b", "c"], ["c"], ["a", "b"]),
    ]:
        lessons = selected(index, moment, kinds=frozenset(["lesson"]))
        assert sorted(lessons) == shown, moment
        assert sorted(ids_matched(index, "quokkas", moment)) == quokka, moment
        assert sorted(ids_matched(index, "wombats", moment)) == wombat, moment
    with index.reading(at(4)) as reader:
        assert cards(reader, ["a"])["a"].rate == Rate(1, 2)
        assert records(reader, ["a"])["a"].fields["lesson"] == "about quokkas"
    with index.reading(at(5)) as reader:
        assert cards(reader, ["a"])["a"].rate == Rate(0, 1)


def test_an_open_reader_keeps_its_moment(index: Index, home: Home) -> None:
    append(home, "app", lesson("a", "about quokkas"))
    index.catch_up()

    with index.reading() as reader:
        assert list(matched(reader, "quokkas")) == ["a"]
        append(home, "app", lesson("a", "about wombats"), lesson("b", "about quokkas"))
        index.catch_up()
        assert list(matched(reader, "quokkas")) == ["a"]
        assert reader.keys(["b"]) == {}
        assert records(reader, ["a"])["a"].fields["lesson"] == "about quokkas"
    assert ids_matched(index, "quokkas") == ["b"]


@pytest.mark.parametrize("rel", ["related_to", "supersedes", "superseded_by", "derived_from"])
def test_in_the_past_too_a_line_that_another_log_outdates_states_nothing(
    index: Index, home: Home, rel: str
) -> None:
    append(home, "one", lesson("a", at=3), lesson("b", at=0), lesson("c", at=0), forget("c", at=1))
    append(home, "two", lesson("a", at=2, links=[{"to": to, "rel": rel} for to in ("b", "c")]))
    index.catch_up()

    with index.reading() as reader:
        now = {ident: card.standing for ident, card in cards(reader, ["a", "b"]).items()}
        assert now == {"a": Standing.CURRENT, "b": Standing.CURRENT}
        assert reader.edges(["a"]) == []
    with index.reading(at(4)) as reader:
        assert {ident: card.standing for ident, card in cards(reader, ["a", "b"]).items()} == now
        assert reader.edges(["a"]) == []


# --- Words ------------------------------------------------------------------------------------------------

TEXTS = {
    "a": "the quokka sleeps under a quokka tree",
    "b": "a quokka is no wombat",
    "c": "wombats dig",
    "d": "nothing of the kind is said here at all",
}


def write_texts(home: Home) -> None:
    append(home, "app", *(lesson(ident, text) for ident, text in TEXTS.items()))
    append(home, "app", feedback("f", "a"), link("a", "uses", "b"))


def test_statistics_count_documents_and_their_terms(index: Index, home: Home) -> None:
    write_texts(home)
    index.catch_up()
    counts = {ident: Counter(terms(text)) for ident, text in TEXTS.items()}
    (quokka,), (wombat,) = terms("quokka"), terms("wombat")

    with index.reading() as reader:
        found = reader.statistics([quokka, wombat, "nowhere"])

    assert found.documents == len(TEXTS)
    assert found.average_terms == pytest.approx(
        sum(held.total() for held in counts.values()) / len(TEXTS)
    )
    assert {term: found.frequencies.get(term, 0) for term in (quokka, wombat, "nowhere")} == {
        quokka: 2,
        wombat: 2,
        "nowhere": 0,
    }


@pytest.mark.parametrize("as_of", [None, 0])
def test_a_match_is_scored_by_bm25(index: Index, home: Home, as_of: int | None) -> None:
    write_texts(home)
    index.catch_up()
    wanted = {**dict.fromkeys(terms("quokka"), 1.0), **dict.fromkeys(terms("wombat"), 0.5)}

    with index.reading(None if as_of is None else at(as_of)) as reader:
        statistics = reader.statistics(wanted)
        found = reader.match(wanted, statistics, Filter(), 10)
        known = reader.cards([key for key, _score in found])
        best = reader.match(wanted, statistics, Filter(), 1)

    weighted = bm25.by_rarity(wanted, statistics)
    expected = {}
    for ident, text in TEXTS.items():
        held = Counter(terms(text))
        score = bm25.score(held, held.total(), weighted, statistics.average_terms)
        if score > 0:
            expected[ident] = score
    assert {known[key].id: score for key, score in found} == pytest.approx(expected, rel=0.05)
    assert [known[key].id for key, _score in found] == ["b", "a", "c"]
    assert best == found[:1]


def test_a_match_applies_repositories_and_kinds(index: Index, home: Home) -> None:
    append(home, "app", lesson("a", "quokka"), pattern("p", conditions=["quokka"]))
    append(home, "lib", lesson("b", "quokka"), lesson("named", "quokka", repo="else"))
    skill(home, "debug", "quokka")
    index.catch_up()

    for conditions, expected in [
        ({}, {"a", "p", "b", "named", SKILL}),
        ({"repos": frozenset(["app"])}, {"a", "p", SKILL}),
        ({"repos": frozenset(["else"])}, {"named", SKILL}),
        ({"repos": frozenset(["app", "lib"])}, {"a", "p", "b", SKILL}),
        ({"kinds": frozenset(["pattern"])}, {"p"}),
        ({"kinds": frozenset(["skill", "pattern"])}, {"p", SKILL}),
        ({"kinds": frozenset(["lesson"]), "repos": frozenset(["lib"])}, {"b"}),
    ]:
        for moment in (None, 10**9):  # A skill has the time of its file, which is today.
            assert set(ids_matched(index, "quokka", moment, **conditions)) == expected


def test_the_terms_of_a_document_are_known(index: Index, home: Home) -> None:
    write_texts(home)
    index.catch_up()

    for moment in (None, at(0)):
        with index.reading(moment) as reader:
            keys = reader.keys(TEXTS)
            found = reader.term_sets(keys.values())
        assert {ident: found[key] for ident, key in keys.items()} == {
            ident: frozenset(map(term_hash, terms(text))) for ident, text in TEXTS.items()
        }


@pytest.mark.parametrize("new_text", ["about wombats", "about quokkas still"])
def test_a_replaced_text_is_not_found_by_its_words(index: Index, home: Home, new_text: str) -> None:
    append(home, "app", lesson("a", "about quokkas"), lesson("b", "about quokkas"))
    index.catch_up()
    append(home, "app", lesson("b", new_text))
    index.catch_up()
    expected = {"a"} | ({"b"} if "quokka" in new_text else set())
    (quokka,) = terms("quokka")

    assert set(ids_matched(index, "quokka")) == expected
    with index.reading() as reader:
        statistics = reader.statistics([quokka])
    assert (statistics.documents, statistics.frequencies[quokka]) == (2, len(expected))


def test_put_off_work_changes_no_answer(index: Index, home: Home) -> None:
    index.commits_in_background = True
    append(home, "app", *(lesson(f"l{n}", f"quokka number {n} {'dig ' * n}") for n in range(40)))
    append(home, "app", lesson("l7", "about wombats"))
    index.catch_up()
    with index.reading() as reader:
        before = matched(reader, "quokka", limit=50)

    index.commit_if_due()

    with index.reading() as reader:
        assert matched(reader, "quokka", limit=50) == pytest.approx(before, rel=0.05)


# --- Meaning ----------------------------------------------------------------------------------------------


class Letters:
    """An embedder: which letters a text has."""

    def __init__(self, name: str = "letters") -> None:
        self.name = name
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += texts
        rows = [
            [0.01 + text.lower().count(chr(97 + place % 26)) for place in range(384)]
            for text in texts
        ]
        found: NDArray[np.float32] = np.asarray(rows, np.float32)
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found


def embedded(index: Index, embedder: Letters | None = None) -> Letters:
    """Catch up, and give every document its vectors."""
    embedder = embedder or Letters()
    index.catch_up()
    index.use_model(embedder.name)
    while index.embed(embedder, 100):
        pass
    return embedder


def nearest(index: Index, text: str, limit: int = 10, as_of: int | None = None) -> dict[str, float]:
    (vector,) = Letters().encode([text])
    with index.reading(None if as_of is None else at(as_of)) as reader:
        found = reader.nearest(vector, limit)
        assert reader.begin_nearest(lambda: Encoded(vector), limit)() == found
        known = reader.cards(found)
    return {known[key].id: score for key, score in found.items() if key in known}


def test_vectors_are_made_for_what_can_be_searched_and_once(index: Index, home: Home) -> None:
    write_texts(home)
    index.catch_up()
    assert index.missing_vectors() == len(TEXTS)
    with index.reading() as reader:
        assert not reader.has_vectors()

    embedder = embedded(index)
    made = len(embedder.texts)
    embedded(index, embedder)

    assert len(embedder.texts) == made
    assert index.missing_vectors() == 0
    status = index.status()
    assert (status.vectors_missing, status.model) == (0, "letters")
    assert status.vectors >= len(TEXTS)
    with index.reading() as reader:
        assert reader.has_vectors()


def test_embedding_stops_at_its_bound_and_the_newest_go_first(index: Index, home: Home) -> None:
    append(home, "app", lesson("old", "aaa"), lesson("mid", "bbb"), lesson("new", "ccc"))
    index.catch_up()
    index.use_model("letters")

    assert index.embed(Letters(), 2) == 2

    assert index.missing_vectors() == 1
    assert set(nearest(index, "abc")) == {"mid", "new"}


def test_the_nearest_have_the_most_similar_passages(index: Index, home: Home) -> None:
    append(home, "app", lesson("a", "aaaa"), lesson("b", "bbbb"), lesson("ab", "aabb"))
    embedded(index)
    vectors = dict(zip("ab", Letters().encode(["aaaa", "bbbb"]), strict=True))

    found = nearest(index, "aaaa")
    assert list(found) == ["a", "ab", "b"]
    assert found["a"] == pytest.approx(1.0, abs=0.02)
    assert found["b"] == pytest.approx(float(vectors["a"] @ vectors["b"]), abs=0.02)
    assert list(nearest(index, "aaaa", limit=2)) == ["a", "ab"]


def test_similarity_is_that_of_the_best_passage_of_the_documents_asked_for(
    index: Index, home: Home
) -> None:
    long = "\n\n".join([f"{'a' * 800}.", f"{'b' * 800}."])
    append(home, "app", lesson("a", "aaaa"), lesson("long", long))
    embedded(index)
    append(home, "app", lesson("later", "aaaa"))
    index.catch_up()
    (vector,) = Letters().encode(["b"])

    with index.reading() as reader:
        keys = reader.keys(["a", "long", "later"])
        found = reader.similarity(vector, keys.values())
        assert set(found) == {keys["a"], keys["long"]}
        assert found[keys["long"]] > 0.95
        assert set(reader.similarity(vector, [keys["a"]])) == {keys["a"]}
        assert reader.similarity(vector, []) == {}
        firsts = reader.first_vectors(keys.values())
        assert set(firsts) == {keys["a"], keys["long"]}
        (a_vector,) = Letters().encode(["a"])
        assert float(firsts[keys["long"]] @ a_vector) > 0.9
        assert math.isclose(float(np.linalg.norm(firsts[keys["a"]])), 1.0, abs_tol=0.03)


def test_a_replaced_text_keeps_its_vectors_for_the_past_alone(index: Index, home: Home) -> None:
    append(home, "app", lesson("a", "aaaa", at=1))
    embedded(index)
    append(home, "app", lesson("a", "bbbb", at=3))
    embedded(index)

    assert nearest(index, "aaaa")["a"] < 0.5
    assert nearest(index, "bbbb")["a"] > 0.95
    assert nearest(index, "aaaa", as_of=2)["a"] > 0.95
    assert nearest(index, "aaaa", as_of=0) == {}


def test_vectors_of_another_model_are_dropped(index: Index, home: Home) -> None:
    append(home, "app", lesson("a", "aaaa"))
    embedded(index)

    index.use_model("letters")
    assert index.missing_vectors() == 0
    index.use_model("others")

    assert index.missing_vectors() == 1
    assert index.status().model == "others"
    assert nearest(index, "aaaa") == {}


def test_vectors_of_another_length_are_refused(index: Index, home: Home) -> None:
    append(home, "app", lesson("a", "aaaa"))
    index.catch_up()
    index.check_vector_length(7)
    embedded(index)

    index.check_vector_length(384)
    with pytest.raises(EmbedderUnavailable):
        index.check_vector_length(383)


# --- Catching up ------------------------------------------------------------------------------------------


def everything(index: Index, ids: Iterable[str]) -> dict[str, Any]:
    """All that an index says of *ids* and of its words, now and in the past, whatever its keys."""
    ids = sorted(ids)
    words = terms("x y alpha beta gamma quokka")
    found: dict[str, Any] = {}
    for second in (None, 0, 3, 9, 59):
        moment = None if second is None else at(second)
        with index.reading(moment) as reader:
            found[f"cards {second}"] = {
                ident: card._replace(key=0) for ident, card in cards(reader, ids).items()
            }
            found[f"records {second}"] = {
                ident: record.fields for ident, record in records(reader, ids).items()
            }
            everyone = Filter(archived=True, superseded=True)
            found[f"counts {second}"] = counted(reader, everyone)
            found[f"order {second}"] = [card.id for card in reader.select(everyone)]
            found[f"edges {second}"] = set(reader.edges(ids))
            found[f"feedback {second}"] = reader.feedback(ids)
            statistics = reader.statistics(words)
            found[f"documents {second}"] = statistics.documents
            found[f"length {second}"] = round(statistics.average_terms, 6)
            found[f"frequencies {second}"] = {
                term: statistics.frequencies.get(term, 0) for term in words
            }
            found[f"matches {second}"] = {
                ident: round(score, 1) for ident, score in matched(reader, "x y", 99).items()
            }
            found[f"newest {second}"] = reader.newest_micros()
            found[f"bytes {second}"] = reader.log_bytes(None, archived=True)
    return found


def test_appended_lines_are_found(index: Index, home: Home) -> None:
    append(home, "app", lesson("a", "quokka"))
    index.catch_up()
    append(home, "app", lesson("b", "quokka"))
    append(home, "lib", lesson("c", "quokka"))
    assert selected(index) == ["a"]

    index.catch_up()

    assert selected(index) == ["a", "b", "c"]
    assert set(ids_matched(index, "quokka")) == {"a", "b", "c"}
    assert index.status().records == 3


def test_what_was_rotated_keeps_its_words_and_is_archived(index: Index, home: Home) -> None:
    append(home, "app", *(lesson(f"l{n}", "quokka", at=n) for n in range(6)))
    index.catch_up()
    rotate(home, "app", lines_max=5, move=2)
    index.catch_up()

    assert selected(index) == ["l2", "l3", "l4", "l5"]
    assert selected(index, archived=True) == [f"l{n}" for n in range(6)]
    assert len(ids_matched(index, "quokka")) == 6


@pytest.mark.parametrize("embed", [False, True])
def test_what_was_erased_is_nowhere_any_more(index: Index, home: Home, *, embed: bool) -> None:
    append(
        home, "app", lesson("a", "quokka", at=1), lesson("b", "wombat", at=2), feedback("f", "a")
    )
    if embed:
        embedded(index)
    else:
        index.catch_up()
    with Memory.open(home.path, settings={"embedder.kind": "none"}, background=False) as memory:
        memory.erase("a")

    index.catch_up()

    for moment in (None, 1, 59):
        assert "a" not in selected(index, moment, archived=True, superseded=True)
        assert ids_matched(index, "quokka", moment) == []
    with index.reading() as reader:
        assert set(reader.keys(["a", "b", "f"])) == {"b"}
        assert reader.statistics(terms("quokka")).documents == 1
        assert reader.edges(["a"]) == []
        assert reader.feedback(["a"]) == {}


def test_a_log_that_was_removed_or_edited_by_hand_is_followed(index: Index, home: Home) -> None:
    append(home, "app", lesson("a", "quokka"), lesson("b", "wombat"))
    append(home, "lib", lesson("c", "quokka"))
    index.catch_up()
    home.log("lib").unlink()
    home.log("app").write_text(home.log("app").read_text().replace("wombat", "numbat"))
    index.catch_up()

    assert selected(index) == ["a", "b"]
    assert ids_matched(index, "wombat") == []
    assert ids_matched(index, "numbat") == ["b"]
    assert ids_matched(index, "quokka") == ["a"]


def test_lines_that_hold_no_record_are_passed_over(index: Index, home: Home) -> None:
    append(home, "app", lesson("a", "quokka"))
    with home.log("app").open("ab") as stream:
        stream.write(b'\n{"id": \n[]\n\xff\xfe\n')
    append(home, "app", lesson("b", "quokka"))
    with home.log("app").open("ab") as stream:
        stream.write(b'{"id": "torn')
    index.catch_up()

    assert selected(index) == ["a", "b"]


def test_notes_and_skills_follow_their_files(index: Index, home: Home) -> None:
    note(home, "ana", "plan.md", "# Plan\n\nquokka")
    skill(home, "debug", "# Debug\n\nquokka")
    index.catch_up()
    assert set(selected(index, reader="ana")) == {NOTE, SKILL}

    note(home, "ana", "plan.md", "# Plan\n\na long wombat")
    home.skill("debug").unlink()
    index.catch_up()

    assert selected(index, reader="ana") == [NOTE]
    assert ids_matched(index, "wombat") == [NOTE]
    assert ids_matched(index, "quokka") == []


def test_progress_adds_up_to_the_lines_read(index: Index, home: Home) -> None:
    append(home, "app", *(lesson(f"l{n}") for n in range(30)))
    steps_done: list[int] = []

    index.rebuild(steps_done.append)

    assert sum(steps_done) == 30
    assert index.status().records == 30


def test_two_indexes_of_one_home_say_the_same(
    index: Index, index_engine: Engine, home: Home
) -> None:
    append(home, "app", lesson("a", "quokka"))
    index.catch_up()
    other = index_engine(home)
    other.catch_up()
    append(home, "app", lesson("b", "quokka"))

    other.catch_up()
    index.catch_up()

    assert everything(index, ["a", "b"]) == everything(other, ["a", "b"])


def test_an_error_of_another_part_is_not_repaired(index: Index, home: Home) -> None:
    append(home, "app", lesson("a"))
    index.catch_up()

    assert not index.repair(KeyError("ours"))
    assert not index.is_replaced()


def test_a_closed_index_opens_again(index: Index, home: Home) -> None:
    append(home, "app", lesson("a"))
    index.catch_up()
    index.close()
    index.catch_up()

    assert selected(index) == ["a"]


# --- Laws -------------------------------------------------------------------------------------------------


def live(home: Home, index: Index, history: Sequence[tuple[str, Any]]) -> None:
    """Write *history* into *home*, with looks of *index* in between."""
    for step, value in history:
        if step == "look":
            index.catch_up()  # So that lines come in several transactions.
        elif step == "rotate":
            rotate(home, value, lines_max=3, move=2)
        else:
            append(home, step, value)
    index.catch_up()


def by_fold(home: Home) -> dict[str, Any]:
    found, _damages = fold(home)
    standing = found.standings()
    return {
        ident: (
            found.current(ident).value.record.fields,
            standing[ident],
            found.rate(ident),
            found.tally(ident),
            found.current(ident).value.archived,
            sorted(edge for edge in found.edges() if ident in (edge.of, edge.to)),
        )
        for ident in found.ids()
    }


def by_index(reader: Reader, ids: Collection[str]) -> dict[str, Any]:
    whole = records(reader, ids)
    return {
        ident: (
            whole[ident].fields,
            card.standing,
            card.rate,
            card.feedback,
            card.archived,
            sorted(reader.edges([ident])),
        )
        for ident, card in cards(reader, ids).items()
    }


@given(steps)
def test_the_fold_and_the_index_agree_for_any_lines_in_any_order(
    index_engine: Engine,
    tmp_path_factory: pytest.TempPathFactory,
    history: list[tuple[str, Any]],
) -> None:
    home = Home(tmp_path_factory.mktemp("law"))
    index = index_engine(home)
    live(home, index, history)
    folded, _damages = fold(home)
    shown = [folded.current(ident) for ident in folded.visible_ids()]

    with index.reading() as reader:
        assert by_index(reader, list(folded.ids())) == by_fold(home)
        counts = Counter[tuple[str, str, bool]]()
        for count in reader.counts(Filter(archived=True)):
            counts[count.repo, count.kind, count.archived] += count.records
    assert counts == Counter((one.value.repo, one.kind, one.value.archived) for one in shown)
    index.close()


@given(steps, st.integers(0, 9))
def test_the_past_is_what_the_fold_of_the_lines_until_then_says(
    index_engine: Engine,
    tmp_path_factory: pytest.TempPathFactory,
    history: list[tuple[str, Any]],
    second: int,
) -> None:
    home, then = Home(tmp_path_factory.mktemp("now")), Home(tmp_path_factory.mktemp("then"))
    history = [(step, value) for step, value in history if step != "rotate"]
    index = index_engine(home)
    live(home, index, history)
    for step, value in history:
        if step in ("one", "two") and value.get("at", 0) <= second:
            append(then, step, value)
    folded, _damages = fold(home)

    with index.reading(at(second)) as reader:
        found = by_index(reader, list(folded.ids()))
    assert {ident: (*one[:4], one[5]) for ident, one in found.items()} == {
        ident: (*one[:4], one[5]) for ident, one in by_fold(then).items()
    }
    index.close()


@given(steps)
def test_catching_up_equals_rebuilding(
    index_engine: Engine,
    tmp_path_factory: pytest.TempPathFactory,
    history: list[tuple[str, Any]],
) -> None:
    home = Home(tmp_path_factory.mktemp("law"))
    index = index_engine(home)
    live(home, index, history)
    folded, _damages = fold(home)
    ids = list(folded.ids())
    before = everything(index, ids)

    index.rebuild()
    index.catch_up()

    assert everything(index, ids) == before
    index.close()
