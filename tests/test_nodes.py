"""Nodes: written whole or not at all, merged field by field, read back as they were given."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import RecordInvalid, RecordNotFound, UsageError
from commonplace.graph import fetch
from commonplace.graph.merging import merge_content
from commonplace.graph.tree import build
from commonplace.graph.upsert import content_of
from commonplace.memory import Memory
from commonplace.recall import graph
from commonplace.records.json_text import encode_sorted
from commonplace.records.nodes import NODE_TYPES, GraphNode
from conftest import SLOW_LAW, make_repository
from fake_secrets import some

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# --- What a client may give -----------------------------------------------------------------------

words = st.text("abcxyz", min_size=1, max_size=4)
paths = st.lists(words, min_size=1, max_size=4).map(".".join)
scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.text("pq r", max_size=5)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
weights = st.sampled_from([0.0, 0.25, 0.5, 1.0])
links = st.lists(
    st.fixed_dictionaries(
        {"to": paths.map("to.{}".format), "rel": st.sampled_from(["uses", "is_a"]), "w": weights}
    ),
    max_size=3,
    unique_by=lambda link: (link["to"], link["rel"]),
)
contents = st.fixed_dictionaries(
    {"type": st.sampled_from(NODE_TYPES), "label": words},
    optional={
        "payload": values,
        "links": links,
        "children": st.dictionaries(words, paths.map("child.{}".format), max_size=2),
        "tags": st.lists(words, max_size=3, unique=True),
        "meta": st.dictionaries(words, values, max_size=3),
    },
)


def same(one: object, other: object) -> bool:
    return encode_sorted(one) == encode_sorted(other)


@pytest.fixture
def memory(own_home: Path) -> Iterator[Memory]:
    with opened(own_home) as found:
        yield found


def opened(home: Path, **options: Any) -> Memory:
    return Memory.open(home, settings={"embedder.kind": "none"}, **options)


def lines(home: Path) -> list[bytes]:
    return [
        line for path in (home / "log").glob("*.jsonl") for line in path.read_bytes().split(b"\n")
    ]


def node(ident: str, **fields: Any) -> dict[str, Any]:
    return {"id": ident, "type": "concept", "label": ident, **fields}


# --- Merging: laws --------------------------------------------------------------------------------


@given(contents, contents)
def test_merging_again_changes_nothing(old: dict[str, Any], new: dict[str, Any]) -> None:
    once = merge_content(old, new)
    assert same(merge_content(once, new), once)


@given(contents, contents, contents)
def test_the_order_of_disjoint_fields_does_not_matter(
    old: dict[str, Any], one: dict[str, Any], other: dict[str, Any]
) -> None:
    rest = {name: value for name, value in other.items() if name not in one}
    first = merge_content(merge_content(old, one), rest)
    assert same(first, merge_content(merge_content(old, rest), one))


def test_a_tag_in_other_letters_is_not_added_again() -> None:
    merged = merge_content({"tags": ["CPP", "net"]}, {"tags": ["cpp", "Net", "Sql", "sql", "net"]})
    assert merged == {"tags": ["CPP", "net", "Sql"]}


@given(contents, contents)
def test_merging_loses_no_entry_and_no_key(old: dict[str, Any], new: dict[str, Any]) -> None:
    before = copy.deepcopy((old, new))
    merged = merge_content(old, new)
    assert (old, new) == before
    for name in ("links", "tags"):
        ends = [
            (link["to"], link["rel"]) if name == "links" else link for link in merged.get(name, [])
        ]
        given_ends = [
            (link["to"], link["rel"]) if name == "links" else link
            for each in (old, new)
            for link in each.get(name, [])
        ]
        assert set(ends) == set(given_ends)
        assert len(ends) == len(set(ends))
    for name in ("children", "meta"):
        assert merged.get(name, {}).keys() == {*old.get(name, {}), *new.get(name, {})}


# --- Writing and reading: laws --------------------------------------------------------------------


@SLOW_LAW
@given(st.dictionaries(paths, contents, min_size=1, max_size=4))
def test_what_was_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, nodes: dict[str, dict[str, Any]]
) -> None:
    home = tmp_path_factory.mktemp("home")
    with opened(home) as memory:
        made = [{"id": ident, **content} for ident, content in nodes.items()]
        assert memory.upsert_nodes(made).created == list(nodes)
        before = lines(home)
        # The same again, also as it is read, writes nothing.
        for again in (made, [memory.node(ident).as_dict() for ident in nodes]):
            assert memory.upsert_nodes(again).unchanged == list(nodes)
            assert memory.upsert_nodes(again, merge=True).unchanged == list(nodes)
        assert lines(home) == before
        for ident, content in nodes.items():
            found = memory.node(ident).as_dict()
            for name, value in content.items():
                assert same(found[name], value) or (not value and not found[name])


@SLOW_LAW
@given(contents, contents, st.booleans())
def test_a_node_is_merged_or_replaced(
    tmp_path_factory: pytest.TempPathFactory,
    old: dict[str, Any],
    new: dict[str, Any],
    merge: bool,
) -> None:
    with opened(tmp_path_factory.mktemp("home")) as memory:
        memory.upsert_nodes([{"id": "x", **old}])
        result = memory.upsert_nodes([{"id": "x", **new}], merge=merge)
        assert (result.merged if merge else result.replaced) + result.unchanged == ["x"]
        given = {name: value for name, value in new.items() if value is not None}  # null: not given
        wanted = merge_content(old, given) if merge else new
        with opened(tmp_path_factory.mktemp("home")) as other:
            other.upsert_nodes([{"id": "x", **wanted}])
            assert same(content_of(memory.get("x")), content_of(other.get("x")))


@given(st.sets(paths, max_size=12), paths)
def test_the_tree_has_each_id_once(ids: set[str], top: str) -> None:
    nodes = [GraphNode(ident, "concept", ident, None) for ident in ids]
    found = [branch.node.id for _depth, branch in build(nodes).walk() if branch.node]
    assert sorted(found) == sorted(ids)
    below = [one for one in nodes if one.id == top or one.id.startswith(f"{top}.")]
    root = build(below, top)
    named = [one.id for one in (root.node, *(b.node for _d, b in root.walk())) if one]
    assert sorted(named) == sorted(one.id for one in below)
    assert all(path.path.startswith(f"{top}.") for _depth, path in root.walk())


# --- What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_node", "field", "reason"),
    [
        ({"type": "concept"}, "id", "is missing"),
        (node("skill:deploy"), "id", "belongs to files"),
        (node("note:a"), "id", "belongs to files"),
        (node("a..b"), "id", "empty part"),
        (node(".a"), "id", "empty part"),
        (node("a b"), "id", "may contain only"),
        ({"id": "a", "label": "A"}, "type", "is missing"),
        (node("a", type="lesson"), "type", "not one of concept"),
        (node("a", label=" "), "label", "is empty"),
        (node("a", links=[{"rel": "uses"}]), "links", "must be a list of objects"),
        (node("a", links=[{"to": "b", "w": 2}]), "links", "between 0 and 1"),
        (node("a", links=[{"to": "b", "weight": 2}]), "links", "between 0 and 1"),
        (node("a", links=[{"to": "b", "note": "x"}]), "links", "the field `note`"),
        (node("a", links=[{"to": "b", "w": float("nan")}]), "links", "number"),
        (node("a", links=[{"to": "b c"}]), "links", "names `b c`"),
        (node("a", links=[{"to": "a"}]), "links", "itself"),
        (node("a", children={"b": {"id": "a.b"}}), "children", "given whole"),
        (node("a", children={"b": "a"}), "children", "itself"),
        (node("a", meta=[]), "meta", "must be an object"),
        (node("a", tags="x"), "tags", "must be a list"),
        (node("a", colour="red"), "colour", "is no field"),
        (node("a", kind="lesson"), "kind", "no node"),
        (node("a", embeddings={"model": "m"}), "embeddings.vector", "must be a list"),
        (node("a", stats={"uses": -1}), "stats.uses", "whole number"),
        (node("a", resonance={"value": -1}), "resonance.value", "not between 0 and 1"),
        (node("a", resonance={"value": 7}), "resonance.value", "not between 0 and 1"),
        (node("a", resonance={"decay": 2}), "resonance.decay", "not between 0 and 1"),
        (node("a", links=[{"to": ""}]), "links", "names no id"),
        (node("a", children={"x": ""}), "children", "names no id"),
        (node("a", payload={1j}), "node", "JSON"),
        ("a", "node", "must be an object"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(
    memory: Memory, own_home: Path, given_node: Any, field: str, reason: str
) -> None:
    with pytest.raises(RecordInvalid, match="entry 2") as caught:
        memory.upsert_nodes([node("good"), given_node])
    assert caught.value.field.endswith(field)
    assert reason in str(caught.value)
    assert not own_home.exists()


def test_the_id_of_another_record_is_refused(memory: Memory) -> None:
    lesson = memory.log(lesson="use npm ci in pipelines")
    with pytest.raises(RecordInvalid, match="of the kind lesson"):
        memory.upsert_nodes([node("new"), node(lesson.id)], merge=True)
    memory.forget(lesson.id)
    with pytest.raises(RecordInvalid, match="of the kind lesson"):
        memory.upsert_nodes([node(lesson.id)])
    with pytest.raises(RecordNotFound):
        memory.node("new")


def test_a_line_that_is_too_long_costs_the_whole_batch_nothing(
    memory: Memory, own_home: Path
) -> None:
    long = "x" * (memory.settings["line_bytes_max"] + 1)
    with pytest.raises(RecordInvalid, match="over the limit"):
        memory.upsert_nodes([node("a"), node("b", payload=long)])
    assert not own_home.exists()


# --- What is kept, and where ----------------------------------------------------------------------


def test_use_resonance_and_vectors_stay_out_of_the_log(memory: Memory, own_home: Path) -> None:
    seeded = node(
        "a.b",
        stats={"uses": 12, "last_used_at": "2025-10-14T18:42:00Z"},
        resonance={"value": 0.5, "decay": 0.98, "last_activated_at": None},
        embeddings={"model": "text-embed-3", "vector": [0.1, 0.2]},
    )
    result = memory.upsert_nodes([seeded, node("c")])
    assert (result.seeded, result.recomputed_embeddings) == (["a.b"], ["a.b"])
    written = b"".join(lines(own_home))
    for word in (b'"stats"', b'"resonance"', b'"embeddings"', b"text-embed-3"):
        assert word not in written
    # Given alone, they are no new content.
    assert memory.upsert_nodes([seeded], merge=True).unchanged == ["a.b"]


def test_a_vector_of_our_own_model_is_not_said_to_be_made_anew(own_home: Path) -> None:
    with Memory.open(own_home) as memory:
        ours = memory.engine().embedder_state().name
        given_nodes = [
            node(name, embeddings={"model": model, "vector": [0.1]})
            for name, model in (("a", ours), ("b", "local-bge"))
        ]
        assert memory.upsert_nodes(given_nodes).recomputed_embeddings == ["b"]


def test_secrets_are_removed_wherever_they_are(memory: Memory, own_home: Path) -> None:
    secret = f"ghp_{some(36)}"
    given_node = node(
        "deploy", label=f"push with {secret}", payload={"a": [{"b": secret}]}, meta={"k": secret}
    )
    result = memory.upsert_nodes([given_node])
    assert {one["field"] for one in result.redacted} == {"label", "payload.a[0].b", "meta.k"}
    assert secret.encode() not in b"".join(lines(own_home))
    assert memory.upsert_nodes([given_node]).unchanged == ["deploy"]


def test_a_label_is_the_last_part_of_the_path_unless_it_is_given(memory: Memory) -> None:
    memory.upsert_nodes([{"id": "skill.cpp.raii", "type": "skill"}])
    assert memory.node("skill.cpp.raii").label == "raii"
    memory.upsert_nodes([{"id": "skill.cpp.raii", "label": "RAII"}], merge=True)
    assert memory.node("skill.cpp.raii").label == "RAII"


def test_a_node_given_twice_is_written_once(memory: Memory, own_home: Path) -> None:
    memory.upsert_nodes([node("a", tags=["x"]), node("a", tags=["y"])], merge=True)
    assert memory.node("a").tags == ("x", "y")
    memory.upsert_nodes([node("a", tags=["x"]), node("a", tags=["z"])])
    assert memory.node("a").tags == ("z",)
    assert len(list(filter(None, lines(own_home)))) == 2


def test_a_forgotten_node_comes_back_without_its_old_words(memory: Memory) -> None:
    memory.upsert_nodes([node("a", payload={"old": 1})])
    memory.forget("a")
    with pytest.raises(RecordNotFound):
        memory.node("a")
    assert memory.upsert_nodes([node("a", payload={"new": 1})], merge=True).created == ["a"]
    assert memory.node("a").payload == {"new": 1}


def test_the_next_version_keeps_the_time_and_the_log(own_home: Path) -> None:
    with opened(own_home) as memory:
        memory.upsert_nodes([node("a", repo="shop", timestamp="2026-01-01T00:00:00Z")])
    with opened(own_home) as memory:
        memory.upsert_nodes([node("a", label="A")], merge=True)
        found = memory.node("a")
        assert (found.repo, found.timestamp) == ("shop", "2026-01-01T00:00:00Z")
        assert found.meta["edited"]
        with pytest.raises(RecordInvalid, match="is in `shop`"):
            memory.upsert_nodes([node("a", repo="other")])


def test_a_type_that_is_also_a_kind_counts_and_is_found_with_it(memory: Memory) -> None:
    memory.log(kind="pattern", pattern="enable_if guards overloads in this codebase")
    memory.upsert_nodes(
        [node("pattern.enable_if", type="pattern", label="enable_if guards overloads")]
    )
    memory.upsert_nodes([node("seen", type="episode", label="compiled enable_if code")])
    assert memory.get("pattern.enable_if").kind == "node"
    assert memory.stats()["kinds"] == {"pattern": 2, "episode": 1}
    found = memory.recall("enable_if overloads", kinds=["pattern"]).hits
    assert "pattern.enable_if" in {hit.id for hit in found}
    listed = memory.list_records(kinds=["pattern"]).hits
    assert len(listed) == 2
    assert [hit.id for hit in memory.list_records(kinds=["episode"]).hits] == ["seen"]
    assert memory.list_records(types=["pattern"]).total == 0  # That is a type of lessons.
    assert memory.metrics()["tasks"] == 0


# --- Searching ------------------------------------------------------------------------------------

GRAPH = [
    node("cpp.sfinae", label="SFINAE", payload="substitution failure of templates", tags=["cpp"],
         links=[{"to": "cpp.enable_if", "rel": "uses", "w": 0.8}]),
    node("cpp.enable_if", type="pattern", label="Enable-if idiom", tags=["cpp"],
         links=[{"to": "cpp.traits", "rel": "uses", "w": 0.5}]),
    node("cpp.traits", type="snippet", label="Type traits"),
    node("ops.rota", type="fact", label="The rota changes on Mondays"),
]  # fmt: skip


def test_links_are_followed_as_far_as_asked(memory: Memory) -> None:
    memory.upsert_nodes(GRAPH)
    for hops, ids in enumerate(
        (["cpp.sfinae"], ["cpp.sfinae", "cpp.enable_if"], [one["id"] for one in GRAPH[:3]])
    ):
        found = memory.search_nodes("substitution failure", hops=hops)
        assert [one.node.id for one in found] == ids
        assert [one.hop for one in found] == list(range(hops + 1))
        assert all(one.score > other.score for one, other in pairwise(found))
    # Links lead through nodes of other types and tags.
    found = memory.search_nodes("substitution failure", types=["snippet", "fact"], hops=2)
    assert [(one.node.id, one.hop) for one in found] == [("cpp.traits", 2)]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("build_context", (None,), "the question is `None`, which is no text"),
        ("build_context", (5,), "the question is `5`, which is no text"),
        ("build_context", ("x", {}, 100, "2"), "the number of hops is `'2'`, which is no whole number"),
        ("build_context", ("x", {}, 100, 9), "the number of hops is 9, not between 1 and 3"),
        ("build_context", ("x", {"persona": 5}), "the persona is `5`, which is no text"),
        ("build_context", ("x", {"tags": 5}), "tags is `5`, which is no list"),
        ("upsert_nodes", (None,), "`nodes` is no list"),
        ("upsert_nodes", ({"id": "x"},), "`nodes` is no list"),
        ("recall_context", ("task", "x", "a"), "k is `'a'`, which is no whole number"),
        ("recall_context", ("task", None), "the id of the task is `None`, which is no text"),
        ("recall_context", ("agent", 5), "the id of the agent is `5`, which is no text"),
        ("recall_context", (["task"], "x"), "the scope is `['task']`, which is no text"),
        ("search_nodes", (None,), "the question is `None`, which is no text"),
        ("search_nodes", ("x", True), "k is `True`, which is no whole number"),
        ("search_nodes", ("x", 5, "concept"), "types is `'concept'`, which is no list"),
        ("search_nodes", ("x", 5, [], "a"), "the number of hops is `'a'`, which is no whole number"),
        ("search_nodes", ("x", 5, [], 1, [5]), "one of tags is `5`, which is no text"),
    ],
)  # fmt: skip
def test_what_a_program_gives_by_mistake_is_a_sentence(
    memory: Memory, name: str, arguments: tuple[Any, ...], said: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        getattr(memory, name)(*arguments)


def test_a_weight_that_is_not_given_stays_as_it_is(memory: Memory) -> None:
    memory.upsert_nodes([node("a", links=[{"to": "b", "rel": "uses", "weight": 0.3}])])
    again = memory.upsert_nodes([{"id": "a", "links": [{"to": "b", "rel": "uses"}]}], merge=True)
    memory.upsert_nodes([{"id": "a", "links": [{"to": "c", "rel": "uses"}]}], merge=True)

    assert again.unchanged == ["a"]
    assert memory.get("a").fields["links"] == [
        {"to": "b", "rel": "uses", "w": 0.3},
        {"to": "c", "rel": "uses", "w": 1.0},
    ]


def test_a_link_of_weight_0_leads_nowhere(memory: Memory) -> None:
    memory.upsert_nodes(
        [*GRAPH, node("cpp.sfinae", links=[{"to": "ops.rota", "w": 0}], type="concept")], merge=True
    )
    found = memory.search_nodes("substitution failure", hops=3)
    assert [one.node.id for one in found] == [one["id"] for one in GRAPH[:3]]


def test_what_is_found_says_how_like_the_question_it_is(memory: Memory) -> None:
    memory.upsert_nodes(GRAPH)
    found = {one.node.id: one.likeness for one in memory.search_nodes("templates rota", hops=1)}
    assert found["cpp.enable_if"] is None, "a link led to it"
    for ident in ("cpp.sfinae", "ops.rota"):
        assert 0 < (found[ident] or 0) < 1
    [named] = memory.search_nodes("cpp.traits", k=1)
    assert (named.node.id, named.likeness) == ("cpp.traits", 1.0)


def test_a_node_is_found_by_its_id(memory: Memory) -> None:
    memory.upsert_nodes(
        [node("persona.p", label="Strict"), node("task-7", label="x"), node("a", label="persona")]
    )

    def ids(query: str, **more: Any) -> list[str]:
        return [one.node.id for one in memory.search_nodes(query, **more)]

    assert ids("persona.p")[0] == "persona.p"
    assert ids("persona.p task-7")[:2] == ["persona.p", "task-7"]
    assert ids("a") == ["a"]
    assert "a" not in ids("a cat")
    assert ids("persona.p", types=["fact"]) == []


def test_types_and_tags_narrow_a_search(memory: Memory) -> None:
    memory.upsert_nodes(GRAPH)
    memory.log(lesson="the rota is in the calendar", tags=["ops"])
    assert {one.node.type for one in memory.search_nodes("rota", types=["fact"])} == {"fact"}
    assert len(memory.search_nodes("rota", types=["fact"])) == 2
    assert not memory.search_nodes("rota", types=["skill"])
    assert [one.node.tags for one in memory.search_nodes("rota", tags=["OPS"])] == [("ops",)]
    wrong: list[dict[str, Any]] = [{"types": ["lesson"]}, {"hops": 4}, {"k": 0}]
    for options in wrong:
        with pytest.raises(UsageError):
            memory.search_nodes("rota", **options)


def test_each_type_has_its_own_places(memory: Memory) -> None:
    many = [
        node(f"{name}.{number}", type=name, label=f"templates {number}")
        for name in ("concept", "snippet")
        for number in range(5)
    ]
    memory.upsert_nodes(many)
    found = memory.search_nodes("templates", k=2, per_type=True)
    assert sorted(one.node.type for one in found) == ["concept", "concept", "snippet", "snippet"]
    assert len(memory.search_nodes("templates", k=2)) == 2


# --- Neighbours -----------------------------------------------------------------------------------


def test_neighbours_are_the_heaviest_in_both_directions(memory: Memory) -> None:
    memory.upsert_nodes(
        [
            node("a", links=[{"to": "b", "rel": "uses", "w": 0.2}], children={"kid": "kid"}),
            node("b", links=[{"to": "c", "rel": "is_a", "w": 0.9}]),
            node("c", links=[{"to": "a", "rel": "uses", "w": 0.5}, {"to": "gone", "rel": "uses"}]),
            node("kid"),
        ]
    )
    near = fetch.neighbours(memory, ["a", "b", "c", "kid", "gone"], 6)
    assert near["a"] == [("kid", 1.0), ("c", 0.5), ("b", 0.2)]
    assert near["b"] == [("c", 0.9), ("a", 0.2)]
    assert near["c"] == [("b", 0.9), ("a", 0.5)]  # What does not exist is no neighbour.
    assert near["kid"] == [("a", 1.0)]
    assert fetch.neighbours(memory, ["a"], 1)["a"] == [("kid", 1.0)]
    memory.forget("kid")
    link = memory.link("a", "related_to", "b", weight=1)
    assert fetch.neighbours(memory, ["a"], 2)["a"] == [("b", 1.0), ("c", 0.5)]
    memory.forget(link.id)
    assert fetch.neighbours(memory, ["a"], 2)["a"] == [("c", 0.5), ("b", 0.2)]


HUB = 10_000


def test_a_hub_of_many_links_is_read_no_further_than_asked(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def links_of(sign: int) -> list[dict[str, Any]]:
        return [
            {"to": f"leaf.{n:05}", "rel": "uses", "w": (n if sign > 0 else HUB - n) / HUB}
            for n in range(HUB)
        ]

    leaves = [node(f"leaf.{n:05}") for n in range(9000, HUB)]
    memory.upsert_nodes([node("hub", links=links_of(1)), *leaves])
    looked_up: list[str] = []
    shown = graph._shown

    def watched(readers: Any, home: int, ids: Any, untrusted: Any) -> Any:
        looked_up.extend(ids)
        return shown(readers, home, ids, untrusted)

    monkeypatch.setattr(graph, "_shown", watched)
    near = fetch.neighbours(memory, ["hub", "leaf.09999"], 6)
    assert near["hub"] == [(f"leaf.{n:05}", n / HUB) for n in range(9999, 9993, -1)]
    assert near["leaf.09999"] == [("hub", 0.9999)]
    assert len(looked_up) <= 20
    # Even if the heaviest lead nowhere.
    memory.upsert_nodes([node("hub", links=links_of(-1))])
    assert [ident for ident, _w in fetch.neighbours(memory, ["hub"], 2)["hub"]] == [
        "leaf.09000",
        "leaf.09001",
    ]


# --- A home that is not trusted -------------------------------------------------------------------


def test_a_home_that_is_not_trusted_has_no_say(
    tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = make_repository(tmp_path / "shop") / ".commonplace"
    trusting = {"embedder.kind": "none", "trust.repositories": True}
    with Memory.open(theirs, cwd=tmp_path / "shop", settings=trusting) as memory:
        link = {"to": "mine", "rel": "uses", "w": 1.0}
        memory.upsert_nodes([node("evil", label="kettle", links=[link]), node("twin")])
    monkeypatch.delenv("COMMONPLACE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    with Memory.open(cwd=tmp_path / "shop", settings={"embedder.kind": "none"}) as memory:
        assert memory.home.path == theirs
        before = lines(theirs)
        memory.upsert_nodes([node("mine", label="kettle"), node("twin", label="kettle")])
        assert lines(theirs) == before
        assert {one.node.id for one in memory.search_nodes("kettle", hops=2)} == {"mine", "twin"}
        assert fetch.neighbours(memory, ["mine"], 6) == {"mine": []}
        assert fetch.nodes(memory, ["evil", "mine"]).keys() == {"mine"}
        assert [branch.path for _depth, branch in memory.node_tree().walk()] == ["mine", "twin"]
        assert memory.node("evil").label == "kettle"  # Named, it is shown.
        assert memory.node("twin").label == "kettle"  # The user's own comes first.


# --- Several processes ----------------------------------------------------------------------------

MERGES = """
import sys
from commonplace.memory import Memory
with Memory.open(sys.argv[1], settings={"embedder.kind": "none"}) as memory:
    for number in range(15):
        tag = f"{sys.argv[2]}-{number}"
        memory.upsert_nodes([{"id": "a", "type": "concept", "tags": [tag]}], merge=True)
"""


def test_processes_that_merge_into_one_node_lose_nothing(own_home: Path) -> None:
    with opened(own_home) as memory:
        memory.upsert_nodes([node("a")])
        running = [
            subprocess.Popen([sys.executable, "-c", MERGES, str(own_home), name])
            for name in ("one", "two", "three")
        ]
        assert [process.wait(120) for process in running] == [0, 0, 0]
        wanted = {f"{name}-{n}" for name in ("one", "two", "three") for n in range(15)}
        assert set(memory.node("a").tags) == wanted
        assert len(memory.history("a")) == len(wanted) + 1
