"""Candidates: the documents that the engines propose, with their cards and priors."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.document import Document, document
from commonplace.index.passages import PASSAGE_CHARS_MAX
from commonplace.index.vector_passages import passages_to_embed
from commonplace.recall import scoring
from commonplace.recall.hits import Explanation, Hit
from commonplace.recall.priors import Priors
from commonplace.recall.visibility import shown_cards, standings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from commonplace.index.ports import Card, Reader
    from commonplace.index.units import Unit
    from commonplace.recall.hits import Address
    from commonplace.recall.priors import Weights
    from commonplace.recall.query import Query
    from commonplace.records import Record


class Proposal(NamedTuple):
    """A document that an engine proposes, with the scores of the engines."""

    address: Address
    words: float
    meaning: float | None
    fused: float
    # What each engine adds to the fused score.
    parts: Mapping[str, float] = {}


class Candidate(NamedTuple):
    """A proposal that may be shown, with its priors."""

    address: Address
    card: Card
    words: float
    meaning: float | None
    fused: float
    factors: Mapping[str, float]
    score: float
    parts: Mapping[str, float] = {}

    def with_pieces(self, share: float, weight: float) -> Candidate:
        """Return this one with what its word pieces add: *share* is of the best."""
        parts = scoring.add_pieces(self.parts, share, weight)
        fused = (self.fused + weight * share) / (1 + weight)
        score = round(fused * math.prod(self.factors.values()), 6)
        # `_replace` takes three times as long, and every candidate of a question gets here.
        return Candidate(
            self.address, self.card, self.words, self.meaning, fused, self.factors, score, parts
        )

    def with_reading(self, added: float) -> Candidate:
        """Return this one with what reading it together with the question adds to its score."""
        share = added / (math.prod(self.factors.values()) or 1.0)
        parts = scoring.add_reading(self.parts, share)
        return self._replace(
            fused=self.fused + share, score=round(self.score + added, 6), parts=parts
        )


class _WeightedCard(NamedTuple):
    card: Card
    factors: Mapping[str, float]
    prior: float


class Candidates:
    """The documents of one question, each read once, whichever engine proposes it.

    Reading takes longer than finding, so the proposals by words are read while the model is still
    embedding the question; and records themselves are read only for the few that matter.
    """

    def __init__(
        self,
        readers: Sequence[Reader],
        query: Query,
        uses: Callable[[str], int],
        weights: Weights,
    ) -> None:
        self._readers = readers
        self._standings = standings_of(readers)
        self._query = query
        self._uses = uses
        newest = max((reader.newest_micros() or 0 for reader in readers), default=0)
        self._priors = Priors(query, newest, weights)
        # `None` for documents that may not be shown.
        self._weighed: dict[Address, _WeightedCard | None] = {}
        self._terms: dict[Address, frozenset[int]] = {}
        self._documents: dict[Address, tuple[Record, Document]] = {}

    def weigh(self, addresses: Iterable[Address]) -> None:
        """Read the cards of *addresses* that were not read yet, and compute their priors."""
        fresh = [address for address in addresses if address not in self._weighed]
        self._weighed |= dict.fromkeys(fresh)
        for home, reader in enumerate(self._readers):
            keys = [key for number, key in fresh if number == home]
            if not keys:
                continue
            cards = reader.cards(keys).values()
            for card in shown_cards(self._readers, home, cards, self._query, self._standings):
                self._weighed[home, card.key] = self._weigh(home, card)

    def _weigh(self, home: int, card: Card) -> _WeightedCard:
        text = partial(self.text, (home, card.key))
        factors = self._priors.factors(card, self._uses(card.id), text)
        return _WeightedCard(card, factors, math.prod(factors.values()))

    def choose(self, proposals: Sequence[Proposal]) -> list[Candidate]:
        """Return those of *proposals* that may be shown, with their priors."""
        self.weigh(one.address for one in proposals)
        return [
            _candidate(one, weighed)
            for one in proposals
            if (weighed := self._weighed[one.address]) is not None
        ]

    def read_terms(self, addresses: Iterable[Address]) -> None:
        """Read which terms the documents at *addresses* hold."""
        fresh = [address for address in addresses if address not in self._terms]
        for home, reader in enumerate(self._readers):
            keys = [key for number, key in fresh if number == home]
            if keys:
                found = reader.term_sets(keys)
                self._terms |= {(home, key): found.get(key, frozenset()) for key in keys}

    def terms(self, address: Address) -> frozenset[int]:
        """Return the terms of the document, as `terms.term_hash` numbers; they were read before."""
        return self._terms[address]

    def read(self, addresses: Iterable[Address]) -> None:
        """Read the records at *addresses*."""
        fresh = [address for address in addresses if address not in self._documents]
        for home, reader in enumerate(self._readers):
            keys = [key for number, key in fresh if number == home]
            for key, record in reader.records(keys).items() if keys else ():
                self._documents[home, key] = record, document(record)

    def read_units(self, addresses: Iterable[Address]) -> dict[Address, list[Unit]]:
        """Return the units of the documents at *addresses* that have any kept."""
        wanted = list(addresses)
        return {
            (home, key): units
            for home, reader in enumerate(self._readers)
            for key, units in reader.units([k for number, k in wanted if number == home]).items()
        }

    def record(self, address: Address) -> Record:
        """Return the record at *address*."""
        self.read([address])
        return self._documents[address][0]

    def text(self, address: Address) -> str:
        """Return the text of the record at *address*."""
        self.read([address])
        return self._documents[address][1].text

    def passage(self, address: Address, number: int) -> str:
        """Return a passage of the document at *address*, as it was embedded."""
        self.read([address])
        found = self._documents[address][1]
        units = (
            self.read_units([address]).get(address) if len(found.text) > PASSAGE_CHARS_MAX else None
        )
        passages = passages_to_embed(found, units)
        # A text of headings only has none.
        return passages[min(number, len(passages) - 1)].text if passages else found.text

    def hits(self, candidates: Sequence[Candidate]) -> list[Hit]:
        """Return *candidates* as hits, with their records."""
        self.read(one.address for one in candidates)
        return [self.hit(one) for one in candidates]

    def hit(self, one: Candidate, relevance: float | None = None) -> Hit:
        """Return *one* as a hit; its record was read before."""
        record, parsed = self._documents[one.address]
        why = Explanation(
            words=round(one.words, 4),
            meaning=None if one.meaning is None else round(one.meaning, 4),
            fused=round(one.fused, 4),
            parts={name: round(value, 4) for name, value in one.parts.items()},
            factors={name: round(value, 4) for name, value in one.factors.items()},
            relevance=None if relevance is None else round(relevance, 4),
        )
        return Hit(
            record,
            one.card.repo,
            one.score,
            why,
            rate=one.card.rate,
            address=one.address,
            uses=self._uses(record.id),
            parsed=parsed,
        )


def _candidate(one: Proposal, weighed: _WeightedCard) -> Candidate:
    score = round(one.fused * weighed.prior, 6)
    return Candidate(
        one.address,
        weighed.card,
        one.words,
        one.meaning,
        one.fused,
        weighed.factors,
        score,
        one.parts,
    )
