"""Search: from a question to ranked hits."""

from __future__ import annotations

from collections import Counter
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.index import bm25
from commonplace.index.passages import PASSAGE_CHARS_MAX
from commonplace.index.terms import term_hash, term_set
from commonplace.recall import conflicts, dedupe, priors, scoring
from commonplace.recall.candidates import Candidate, Candidates, Proposal
from commonplace.recall.dedupe import Entry
from commonplace.recall.hits import UNTRUSTED, Hit
from commonplace.recall.matching import PAGE, Matching
from commonplace.records import AntiPattern, Pattern
from commonplace.records.episodes import errors_of
from commonplace.rules import Standing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from commonplace.embed.embedder import Encoded, Vector
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
# How many of the best are compared with the question piece by piece.
PIECES_COMPARED = 20
# How many of the best are read together with the question, if the second is nearly as good as the
# first: so near it must be, and the others less so, as shares of the score of the best.
READ_MAX = 4
READ_IF_WITHIN, READ_WITHIN = 0.1, 0.25
# Among this many, a long record may state a newer version of a rule in one sentence.
RESTATING = 24
# Of this many, what a long record says in one sentence is always compared with later ones.
LEADING = 2
# How many resolutions of an episode are compared with what other memories say.
FIXES_MAX = 40
# The kinds that may be derived from episodes.
DERIVED_KINDS = ("pattern", "anti_pattern")
# The best relevance is sought among this many of the ranking.
EXPLAINED = 20
# A hit that is more relevant than this asks no more of the others.
SURE = 0.98
# Of the relevance of the best hit: with less, a memory is no hit and no newer version of a rule.
COMPARED_SHARE_MIN = 0.3


class Fusion(NamedTuple):
    """How the engines are weighed, and when a hit is relevant enough (docs/decisions/0039)."""

    dense: float = 0.5
    # What the word pieces weigh beside all of that.
    pieces: float = 0.25
    # And what reading the best together with the question weighs.
    reading: float = 0.03
    relevance_min: float = 0.06
    # Of the odds of the best hit, the share that another one needs.
    odds_share_min: float = 0.15
    # Whether near-duplicates are folded; off only for measurements.
    dedupe: bool = True

    @classmethod
    def from_settings(cls, settings: Settings | Mapping[str, Any], relevance_min: float) -> Fusion:
        """Return the fusion that *settings* ask for, with at least that relevance."""
        least = settings["recall.relevance_min"]
        return cls(
            dense=settings["recall.dense"],
            # Without meaning, the order is that of plain BM25.
            pieces=settings["recall.pieces"] if settings["recall.dense"] else 0.0,
            reading=settings["recall.reading"] if settings["recall.dense"] else 0.0,
            relevance_min=max(least, relevance_min),
            odds_share_min=cls().odds_share_min if least else 0.0,
            dedupe=settings["recall.same"],
        )


class Found(NamedTuple):
    """The hits, how many candidates there were, and the statistics of each home."""

    hits: list[Hit]
    considered: int
    statistics: list[Statistics]


