"""Matching: what the words and the meaning of a question say about the documents of some homes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from commonplace.index import bm25
from commonplace.index.document import document
from commonplace.index.terms import query_terms, term_hash, terms
from commonplace.recall import scoring
from commonplace.recall.candidates import Proposal
from commonplace.recall.scoring import Circumstances, Scale
from commonplace.vocabulary import QUERY_CHARS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from commonplace.embed.embedder import Encoded
    from commonplace.index.bm25 import Statistics
    from commonplace.index.ports import Reader
    from commonplace.recall.candidates import Candidate, Candidates
    from commonplace.recall.hits import Address
    from commonplace.recall.query import Query

# Cards are read this many at a time, best first; priors rarely lift anything from further down.
PAGE = 28
# If few records pass the filters, up to this many are scored one by one.
FILTERED_MAX = 2000
# How many of the best by meaning alone are compared with the question's words as well.
NEAR = 20


class Matching:
    """One question against the *readers* of some homes: who proposes what, and how likely it helps.

    *vector* returns the question's vectors, after waiting for the model if needed; `None` if
    they cannot be used. Meaning has the weight *dense*, words have the rest.
    """

    def __init__(
        self,
        readers: Sequence[Reader],
        query: Query,
        vector: Callable[[], Encoded] | None,
        candidates: Candidates,
        dense: float,
    ) -> None:
        self._readers = readers
        self._query = query
        self._vector = vector
        self._candidates = candidates
        self._dense = dense
        self.wanted = query_terms(query.text[:QUERY_CHARS_MAX])
        self.statistics = [reader.statistics(self.wanted) for reader in readers]
        self._pieces: dict[Address, float | None] = {}
        # The weight of the question's terms in each document whose terms were read.
        self._held_weights: dict[Address, float] = {}
        self._weights_of_terms: list[tuple[list[tuple[int, float]], float]] | None = None

    @property
    def compares_meaning(self) -> bool:
        """Whether vectors are compared, not words alone."""
        return self._vector is not None

    # --- Proposals --------------------------------------------------------------------------------

    def propose(self, limit: int) -> tuple[list[Proposal], bool]:
        """Return the proposals of both engines, best first, and whether there may be more."""
        words: dict[Address, float] = {}
        # Among many vectors, they are searched while words are.
        searches = [
            reader.begin_nearest(self._vector, limit) if self._vector is not None else dict
            for reader in self._readers
        ]
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
            vector = self._vector().vector
            for home, reader in enumerate(self._readers):
                near = searches[home]()
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
            self._dense if self._vector is not None else 0.0,
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
        known = self._held_weights
        for address in addresses:
            if address not in known:
                terms_held = self._candidates.terms(address)
                known[address] = sum(
                    [weight for hash_, weight in weighted[address[0]] if hash_ in terms_held]
                )
        return {address: known[address] for address in addresses}

    def whole_match(self) -> float:
        """Return the score of an average document that holds each term of the question once."""
        return max(self._whole_match(one) for one in self.statistics)

    def _whole_match(self, statistics: Statistics) -> float:
        weighted = sorted(bm25.by_rarity(self.wanted, statistics).values(), reverse=True)
        return sum(weighted[: min(bm25.QUERY_TERMS_MAX, round(statistics.average_terms))])

    def score_filtered(self) -> list[Proposal]:
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
        given = self.circumstances()
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

    def asked_pieces(self) -> int:
        """Return how many word pieces of the question are compared."""
        pieces = self._vector().pieces if self._vector is not None else None
        return 0 if pieces is None else len(pieces)

    def pieces(self, addresses: Collection[Address]) -> dict[Address, float]:
        """Return how well each document says the question, piece by piece.

        Those without codes of their pieces are not in it.
        """
        fresh = [address for address in addresses if address not in self._pieces]
        if fresh and self._vector is not None:
            self._pieces |= dict.fromkeys(fresh)
            for home, reader in enumerate(self._readers):
                keys = [key for number, key in fresh if number == home]
                found = reader.piece_similarity(self._vector(), keys) if keys else {}
                self._pieces |= {(home, key): value for key, value in found.items()}
        known = ((address, self._pieces.get(address)) for address in addresses)
        return {address: value for address, value in known if value is not None}

    def best_passages(self, addresses: Collection[Address]) -> dict[Address, int]:
        """Return which passage of each document is most like the question, counted from 0."""
        if self._vector is None:
            return {}
        found: dict[Address, int] = {}
        for home, reader in enumerate(self._readers):
            keys = [key for number, key in addresses if number == home]
            best = reader.best_passages(self._vector().vector, keys) if keys else {}
            found |= {(home, key): place for key, place in best.items()}
        return found

    def units(self, address: Address) -> dict[int, float]:
        """Return how well each unit of a long document says the question, piece by piece."""
        if self._vector is None:
            return {}
        home, key = address
        return self._readers[home].unit_similarity(self._vector(), key)

    def likenesses(self, addresses: Collection[Address]) -> dict[Address, float]:
        """Return how alike the question and each document are, from 0 to 1.

        That is the cosine of its best passage; without a vector, which share of the question its
        words cover.
        """
        found: dict[Address, float] = {}
        if self._vector is not None:
            vector = self._vector().vector
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

    def circumstances(self) -> list[Circumstances]:
        """Return what else bears on relevance, for each home."""
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


def _best(scores: Mapping[Address, float], count: int) -> list[Address]:
    """Return the *count* documents with the highest scores, best first."""
    return sorted(scores, key=lambda address: (-scores[address], address))[:count]
