"""Search: from a question to ranked hits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.index import bm25
from commonplace.index.document import document
from commonplace.index.terms import query_terms, term_hash, term_set, terms
from commonplace.recall import conflicts, dedupe, priors, scoring
from commonplace.recall.candidates import Candidate, Candidates, Proposal
from commonplace.recall.dedupe import Entry
from commonplace.recall.hits import UNTRUSTED, Hit
from commonplace.recall.scoring import Circumstances, Scale
from commonplace.records import AntiPattern, Pattern
from commonplace.records.episodes import errors_of
from commonplace.rules import Standing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from commonplace.embed.embedder import Vector
    from commonplace.index.bm25 import Statistics
    from commonplace.index.ports import Reader
    from commonplace.recall.hits import Address
    from commonplace.recall.priors import Weights
    from commonplace.recall.query import Query
    from commonplace.settings import Settings

# How many candidates each engine proposes, and how many where filters leave too few.
CANDIDATES = 60
CANDIDATES_MAX = 6400
# How many of the best are compared with one another and with the question.
CLOSE = 12
# Among this many, a long record may state a newer version of a rule in one sentence.
RESTATING = 24
# Of this many, what a long record says in one sentence is always compared with later ones.
LEADING = 2
# How many resolutions of an episode are compared with what other memories say.
FIXES_MAX = 40
# Cards are read this many at a time, best first; priors rarely lift anything from further down.
PAGE = 40
# If few records pass the filters, up to this many are scored one by one.
FILTERED_MAX = 2000
# The kinds that may be derived from episodes.
DERIVED_KINDS = ("pattern", "anti_pattern")
QUERY_CHARS_MAX = 4000
# The best relevance is sought among this many of the ranking.
EXPLAINED = 20
# How many of the best by meaning alone are compared with the question's words as well.
NEAR = 20


class Fusion(NamedTuple):
    """How the engines are weighed, and when a hit is relevant enough (docs/decisions/0039)."""

    dense: float = 0.5
    relevance_min: float = 0.06
    relevance_share_min: float = 0.3
    # Whether near-duplicates are folded; off only for measurements.
    dedupe: bool = True

    @classmethod
    def from_settings(cls, settings: Settings | Mapping[str, Any], relevance_min: float) -> Fusion:
        """Return the fusion that *settings* ask for, with at least that relevance."""
        least = settings["recall.relevance_min"]
        return cls(
            dense=settings["recall.dense"],
            relevance_min=max(least, relevance_min),
            relevance_share_min=cls().relevance_share_min if least else 0.0,
            dedupe=settings["recall.same"],
        )


class Found(NamedTuple):
    """The hits, how many candidates there were, and the statistics of each home."""

    hits: list[Hit]
    considered: int
    statistics: list[Statistics]


class Search:
    """One search in the *readers* of some homes, the nearest first.

    *vector* returns the question's vector, after waiting for the model if needed; `None` if
    vectors cannot be used.
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
        self._ranked: list[Candidate] = []
        self._weights_of_terms: list[tuple[list[tuple[int, float]], float]] | None = None

    @property
    def compares_meaning(self) -> bool:
        """Whether vectors are compared, not words alone."""
        return self._vector is not None

    def run(self) -> Found:
        """Rank what the homes hold about the question, most useful first."""
        query = self._query
        considered, ranked = self._rank()
        self._ranked = ranked
        if not query.cutoff:
            hits = self._candidates.hits(ranked[: query.limit])
            return Found(hits, considered, self.statistics)
        entries = self._select_relevant(_close(ranked, max(CLOSE, query.limit)))
        if self._fusion.dedupe:
            entries = self._with_statements(entries, ranked[: max(RESTATING, query.limit)])
            folded = dedupe.fold_twins(entries)
            if any(entry.fixes for entry in folded):
                folded = dedupe.lessons_first(folded)
            if any(entry.sources for entry in folded):
                folded = dedupe.fold_sources(folded)
            entries = dedupe.newest_first(self._with_vectors(folded[: 2 * query.limit]))
        return Found(self._hits(self._with_conflicts(entries)), considered, self.statistics)

    def ranked(self) -> list[Candidate]:
        """Return the ranking up to the limit of the question, without reading the records."""
        return self._rank()[1][: self._query.limit]

    def bytes_of_best(self, count: int) -> int:
        """Return the size of the *count* best records, whole, after `run`."""
        size = 0
        for home, reader in enumerate(self._readers):
            keys = [one.address[1] for one in self._ranked[:count] if one.address[0] == home]
            size += reader.record_bytes(keys)
        return size

    def explain(self) -> tuple[list[Hit], float]:
        """Return the ranking with the relevance of each hit, and the relevance an answer needs."""
        _considered, ranked = self._rank()
        values = self.relevances(ranked)
        self._candidates.read(one.address for one in ranked)
        hits = [self._candidates.hit(one, value) for one, value in zip(ranked, values, strict=True)]
        return hits, self.relevance_floor(max(values[:EXPLAINED], default=0.0))

    def _rank(self) -> tuple[int, list[Candidate]]:
        """Return how many proposals there were, and the best that may be shown, in order."""
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
            # If the filters removed nearly all of them, propose more while there are more.
            plenty = len(found) >= min(enough, 2 * query.limit)
            last = limit >= CANDIDATES_MAX or not query.extend
            if not plenty and more and last and query.extend:
                found = self._candidates.choose(self._score_filtered())
            if plenty or not more or last:
                found.sort(key=lambda one: (-one.score, one.address))
                return len(proposals), _first_of_each_id(found)
            limit *= 4

    # --- Proposals --------------------------------------------------------------------------------

    def _propose(self, limit: int) -> tuple[list[Proposal], bool]:
        """Return the proposals of both engines, best first, and whether there may be more."""
        words: dict[Address, float] = {}
        # Of a home with more matches than these, the score that the others have at most.
        left_out: dict[int, float] = {}
        for home, reader in enumerate(self._readers):
            matches = reader.match(self.wanted, self.statistics[home], self._query, limit)
            words |= {(home, key): score for key, score in matches}
            if matches and len(matches) >= limit:
                left_out[home] = matches[-1][1]
        more = bool(left_out)
        meaning: dict[Address, float] = {}
        # The best by words are read while the model works; most of them stay among the best.
        leading = _best(words, PAGE)
        self._candidates.weigh(leading)
        self._candidates.read_terms(leading)
        if self._vector is not None:
            vector = self._vector()
            for home, reader in enumerate(self._readers):
                near = reader.nearest(vector, limit)
                rest = [key for number, key in words if number == home and key not in near]
                cosines = near | reader.similarity(vector, rest)
                meaning |= {(home, key): cosine for key, cosine in cosines.items()}
                more = more or (self._query.repos is not None and len(cosines) >= limit)
            nearest = _best(meaning, NEAR)
            self._candidates.read_terms(nearest)
            leading = list(dict.fromkeys([*leading, *nearest]))
        held = self._held(leading)
        for address in leading:
            home = address[0]
            if address not in words and home in left_out and held[address]:
                estimated = self._estimate_words(address, held[address])
                words[address] = min(left_out[home], estimated)
        return self._fuse(words, meaning, held), more

    def _fuse(
        self,
        words: Mapping[Address, float],
        meaning: Mapping[Address, float],
        held: Mapping[Address, float],
    ) -> list[Proposal]:
        """Add what words, meaning and coverage say of each document.

        If documents hold only a common word of the question, none is a good match by words: then
        words are trusted less.
        """
        scale = Scale.measure(
            words.values(),
            self.whole_match(),
            max(meaning.values(), default=0.0),
            self._fusion.dense if self._vector is not None else 0.0,
        )
        whole = [weight for _terms, weight in self._weighted_terms()]
        found = []
        for address in words.keys() | meaning.keys():
            score, cosine = words.get(address, 0.0), meaning.get(address)
            covered = held[address] / whole[address[0]] if held.get(address) else 0.0
            parts = scale.parts(score, cosine, covered)
            found.append((-sum(parts.values()), address, score, cosine, parts))
        found.sort(key=lambda one: one[:2])
        return [
            Proposal(address, score, cosine, -rank, parts)
            for rank, address, score, cosine, parts in found
        ]

    def _estimate_words(self, address: Address, held: float) -> float:
        terms_held = len(self._candidates.terms(address))
        average = self.statistics[address[0]].average_terms
        return scoring.estimate_words(held, terms_held, average)

    def _held(self, addresses: Collection[Address]) -> dict[Address, float]:
        """Return the weight of the question's terms in each document; their terms were read."""
        weighted = [found for found, _whole in self._weighted_terms()]
        held = {}
        for address in addresses:
            terms_held = self._candidates.terms(address)
            held[address] = sum(
                weight for hash_, weight in weighted[address[0]] if hash_ in terms_held
            )
        return held

    def whole_match(self) -> float:
        """Return the score of an average document that holds each term of the question once."""
        return max(self._whole_match(one) for one in self.statistics)

    def _whole_match(self, statistics: Statistics) -> float:
        weighted = sorted(bm25.by_rarity(self.wanted, statistics).values(), reverse=True)
        return sum(weighted[: min(bm25.QUERY_TERMS_MAX, round(statistics.average_terms))])

    def _score_filtered(self) -> list[Proposal]:
        """Score all records that pass the filters by their words, if these are few."""
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
        """Return how likely each candidate is to answer the question, from 0 to 1."""
        covered = self.covered([one.address for one in candidates])
        given = self._circumstances()
        held = self._held(covered)
        return [
            scoring.relevance(
                one.meaning,
                # What was not proposed by its words may hold some of them.
                one.words or self._estimate_words(one.address, held[one.address]),
                covered[one.address],
                given[one.address[0]],
            )
            for one in candidates
        ]

    def likenesses(self, addresses: Collection[Address]) -> dict[Address, float]:
        """Return how alike the question and each document are, from 0 to 1.

        That is the cosine of its best passage; without a vector, which share of the question its
        words cover.
        """
        found: dict[Address, float] = {}
        if self._vector is not None:
            vector = self._vector()
            for home, reader in enumerate(self._readers):
                keys = [key for number, key in addresses if number == home]
                for key, cosine in reader.similarity(vector, keys).items() if keys else ():
                    found[home, key] = max(0.0, cosine)
        rest = [address for address in addresses if address not in found]
        return found | self.covered(rest)

    def covered(self, addresses: Collection[Address]) -> dict[Address, float]:
        """Return which share of the question, weighed by rarity, each document contains."""
        self._candidates.read_terms(addresses)
        whole = [weight for _terms, weight in self._weighted_terms()]
        return {
            address: held / whole[address[0]] if whole[address[0]] else 0.0
            for address, held in self._held(addresses).items()
        }

    def _circumstances(self) -> list[Circumstances]:
        memories = sum(one.documents for one in self.statistics)
        whole, count = self.whole_match(), len(self.wanted)
        return [Circumstances(whole, count, one.average_terms, memories) for one in self.statistics]

    def _weighted_terms(self) -> list[tuple[list[tuple[int, float]], float]]:
        """Return for each home the weights of the question's terms, and their sum."""
        if self._weights_of_terms is None:
            self._weights_of_terms = []
            for statistics in self.statistics:
                by_rarity = bm25.by_rarity(self.wanted, statistics)
                hashed = [(term_hash(term), weight) for term, weight in by_rarity.items()]
                self._weights_of_terms.append((hashed, sum(by_rarity.values())))
        return self._weights_of_terms

    def relevance_floor(self, best: float) -> float:
        """Return the relevance that a hit needs if the best one has *best*.

        The minimum says whether the question is answered at all; if it is, the other hits are
        measured by the best one.
        """
        least, share = self._fusion.relevance_min, self._fusion.relevance_share_min
        return share * best if best >= least and share else least

    def _select_relevant(self, candidates: Sequence[Candidate]) -> list[Entry]:
        """Return the candidates that are relevant enough, also relative to the best one."""
        values = self.relevances(candidates)
        floor = self.relevance_floor(max(values, default=0.0))
        return [
            self._entry(one, value)
            for one, value in zip(candidates, values, strict=True)
            if value >= floor
        ]

    def _with_statements(
        self, entries: Sequence[Entry], ranked: Sequence[Candidate]
    ) -> list[Entry]:
        """Return *entries*, long ones with what they say about the question in one sentence.

        A long record that is less relevant as a whole is added if that sentence is a newer version
        of a rule among them.
        """
        weights = bm25.by_rarity(self.wanted, max(self.statistics, key=lambda one: one.documents))
        found = dedupe.with_statements(entries, weights)
        for place, entry in enumerate(found[:LEADING]):
            if not entry.rule and any(_is_later(one, entry.candidate) for one in ranked):
                found[place] = dedupe.with_statement(entry, weights)
        kinds = {(one.candidate.card.repo, one.candidate.card.kind) for one in found if one.rule}
        known = {one.candidate.address for one in found}
        first = min((one.candidate.card.timestamp for one in found if one.rule), default="")
        others = [
            one
            for one in ranked
            if (one.card.repo, one.card.kind) in kinds
            and one.card.timestamp > first
            and one.address not in known
        ]
        self._candidates.read_terms([one.address for one in others])
        terms_held = self._candidates.terms
        others = [
            one
            for one in others
            if dedupe.may_restate(terms_held(one.address), one.card.timestamp, found)
        ]
        for one, value in zip(others, self.relevances(others) if others else (), strict=True):
            later = dedupe.with_statement(self._entry(one, value), weights)
            if dedupe.restates(later, found):
                found.append(later)
        return found

    def _entry(self, one: Candidate, value: float) -> Entry:
        text = partial(self._candidates.text, one.address)
        terms_held = self._candidates.terms(one.address)
        return Entry(
            one,
            one.score,
            terms_held,
            text,
            value,
            fixes=self._fixes(one),
            sources=self._sources(one),
            is_learned=self._is_learned(one),
        )

    def _sources(self, one: Candidate) -> frozenset[str]:
        """Return the ids that a pattern or an anti-pattern was derived from."""
        if one.card.kind not in DERIVED_KINDS:
            return frozenset()
        return frozenset(self._candidates.record(one.address).sources)

    def _is_learned(self, one: Candidate) -> bool:
        is_pattern = one.card.kind in ("pattern", "anti_pattern")
        return is_pattern and "batch" in self._candidates.record(one.address).meta

    def _fixes(self, one: Candidate) -> tuple[frozenset[int], ...]:
        """Return the terms of each resolution of an episode, or of what a pattern says to do."""
        if one.card.kind not in ("episode", *DERIVED_KINDS):
            return ()
        record = self._candidates.record(one.address)
        told = [error.resolution for error in errors_of(record) if error.resolution]
        if isinstance(record, Pattern):
            told = [record.correct_approach or record.pattern]
        elif isinstance(record, AntiPattern):
            told = [record.prevention]
        fixes = [frozenset(map(term_hash, term_set(fix))) for fix in told[:FIXES_MAX] if fix]
        # More than that are never all stated by others; nor is a fix without words.
        return (*fixes, frozenset()) if len(told) > FIXES_MAX else tuple(fixes)

    def _with_vectors(self, entries: Sequence[Entry]) -> list[Entry]:
        # Only records of one kind and repository are compared by meaning.
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

    def _with_conflicts(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the best entries, with what contradicts them beside them."""
        query = self._query
        ids = [entry.candidate.card.id for entry in entries[: query.limit]]
        found = conflicts.find(self._readers, ids, query.untrusted)
        if not found:
            return list(entries[: query.limit])
        return conflicts.show_together(entries, found, self._fetch, query.limit)

    def _fetch(self, address: Address) -> Entry | None:
        """Return the entry of a document that may not have been proposed."""
        ranked = [one for one in self._ranked if one.address == address]
        chosen = ranked or self._candidates.choose([Proposal(address, 0.0, None, 0.0)])
        return self._entry(chosen[0], self.relevances(chosen[:1])[0]) if chosen else None

    def _hits(self, entries: Sequence[Entry]) -> list[Hit]:
        """Return *entries* as hits, with their marks."""
        addresses = [entry.candidate.address for entry in entries]
        self._candidates.read(addresses)
        units = self._candidates.read_units(addresses)
        hits = []
        for entry in entries:
            hit = self._candidates.hit(entry.candidate, entry.relevance)
            kept = units.get(hit.address)
            marks = self._marks(hit, entry)
            hits.append(replace(hit, score=entry.score, marks=marks, units=kept))
        return hits

    def _marks(self, hit: Hit, entry: Entry) -> tuple[str, ...]:
        """Return the marks of a hit, such as that files which it names are gone."""
        query, marks = self._query, list(entry.marks)
        if hit.address[0] in query.untrusted:
            marks.append(UNTRUSTED)
        if entry.candidate.card.standing is Standing.SUPERSEDED:
            marks.append("superseded")
        elif query.root is not None and hit.repo == query.here:
            missing = priors.missing_files(hit.document.text, query.root)
            if missing:
                more = f" and {len(missing) - 1} more files" if len(missing) > 1 else ""
                gone = "are gone" if more else "is gone"
                marks.append(f"stale: {missing[0]}{more} {gone}")
        return tuple(marks)


def _best(scores: Mapping[Address, float], count: int) -> list[Address]:
    """Return the *count* documents with the highest scores, best first."""
    return sorted(scores, key=lambda address: (-scores[address], address))[:count]


def _is_later(one: Candidate, other: Candidate) -> bool:
    """Whether *one* is a later record of the same kind and repository."""
    return (one.card.repo, one.card.kind) == (
        other.card.repo,
        other.card.kind,
    ) and one.card.timestamp[:16] > other.card.timestamp[:16]


def _close(ranked: Sequence[Candidate], count: int) -> list[Candidate]:
    """Return the *count* best; if episodes are among them, what they may hide as well.

    Many episodes of one task must not keep out the lesson that they led to.
    """
    best = list(ranked[:count])
    if any(one.card.kind == "episode" for one in best):
        more = ranked[count : count + PAGE]
        best += [one for one in more if one.card.kind not in priors.EPISODIC_KINDS]
    return best


def _first_of_each_id(candidates: list[Candidate]) -> list[Candidate]:
    seen: set[str] = set()
    kept = []
    for one in candidates:
        if one.card.id not in seen:
            seen.add(one.card.id)
            kept.append(one)
    return kept