class Search:
    """One search in the *readers* of some homes, the nearest first.

    *vector* returns the question's vectors, after waiting for the model if needed; `None` if
    they cannot be used. *read* says how well each of some texts answers a question; `None` if
    no model does.
    """

    def __init__(
        self,
        readers: Sequence[Reader],
        query: Query,
        vector: Callable[[], Encoded] | None,
        uses: Callable[[str], int],
        weights: Weights,
        fusion: Fusion,
        read: Callable[[str, Sequence[str]], Sequence[float]] | None = None,
    ) -> None:
        self._readers = readers
        self._read = read
        self._query = query
        self._fusion = fusion
        self._candidates = Candidates(readers, query, uses, weights)
        self.matching = Matching(readers, query, vector, self._candidates, fusion.dense)
        self._ranked: list[Candidate] = []

    def run(self) -> Found:
        """Rank what the homes hold about the question, most useful first."""
        query = self._query
        considered, ranked = self._rank()
        self._ranked = ranked
        if not query.cutoff:
            hits = self._candidates.hits(ranked[: query.limit])
            return Found(hits, considered, self.matching.statistics)
        entries, floor = self._select_relevant(_close(ranked, max(CLOSE, query.limit)))
        if self._fusion.dedupe:
            entries = self._with_statements(entries, ranked[: max(RESTATING, query.limit)])
            folded = dedupe.fold_twins(entries)
            if any(entry.fixes for entry in folded):
                folded = dedupe.lessons_first(folded)
            if any(entry.sources for entry in folded):
                folded = dedupe.fold_sources(folded)
            entries = dedupe.newest_first(self._with_vectors(folded[: 2 * query.limit]))
        hits = self._hits(self._with_conflicts(dedupe.without_padding(entries, floor)))
        return Found(hits, considered, self.matching.statistics)

    def ranked(self) -> list[Candidate]:
        """Return the ranking up to the limit of the question, without reading the records.

        For a caller that takes all of it: the word pieces, which order the first of an answer, are
        not compared, and nothing is read again.
        """
        return self._rank(is_quick=True)[1][: self._query.limit]

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
        values = self.matching.relevances(ranked)
        self._candidates.read(one.address for one in ranked)
        hits = [self._candidates.hit(one, value) for one, value in zip(ranked, values, strict=True)]
        return hits, self.relevance_floor(max(values[:EXPLAINED], default=0.0))

    def _rank(self, *, is_quick: bool = False) -> tuple[int, list[Candidate]]:
        """Return how many proposals there were, and the best that may be shown, in order."""
        query = self._query
        weight, reads = (0.0, False) if is_quick else (self._fusion.pieces, True)
        enough = max(CLOSE, query.limit) + PAGE // 2
        limit = max(CANDIDATES, 2 * query.limit)
        while True:
            proposals, more = self.matching.propose(limit)
            found: list[Candidate] = []
            for start in range(0, len(proposals), PAGE):
                found += self._candidates.choose(proposals[start : start + PAGE])
                if len(found) >= enough:
                    break
            # If the filters removed nearly all of them, propose more while there are more.
            plenty = len(found) >= min(enough, 2 * query.limit)
            last = limit >= CANDIDATES_MAX or not query.extend
            if not plenty and more and last and query.extend:
                found = self._candidates.choose(self.matching.score_filtered())
            if plenty or not more or last:
                found.sort(key=_by_score)
                found = self._compare_pieces(found, weight) if weight else found
                found = _first_of_each_id(found)
                if reads and self._read is not None:
                    found = self._read_best(found, self._read)
                return len(proposals), found
            limit *= 4

    def _compare_pieces(self, ranked: list[Candidate], full: float) -> list[Candidate]:
        """Return *ranked* in the order that the word pieces of the best give.

        One that has no codes of them counts as the mean of the others, and one that is further
        down as the worst of them.
        """
        found = self.matching.pieces([one.address for one in ranked[:PIECES_COMPARED]])
        best = max(found.values(), default=0.0)
        if best <= 0:
            return ranked
        weight = scoring.pieces_weight(full, self.matching.asked_pieces())
        mean, least = sum(found.values()) / len(found), min(found.values())
        weighed = []
        for place, one in enumerate(ranked):
            value = found.get(one.address, mean if place < PIECES_COMPARED else least)
            weighed.append(one.with_pieces(max(0.0, value) / best, weight))
        return sorted(weighed, key=_by_score)

    def _read_best(
        self,
        ranked: list[Candidate],
        read: Callable[[str, Sequence[str]], Sequence[float]],
    ) -> list[Candidate]:
        """Return *ranked* in the order that reading the best with the question gives.

        Only if the first place is in doubt: reading takes longer than all the rest.
        """
        best = ranked[0].score if ranked else 0.0
        if len(ranked) < 2 or ranked[1].score < (1 - READ_IF_WITHIN) * best:
            return ranked
        near = [one for one in ranked[:READ_MAX] if one.score >= (1 - READ_WITHIN) * best]
        places = self.matching.best_passages([one.address for one in near])
        if not places:
            return ranked
        texts = [self._candidates.passage(one.address, places.get(one.address, 0)) for one in near]
        said = read(self._query.text, texts)
        # None of them falls below those that were not read.
        least = min(said)
        weight = self._fusion.reading * best
        weighed = [
            one.with_reading(weight * (value - least))
            for one, value in zip(near, said, strict=True)
        ]
        return sorted([*weighed, *ranked[len(near) :]], key=_by_score)

    # --- Relevance --------------------------------------------------------------------------------

    def relevance_floor(self, best: float) -> float:
        """Return the relevance that a hit needs if the best one has *best*.

        The minimum says whether the question is answered at all; if it is, the other hits are
        measured by the best one, by their odds: beside a sure hit, one that may well be wrong is
        padding, and beside a doubtful one it may be the right one, with a share of its relevance.
        """
        least, share = self._fusion.relevance_min, self._fusion.odds_share_min
        if best < least or not share:
            return least
        sure = min(best, SURE)
        odds = share * sure / (1 - sure)
        return min(best, max(COMPARED_SHARE_MIN * best, odds / (1 + odds)))

    def _select_relevant(self, candidates: Sequence[Candidate]) -> tuple[list[Entry], float]:
        """Return the candidates to compare with each other, and the relevance that a hit needs.

        One that is less relevant may still be the newest version of a rule.
        """
        values = self.matching.relevances(candidates)
        best = max(values, default=0.0)
        floor = self.relevance_floor(best)
        compared = min(floor, COMPARED_SHARE_MIN * best) if best >= floor else floor
        entries = [
            self._entry(one, value)
            for one, value in zip(candidates, values, strict=True)
            if value >= compared
        ]
        return entries, floor

    def _with_statements(
        self, entries: Sequence[Entry], ranked: Sequence[Candidate]
    ) -> list[Entry]:
        """Return *entries*, long ones with what they say about the question in one sentence.

        A long record that is less relevant as a whole is added if that sentence is a newer version
        of a rule among them.
        """
        weights = self._weights
        found = list(entries)
        places = dedupe.may_state_versions(found)
        self._candidates.read(found[place].candidate.address for place in places)
        for place in places:
            found[place] = dedupe.with_statement(found[place], weights)
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
        for one, value in zip(
            others, self.matching.relevances(others) if others else (), strict=True
        ):
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
            question=self._question,
        )

    @cached_property
    def _weights(self) -> Mapping[str, float]:
        """The terms of the question, weighed by their rarity."""
        statistics = max(self.matching.statistics, key=lambda one: one.documents)
        return bm25.by_rarity(self.matching.wanted, statistics)

    @cached_property
    def _question(self) -> Mapping[int, float]:
        """The share of the question that each of its terms is, as documents hold them."""
        whole = sum(self._weights.values())
        return {term_hash(term): weight / whole for term, weight in self._weights.items() if weight}

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
        return self._entry(chosen[0], self.matching.relevances(chosen[:1])[0]) if chosen else None

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
            is_long = len(hit.document.shown) > PASSAGE_CHARS_MAX
            likeness = self.matching.units(hit.address) if is_long else hit.likeness
            statement = entry.leads_by
            hits.append(
                hit._replace(
                    score=entry.score,
                    marks=marks,
                    units=kept,
                    likeness=likeness,
                    statement=statement,
                )
            )
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


def _by_score(one: Candidate) -> tuple[float, Address]:
    return -one.score, one.address


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
