"""Recall itself: from a question to ranked hits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index import bm25
from commonplace.index.document import document
from commonplace.index.terms import query_terms, term_hash, terms
from commonplace.recall import dedupe, priors
from commonplace.recall.candidates import Candidate, Candidates, Proposal
from commonplace.recall.dedupe import Entry
from commonplace.recall.hits import Hit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from commonplace.embed.embedder import Vector
    from commonplace.index.bm25 import Statistics
    from commonplace.index.ports import Reader
    from commonplace.recall.hits import Address
    from commonplace.recall.priors import Weights
    from commonplace.recall.query import Query

# How many candidates each engine proposes, and how many where filters leave too few.
CANDIDATES = 60
CANDIDATES_MAX = 6400
# How many of the best are looked at closely: compared with one another and with the question.
CLOSE = 12
# Cards are read this many at a time, best first; priors rarely lift anything from further down.
PAGE = 40
# Where filters let few through, that many are scored one by one.
FILTERED_MAX = 2000
QUERY_CHARS_MAX = 4000
# The best relevance is looked for among this many of the ranking.
EXPLAINED = 20
# Relevance by words, where there is a vector too.
WORDS_SHARE = 0.3


class Fusion(NamedTuple):
    """How the engines are weighed, and when a hit is relevant enough (docs/decisions/0006)."""

    dense: float = 0.4
    relevance_min: float = 0.22
    relevance_share_min: float = 0.3
    # Whether what says the same is folded; off only to measure what that gives.
    dedupe: bool = True


class Found(NamedTuple):
    """The hits, how many candidates there were, and the statistics of each home."""

    hits: list[Hit]
    considered: int
    statistics: list[Statistics]


class Search:
    """One question, asked of the *readers* of some homes, the nearest first.

    *vector* returns the question's vector, waiting for the model if need be; `None` where vectors
    cannot help.
    """

    def __init__(
        self,
        readers: Sequence[Reader],
        query: Query,
        vector: Callable[[], Vector] | None,
        uses: Callable[[str], int],
        weights: Weights,
        fusion: Fusion,
    ) -> None:
        self._readers = readers
        self._query = query
        self._vector = vector
        self._fusion = fusion
        self.wanted = query_terms(query.text[:QUERY_CHARS_MAX])
        self.statistics = [reader.statistics(self.wanted) for reader in readers]
        self._candidates = Candidates(readers, query, uses, weights)

    def run(self) -> Found:
        """Rank what the homes hold about the question, most useful first."""
        query = self._query
        considered, ranked = self._rank()
        if not query.cutoff:
            hits = self._candidates.hits(ranked[: query.limit])
            return Found(hits, considered, self.statistics)
        entries = self._relevant(ranked[: max(CLOSE, query.limit)])
        if self._fusion.dedupe:
            folded = dedupe.fold_twins(entries)[: 2 * query.limit]
            entries = dedupe.newest_first(self._with_vectors(folded))
        return Found(self._hits(entries[: query.limit]), considered, self.statistics)

    def explain(self) -> tuple[list[Hit], float]:
        """The whole ranking with the relevance of each hit, and the relevance an answer needs."""
        _considered, ranked = self._rank()
        values = self.relevances(ranked)
        self._candidates.read(one.address for one in ranked)
        hits = [self._candidates.hit(one, value) for one, value in zip(ranked, values, strict=True)]
        return hits, self.relevance_floor(max(values[:EXPLAINED], default=0.0))

    def _rank(self) -> tuple[int, list[Candidate]]:
        """How many proposals there were, and the best that may be shown, in their order."""
        query = self._query
        enough = max(CLOSE, query.limit) + PAGE // 2
        limit = max(CANDIDATES, 2 * query.limit)
        while True:
            proposals, more = self._propose(limit)
            found: list[Candidate] = []
            for start in range(0, len(proposals), PAGE):
                found += self._candidates.choose(proposals[start : start + PAGE])
                if len(found) >= enough:
                    break
            # Filters may have taken nearly all of them; look further while there is more.
            plenty = len(found) >= min(enough, 2 * query.limit)
            last = limit >= CANDIDATES_MAX
            if not plenty and more and last:
                found = self._candidates.choose(self._filtered())
            if plenty or not more or last:
                found.sort(key=lambda one: (-one.score, one.address))
                return len(proposals), _one_an_id(found)
            limit *= 4

    # --- Proposals --------------------------------------------------------------------------------

    def _propose(self, limit: int) -> tuple[list[Proposal], bool]:
        """What both engines propose, best first, and whether they could propose more."""
        words: dict[Address, float] = {}
        more = False
        for home, reader in enumerate(self._readers):
            matches = reader.match(self.wanted, self.statistics[home], self._query, limit)
            words |= {(home, key): score for key, score in matches}
            more = more or len(matches) >= limit
        meaning: dict[Address, float] = {}
        if self._vector is not None:
            # What leads by its words is read while the model works; most of it leads in the end.
            self._candidates.weigh(sorted(words, key=words.__getitem__, reverse=True)[:PAGE])
            self._candidates.read_terms(self._candidates.leading(words, CLOSE))
            vector = self._vector()
            for home, reader in enumerate(self._readers):
                near = reader.nearest(vector, limit)
                rest = [key for number, key in words if number == home and key not in near]
                cosines = near | reader.similarity(vector, rest)
                meaning |= {(home, key): cosine for key, cosine in cosines.items()}
                more = more or (self._query.repos is not None and len(cosines) >= limit)
        return self._fuse(words, meaning), more

    def _fuse(
        self, words: Mapping[Address, float], meaning: Mapping[Address, float]
    ) -> list[Proposal]:
        """Each engine's score as a share, weighed: of the best cosine, of a whole match by words.

        A document that has no vector yet is judged by its words alone.
        """
        best_words = max(words.values(), default=0.0) or 1.0
        # A question of which no document holds more than a common word has no good match by words.
        whole = max(best_words, *(self._whole_match(one) for one in self.statistics))
        best_meaning = max(meaning.values(), default=0.0) or 1.0
        weight = self._fusion.dense if self._vector is not None else 0.0
        found = []
        for address in words.keys() | meaning.keys():
            score = words.get(address, 0.0)
            cosine = meaning.get(address)
            # A document without a vector is judged by its words alone.
            dense_share = score / best_words if cosine is None else max(0.0, cosine) / best_meaning
            fused = (1 - weight) * score / whole + weight * dense_share
            found.append((-fused, address, score, cosine))
        found.sort()  # Addresses differ, so the order never depends on what comes after them.
        return [Proposal(address, score, cosine, -rank) for rank, address, score, cosine in found]

    def _whole_match(self, statistics: Statistics) -> float:
        """The score of a document of average length that holds each term of the question once."""
        weighted = sorted(bm25.by_rarity(self.wanted, statistics).values(), reverse=True)
        return sum(weighted[: min(bm25.QUERY_TERMS_MAX, round(statistics.average_terms))])

    def _filtered(self) -> list[Proposal]:
        """For filters that let few through: those few, scored by their words one by one."""
        found: list[Proposal] = []
        for home, reader in enumerate(self._readers):
            statistics = self.statistics[home]
            weighted = bm25.by_rarity(self.wanted, statistics)
            keys = [card.key for card in reader.select(self._query, newest=FILTERED_MAX)]
            for key, record in reader.records(keys).items():
                counts = Counter(terms(document(record).text))
                score = bm25.score(counts, counts.total(), weighted, statistics.average_terms)
                if score > 0:
                    found.append(Proposal((home, key), score, None, score))
        best = max((one.fused for one in found), default=1.0)
        shares = (one._replace(fused=one.fused / best) for one in found)
        return sorted(shares, key=lambda one: (-one.fused, one.address))

    # --- Relevance --------------------------------------------------------------------------------

    def relevances(self, candidates: Sequence[Candidate]) -> list[float]:
        """How much of the question each of *candidates* covers, from 0 to about 1."""
        self._candidates.read_terms(one.address for one in candidates)
        weighted = []
        for statistics in self.statistics:
            by_rarity = bm25.by_rarity(self.wanted, statistics)
            hashed = [(term_hash(term), weight) for term, weight in by_rarity.items()]
            weighted.append((hashed, sum(by_rarity.values())))
        return [
            relevance(one.meaning, self._candidates.terms(one.address), *weighted[one.address[0]])
            for one in candidates
        ]

    def relevance_floor(self, best: float) -> float:
        """The relevance a hit needs where the best one has *best*."""
        return max(self._fusion.relevance_min, self._fusion.relevance_share_min * best)

    def _relevant(self, candidates: Sequence[Candidate]) -> list[Entry]:
        """Those that answer: relevant enough by themselves, and not far behind the best."""
        values = self.relevances(candidates)
        floor = self.relevance_floor(max(values, default=0.0))
        return [
            self._entry(one, value)
            for one, value in zip(candidates, values, strict=True)
            if value >= floor
        ]

    def _entry(self, one: Candidate, value: float) -> Entry:
        text = partial(self._candidates.text, one.address)
        return Entry(one, one.score, self._candidates.terms(one.address), text, value)

    def _with_vectors(self, entries: Sequence[Entry]) -> list[Entry]:
        # Only records of one kind and repository are ever compared by meaning.
        alike = Counter(
            (entry.candidate.card.repo, entry.candidate.card.kind)
            for entry in entries
            if entry.candidate.meaning is not None
        )
        if max(alike.values(), default=0) < 2:
            return list(entries)
        vectors: dict[Address, Vector] = {}
        for home, reader in enumerate(self._readers):
            addresses = (entry.candidate.address for entry in entries)
            keys = [key for number, key in addresses if number == home]
            found = reader.first_vectors(keys) if keys else {}
            vectors |= {(home, key): vector for key, vector in found.items()}
        return [one._replace(vector=vectors.get(one.candidate.address)) for one in entries]

    def _hits(self, entries: Sequence[Entry]) -> list[Hit]:
        """*entries* as hits, with what comparing gave them."""
        self._candidates.read(entry.candidate.address for entry in entries)
        hits = []
        for entry in entries:
            hit = self._candidates.hit(entry.candidate, entry.relevance)
            hits.append(replace(hit, score=entry.score, marks=self._marks(hit, entry)))
        return hits

    def _marks(self, hit: Hit, entry: Entry) -> tuple[str, ...]:
        """What the reader should know; a hit that names files which are gone says so."""
        query = self._query
        if query.root is not None and hit.repo == query.here:
            missing = priors.missing_files(hit.document.text, query.root)
            if missing:
                return (*entry.marks, f"stale: {', '.join(missing[:3])} is gone")
        return entry.marks


def relevance(
    meaning: float | None,
    said: frozenset[int],
    weighted: Sequence[tuple[int, float]],
    whole: float,
) -> float:
    """How much of the question's weight a document covers, in words and, if known, in meaning."""
    held = sum(weight for hash_, weight in weighted if hash_ in said)
    covered = held / whole if whole else 0.0
    if meaning is None:
        return covered
    return WORDS_SHARE * covered + (1 - WORDS_SHARE) * max(0.0, meaning)


def _one_an_id(candidates: list[Candidate]) -> list[Candidate]:
    seen: set[str] = set()
    kept = []
    for one in candidates:
        if one.card.id not in seen:
            seen.add(one.card.id)
            kept.append(one)
    return kept
