"""Recall itself: from a question to ranked hits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.index.document import document
from commonplace.index.text import K1, B
from commonplace.index.tokens import query_terms, term_set, terms
from commonplace.recall import priors, same
from commonplace.recall.hits import Hit, Query
from commonplace.records import OUTCOMES, Lesson, Rate, parse_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from commonplace.index.index import Index
    from commonplace.index.store import Row
    from commonplace.index.text import Statistics
    from commonplace.recall.priors import Weights

    # Takes a call and gives what its answer is had from, like a future's `result`.
    Aside = Callable[[Callable[[], Any]], Callable[[], Any]]
    # The question's vector, and in each home the documents near it with their cosines.
    Seen = tuple[Any, list[dict[int, float]]]
    # Starts to look for so many and gives what that is had from.
    Look = Callable[[int], Callable[[], Seen]]

CANDIDATES = 100
CANDIDATES_MAX = 6400
# How many of the best are looked at closely: compared with one another and with the question.
CLOSE = 12
# Rows are fetched and weighed so many at a time, best first; priors rarely lift anything from further down.
PAGE = 50
# Where filters let few through, so many are scored one by one.
FILTERED_MAX = 2000
QUERY_CHARS_MAX = 4000


class Fusion(NamedTuple):
    """How the two engines are weighed, and when a hit is relevant enough (docs/decisions/0006-ranking.md)."""

    dense: float = 0.35
    relevance_min: float = 0.2
    relevance_share_min: float = 0.3
    # Whether what says the same is folded; off only to measure what that gives.
    fold_same: bool = True


class Proposal(NamedTuple):
    """A document either engine proposes: its home, its key and what the engines think of it."""

    book: int
    key: int
    words: float
    meaning: float | None
    fused: float


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
    proposals, ranked = _ranked(indexes, query, wanted, statistics, look, uses, weights, fusion)
    if not query.cutoff:
        return Found(ranked[: query.limit], len(proposals), statistics)
    chosen = _relevant(ranked[: max(CLOSE, query.limit)], wanted, statistics, fusion)
    if fusion.fold_same:
        chosen = same.in_force(_with_vectors(indexes, same.collapsed(chosen)[: 2 * query.limit]))
    hits = [_stale_marked(hit, query) for hit in chosen[: query.limit]]
    return Found(hits, len(proposals), statistics)


def _ranked(
    indexes: Sequence[Index],
    query: Query,
    wanted: Mapping[str, float],
    statistics: Sequence[Statistics],
    look: Look | None,
    uses: Callable[[str], int],
    weights: Weights,
    fusion: Fusion,
) -> tuple[list[Proposal], list[Hit]]:
    """All proposals, and those of the best that may be shown, weighed with their priors."""
    newest = _newest(indexes)
    enough = max(CLOSE, query.limit) + PAGE // 2
    limit = max(CANDIDATES, 2 * query.limit)
    while True:
        proposals, more = _proposals(indexes, query, wanted, statistics, look, fusion, limit)
        hits: list[Hit] = []
        for start in range(0, len(proposals), PAGE):
            hits += _weighed(indexes, proposals[start : start + PAGE], query, uses, newest, weights)
            if len(hits) >= enough:
                break
        # Filters may have taken nearly all of them; look further while there is more.
        plenty = len(hits) >= min(enough, 2 * query.limit)
        if not plenty and more and limit >= CANDIDATES_MAX:
            hits = _weighed(
                indexes, _chosen_by_filter(indexes, query, wanted, statistics), query, uses, newest, weights
            )
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
    fusion: Fusion,
    limit: int,
) -> tuple[list[Proposal], bool]:
    """What both engines propose, best first, and whether they could propose more.

    Each engine's score counts as a share of its best, weighed. What has no vector yet is judged by its words alone.
    """
    words: dict[tuple[int, int], float] = {}
    meaning: dict[tuple[int, int], float] = {}
    more = False
    seen = look(limit) if look is not None else None
    for book, index in enumerate(indexes):
        lexical = index.text.match(wanted, statistics[book], repos=query.repos, kinds=query.kinds, limit=limit)
        words |= {(book, key): score for key, score in lexical}
        more = more or len(lexical) >= limit
    vector: Any = None
    nearest: list[dict[int, float]] = []
    if seen is not None:
        vector, nearest = seen()
    for book, near in enumerate(nearest):
        rest = [key for home, key in words if home == book and key not in near]
        cosines = near | indexes[book].vectors.similarity(vector, rest)
        meaning |= {(book, key): cosine for key, cosine in cosines.items()}
        more = more or (query.repos is not None and len(cosines) >= limit)
    best_words = max(words.values(), default=0.0) or 1.0
    best_meaning = max(meaning.values(), default=0.0) or 1.0
    weight = fusion.dense if vector is not None else 0.0
    found = []
    for one in words.keys() | meaning.keys():
        lexical_score = words.get(one, 0.0)
        lexical_share = lexical_score / best_words
        cosine = meaning.get(one)
        dense_share = lexical_share if cosine is None else max(0.0, cosine) / best_meaning
        fused = (1 - weight) * lexical_share + weight * dense_share
        found.append(Proposal(*one, lexical_score, cosine, fused))
    found.sort(key=lambda one: (-one.fused, one.book, one.key))
    return found, more


def _looking(indexes: Sequence[Index], read: Callable[[], Any], aside: Aside, limit: int) -> Callable[[], Seen]:
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
                found.append(Proposal(book, row.key, score, None, score))
    best = max((one.fused for one in found), default=1.0)
    return sorted((one._replace(fused=one.fused / best) for one in found), key=lambda one: (-one.fused, one.key))


def text_score(said: Sequence[str], wanted: Mapping[str, float], statistics: Statistics) -> float:
    """BM25 of one text, as the index would score it."""
    counts = Counter(said)
    norm = K1 * (1 - B + B * len(said) / statistics.average_terms)
    matched = ((term, weight) for term, weight in wanted.items() if counts[term])
    return sum(w * statistics.idf(t) * counts[t] * (K1 + 1) / (counts[t] + norm) for t, w in matched)


def condition(query: Query) -> tuple[str, tuple[object, ...]]:
    """What *query* lets through, as SQL over `doc`."""
    parts: list[str] = [] if query.archived else ["archived = 0"]
    arguments: list[object] = []

    def among(expression: str, values: Collection[str]) -> None:
        parts.append(f"{expression} IN ({','.join('?' * len(values))})")
        arguments.extend(sorted(values))

    if query.repos is not None:
        among("repo", {*query.repos, ""})
    if query.kinds is not None:
        among("kind", query.kinds)
    if query.types is not None:
        among("json_extract(CAST(raw AS TEXT), '$.event_type')", query.types)
    if query.agent is not None:
        among("json_extract(CAST(raw AS TEXT), '$.agent_id')", [query.agent])
    if query.since:
        parts.append("timestamp >= ?")
        arguments.append(query.since)
    if query.tags:
        marks = ",".join("?" * len(query.tags))
        tags = "json_each(CAST(raw AS TEXT), '$.tags')"
        parts.append(f"EXISTS (SELECT 1 FROM {tags} WHERE lower(json_each.value) IN ({marks}))")  # noqa: S608
        arguments.extend(sorted(query.tags))
    return " AND ".join(parts) or "1", tuple(arguments)


def _weighed(
    indexes: Sequence[Index],
    proposals: Sequence[Proposal],
    query: Query,
    uses: Callable[[str], int],
    newest: datetime,
    weights: Weights,
) -> list[Hit]:
    """Those of *proposals* that are current, visible and wanted, as hits with their priors."""
    hits: list[Hit] = []
    for book, index in enumerate(indexes):
        mine = {one.key: one for one in proposals if one.book == book}
        rows = {key: row for key, row in index.store.rows(mine).items() if wants(row, query)}
        hidden = hidden_ids(indexes, {row.id: (book, row) for row in rows.values()})
        feedback = feedback_of(index, [row.id for row in rows.values()])
        hits += [
            _scored(mine[key], row, query, feedback.get(row.id, _NO_FEEDBACK), uses(row.id), newest, weights)
            for key, row in rows.items()
            if row.id not in hidden
        ]
    return hits


def wants(row: Row, query: Query) -> bool:
    record = row.record
    return not (
        (row.archived and not query.archived)
        # Skills and notes belong to the home, not to one repository of it.
        or (query.repos is not None and row.repo and row.repo not in query.repos)
        or (query.kinds is not None and row.kind not in query.kinds)
        or (query.types is not None and record.fields.get("event_type") not in query.types)
        or (query.tags and not query.tags & {tag.lower() for tag in record.tags})
        or (query.agent is not None and record.agent_id != query.agent)
        or (query.since and record.timestamp < query.since)
        or row.id in query.without
        # Notes are their agent's own.
        or (row.kind == "note" and record.agent_id != (query.agent or query.asking))
    )


def hidden_ids(indexes: Sequence[Index], rows: Mapping[str, tuple[int, Row]]) -> set[str]:
    """Of *rows* (by id, with the number of their home): what was forgotten, rests on it, or is superseded."""
    if not rows:
        return set()
    forgotten = _forgotten(indexes, rows)
    newer = [(ident, of) for ident, _rel, of in _edges(indexes, "to", rows, "supersedes")]
    superseded = {of for ident, of in newer if ident not in _forgotten_ids(indexes, [ident])}
    superseded |= {ident for ident, _rel, _to in _edges(indexes, "of", rows, "superseded_by")}
    return forgotten | superseded | _resting_on_forgotten(indexes, rows)


def _forgotten(indexes: Sequence[Index], rows: Mapping[str, tuple[int, Row]]) -> set[str]:
    """Those whose forgetting stands behind their last line; between two logs or homes the later time counts."""
    found: set[str] = set()
    query = "SELECT of, log, place, timestamp FROM doc WHERE kind = 'forget' AND of IN ({})"
    for book, index in enumerate(indexes):
        for of, log, place, timestamp in _in_chunks(index, query, rows) if index.store.has_references() else ():
            home, row = rows[str(of)]
            in_one_log = home == book and row.log == log
            if int(place) > row.place if in_one_log else str(timestamp) > row.timestamp:
                found.add(str(of))
    return found


def _forgotten_ids(indexes: Sequence[Index], ids: Collection[str]) -> set[str]:
    rows: dict[str, tuple[int, Row]] = {}
    for book, index in enumerate(indexes):
        keys = [int(key) for (key,) in _in_chunks(index, "SELECT key FROM head WHERE id IN ({})", ids)]
        for row in index.store.rows(keys).values():
            rows.setdefault(row.id, (book, row))
    return _forgotten(indexes, rows)


def _resting_on_forgotten(indexes: Sequence[Index], ids: Collection[str]) -> set[str]:
    """Those of *ids* that derive, in any number of steps, from something forgotten."""
    sources: dict[str, set[str]] = {}
    below = set(ids)
    while below:
        found = _edges(indexes, "of", below, "derived_from")
        for ident, _rel, source in found:
            sources.setdefault(ident, set()).add(source)
        below = {source for _ident, _rel, source in found} - sources.keys()
    lost = _forgotten_ids(indexes, {source for found in sources.values() for source in found}) if sources else set()
    grown = True
    while grown:
        more = {ident for ident, found in sources.items() if ident not in lost and found & lost}
        lost |= more
        grown = bool(more)
    return lost & set(ids)


def _edges(indexes: Sequence[Index], end: str, ids: Collection[str], rel: str) -> list[tuple[str, str, str]]:
    """The edges that hold now: stated by the current version of a record, or by a link of its own."""
    query = (
        f'SELECT of, rel, "to" FROM edge JOIN head ON head.key = edge.key WHERE "{end}" IN ({{}})'  # noqa: S608
        f" AND rel = '{rel}'"
    )
    linked = [index for index in indexes if index.store.has_edges()]
    return [(str(of), str(rel), str(to)) for index in linked for of, rel, to in _in_chunks(index, query, ids)]


def _in_chunks(index: Index, query: str, values: Collection[str]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    wanted = list(values)
    for start in range(0, len(wanted), 500):
        some = wanted[start : start + 500]
        found += index.store.column(query.format(",".join("?" * len(some))), some)
    return found


# --- Scores -------------------------------------------------------------------------------------------------------


def _scored(
    found: Proposal,
    row: Row,
    query: Query,
    feedback: Mapping[str, int],
    uses: int,
    newest: datetime,
    weights: Weights,
) -> Hit:
    rate = _rate(row, feedback)
    factors = priors.factors(row, query, rate, feedback, uses, newest, weights)
    why = {"words": round(found.words, 4)}
    if found.meaning is not None:
        why["meaning"] = round(found.meaning, 4)
    why["fused"] = round(found.fused, 4)
    why |= factors
    score = found.fused
    for factor in factors.values():
        score *= factor
    return Hit(row.record, row.repo, round(score, 6), why, rate=rate, key=(found.book, row.key), uses=uses)


_NO_FEEDBACK = dict.fromkeys(OUTCOMES, 0)


def feedback_of(index: Index, ids: Collection[str]) -> dict[str, dict[str, int]]:
    """How often each of *ids* was said to have worked, failed, been wrong or stale."""
    found: dict[str, dict[str, int]] = {}
    if not index.store.has_references():
        return found
    for of, outcome in _in_chunks(index, "SELECT of, outcome FROM doc WHERE outcome IS NOT NULL AND of IN ({})", ids):
        counts = found.setdefault(str(of), dict(_NO_FEEDBACK))
        counts[str(outcome)] = counts.get(str(outcome), 0) + 1
    return found


_stated_rate = lru_cache(1024)(parse_rate)  # There are few, and fifty are read for every question.


def _rate(row: Row, feedback: Mapping[str, int]) -> Rate | None:
    stated = row.record.success_rate if isinstance(row.record, Lesson) else ""
    base = _stated_rate(stated) if stated else Rate(0, 0)
    tried = base.tried + feedback["worked"] + feedback["failed"]
    return Rate(base.worked + feedback["worked"], tried) if tried else None


def _newest(indexes: Sequence[Index]) -> datetime:
    times = [str(time) for index in indexes for (time,) in index.store.column("SELECT max(timestamp) FROM doc") if time]
    return datetime.fromisoformat(max(times, default="1970-01-01T00:00:00Z"))


def _unique(hits: list[Hit]) -> list[Hit]:
    """One hit an id: the nearest home's."""
    seen: set[str] = set()
    return [hit for hit in hits if not (hit.id in seen or seen.add(hit.id))]  # type: ignore[func-returns-value]


# --- Relevance ----------------------------------------------------------------------------------------------------


def _relevant(
    hits: Sequence[Hit], wanted: Mapping[str, float], statistics: Sequence[Statistics], fusion: Fusion
) -> list[Hit]:
    """Those that answer: enough of the question's weight in words or meaning, and not far behind the best."""
    weighed = [by_rarity(wanted, one) for one in statistics]
    judged = []
    for hit in hits:
        said = hit.said
        found = term_set(said.text)
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
    covered = sum(weight for term, weight in weighed.items() if term in said) / whole if whole else 0.0
    cosine = hit.why.get("meaning")
    return covered if cosine is None else 0.5 * covered + 0.5 * max(0.0, cosine)


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
    return replace(hit, marks=(*hit.marks, f"stale: {', '.join(missing[:3])} is gone")) if missing else hit
