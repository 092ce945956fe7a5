"""The latest records, counts, and why a record is or is not in an answer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.index.ports import Count
from commonplace.recall.hits import NO_NUMBERS, UNTRUSTED, Explanation, Hit
from commonplace.recall.visibility import shown_cards, standings_of
from commonplace.records.nodes import NODE_KIND
from commonplace.rules import Standing, is_doubted, is_gone, is_statement

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from commonplace.index.ports import Card, Filter, Reader
    from commonplace.recall.query import Query
    from commonplace.records import Record

LOOKED_AT_FURTHER = 20
TOPIC_LOOKED_AT_MAX = 1_000
RECORDS_AT_ONCE = 500


def latest(readers: Sequence[Reader], count: int, query: Query) -> list[Hit]:
    """Return the newest records that pass the filters, without notes and statements."""
    found: list[tuple[int, Card]] = []
    for home, reader in enumerate(readers):
        found += ((home, card) for card in _latest_of_home(readers, home, reader, count, query))
    found.sort(key=lambda item: item[1].timestamp, reverse=True)
    return [
        Hit(
            record,
            card.repo,
            rate=card.rate,
            marks=(UNTRUSTED,) if home in query.untrusted else (),
            is_doubted=is_doubted(card.feedback),
            address=(home, card.key),
        )
        for home, card, record in _with_records(readers, found[:count])
    ]


def of_topics(
    readers: Sequence[Reader], names: Collection[str], count: int, query: Query
) -> list[Hit]:
    """Return the newest records of some topics that pass the filters.

    Where very many are hidden or do not pass, those further back are not looked for.
    """
    found: list[tuple[int, Card]] = []
    for home, reader in enumerate(readers):
        cards: dict[int, Card] = {}
        for name in names:
            for wanted in (count + LOOKED_AT_FURTHER, TOPIC_LOOKED_AT_MAX):
                keys = reader.newest_of_topic(name, wanted)
                some = shown_cards(readers, home, reader.cards(keys).values(), query)
                if len(some) >= count or len(keys) < wanted:
                    break
            cards |= {card.key: card for card in some}
        found += ((home, card) for card in cards.values())
    found.sort(key=lambda item: (item[1].micros, item[1].key), reverse=True)
    return [
        Hit(record, card.repo, rate=card.rate, address=(home, card.key))
        for home, card, record in _with_records(readers, found[:count])
    ]


def _latest_of_home(
    readers: Sequence[Reader], home: int, reader: Reader, count: int, filter_: Filter
) -> list[Card]:
    if home in filter_.without_homes:
        return []
    wanted, decided = count + LOOKED_AT_FURTHER, standings_of(readers)
    while True:
        cards = reader.select(filter_, newest=wanted)
        # A note is its agent's own file, and a statement means nothing by itself.
        records = [c for c in cards if c.kind != "note" and not is_statement(c.kind)]
        shown = shown_cards(readers, home, records, filter_, decided)
        if len(shown) >= count or len(cards) < wanted:
            return shown[:count]
        wanted *= 4  # Another home hides many of them.


def _with_records(
    readers: Sequence[Reader], found: Sequence[tuple[int, Card]]
) -> list[tuple[int, Card, Record]]:
    records: dict[tuple[int, int], Record] = {}
    for home, reader in enumerate(readers):
        keys = [card.key for number, card in found if number == home]
        records |= {(home, key): record for key, record in reader.records(keys).items()}
    return [(home, card, records[home, card.key]) for home, card in found]


def named(readers: Sequence[Reader], ids: Collection[str], query: Query) -> list[Hit]:
    """Return the current records with *ids* that pass the filters, in the order of *ids*."""
    found: list[tuple[int, Card]] = []
    for home, reader in enumerate(readers):
        cards = reader.cards(list(reader.keys(ids).values())).values()
        found += ((home, card) for card in shown_cards(readers, home, cards, query))
    hits = {
        record.id: Hit(record, card.repo, rate=card.rate, address=(home, card.key))
        for home, card, record in _with_records(readers, found)
    }
    return [hits[ident] for ident in dict.fromkeys(ids) if ident in hits]


def select(
    readers: Sequence[Reader], filter_: Filter, ids: Collection[str] | None = None
) -> list[Record]:
    """Return the records of the nearest home that pass, or those of *ids*, in line order."""
    nearest = readers[0]
    if ids is None:
        cards = nearest.select(filter_)
    else:
        keys = nearest.keys(ids).values()
        cards = sorted(nearest.cards(list(keys)).values(), key=lambda card: card.key)
    if filter_.kinds is None:
        cards = [card for card in cards if not is_statement(card.kind)]
    found = [(0, card) for card in shown_cards(readers, 0, cards, filter_)]
    return [record for _home, _card, record in _with_records(readers, found)]


def select_everywhere(readers: Sequence[Reader], filter_: Filter) -> Iterator[Record]:
    """Yield the records of all homes that pass, the nearest home first, in line order."""
    for home, reader in enumerate(readers):
        if home in filter_.without_homes:
            continue
        decided = standings_of(readers)
        for page in reader.pages(filter_):
            cards = shown_cards(readers, home, page, filter_, decided)
            for start in range(0, len(cards), RECORDS_AT_ONCE):
                some = [(home, card) for card in cards[start : start + RECORDS_AT_ONCE]]
                for _home, _card, record in _with_records(readers, some):
                    yield record


def counts(readers: Sequence[Reader], filter_: Filter) -> dict[str, Any]:
    """Return how many records there are: by repository, by kind, lessons by type.

    Records are lines of logs, and of archives if the filter admits those. Skills that are files
    are no records; `skills` counts them and the nodes of that type. Notes are private to their
    agents, so even their number is not shown.
    """
    repos, kinds, types = Counter[str](), Counter[str](), Counter[str]()
    archived = skills = 0
    everything = filter_.with_(archived=True)
    for home in range(len(readers)):
        if home in filter_.without_homes:
            continue
        for count in _counts_of_home(readers, home, everything):
            if count.kind == "skill":
                skills += count.records
                continue
            archived += count.records if count.archived else 0
            if count.kind != "note" and (filter_.archived or not count.archived):
                repos[count.repo] += count.records
                if count.kind == NODE_KIND:
                    # A node counts as what it is, such as a pattern.
                    kinds[count.event_type] += count.records
                    skills += count.records if count.event_type == "skill" else 0
                    continue
                kinds[count.kind] += count.records
                if count.event_type and count.kind != "context":
                    types[count.event_type] += count.records
    return {
        "records": kinds.total(),
        "archived": archived,
        "skills": skills,
        "repos": dict(repos.most_common()),
        "kinds": dict(kinds.most_common()),
        "types": dict(types.most_common()),
    }


def _counts_of_home(readers: Sequence[Reader], home: int, filter_: Filter) -> list[Count]:
    others = [reader for number, reader in enumerate(readers) if number != home]
    if home == 0 and not any(reader.has_statements() for reader in others):
        return readers[0].counts(filter_)
    # Records that another home has or hides are not counted here.
    cards = (card for card in readers[home].select(filter_) if not is_statement(card.kind))
    counted = Counter(
        (card.repo, card.kind, card.event_type, card.archived)
        for card in shown_cards(readers, home, cards, filter_)
    )
    return [Count(*what, records) for what, records in counted.items()]


class Verdict(NamedTuple):
    """Why a record is, or is not, in the answer to a question."""

    id: str
    query: str
    text: str
    in_answer: bool
    place: int | None = None
    repo: str = ""
    score: float | None = None
    relevance: float | None = None
    relevance_floor: float | None = None
    why: Mapping[str, float] = NO_NUMBERS

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as `commonplace why --json` prints it."""
        found: dict[str, Any] = {
            "id": self.id,
            "query": self.query,
            "in_answer": self.in_answer,
            "place": self.place,
            "why": dict(self.why),
        }
        if self.score is not None:
            found |= {
                "repo": self.repo,
                "score": self.score,
                "relevance": self.relevance,
                "relevance_floor": self.relevance_floor,
            }
        return {**found, "verdict": self.text}


