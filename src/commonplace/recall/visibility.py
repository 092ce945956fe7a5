"""What may be shown: what a question's filters let through, less what was forgotten or superseded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.records import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from commonplace.index.index import Index
    from commonplace.index.store import Row
    from commonplace.recall.hits import Query


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
        for of, log, place, timestamp in (
            _in_chunks(index, query, rows) if index.store.has_references() else ()
        ):
            home, row = rows[str(of)]
            in_one_log = home == book and row.log == log
            if int(place) > row.place if in_one_log else str(timestamp) > row.timestamp:
                found.add(str(of))
    return found


def _forgotten_ids(indexes: Sequence[Index], ids: Collection[str]) -> set[str]:
    rows: dict[str, tuple[int, Row]] = {}
    for book, index in enumerate(indexes):
        keys = [
            int(key) for (key,) in _in_chunks(index, "SELECT key FROM head WHERE id IN ({})", ids)
        ]
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
    lost = (
        _forgotten_ids(indexes, {source for found in sources.values() for source in found})
        if sources
        else set()
    )
    grown = True
    while grown:
        more = {ident for ident, found in sources.items() if ident not in lost and found & lost}
        lost |= more
        grown = bool(more)
    return lost & set(ids)


def _edges(
    indexes: Sequence[Index], end: str, ids: Collection[str], rel: str
) -> list[tuple[str, str, str]]:
    """The edges that hold now: stated by the current version of a record, or by a link of its own."""
    query = (
        f'SELECT of, rel, "to" FROM edge JOIN head ON head.key = edge.key WHERE "{end}" IN ({{}})'  # noqa: S608
        f" AND rel = '{rel}'"
    )
    linked = [index for index in indexes if index.store.has_edges()]
    return [
        (str(of), str(rel), str(to))
        for index in linked
        for of, rel, to in _in_chunks(index, query, ids)
    ]


NO_FEEDBACK = dict.fromkeys(OUTCOMES, 0)


def feedback_of(index: Index, ids: Collection[str]) -> dict[str, dict[str, int]]:
    """How often each of *ids* was said to have worked, failed, been wrong or stale."""
    found: dict[str, dict[str, int]] = {}
    if not index.store.has_references():
        return found
    for of, outcome in _in_chunks(
        index, "SELECT of, outcome FROM doc WHERE outcome IS NOT NULL AND of IN ({})", ids
    ):
        counts = found.setdefault(str(of), dict(NO_FEEDBACK))
        counts[str(outcome)] = counts.get(str(outcome), 0) + 1
    return found


def _in_chunks(index: Index, query: str, values: Collection[str]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    wanted = list(values)
    for start in range(0, len(wanted), 500):
        some = wanted[start : start + 500]
        found += index.store.column(query.format(",".join("?" * len(some))), some)
    return found
