"""Recall itself: from a question to ranked hits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.index.document import document
from commonplace.index.terms import query_terms, terms
from commonplace.index.text import K1, QUERY_TERMS_MAX, B
from commonplace.recall import dedupe, priors
from commonplace.recall.candidates import Candidates, Proposal
from commonplace.recall.hits import Hit, Query
from commonplace.recall.visibility import condition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from commonplace.index.index import Index
    from commonplace.index.text import Statistics
    from commonplace.recall.candidates import Place
    from commonplace.recall.priors import Weights

    # Takes a call and gives what its answer is had from, like a future's `result`.
    Aside = Callable[[Callable[[], Any]], Callable[[], Any]]
    # The question's vector, and in each home the documents near it with their cosines.
    Seen = tuple[Any, list[dict[int, float]]]
    # Starts to look for so many and gives what that is had from.
    Look = Callable[[int], Callable[[], Seen]]

CANDIDATES = 60
CANDIDATES_MAX = 6400
# How many of the best are looked at closely: compared with one another and with the question.
CLOSE = 12
# Rows are fetched and weighed so many at a time, best first; priors rarely lift anything from further down.
PAGE = 40
# Where filters let few through, so many are scored one by one.
FILTERED_MAX = 2000
QUERY_CHARS_MAX = 4000


class Fusion(NamedTuple):
    """How the two engines are weighed, and when a hit is relevant enough (docs/decisions/0006-ranking.md)."""

    dense: float = 0.4
    relevance_min: float = 0.22
    relevance_share_min: float = 0.3
    # Whether what says the same is folded; off only to measure what that gives.
    fold_same: bool = True


class Found(NamedTuple):
    """The hits, and what else there is to say."""

    hits: list[Hit]
    considered: int
    statistics: list[Statistics]


def search(
    indexes: Sequence[Index],
    query: Query,
    read: Callable[[], Any] | None,
    uses: Callable[[str], int],
    weights: Weights,
    fusion: Fusion,
    aside: Aside = lambda call: call,
) -> Found:
    """Rank what the indexes hold about *query*, most useful first.

    *read* gives the question's vector. It is called, and vectors are compared, *aside*: by another thread if need be,
    while this one looks for the words.
    """
    wanted = query_terms(query.text[:QUERY_CHARS_MAX])
    statistics = [index.text.statistics(wanted) for index in indexes]
    look = partial(_looking, indexes, read, aside) if read is not None else None
    candidates = Candidates(indexes, query, uses, weights)
    proposals, ranked = _ranked(indexes, query, wanted, statistics, look, candidates, fusion)
    if not query.cutoff:
        return Found(ranked[: query.limit], len(proposals), statistics)
    chosen = _relevant(ranked[: max(CLOSE, query.limit)], candidates, wanted, statistics, fusion)
    if fusion.fold_same:
        chosen = dedupe.in_force(
            _with_vectors(indexes, dedupe.collapsed(chosen)[: 2 * query.limit])
        )
    hits = [_stale_marked(hit, query) for hit in chosen[: query.limit]]
    return Found(hits, len(proposals), statistics)


def _ranked(
    indexes: Sequence[Index],
    query: Query,
    wanted: Mapping[str, float],
    statistics: Sequence[Statistics],
    look: Look | None,
    candidates: Candidates,
    fusion: Fusion,
) -> tuple[list[Proposal], list[Hit]]:
    """All proposals, and those of the best that may be shown, weighed with their priors."""
    enough = max(CLOSE, query.limit) + PAGE // 2
    limit = max(CANDIDATES, 2 * query.limit)
    while True:
        proposals, more = _proposals(
            indexes, query, wanted, statistics, look, candidates, fusion, limit
        )
        hits: list[Hit] = []
        for start in range(0, len(proposals), PAGE):
            hits += candidates.hits(proposals[start : start + PAGE])
            if len(hits) >= enough:
                break
        # Filters may have taken nearly all of them; look further while there is more.
        plenty = len(hits) >= min(enough, 2 * query.limit)
        if not plenty and more and limit >= CANDIDATES_MAX:
            hits = candidates.hits(_chosen_by_filter(indexes, query, wanted, statistics))
        if plenty or not more or limit >= CANDIDATES_MAX:
            hits.sort(key=lambda hit: (-hit.score, hit.key))
            return proposals, _unique(hits)
        limit *= 4


# --- Candidates ---------------------------------------------------------------------------------------------------


def _proposals(
    indexes: Sequence[Index],
    query: Query,
    wanted: Mapping[str, float],
    statistics: Sequence[Statistics],
    look: Look | None,
    candidates: Candidates,
    fusion: Fusion,
    limit: int,
) -> tuple[list[Proposal], bool]:
    """What both engines propose, best first, and whether they could propose more.

    Each engine's score counts as a share, weighed: of the best cosine, and of what saying the whole question scores.
    What has no vector yet is judged by its words alone.
    """
    words: dict[Place, float] = {}
    meaning: dict[Place, float] = {}
    more = False
    seen = look(limit) if look is not None else None
    for book, index in enumerate(indexes):
        lexical = index.text.match(
            wanted, statistics[book], repos=query.repos, kinds=query.kinds, limit=limit
        )
        words |= {(book, key): score for key, score in lexical}
        more = more or len(lexical) >= limit
    vector: Any = None
    nearest: list[dict[int, float]] = []
    if seen is not None:
        # What leads by its words is read meanwhile; most of that leads in the end.
        candidates.read(sorted(words, key=words.__getitem__, reverse=True)[:PAGE])
        candidates.read_closely(words, CLOSE)
        vector, nearest = seen()
    for book, near in enumerate(nearest):
        rest = [key for home, key in words if home == book and key not in near]
        cosines = near | indexes[book].vectors.similarity(vector, rest)
        meaning |= {(book, key): cosine for key, cosine in cosines.items()}
        more = more or (query.repos is not None and len(cosines) >= limit)
    best_words = max(words.values(), default=0.0) or 1.0
    # A question of which nobody says more than a common word is not answered by whoever says that one.
    whole = max(best_words, *(_saying_all(wanted, one) for one in statistics))
    best_meaning = max(meaning.values(), default=0.0) or 1.0
    weight = fusion.dense if vector is not None else 0.0
    found = []
    for one in words.keys() | meaning.keys():
        lexical_score = words.get(one, 0.0)
        cosine = meaning.get(one)
        dense_share = (
            lexical_score / best_words if cosine is None else max(0.0, cosine) / best_meaning
        )
        fused = (1 - weight) * lexical_score / whole + weight * dense_share
        found.append(Proposal(one, lexical_score, cosine, fused))
    found.sort(key=lambda one: (-one.fused, one.place))
    return found, more


def _saying_all(wanted: Mapping[str, float], statistics: Statistics) -> float:
    """What a memory of average length scores that says the question's terms once each, as many as it has room for."""
    weighed = sorted(
        (weight * statistics.idf(term) for term, weight in wanted.items()), reverse=True
    )
    return sum(weighed[: min(QUERY_TERMS_MAX, round(statistics.average_terms))])