def judge(
    query: Query,
    ident: str,
    ranking: Sequence[Hit],
    answer: Sequence[Hit],
    floor: float,
) -> Verdict | None:
    """Return the verdict about a record that is in the *ranking*; `None` if it is not.

    The hits of the ranking have their relevance; *floor* is what an answer needs.
    """
    hit = next((hit for hit in ranking if hit.id == ident), None)
    if hit is None:
        return None
    # The answer orders hits about one subject anew, and drops duplicates. So a place is counted
    # in the answer first, and then in what the ranking has besides.
    shown = [one.id for one in answer]
    order = [*shown, *(one.id for one in ranking if one.id not in shown)]
    place = order.index(ident) + 1
    why = hit.why or Explanation(0.0, None, 0.0)
    rank = place if ident in shown else None
    relevance = why.relevance or 0.0
    if rank is not None:
        text = f"it is number {rank} of the answer"
    elif relevance < floor:
        text = f"it is not relevant enough: {relevance:.2f}, and {floor:.2f} is needed"
    elif place > query.limit:
        text = f"it is in place {place}, after the limit of {query.limit} or after others like it"
    else:
        text = "a near-duplicate is shown instead, or there were not enough tokens"
    return Verdict(
        id=ident,
        query=query.text,
        text=text,
        in_answer=rank is not None,
        place=place,
        repo=hit.repo,
        score=hit.score,
        relevance=round(relevance, 4),
        relevance_floor=round(floor, 4),
        why={name: value for name, value in why.as_dict().items() if name != "relevance"},
    )


def absence(readers: Sequence[Reader], query: Query, ident: str) -> str:
    """Return why a record is not even in the ranking."""
    for home, reader in enumerate(readers):
        for card in reader.cards(list(reader.keys([ident]).values())).values():
            anything = query.with_(superseded=True, archived=True)
            shown = shown_cards(readers, home, [card], anything)
            if is_gone(card.standing):
                return "it was forgotten, or derives from a record that was"
            if card.standing is Standing.SUPERSEDED and not query.superseded:
                return "a newer record supersedes it; `commonplace recall --superseded` shows it"
            if card.archived and not query.archived:
                return "it is in the archive; `commonplace recall --all` searches there too"
            if not shown or not query.admits(card):
                return "the filters leave it out (repository, kind, type, tag, agent, date)"
    return "neither its words nor its meaning match the question"
