"""Read the index as it is now."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from commonplace.index.embedded.facts import CURRENT, TableFacts
from commonplace.index.embedded.tables import select_in
from commonplace.index.ports import Card, Count, FarEnd
from commonplace.index.units import load
from commonplace.records import Rate, Record, from_line
from commonplace.records.nodes import NODE_KIND
from commonplace.rules import NO_FEEDBACK, Edge, Standing, Tally
from commonplace.rules.statements import STATEMENT_KINDS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from commonplace.embed.embedder import Encoded, Vector
    from commonplace.index.bm25 import Statistics
    from commonplace.index.embedded.facts import Moment
    from commonplace.index.embedded.snapshot import Snapshot
    from commonplace.index.embedded.vector_search import VectorSnapshot
    from commonplace.index.ports import Filter
    from commonplace.index.units import Unit

_STANDINGS = tuple(Standing)
_HEAVIEST = " UNION ALL ".join(
    f'SELECT * FROM (SELECT "{far}", w, key FROM edge WHERE "{near}" = ?1'
    f' ORDER BY w DESC, "{far}" LIMIT ?2)'
    for near, far in (("of", "to"), ("to", "of"))
)
PAGE_CARDS = 4000
CARD_COLUMNS = (
    "line.key, line.id, line.log, repo, line.kind, timestamp, line.micros, agent, type, tags,"
    " archived,"
    " standing, stated_worked, stated_tried, confidence, used, worked, failed, wrong, stale"
)


class Reader(TableFacts):
    """One question's view of the index: `ports.Reader` over one connection."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        snapshot: Snapshot,
        vectors: Callable[[], VectorSnapshot],
        moment: Moment = CURRENT,
    ) -> None:
        super().__init__(connection, moment)
        self._text = snapshot.text
        self._log_sizes = snapshot.log_sizes
        self._totals = snapshot.totals
        self._cache = snapshot.cache_for(connection)
        self._load_vectors = vectors
        self._vectors: VectorSnapshot | None = None

    # --- Records ----------------------------------------------------------------------------------

    def cards(self, keys: Collection[int]) -> dict[int, Card]:
        return self._cache.cards(keys, self._read_cards)

    def _read_cards(self, keys: Collection[int]) -> dict[int, Card]:
        rows = select_in(
            self.connection,
            f"SELECT {CARD_COLUMNS} FROM line WHERE key IN ({{}}) AND {self.moment.condition}",
            keys,
            self.moment.arguments,
        )
        return {row[0]: card_of(row) for row in rows}

    def keys(self, ids: Collection[str]) -> dict[str, int]:
        return self._cache.keys(ids, self._read_current)

    def _read_current(self, ids: Collection[str]) -> list[Card]:
        """Return the card of the current line of each of *ids*: who asks for keys wants it next."""
        rows = select_in(
            self.connection,
            f"SELECT {CARD_COLUMNS} FROM line WHERE id IN ({{}}) AND {self.moment.condition}"
            " ORDER BY written, line.log, position",
            ids,
            self.moment.arguments,
        )
        # Of the lines that several logs have of one id, the last by that order is current.
        return list(map(card_of, {row[1]: row for row in rows}.values()))

    def _read_keys(self, ids: Collection[str]) -> dict[str, int]:
        return {ident: key for ident, (_stamp, key) in self.current(ids).items()}

    def first_keys(self, ids: Collection[str]) -> dict[str, int]:
        query = "SELECT id, min(key) FROM line WHERE id IN ({}) GROUP BY id"
        return dict(select_in(self.connection, query, ids))

    def ids_beside(self, ident: str) -> list[str]:
        (row,) = self.connection.execute(
            "SELECT (SELECT max(id) FROM line WHERE id < ?),"
            " (SELECT min(id) FROM line WHERE id > ?)",
            (ident, ident),
        )
        return [other for other in row if other is not None]

    def records(self, keys: Collection[int]) -> dict[int, Record]:
        return self._cache.records(keys, self._read_records)

    def _read_records(self, keys: Collection[int]) -> dict[int, Record]:
        rows = select_in(self.connection, "SELECT key, raw FROM body WHERE key IN ({})", keys)
        return {key: from_line(raw) for key, raw in rows}

    def record_bytes(self, keys: Collection[int]) -> int:
        query = "SELECT length(raw) FROM body WHERE key IN ({})"
        return sum(size for (size,) in select_in(self.connection, query, keys))

    def units(self, keys: Collection[int]) -> dict[int, list[Unit]]:
        rows = select_in(self.connection, "SELECT key, found FROM units WHERE key IN ({})", keys)
        return {key: load(found) for key, found in rows}

    def select(self, filter_: Filter, *, newest: int | None = None) -> list[Card]:
        where, arguments = self._shown_condition(filter_)
        order, limit = "log, position", ""
        if newest is not None:
            order, limit = "micros DESC, position DESC", " LIMIT ?"
            arguments = (*arguments, newest)
        rows = self.connection.execute(
            f"SELECT {CARD_COLUMNS} FROM line WHERE {where} ORDER BY {order}{limit}",
            arguments,
        )
        return [card_of(row) for row in rows]

    def pages(self, filter_: Filter) -> Iterator[list[Card]]:
        where, arguments = self._shown_condition(filter_)
        rows = self.connection.execute(
            f"SELECT {CARD_COLUMNS} FROM line WHERE {where} ORDER BY log, position", arguments
        )
        while some := rows.fetchmany(PAGE_CARDS):
            yield [card_of(row) for row in some]

    def records_after(self, key: int, kinds: Collection[str]) -> Iterator[tuple[int, str, Record]]:
        marks = ",".join("?" * len(kinds))
        rows = self.connection.execute(
            "SELECT line.key, log, raw FROM line JOIN body USING (key)"
            f" WHERE line.key > ? AND line.kind IN ({marks}) AND standing = ? ORDER BY line.key",
            (key, *kinds, int(Standing.CURRENT)),
        )
        for line_key, log, raw in rows:
            yield line_key, log, from_line(raw)

    def versions(self, ids: Collection[str]) -> dict[str, list[tuple[str, Record]]]:
        rows = select_in(
            self.connection,
            "SELECT id, log, position, written, raw FROM line JOIN body USING (key)"
            " WHERE id IN ({})",
            ids,
        )
        lines: dict[str, list[tuple[str, int, int, bytes]]] = {}
        for ident, log, position, written, raw in rows:
            lines.setdefault(ident, []).append((log, position, written, raw))
        for several in lines.values():
            # As the rules have it: by position within one log, by time between two.
            logs = {log for log, *_rest in several}
            several.sort(key=lambda line: (line[2] if len(logs) > 1 else 0, line[1]))
        return {
            ident: [(log, from_line(raw)) for log, _position, _written, raw in several]
            for ident, several in lines.items()
        }

    def newest_versions(self, ident: str, limit: int, without_type: str = "") -> list[Record]:
        # The bodies of versions that are not wanted are never read.
        rows = self.connection.execute(
            "SELECT raw FROM (SELECT key, row_number() OVER () AS place FROM"
            " (SELECT key FROM line WHERE id = ? AND (? = '' OR type != ?)"
            " ORDER BY micros DESC, written DESC, position DESC LIMIT ?))"
            " JOIN body USING (key) ORDER BY place",
            (ident, without_type, without_type, limit),
        )
        return [from_line(raw) for (raw,) in rows]

    def newest_of_topic(self, name: str, limit: int, *, versions: bool = False) -> list[int]:
        current = "" if versions else f" AND {self.moment.condition}"
        rows = self.connection.execute(
            "SELECT topic.key FROM topic CROSS JOIN line ON line.key = topic.key"
            f" WHERE name = ?{current}"
            " ORDER BY topic.micros DESC, topic.key DESC LIMIT ?",
            (name, *(() if versions else self.moment.arguments), limit),
        )
        return [key for (key,) in rows]

    def build(self) -> str:
        (row,) = self.connection.execute("SELECT value FROM state WHERE name = 'build'")
        return str(row[0])

    def counts(self, filter_: Filter) -> list[Count]:
        where, arguments = self._shown_condition(filter_)
        marks = ",".join("?" * len(STATEMENT_KINDS))
        rows = self.connection.execute(
            "SELECT repo, kind, type, archived, count(*) FROM line"
            f" WHERE {where} AND kind NOT IN ({marks}) GROUP BY 1, 2, 3, 4",
            (*arguments, *sorted(STATEMENT_KINDS)),
        )
        return [Count(repo, kind, type_, bool(old), n) for repo, kind, type_, old, n in rows]

    def _shown_condition(self, filter_: Filter) -> tuple[str, tuple[object, ...]]:
        """Return the SQL condition for the shown records that pass *filter_*."""
        where, arguments = condition(filter_)
        standings = [s for s in _STANDINGS if filter_.shows(s)]
        shown = ",".join(str(int(standing)) for standing in standings)
        return f"standing IN ({shown}) AND kind != 'forget' AND {where}", arguments

    def edges(self, ids: Collection[str], rel: str | None = None) -> list[Edge]:
        found: dict[Edge, None] = {}
        for end in ("of", "to"):
            rows = self._lines(
                'SELECT line.id, line.key, edge.of, rel, edge."to", w, by'
                f' FROM edge JOIN line USING (key) WHERE edge."{end}" IN ({{}})',
                ids,
            )
            found |= dict.fromkeys(Edge(*row[2:]) for row in rows)
        return [edge for edge in found if rel is None or edge.rel == rel]

    def heaviest_edges(self, ids: Collection[str], limit: int) -> dict[str, list[FarEnd]]:
        found: dict[str, list[FarEnd]] = {}
        for ident in ids:
            rows = self.connection.execute(_HEAVIEST, (ident, limit)).fetchall()
            if rows:
                found[ident] = [FarEnd(*row) for row in rows]
        return found

    def has_statements(self) -> bool:
        return self._totals.has_statements

    def newest_micros(self) -> int | None:
        return self._totals.newest_micros

    def log_bytes(self, repos: Collection[str] | None, *, archived: bool) -> int:
        return sum(
            size
            for (repo, is_archive), size in self._log_sizes.items()
            if (repos is None or repo in repos) and (archived or not is_archive)
        )

    # --- Words ------------------------------------------------------------------------------------

    def statistics(self, terms: Collection[str]) -> Statistics:
        return self._text.statistics(terms)

    def match(
        self, terms: Mapping[str, float], statistics: Statistics, filter_: Filter, limit: int
    ) -> list[tuple[int, float]]:
        return self._text.match(terms, statistics, filter_, limit)

    def term_sets(self, keys: Collection[int]) -> dict[int, frozenset[int]]:
        waiting = self._text.overlay.documents
        found = {key: waiting[key].hashes for key in keys if key in waiting}
        rest = [key for key in keys if key not in found]
        stored = self._cache.terms(rest, self._read_terms)
        return found | {key: frozenset(array("I", hashes)) for key, hashes in stored.items()}

    def _read_terms(self, keys: Collection[int]) -> dict[int, bytes]:
        query = "SELECT key, hashes FROM term_set WHERE key IN ({})"
        return dict(select_in(self.connection, query, keys))

    # --- Meaning ----------------------------------------------------------------------------------

    @property
    def vectors(self) -> VectorSnapshot:
        if self._vectors is None:
            self._vectors = self._load_vectors()
        return self._vectors

    def has_vectors(self) -> bool:
        return self._totals.has_vectors

    def nearest(self, vector: Vector, limit: int) -> dict[int, float]:
        return self.vectors.nearest(vector, limit)

    def begin_nearest(
        self, question: Callable[[], Encoded], limit: int
    ) -> Callable[[], dict[int, float]]:
        if not self.vectors.is_slow:
            return lambda: self.nearest(question().vector, limit)
        from commonplace.index.embedded.vector_search import Nearest  # noqa: PLC0415 (NumPy)

        search = Nearest(self.vectors, question, limit)
        search.start()
        return search.result

    def similarity(self, vector: Vector, keys: Collection[int]) -> dict[int, float]:
        return self.vectors.similarity(vector, keys)

    def piece_similarity(self, question: Encoded, keys: Collection[int]) -> dict[int, float]:
        if question.pieces is None:
            return {}
        from commonplace.index.embedded import piece_codes  # noqa: PLC0415 (loads NumPy)

        passages = self.best_passages(question.vector, keys)
        codes = piece_codes.read_codes(self.connection, passages)
        found = piece_codes.similarities(
            question.pieces, list(codes.values()), piece_codes.RANKED_MAX
        )
        return dict(zip(codes, found, strict=True))

    def unit_similarity(self, question: Encoded, key: int) -> dict[int, float]:
        if question.pieces is None:
            return {}
        from commonplace.index.embedded import piece_codes  # noqa: PLC0415 (loads NumPy)

        return piece_codes.unit_similarities(self.connection, question.pieces, key)

    def best_passages(self, vector: Vector, keys: Collection[int]) -> dict[int, int]:
        return self.vectors.best_passages(vector, keys)

    def first_vectors(self, keys: Collection[int]) -> dict[int, Vector]:
        return self.vectors.first(keys)


