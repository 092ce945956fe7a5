"""Records page by page, and the tags that they have."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from commonplace.errors import UsageError
from commonplace.recall.hits import UNTRUSTED, Hit
from commonplace.recall.visibility import shown_cards, standings_of
from commonplace.rules import is_doubted, is_statement

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commonplace.index.ports import Card, Filter, Reader
    from commonplace.recall.query import Query

    Found = tuple[int, Card]

# A shorter prefix of an id would soon be that of a new record, too.
PREFIX_CHARS_MIN = 14


class Page(NamedTuple):
    """Some records of a list, which page of it they are, and how many records it has."""

    hits: list[Hit]
    page: int
    pages: int
    total: int
    # By id: its shortest beginning that no other id has.
    prefixes: dict[str, str]


def _rate(card: Card) -> tuple[float, int]:
    rate = card.rate
    return (rate.worked / rate.tried, rate.tried) if rate is not None and rate.tried else (-1.0, 0)


def list_records(
    readers: Sequence[Reader],
    query: Query,
    sort: str,
    page: int,
    uses: Callable[[str], int],
) -> Page:
    """Return the page of all records that pass the filters of *query*, which is *page* from 1.

    A page has the limit of *query*. Notes and statements are not listed.
    """
    orders: dict[str, Callable[[Found], object]] = {
        "newest": lambda one: (-one[1].micros, one[0], -one[1].key),
        "oldest": lambda one: (one[1].micros, one[0], one[1].key),
        "rate": lambda one: (*(-number for number in _rate(one[1])), -one[1].micros),
        "uses": lambda one: (-uses(one[1].id), -one[1].micros),
    }
    if sort not in orders:
        raise UsageError(f"there is no order `{sort}`", f"choose among {', '.join(orders)}")
    found = sorted(all_cards(readers, query), key=orders[sort])  # type: ignore[arg-type]
    pages = max(1, -(-len(found) // query.limit))
    if not 1 <= page <= pages:
        raise UsageError(
            f"there is no page {page:,}", f"the list has {pages:,} page{'s' if pages > 1 else ''}"
        )
    shown = found[(page - 1) * query.limit : page * query.limit]
    hits = [_hit(readers, home, card, query, uses(card.id)) for home, card in shown]
    prefixes = {hit.id: shortest_prefix(hit.id, readers) for hit in hits}
    return Page(hits, page, pages, len(found), prefixes)


def count_tags(readers: Sequence[Reader], filter_: Filter) -> dict[str, int]:
    """Return how many records have each tag, the most used first; tags are in lower case."""
    counts: Counter[str] = Counter()
    for _home, card in all_cards(readers, filter_):
        counts.update(set(card.tags))
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


def all_cards(readers: Sequence[Reader], filter_: Filter) -> list[Found]:
    """Return the home and the card of every record that passes, without notes and statements."""
    decided = standings_of(readers)
    return [
        (home, card)
        for home, reader in enumerate(readers)
        if home not in filter_.without_homes
        for card in shown_cards(
            readers,
            home,
            # A note is its agent's own file, and a statement means nothing by itself.
            [c for c in reader.select(filter_) if c.kind != "note" and not is_statement(c.kind)],
            filter_,
            decided,
        )
    ]


def _hit(readers: Sequence[Reader], home: int, card: Card, query: Query, uses: int) -> Hit:
    return Hit(
        readers[home].records([card.key])[card.key],
        card.repo,
        rate=card.rate,
        marks=(UNTRUSTED,) if home in query.untrusted else (),
        is_doubted=is_doubted(card.feedback),
        address=(home, card.key),
        uses=uses,
    )


def shortest_prefix(ident: str, readers: Sequence[Reader]) -> str:
    """Return the shortest beginning of *ident*, of a minimum length, that no other id has."""
    others = [other for reader in readers for other in reader.ids_beside(ident)]
    shared = max((_count_shared(ident, other) for other in others), default=0)
    return ident[: max(PREFIX_CHARS_MIN, shared + 1)]


def _count_shared(one: str, other: str) -> int:
    """Return how many characters both begin with."""
    return next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
