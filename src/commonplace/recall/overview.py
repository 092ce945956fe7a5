"""Beside answers: the latest records, counts, and why one record is or is not in an answer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from commonplace.index.document import UNSEARCHED_KINDS
from commonplace.index.terms import query_terms, term_set
from commonplace.recall.hits import Query
from commonplace.recall.search import Fusion, by_rarity, relevance
from commonplace.recall.visibility import condition, hidden_ids, wants

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from commonplace.index.index import Index
    from commonplace.index.store import Row
    from commonplace.recall.hits import Hit


def latest(indexes: Sequence[Index], book: int, count: int, query: Query) -> list[Row]:
    """The newest visible records of one home that *query* lets through."""
    where, arguments = condition(query)
    shown: list[Row] = []
    asked = count + 20
    while True:
        rows = indexes[book].store.recent(asked, f"{where} AND kind != 'note'", arguments)
        hidden = hidden_ids(indexes, {row.id: (book, row) for row in rows})
        shown = [row for row in rows if row.id not in hidden]
        if len(shown) >= count or len(rows) < asked:
            return shown[:count]
        asked *= 4  # So many of them were forgotten.


def selected(
    indexes: Sequence[Index], book: int, query: Query, ids: Collection[str] | None = None
) -> list[Row]:
    """The visible records of one home that *query* lets through, or those of *ids*, in the order of their lines."""
    where, arguments = condition(query)
    if ids is not None:
        where, arguments = f"{where} AND doc.id IN ({','.join('?' * len(ids))})", (*arguments, *ids)
    select = f"SELECT doc.key FROM doc JOIN head ON head.key = doc.key WHERE {where} ORDER BY place"  # noqa: S608
    keys = [int(str(key)) for (key,) in indexes[book].store.column(select, arguments)]
    rows = indexes[book].store.rows(keys)
    hidden = hidden_ids(indexes, {row.id: (book, row) for row in rows.values()})
    return [rows[key] for key in keys if key in rows and rows[key].id not in hidden]


def counted(indexes: Sequence[Index], repos: Collection[str] | None) -> dict[str, Any]:
    """How many current records there are: by repository, by kind, lessons by type.

    Notes are none: they are their agent's own, and nobody else should see so much as how many it has.
    """
    found: dict[str, Counter[str]] = {"repos": Counter(), "kinds": Counter(), "types": Counter()}
    archived = 0
    where, arguments = condition(
        Query("", repos=None if repos is None else frozenset(repos), archived=True)
    )
    where += (
        " AND NOT EXISTS (SELECT 1 FROM doc AS f WHERE f.kind = 'forget' AND f.of = doc.id"
        " AND f.log = doc.log AND f.place > doc.place)"
    )
    marks = ",".join(f"'{kind}'" for kind in sorted({*UNSEARCHED_KINDS, "note"}))
    for index in indexes:
        query = (
            "SELECT repo, kind, archived, json_extract(CAST(raw AS TEXT), '$.event_type'), count(*)"  # noqa: S608
            f" FROM doc JOIN head ON head.key = doc.key WHERE kind NOT IN ({marks}) AND {where} GROUP BY 1, 2, 3, 4"
        )
        for repo, kind, is_archived, event_type, count in index.store.column(query, arguments):
            number = int(str(count))
            if is_archived:
                archived += number
                continue
            if repo:  # A skill belongs to none.
                found["repos"][str(repo)] += number
            found["kinds"][str(kind)] += number
            if event_type:
                found["types"][str(event_type)] += number
    ordered = {name: dict(counter.most_common()) for name, counter in found.items()}
    return {"records": sum(found["kinds"].values()), "archived": archived, **ordered}


def explained(
    indexes: Sequence[Index],
    query: Query,
    ident: str,
    ranking: Sequence[Hit],
    answered: Sequence[Hit],
    fusion: Fusion,
) -> dict[str, Any]:
    """The verdict in a sentence, and every figure behind it."""
    wanted = query_terms(query.text)
    statistics = [index.text.statistics(wanted) for index in indexes]
    place = next((n for n, hit in enumerate(ranking, 1) if hit.id == ident), None)
    hit = ranking[place - 1] if place else None
    rank = next((n for n, hit in enumerate(answered, 1) if hit.id == ident), None)
    found: dict[str, Any] = {
        "id": ident,
        "query": query.text,
        "in_answer": rank is not None,
        "place": place,
        "why": {},
    }
    if hit is not None:
        found["repo"] = hit.repo
        weighed = [by_rarity(wanted, one) for one in statistics]
        values = {
            one.key: relevance(one, term_set(one.said.text), weighed[one.key[0]])
            for one in [hit, *ranking[:20]]
        }
        value = values[hit.key]
        best = max(values[one.key] for one in ranking[:20])
        floor = max(fusion.relevance_min, fusion.relevance_share_min * best)
        found |= {
            "score": hit.score,
            "relevance": round(value, 4),
            "relevance_floor": round(floor, 4),
            "why": dict(hit.why),
        }
        if rank is not None:
            found["verdict"] = f"it is number {rank} of the answer"
        elif value < floor:
            found["verdict"] = f"it is not relevant enough: {value:.2f}, and {floor:.2f} is needed"
        elif place is not None and place > query.limit:
            found["verdict"] = (
                f"it is in place {place}, behind the limit of {query.limit} or behind others like it"
            )
        else:
            found["verdict"] = "one that says the same stands for it, or the tokens did not suffice"
        return found
    found["verdict"] = _absence(indexes, query, ident)
    return found


def _absence(indexes: Sequence[Index], query: Query, ident: str) -> str:
    for book, index in enumerate(indexes):
        keys = [
            int(str(key))
            for (key,) in index.store.column("SELECT key FROM head WHERE id = ?", (ident,))
        ]
        for row in index.store.rows(keys).values():
            if row.id in hidden_ids(indexes, {row.id: (book, row)}):
                return "it was forgotten, or something newer supersedes it"
            if row.archived and not query.archived:
                return "it is in the archive; `--all` searches there too"
            if not wants(row, query):
                return "the filters leave it out (repository, kind, type, tag, agent, date)"
    return "neither its words nor its meaning bring it near the question"
