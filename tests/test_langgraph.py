"""LangGraph's store over the log. What the reference store does is one contract that both must keep."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import RecordInvalid
from commonplace.maintenance import runner
from commonplace.memory import Memory

pytest.importorskip("langgraph.store.base", reason="the extra `langgraph` is not installed")

from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from commonplace.integrations.langgraph import CommonplaceStore
from conftest import SLOW_LAW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def ticking() -> Callable[[], datetime]:
    """A clock that moves a second at every look."""
    start, count = datetime(2026, 1, 1, tzinfo=UTC), [0]

    def clock() -> datetime:
        count[0] += 1
        return start + timedelta(seconds=count[0])

    return clock


def opened(home: Path) -> Memory:
    return Memory.open(home, settings={"embedder.kind": "none"})


@pytest.fixture
def ours(own_home: Path) -> Iterator[CommonplaceStore]:
    with opened(own_home) as memory:
        yield CommonplaceStore(memory, clock=ticking())


@pytest.fixture(params=["reference", "ours"])
def store(request: pytest.FixtureRequest) -> BaseStore:
    found = InMemoryStore() if request.param == "reference" else request.getfixturevalue("ours")
    assert isinstance(found, BaseStore)
    return found


def keys(found: list[Any]) -> list[str]:
    return [item.key for item in found]


# --- The contract -------------------------------------------------------------------------------------------------


def test_an_item_is_put_got_replaced_and_deleted(store: BaseStore) -> None:
    assert store.get(("users", "alice"), "prefs") is None

    store.put(
        ("users", "alice"),
        "prefs",
        {"theme": "dark", "deep": {"list": [1, {"a": None}], "float": 0.5}},
    )
    item = store.get(("users", "alice"), "prefs")
    assert item is not None
    assert item.value == {"theme": "dark", "deep": {"list": [1, {"a": None}], "float": 0.5}}
    assert (item.namespace, item.key) == (("users", "alice"), "prefs")
    assert item.created_at.tzinfo is not None
    assert item.updated_at >= item.created_at

    store.put(("users", "alice"), "prefs", {"theme": "light"})
    replaced = store.get(("users", "alice"), "prefs")
    assert replaced is not None
    assert replaced.value == {"theme": "light"}
    assert replaced.updated_at > item.updated_at

    store.delete(("users", "alice"), "prefs")
    assert store.get(("users", "alice"), "prefs") is None
    store.delete(("users", "alice"), "prefs")  # Twice is harmless.
    store.put(("users", "alice"), "prefs", {"again": True})
    assert store.get(("users", "alice"), "prefs") is not None


def test_namespaces_and_keys_keep_apart_what_looks_alike(store: BaseStore) -> None:
    places = [
        (("a", "b"), "c"),
        (("a",), "b/c"),
        (("a/b",), "c"),
        (("A", "b"), "c"),
        (("a", "b"), "C"),
        (("é",), "Ü 1"),
    ]
    for number, (namespace, key) in enumerate(places):
        store.put(namespace, key, {"number": number})

    for number, (namespace, key) in enumerate(places):
        item = store.get(namespace, key)
        assert item is not None
        assert item.value == {"number": number}
        assert number in [found.value["number"] for found in store.search(namespace)]
    assert keys(store.search(("a", "b"))) == ["c", "C"]
    assert keys(store.search(("A",))) == ["c"]
    assert keys(store.search(("é",))) == ["Ü 1"]


def test_a_search_without_a_question_lists_what_is_below_in_order(store: BaseStore) -> None:
    for number in range(12):
        store.put(("docs", "odd" if number % 2 else "even"), f"k{number}", {"n": number})
    store.put(("other",), "x", {"n": 1})
    store.put(("docs", "even"), "k0", {"n": 0, "changed": True})

    assert keys(store.search(("docs", "even"))) == ["k0", "k2", "k4", "k6", "k8", "k10"]
    assert len(store.search(("docs",))) == 10
    assert len(store.search(("docs",), limit=99)) == 12
    assert len(store.search((), limit=99)) == 13
    assert keys(store.search(("docs", "odd"), limit=2, offset=3)) == ["k7", "k9"]
    assert store.search(("docs", "odd"), offset=99) == []
    assert store.search(("doc",)) == []
    assert store.search(("docs", "even", "k0")) == []


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"kind": "report"}, ["a", "b"]),
    ({"kind": "report", "score": 3}, ["b"]),
    ({"score": {"$gt": 3}}, ["a", "c"]),
    ({"score": {"$gte": 3, "$lt": 5}}, ["b", "c"]),
    ({"score": {"$lte": 3}}, ["b"]),
    ({"kind": {"$ne": "report"}}, ["c"]),
    ({"kind": {"$eq": "memo"}}, ["c"]),
    ({"meta": {"lang": "en"}}, ["a", "c"]),
    ({"meta": {"lang": {"$ne": "en"}}}, ["b"]),
    ({"tags": ["x", "y"]}, ["a"]),
    ({"tags": ["x"]}, []),
    ({"none": None}, ["a", "b", "c"]),
    ({"kind": "nothing"}, []),
]


@pytest.mark.parametrize(("wanted", "found"), FILTERS)
def test_a_filter_lets_through_what_it_says(
    store: BaseStore, wanted: dict[str, Any], found: list[str]
) -> None:
    store.put(
        ("d",),
        "a",
        {"kind": "report", "score": 5, "tags": ["x", "y"], "meta": {"lang": "en", "v": 1}},
    )
    store.put(("d",), "b", {"kind": "report", "score": 3, "tags": ["y"], "meta": {"lang": "de"}})
    store.put(("d",), "c", {"kind": "memo", "score": 4.5, "tags": [], "meta": {"lang": "en"}})

    assert keys(store.search(("d",), filter=wanted)) == found


def test_an_operator_nobody_knows_is_an_error(store: BaseStore) -> None:
    store.put(("d",), "a", {"n": 1})

    with pytest.raises(ValueError, match=r"\$near"):
        store.search(("d",), filter={"n": {"$near": 1}})


def test_namespaces_are_listed_by_prefix_suffix_and_depth(store: BaseStore) -> None:
    places = [
        ("a", "b", "c"), ("a", "b", "d", "e"), ("a", "b", "d", "i"), ("a", "b", "f"), ("a", "c", "f"), ("b", "a", "f"),
        ("users", "123"), ("users", "456", "settings"), ("admin", "users", "789"),
    ]  # fmt: skip
    for namespace in places:
        store.put(namespace, "k", {"v": 1})

    assert store.list_namespaces() == sorted(places)
    assert store.list_namespaces(prefix=("a", "b")) == sorted(
        one for one in places if one[:2] == ("a", "b")
    )
    assert store.list_namespaces(suffix=("f",)) == [
        ("a", "b", "f"),
        ("a", "c", "f"),
        ("b", "a", "f"),
    ]
    assert store.list_namespaces(prefix=("a",), suffix=("f",)) == [("a", "b", "f"), ("a", "c", "f")]
    assert store.list_namespaces(prefix=("*", "users")) == [("admin", "users", "789")]
    assert store.list_namespaces(suffix=("*", "f")) == [
        ("a", "b", "f"),
        ("a", "c", "f"),
        ("b", "a", "f"),
    ]
    assert store.list_namespaces(prefix=("a", "*", "f")) == [("a", "b", "f"), ("a", "c", "f")]
    assert store.list_namespaces(max_depth=1) == [("a",), ("admin",), ("b",), ("users",)]
    assert store.list_namespaces(prefix=("a", "b"), max_depth=3) == [
        ("a", "b", "c"),
        ("a", "b", "d"),
        ("a", "b", "f"),
    ]
    assert store.list_namespaces(limit=2, offset=1) == sorted(places)[1:3]
    assert store.list_namespaces(prefix=("nope",)) == []


@pytest.mark.parametrize(
    "namespace", [(), ("a.b",), ("",), ("langgraph", "x"), ("a", 7), ("nul\x00",)]
)
def test_a_namespace_that_may_not_be_is_refused(store: BaseStore, namespace: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.put(namespace, "k", {"v": 1})


def test_a_batch_reads_what_was_there_before_and_the_last_put_of_an_item_counts(
    store: BaseStore,
) -> None:
    store.put(("n",), "old", {"v": 1})

    got, nothing, found, names, *puts = store.batch(
        [
            GetOp(("n",), "old"),
            GetOp(("n",), "new"),
            SearchOp(("n",)),
            ListNamespacesOp(),
            PutOp(("n",), "new", {"v": 1}),
            PutOp(("n",), "new", {"v": 2}),
            PutOp(("n",), "old", None),
        ]
    )

    assert getattr(got, "value", None) == {"v": 1}
    assert nothing is None
    assert isinstance(found, list)
    assert len(found) == 1
    assert names == [("n",)]
    assert puts == [None, None, None]
    assert store.get(("n",), "old") is None
    new = store.get(("n",), "new")
    assert new is not None
    assert new.value == {"v": 2}


def test_what_comes_out_is_not_what_is_kept(store: BaseStore) -> None:
    value = {"list": [1]}
    store.put(("n",), "k", value)
    value["more"] = [2]

    item = store.get(("n",), "k")
    assert item is not None
    assert item.value == {"list": [1]}


def test_the_asynchronous_side_does_the_same(store: BaseStore) -> None:
    async def talk() -> list[Any]:
        await store.aput(("n", "m"), "a", {"v": 1})
        await asyncio.gather(
            *(store.aput(("n",), f"k{number}", {"v": number}) for number in range(20))
        )
        got = await store.aget(("n",), "k7")
        found = await store.asearch(("n",), filter={"v": {"$gte": 10}}, limit=99)
        names = await store.alist_namespaces()
        await store.adelete(("n",), "k7")
        return [got, len(found), names, await store.aget(("n",), "k7")]

    got, count, names, gone = asyncio.run(talk())

    assert got.value == {"v": 7}
    assert (count, names, gone) == (10, [("n",), ("n", "m")], None)


# --- Against the reference, whatever happens ----------------------------------------------------------------------

SPACES = st.sampled_from([("a",), ("a", "b"), ("a", "B"), ("c",)])
STEP = st.one_of(
    st.tuples(st.just("put"), SPACES, st.sampled_from("xyz"), st.integers(0, 3)),
    st.tuples(st.just("delete"), SPACES, st.sampled_from("xyz"), st.just(0)),
    st.tuples(st.just("get"), SPACES, st.sampled_from("xyz"), st.just(0)),
    st.tuples(st.just("search"), SPACES, st.just("x"), st.integers(0, 3)),
)


def done(store: BaseStore, step: tuple[str, tuple[str, ...], str, int]) -> Any:
    action, namespace, key, number = step
    if action == "put":
        return store.put(namespace, key, {"n": number})
    if action == "delete":
        return store.delete(namespace, key)
    if action == "get":
        item = store.get(namespace, key)
        return item and (item.namespace, item.key, item.value)
    found = store.search(namespace, filter={"n": {"$gte": number}}, limit=99)
    return sorted((item.namespace, item.key, item.value["n"]) for item in found)


@given(st.lists(STEP, max_size=12))
@SLOW_LAW
def test_any_sequence_gives_what_the_reference_gives(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    reference = InMemoryStore()
    with opened(tmp_path_factory.mktemp("any") / "home") as memory:
        store = CommonplaceStore(memory)
        for step in steps:
            assert done(store, step) == done(reference, step), step


# --- What is ours alone -------------------------------------------------------------------------------------------


def test_items_are_records_that_anybody_can_read(ours: CommonplaceStore, own_home: Path) -> None:
    ours.put(("users", "alice"), "prefs", {"drink": "tea"})
    ours.put(("users", "alice"), "prefs", {"drink": "coffee"})
    ours.delete(("users", "alice"), "prefs")

    lines = [
        json.loads(line) for line in (own_home / "log" / "langgraph.jsonl").read_text().splitlines()
    ]

    assert [line["kind"] for line in lines] == ["fact", "fact", "forget"]
    assert lines[0]["payload"] == {"drink": "tea"}
    assert lines[0]["tags"] == ["users", "users/alice"]
    assert lines[0]["id"] == lines[1]["id"] == lines[2]["of"]


def test_creation_survives_an_update_and_ends_with_a_delete(ours: CommonplaceStore) -> None:
    def times() -> tuple[datetime, datetime]:
        item = ours.get(("n",), "k")
        assert item is not None
        return item.created_at, item.updated_at

    ours.put(("n",), "k", {"v": 1})
    first = times()
    ours.put(("n",), "k", {"v": 2})
    second = times()
    ours.delete(("n",), "k")
    ours.put(("n",), "k", {"v": 3})
    third = times()

    assert first[0] == first[1] == second[0]
    assert second[1] > first[1]
    assert third[0] == third[1] > second[1]


def test_a_question_brings_the_best_first_within_its_namespace(ours: CommonplaceStore) -> None:
    for number in range(60):
        ours.put(
            ("team", "b"),
            f"noise{number}",
            {"text": f"the kettle boils over again, number {number}"},
        )
    ours.put(("team", "a"), "sky", {"text": "the sky is blue"})
    ours.put(("team", "a"), "kettle", {"text": "descale the kettle with vinegar"})

    found = ours.search(("team", "a"), query="how do I descale a kettle?")

    assert keys(found) == ["kettle", "sky"]
    assert found[0].score is not None
    assert found[0].score > (found[1].score or 0)
    assert keys(ours.search(("team", "a"), query="kettle vinegar", limit=1)) == ["kettle"]
    assert keys(ours.search(("team", "a"), query="kettle vinegar", offset=1)) == ["sky"]
    assert keys(ours.search(("team", "a"), query="kettle", filter={"text": "the sky is blue"})) == [
        "sky"
    ]
    assert len(ours.search(("team",), query="   ", limit=99)) == 62


def test_what_is_indexed_is_chosen_by_put(ours: CommonplaceStore) -> None:
    value = {"title": "kettle", "deep": {"notes": ["vinegar", "lemon"]}, "secret": "umbrella"}
    ours.put(("n",), "none", value, index=False)
    ours.put(("n",), "some", value, index=["deep.notes[*]"])

    def scored(question: str) -> list[str]:
        return [item.key for item in ours.search(("n",), query=question) if item.score is not None]

    assert scored("lemon vinegar") == ["some"]
    assert scored("umbrella") == []
    for key in ("none", "some"):
        item = ours.get(("n",), key)
        assert item is not None
        assert item.value == value


def test_meaning_counts_where_there_is_a_model(own_home: Path) -> None:
    with Memory.open(own_home) as memory:
        store = CommonplaceStore(memory)
        store.put(("n",), "pets", {"text": "My dog loves long walks in the forest"})
        store.put(("n",), "tax", {"text": "The invoice is due at the end of the quarter"})

        assert keys(store.search(("n",), query="canine animal hiking"))[0] == "pets"


def test_a_search_is_no_recall_of_an_agents(ours: CommonplaceStore, own_home: Path) -> None:
    ours.put(("n",), "k", {"text": "kettle"})
    ours.search(("n",), query="kettle")

    with opened(own_home) as memory:
        assert memory.savings()["recalls"] == 0
        assert memory.recall("kettle").hits[0].record.fields["payload"] == {"text": "kettle"}


def test_what_was_rotated_to_the_archive_is_still_there(own_home: Path) -> None:
    own_home.mkdir()
    (own_home / "config.toml").write_text("[rotation]\nlines_max = 10\nmove = 8\n")
    with opened(own_home) as memory:
        store = CommonplaceStore(memory)
        for number in range(15):
            store.put(("n",), f"k{number}", {"v": number})
        assert runner.run(memory, ["rotation"]).steps["rotation"]["rotated"]

        assert len(store.search(("n",), limit=99)) == 15
        store.put(("n",), "k0", {"v": "new"})
        store.delete(("n",), "k1")
        item = store.get(("n",), "k0")
        assert item is not None
        assert item.value == {"v": "new"}
        assert len(store.search(("n",), limit=99)) == 14


def test_others_that_write_into_its_log_do_not_disturb_it(
    ours: CommonplaceStore, own_home: Path
) -> None:
    ours.put(("n",), "k", {"v": 1})
    with opened(own_home) as memory:
        memory.log(kind="fact", label="kettle", payload="a fact of somebody's", repo="langgraph")
        memory.log(kind="fact", type="item", label="kettle", payload="odd", repo="langgraph")
        memory.log(event_type="error", lesson="kettle", repo="langgraph")

    assert keys(ours.search(())) == ["k"]
    assert keys(ours.search((), query="kettle")) == ["k"]
    assert ours.list_namespaces() == [("n",)]


def test_secrets_do_not_land_and_cannot_be_names(ours: CommonplaceStore, own_home: Path) -> None:
    secret = "ghp_" + "Ab12" * 9
    ours.put(("n",), "k", {"text": f"use {secret}"})

    item = ours.get(("n",), "k")
    assert item is not None
    assert item.value == {"text": "use [redacted:github-token]"}
    for namespace, key in ((("n",), secret), (("n", secret), "k")):
        with pytest.raises(RecordInvalid, match="secret"):
            ours.put(namespace, key, {"v": 1})
    assert secret not in (own_home / "log" / "langgraph.jsonl").read_text()


def test_a_value_that_is_no_json_and_a_time_to_live_are_refused_and_cost_nothing(
    ours: CommonplaceStore,
) -> None:
    with pytest.raises(RecordInvalid):
        ours.batch([PutOp(("n",), "good", {"v": 1}), PutOp(("n",), "bad", {"v": object()})])
    with pytest.raises(NotImplementedError):
        ours.put(("n",), "k", {"v": 1}, ttl=5)
    with pytest.raises(NotImplementedError):
        ours.batch([PutOp(("n",), "k", {"v": 1}, ttl=5)])
    with pytest.raises(InvalidNamespaceError):
        ours.batch([PutOp(("a.b",), "k", {"v": 1})])
    with pytest.raises(ValueError, match="no operation"):
        ours.batch(["nonsense"])  # type: ignore[list-item]
    ours.put(("n",), "k", {"v": 1})
    with pytest.raises(ValueError, match="prefix or suffix"):
        ours.batch([ListNamespacesOp((MatchCondition("middle", ("n",)),))])  # type: ignore[arg-type]
    assert keys(ours.search(())) == ["k"]


def test_two_processes_share_it_and_lose_nothing(own_home: Path) -> None:
    code = """
import sys
from commonplace.maintenance import runner
from commonplace.memory import Memory
from commonplace.integrations.langgraph import CommonplaceStore
with Memory.open(sys.argv[1]) as memory:
    store = CommonplaceStore(memory)
    for number in range(25):
        store.put(("n", sys.argv[2]), f"k{number}", {"v": number})
        store.put(("n",), "shared", {"by": sys.argv[2]})
"""
    running = [subprocess.Popen([sys.executable, "-c", code, str(own_home), who]) for who in "ab"]

    assert [process.wait(timeout=120) for process in running] == [0, 0]
    with opened(own_home) as memory:
        store = CommonplaceStore(memory)
        assert len(store.search(("n",), limit=999)) == 51
        assert len(store.search(("n", "a"), limit=999)) == 25
