"""Search nodes by words and meaning, by type, and along links."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commonplace.errors import UsageError
from commonplace.graph import fetch
from commonplace.graph.arguments import check_number, check_text, check_texts
from commonplace.records.nodes import KINDS_OF_TYPE, NODE_TYPES, node_of, type_of
from commonplace.vocabulary import LIMIT_MAX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from commonplace.recall.consultation import Consultation
    from commonplace.recall.query import Query
    from commonplace.recaller import Recaller
    from commonplace.records.nodes import GraphNode

K = 32
HOPS_MAX = 3
PER_NODE_MAX = 6
IDS_MAX = 64
# A neighbour gets this share of the score of the node that led to it, times the link's weight.
HOP_SHARE = 0.5


class ScoredNode(NamedTuple):
    """A node that was found, its score, and how many links it is away from what was asked."""

    node: GraphNode
    # Orders the nodes of one search. The best one has a high score even if it is about something
    # else, so a score does not say whether a node is related to the question.
    score: float
    hop: int = 0
    # How like the question it is, from 0 to 1; `None` if a link led to it.
    likeness: float | None = None

    def as_dict(self) -> dict[str, object]:
        """Return it as other programs see it."""
        return {
            **self.node.as_dict(),
            "score": round(self.score, 6),
            "hop": self.hop,
            "likeness": None if self.likeness is None else round(self.likeness, 6),
        }


def search(
    memory: Recaller,
    query: str,
    k: int = K,
    types: Sequence[str] = (),
    hops: int = 0,
    tags: Sequence[str] = (),
    *,
    per_type: bool = False,
    repo: str | None = None,
) -> list[ScoredNode]:
    """Return the *k* nodes that match *query* best, and those up to *hops* links away.

    *types* and *tags* narrow what is returned, not which links are followed. Of each hop the *k*
    best are returned; with *per_type*, *k* of each type. All repositories are searched, or *repo*;
    homes that the user does not trust are not. Nodes that *query* names by id come first.
    """
    check_text("the question", query)
    check_texts("tags", tags)
    _check(k, types, hops)
    wanted = tuple(dict.fromkeys(types)) or NODE_TYPES
    asked = memory.query(
        query,
        limit=k,
        tags=tags or None,
        cutoff=False,
        automatic=True,
        **({"repo": repo} if repo else {"all_repos": True}),
    )
    groups = [(name,) for name in wanted] if per_type else [wanted]
    queries = [asked.with_(**_kinds(group)) for group in groups]
    if hops and (types or tags):
        # Links may lead from any node to one that is wanted.
        queries.append(asked.with_(tags=frozenset(), **_kinds(NODE_TYPES)))
    found, _notes = memory.engine().consult(
        asked, lambda questions: _ranked(questions, queries), lambda _found: []
    )
    found += _named(memory, query, repo)
    seeds = {one.node.id: one for one in sorted(found, key=_order, reverse=True)}
    results = dict(seeds)
    frontier: Sequence[ScoredNode] = list(seeds.values())
    for hop in range(1, hops + 1):
        frontier = _expand(memory, frontier, results, hop)
        results |= {one.node.id: one for one in frontier}
    labels = {tag.lower() for tag in tags}
    passing = [one for one in results.values() if _passes(one.node, wanted, labels)]
    return _best(passing, k, per_type=per_type)


def _named(memory: Recaller, query: str, repo: str | None) -> list[ScoredNode]:
    """Return the nodes whose ids *query* names: whoever knows an id asks for that node.

    An id that is a plain word must be the whole query.
    """
    words = query.split()
    ids = [word for word in words[:IDS_MAX] if not word.isalnum() or len(words) == 1]
    found = fetch.nodes(memory, ids) if ids else {}
    logs = set(memory.scope().named(repo)) if repo and found else set()
    return [
        ScoredNode(node, 1.0, likeness=1.0)
        for node in found.values()
        if not repo or node.repo in logs
    ]


def _check(k: int, types: Iterable[str], hops: int) -> None:
    unknown = [name for name in check_texts("types", types) if name not in NODE_TYPES]
    if unknown:
        raise UsageError(
            f"there is no type `{unknown[0]}`", f"choose among {', '.join(NODE_TYPES)}"
        )
    check_number("k", k, 1, LIMIT_MAX)
    check_number("the number of hops", hops, 0, HOPS_MAX)


def _kinds(types: Collection[str]) -> dict[str, frozenset[str]]:
    """Return the kinds of record that have *types*, as the fields of a query."""
    return {
        "kinds": frozenset(kind for name in types for kind in KINDS_OF_TYPE[name]),
        "node_types": frozenset(types),
    }


def _ranked(questions: Consultation, queries: Iterable[Query]) -> list[ScoredNode]:
    found = []
    for query in queries:
        hits = [hit for hit in questions.hits(query) if type_of(hit.record)]
        matching = questions.search(query).matching
        likeness = matching.likenesses([hit.address for hit in hits])
        found += [
            ScoredNode(node_of(hit.record), hit.score, likeness=likeness[hit.address])
            for hit in hits
        ]
    return found


def _expand(
    memory: Recaller, frontier: Sequence[ScoredNode], known: Collection[str], hop: int
) -> list[ScoredNode]:
    """Return the nodes one link away from *frontier* that are not *known*, with their scores."""
    near = fetch.neighbours(memory, [one.node.id for one in frontier], PER_NODE_MAX)
    scores: dict[str, float] = {}
    for one in frontier:
        for ident, weight in near[one.node.id]:
            if weight > 0 and ident not in known:
                score = one.score * weight * HOP_SHARE
                scores[ident] = max(score, scores.get(ident, 0.0))
    nodes = fetch.nodes(memory, sorted(scores))
    return sorted((ScoredNode(node, scores[id_], hop) for id_, node in nodes.items()), key=_order)


def _passes(node: GraphNode, types: Collection[str], tags: Collection[str]) -> bool:
    return node.type in types and (not tags or any(tag.lower() in tags for tag in node.tags))


def _best(found: Iterable[ScoredNode], k: int, *, per_type: bool) -> list[ScoredNode]:
    """Return the *k* best of each hop, or of each type at each hop, best first."""
    counts: dict[tuple[int, str], int] = {}
    best = []
    for one in sorted(found, key=_order):
        group = (one.hop, one.node.type if per_type else "")
        counts[group] = counts.get(group, 0) + 1
        if counts[group] <= k:
            best.append(one)
    return best


def _order(one: ScoredNode) -> tuple[float, str]:
    return -one.score, one.node.id