def _looking(
    indexes: Sequence[Index], read: Callable[[], Any], aside: Aside, limit: int
) -> Callable[[], Seen]:
    for index in indexes:
        index.vectors.load()  # Here: the store is asked by one thread at a time.
    return aside(partial(_nearest, indexes, read, limit))


def _nearest(indexes: Sequence[Index], read: Callable[[], Any], limit: int) -> Seen:
    vector = read()
    return vector, [index.vectors.nearest_loaded(vector, limit) for index in indexes]


def _chosen_by_filter(
    indexes: Sequence[Index],
    query: Query,
    wanted: Mapping[str, float],
    statistics: Sequence[Statistics],
) -> list[Proposal]:
    """For filters that let few through: those few, scored by their words one by one."""
    found: list[Proposal] = []
    where, arguments = condition(query)
    for book, index in enumerate(indexes):
        for row in index.store.recent(FILTERED_MAX, where, arguments):
            score = text_score(terms(document(row.record).text), wanted, statistics[book])
            if score > 0:
                found.append(Proposal((book, row.key), score, None, score))
    best = max((one.fused for one in found), default=1.0)
    return sorted(
        (one._replace(fused=one.fused / best) for one in found),
        key=lambda one: (-one.fused, one.place),
    )


def text_score(said: Sequence[str], wanted: Mapping[str, float], statistics: Statistics) -> float:
    """BM25 of one text, as the index would score it."""
    counts = Counter(said)
    norm = K1 * (1 - B + B * len(said) / statistics.average_terms)
    matched = ((term, weight) for term, weight in wanted.items() if counts[term])
    return sum(
        w * statistics.idf(t) * counts[t] * (K1 + 1) / (counts[t] + norm) for t, w in matched
    )


