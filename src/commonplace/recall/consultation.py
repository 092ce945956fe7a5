"""A consultation: several questions about one matter, answered from one state of the files."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from commonplace.index.terms import query_terms
from commonplace.recall import graph, overview
from commonplace.recall.search import SURE, Fusion
from commonplace.recall.visibility import standings_of
from commonplace.rules import is_gone
from commonplace.where.repository import ALL_REPOSITORIES, plain_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from commonplace.index.ports import Reader
    from commonplace.recall.graph import Neighbourhood, Visible
    from commonplace.recall.hits import Address, Hit
    from commonplace.recall.query import Query
    from commonplace.recall.search import Search
    from commonplace.records import Record
    from commonplace.rules import Edge


# With less than this probability, another repository may have a better answer.
LIKELY = 0.5


class Consultation:
    """Open readers of all homes, and the searches in them that share one vector.

    *search* makes the search for a question; with its second argument, by words alone.
    """

    def __init__(self, readers: Sequence[Reader], search: Callable[[Query, bool], Search]) -> None:
        self.readers = readers
        self._search = search
        self._standings = standings_of(readers)

    def hits(self, query: Query, *, by_words: bool = False) -> list[Hit]:
        """Return the relevant records, best first, or the one from elsewhere that answers."""
        found = self._search(query, by_words).run().hits
        if not may_be_elsewhere(found, query):
            return found
        others = self._search(query.with_(repos=None, limit=1), by_words).run().hits
        return (
            [from_elsewhere(hit) for hit in others] if are_better(others, found, query) else found
        )

    def search(self, query: Query) -> Search:
        """Return the search for *query*, for who asks it more than once."""
        return self._search(query, False)  # noqa: FBT003

    def visible(self, query: Query) -> Visible:
        """Return what looks up records that pass the filters of *query*, each once."""
        return graph.Visible(self.readers, query)

    def records(self, addresses: Collection[Address]) -> dict[Address, Record]:
        """Return the records at *addresses*."""
        return {
            (home, key): record
            for home, reader in enumerate(self.readers)
            for key, record in reader.records(
                [key for number, key in addresses if number == home]
            ).items()
        }

    def neighbourhood(self, count: int, visible: Visible) -> Neighbourhood:
        """Return what reads links, of which the *count* heaviest of each record are wanted."""
        return graph.Neighbourhood(self.readers, count, visible)

    def terms(self, query: Query) -> tuple[Mapping[str, float], Callable[[str], float]]:
        """Return the weighted terms of the question, and what weighs each by its rarity."""
        wanted = query_terms(query.text)
        known = (reader.statistics(wanted) for reader in self.readers)
        return wanted, cache(max(known, key=lambda one: one.documents).idf)

    def named(self, ids: Collection[str], query: Query) -> list[Hit]:
        """Return the records with *ids* that pass the filters of *query*, in the order of ids."""
        return overview.named(self.readers, ids, query)

    def latest(self, count: int, query: Query) -> list[Hit]:
        """Return the newest records that pass the filters."""
        return overview.latest(self.readers, count, query)

    def of_topics(self, names: Collection[str], count: int, query: Query) -> list[Hit]:
        """Return the newest records of some topics that pass the filters."""
        return overview.of_topics(self.readers, names, count, query)

    def edges(self, ids: Collection[str], rel: str, query: Query) -> list[Edge]:
        """Return the edges of that relation at *ids*, stated in homes that *query* includes."""
        found = dict.fromkeys(
            edge
            for number, reader in enumerate(self.readers)
            if number not in query.without_homes
            for edge in reader.edges(ids, rel)
        )
        standing = self._standings.of({edge.by for edge in found})
        return [edge for edge in found if not is_gone(standing[edge.by])]


def name_others(hits: Sequence[Hit], here: str) -> list[Hit]:
    """Return *hits*; the answer names the repository of those from another one.

    If the question comes from none, all are named, as far as they are from several.
    """
    named = {hit.repo for hit in hits} - {"", ALL_REPOSITORIES}
    if not here and len(named) < 2:
        return list(hits)
    own = plain_name(here)
    return [
        hit._replace(names_repo=hit.repo in named and plain_name(hit.repo) != own) for hit in hits
    ]


def may_be_elsewhere(hits: Sequence[Hit], query: Query) -> bool:
    """Whether another repository is searched too: nothing here is likely to answer."""
    return query.elsewhere and _best_relevance(hits) < LIKELY and (query.cutoff or not hits)


def are_better(others: Sequence[Hit], hits: Sequence[Hit], query: Query) -> bool:
    """Whether *others*, from anywhere, are shown instead of *hits* from this repository.

    As within one repository, what has too small a share of the odds of the best is padding.
    """
    if not hits:
        return True
    if any(query.repos is not None and other.repo in query.repos for other in others):
        return False
    best, own = (min(_best_relevance(some), SURE) for some in (others, hits))
    return own / (1 - own) < Fusion().odds_share_min * best / (1 - best)


def _best_relevance(hits: Sequence[Hit]) -> float:
    return max((hit.why.relevance or 0.0 for hit in hits if hit.why is not None), default=0.0)


def from_elsewhere(hit: Hit) -> Hit:
    """Return *hit* with the mark that it is from another repository."""
    return hit._replace(marks=(*hit.marks, f"from the repository {hit.repo}"))
