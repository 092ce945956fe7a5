"""Scores, bloom and selection: laws of the pure functions that light up a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.graph.bloom import HOPS_MAX, bloom
from commonplace.graph.scoring import (
    Signals,
    Weights,
    decayed,
    persona_weight,
    persona_weights,
    recency,
    score,
    task_affinity,
    usage,
)
from commonplace.graph.selection import CAPS, Scored, select, working_set
from commonplace.records.kinds import Link
from commonplace.records.nodes import NODE_TYPES, GraphNode

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

IDS = st.sampled_from([f"n{number}" for number in range(12)])
WEIGHTS = st.floats(0, 1)
GRAPHS = st.dictionaries(IDS, st.lists(st.tuples(IDS, WEIGHTS), max_size=14))
SCORED = st.lists(
    st.builds(Scored, st.text("abcdef", min_size=1), st.sampled_from(NODE_TYPES), WEIGHTS),
    unique_by=lambda one: one.id,
    max_size=60,
)
Graph = dict[str, list[tuple[str, float]]]


def test_a_link_of_weight_0_is_never_followed() -> None:
    graph: Graph = {"a": [("b", 0.0), ("c", 0.1)], "c": [("b", 0.0)]}
    assert bloom(["a"], lambda _ids: graph).hops == {"a": 0, "c": 1}


@given(GRAPHS, st.lists(IDS), st.integers(1, HOPS_MAX), st.integers(1, 20))
def test_bloom_ends_and_reaches_each_node_once_by_the_shortest_way(
    graph: Graph, seeds: list[str], hops: int, nodes_max: int
) -> None:
    asked: list[str] = []

    def expand(ids: Sequence[str]) -> Graph:
        asked.extend(ids)
        return graph

    found = bloom(seeds, expand, hops, nodes_max=nodes_max)
    assert len(found.hops) <= nodes_max
    assert len(asked) == len(set(asked))
    assert all(hop <= hops for hop in found.hops.values())
    assert [ident for ident, hop in found.hops.items() if hop == 0] == list(dict.fromkeys(seeds))[
        :nodes_max
    ]
    for ident, hop in found.hops.items():
        if hop:
            before = [one for one, its_hop in found.hops.items() if its_hop == hop - 1]
            assert any(ident == to for one in before for to, _weight in graph.get(one, []))
            assert ident in found.edges


@given(GRAPHS, st.lists(IDS, unique=True), st.integers(1, 9))
def test_the_order_of_links_changes_nothing(graph: Graph, seeds: list[str], layer_max: int) -> None:
    found = bloom(seeds, lambda _ids: graph, layer_max=layer_max)
    turned = {ident: links[::-1] for ident, links in reversed(graph.items())}
    assert found == bloom(seeds, lambda _ids: turned, layer_max=layer_max)
    for hop in (1, 2):
        assert list(found.hops.values()).count(hop) <= layer_max


@given(GRAPHS, st.lists(IDS), st.integers(1, HOPS_MAX), st.integers(1, 9), st.data())
def test_links_that_are_refused_late_are_as_if_they_had_not_been_there(
    graph: Graph, seeds: list[str], hops: int, layer_max: int, data: st.DataObject
) -> None:
    links = sorted({(start, end) for start, ends in graph.items() for end, _weight in ends})
    gone = set(data.draw(st.lists(st.sampled_from(links)) if links else st.just([])))
    without = {
        start: [(end, weight) for end, weight in ends if (start, end) not in gone]
        for start, ends in graph.items()
    }
    known: set[tuple[str, str]] = set()

    def expand(ids: Sequence[str]) -> Graph:
        return {
            ident: [
                (end, weight) for end, weight in graph.get(ident, []) if (ident, end) not in known
            ]
            for ident in ids
        }

    def refuse(asked: Collection[tuple[str, str]]) -> bool:
        fresh = gone.intersection(asked) - known
        known.update(fresh)
        return bool(fresh)

    found = bloom(seeds, expand, hops, 3, layer_max=layer_max, refuse=refuse)
    assert found == bloom(seeds, lambda _ids: without, hops, 3, layer_max=layer_max)


def test_what_the_best_seed_links_to_goes_first() -> None:
    links = {"best": [("near", 0.5)], "doubtful": [("other", 0.8)], "near": [("far", 1.0)]}
    found = bloom(
        ["best", "doubtful"],
        lambda ids: {ident: links.get(ident, []) for ident in ids},
        strengths={"best": 1.0, "doubtful": 0.1},
    )

    assert list(found.hops) == ["best", "doubtful", "near", "other", "far"]
    assert found.edges == {"near": 0.5, "other": pytest.approx(0.08), "far": 0.5}


def test_bloom_ends_on_a_cycle_and_on_a_hub() -> None:
    cycle: Graph = {"a": [("b", 1.0)], "b": [("c", 1.0)], "c": [("a", 1.0)]}
    assert bloom(["a"], lambda _ids: cycle, 3).hops == {"a": 0, "b": 1, "c": 2}
    links = [(f"leaf{number:05}", number / 10_000) for number in range(10_000)]
    hub: Graph = {"hub": links, **{leaf: [("hub", weight)] for leaf, weight in links}}
    found = bloom(["hub"], lambda _ids: hub, 3)
    assert list(found.hops) == ["hub", *(f"leaf{number:05}" for number in range(9999, 9993, -1))]


@given(SCORED)
def test_no_type_has_more_nodes_than_its_cap(scored: list[Scored]) -> None:
    kept = select(scored)
    assert kept == select(scored[::-1])
    assert kept == sorted(kept, key=lambda one: (-one.score, one.id))
    for name, cap in CAPS.items():
        of_type = [one for one in scored if one.type == name]
        chosen = [one for one in kept if one.type == name]
        assert len(chosen) == min(cap, len(of_type))
        left = set(of_type) - set(chosen)
        assert all(one.score >= other.score for one in chosen for other in left)


def test_the_caps_are_those_of_the_seed_document() -> None:
    assert (CAPS["skill"], CAPS["snippet"], CAPS["pattern"]) == (6, 10, 4)
    assert set(CAPS) == set(NODE_TYPES)


@given(st.builds(Signals, *[st.floats()] * 6), st.builds(Signals, *[WEIGHTS] * 6))
def test_a_score_is_between_zero_and_one_and_grows_with_each_signal(
    wild: Signals, tame: Signals
) -> None:
    assert 0 <= score(wild) <= 1
    for name in Signals._fields:
        assert score(tame._replace(**{name: 1.0})) >= score(tame)
    assert score(Signals(*[1.0] * 6)) == sum(Weights()) == 1


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(1, 1e4))
def test_recency_and_usage_are_shares(age: float, uses: float, half_life: float) -> None:
    assert 0 <= recency(age, half_life) <= 1
    assert 0 <= usage(uses) <= 1
    assert recency(0, half_life) == 1
    assert usage(0) == 0


@given(st.dictionaries(IDS, WEIGHTS), st.integers(0, 8))
def test_decay_empties_an_idle_set_and_it_is_never_too_large(
    values: dict[str, float], size_max: int
) -> None:
    kept = working_set(values, 0.05, size_max)
    assert len(kept) <= size_max
    assert all(value >= 0.05 for value in kept.values())
    idle = {ident: decayed(value, 0.98, 150) for ident, value in values.items()}
    assert working_set(idle, 0.05, 800) == {}


def test_tags_match_tags_and_the_parts_of_a_path() -> None:
    node = GraphNode("skill.cpp.raii", "skill", "RAII", None, tags=("memory",))
    assert task_affinity(node, ["CPP", "memory"]) == 1
    assert task_affinity(node, ["cpp", "web"]) == 0.5
    assert task_affinity(node, []) == 0


def test_a_persona_lifts_what_it_links_to_and_what_has_its_tags() -> None:
    persona = GraphNode(
        "persona.reviewer", "persona", "R", None, (Link("skill.x", "uses", 0.6),), tags=("cpp",)
    )
    linked = persona_weights(persona)
    assert persona_weight(GraphNode("skill.x", "skill", "", None), linked, persona) == 0.6
    assert persona_weight(GraphNode("skill.cpp.y", "skill", "", None), linked, persona) == 1
    assert persona_weight(GraphNode("z", "skill", "", None), linked, persona) == 0
    assert persona_weight(GraphNode("z", "skill", "", None), {}, None) == 0