def _unique(hits: list[Hit]) -> list[Hit]:
    """One hit an id: the nearest home's."""
    seen: set[str] = set()
    return [hit for hit in hits if not (hit.id in seen or seen.add(hit.id))]  # type: ignore[func-returns-value]


# --- Relevance ----------------------------------------------------------------------------------------------------


def _relevant(
    hits: Sequence[Hit],
    candidates: Candidates,
    wanted: Mapping[str, float],
    statistics: Sequence[Statistics],
    fusion: Fusion,
) -> list[Hit]:
    """Those that answer: enough of the question's weight in words or meaning, and not far behind the best."""
    weighed = [by_rarity(wanted, one) for one in statistics]
    judged = []
    for hit in hits:
        said, found = candidates.said(hit)
        judged.append((hit, said, found, relevance(hit, found, weighed[hit.key[0]])))
    best = max((value for *_rest, value in judged), default=0.0)
    floor = max(fusion.relevance_min, fusion.relevance_share_min * best)
    return [
        replace(hit, document=said, terms=found, why={**hit.why, "relevance": round(value, 4)})
        for hit, said, found, value in judged
        if value >= floor
    ]


def by_rarity(wanted: Mapping[str, float], statistics: Statistics) -> dict[str, float]:
    """The question's terms with their weights; those nobody says weigh most."""
    return {term: weight * statistics.idf(term) for term, weight in wanted.items()}


def relevance(hit: Hit, said: frozenset[str], weighed: Mapping[str, float]) -> float:
    """How much of the question a hit that says the terms *said* covers, from 0 to about 1, whatever else was found."""
    whole = sum(weighed.values())
    covered = (
        sum(weight for term, weight in weighed.items() if term in said) / whole if whole else 0.0
    )
    cosine = hit.why.get("meaning")
    return covered if cosine is None else 0.3 * covered + 0.7 * max(0.0, cosine)


def _with_vectors(indexes: Sequence[Index], hits: Sequence[Hit]) -> list[Hit]:
    # Only records of one kind and repository are ever compared.
    alike = Counter((hit.repo, hit.kind) for hit in hits if "meaning" in hit.why)
    if max(alike.values(), default=0) < 2:
        return list(hits)
    vectors: dict[tuple[int, int], Any] = {}
    for book, index in enumerate(indexes):
        keys = [hit.key[1] for hit in hits if hit.key[0] == book]
        vectors |= {(book, key): row for key, row in index.vectors.first(keys).items()}
    return [replace(hit, vector=vectors.get(hit.key)) for hit in hits]


def _stale_marked(hit: Hit, query: Query) -> Hit:
    """A hit that names files which are gone from the repository it is about says so."""
    if query.root is None or hit.repo != query.here:
        return hit
    missing = priors.missing_files(hit.said.text, query.root)
    return (
        replace(hit, marks=(*hit.marks, f"stale: {', '.join(missing[:3])} is gone"))
        if missing
        else hit
    )