def card_of(
    row: Sequence[Any], standing: Standing | None = None, feedback: Tally | None = None
) -> Card:
    """Return the card in a row of `CARD_COLUMNS`, or with another *standing* and *feedback*."""
    (
        key, ident, log, repo, kind, timestamp, micros, agent, event_type, tags, archived, stored,
        stated_worked, stated_tried, confidence, used, *counts,
    ) = row  # fmt: skip
    tally = feedback
    if tally is None:
        tally = Tally(*counts) if any(counts) else NO_FEEDBACK
    return Card(
        key,
        ident,
        log,
        repo,
        kind,
        timestamp,
        micros,
        agent,
        event_type,
        tuple(tags.split("\n")) if tags else (),
        bool(archived),
        _STANDINGS[stored] if standing is None else standing,
        None if stated_tried is None else Rate(stated_worked, stated_tried),
        tally,
        confidence,
        used,
    )


def condition(filter_: Filter) -> tuple[str, tuple[object, ...]]:
    """Return `Filter.admits` as an SQL condition over `line`, and its arguments."""
    parts: list[str] = [] if filter_.archived else ["archived = 0"]
    arguments: list[object] = []

    def among(column: str, values: Collection[str], *, negated: bool = False) -> None:
        marks = ",".join("?" * len(values))
        parts.append(f"{column} {'NOT ' if negated else ''}IN ({marks})")
        arguments.extend(sorted(values))

    if filter_.repos is not None:
        among("repo", {*filter_.repos, ""})
    if filter_.kinds is not None:
        among("kind", filter_.kinds)
        among("type", filter_.node_types)
        of_type, of_kind = parts.pop(), parts.pop()
        parts.append(f"({of_kind} OR (kind = '{NODE_KIND}' AND {of_type}))")
    if filter_.types is not None:
        among("type", filter_.types)
        parts.append(f"kind != '{NODE_KIND}'")
    if filter_.agent is not None:
        among("agent", [filter_.agent])
    if filter_.since_micros is not None:
        parts.append("micros >= ?")
        arguments.append(filter_.since_micros)
    if filter_.until_micros is not None:
        parts.append("micros <= ?")
        arguments.append(filter_.until_micros)
    if filter_.tags:
        # A tag holds no line break, so line breaks separate tags.
        ways = " OR ".join(["instr(char(10) || tags || char(10), ?)"] * len(filter_.tags))
        parts.append(f"({ways})")
        arguments.extend(f"\n{tag}\n" for tag in sorted(filter_.tags))
    if filter_.without:
        among("id", filter_.without, negated=True)
    parts.append("(kind != 'note' OR agent = ?)")
    arguments.append(filter_.agent or filter_.reader)
    return " AND ".join(parts), tuple(arguments)
