"""The facts that the rules need, from the tables: those of now, or of some time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.index.embedded.tables import select_in
from commonplace.rules import DECIDING, Stamp, Support, find_forgotten, newest, spread

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection


class Moment(NamedTuple):
    """Which lines are current: an SQL condition over `line`, and its arguments."""

    condition: str
    arguments: tuple[int, ...] = ()
    micros: int | None = None


CURRENT = Moment("line.standing > 0")


def at(micros: int) -> Moment:
    """Return the moment after the last line that is not later than *micros*."""
    return Moment("line.micros <= ? AND line.until > ?", (micros, micros), micros)


class TableFacts:
    """`rules.Facts` over one connection."""

    def __init__(self, connection: sqlite3.Connection, moment: Moment) -> None:
        self.connection = connection
        self.moment = moment

    def current(self, ids: Collection[str]) -> dict[str, tuple[Stamp, int]]:
        """Return the stamp and the key of the current line of each of *ids* that has one."""
        rows = select_in(
            self.connection,
            "SELECT id, written, log, position, key FROM line"
            f" WHERE id IN ({{}}) AND {self.moment.condition}",
            ids,
            self.moment.arguments,
        )
        found: dict[str, dict[Stamp, int]] = {}
        for ident, written, log, position, key in rows:
            stamp = Stamp(written, log, position)
            found.setdefault(ident, {})[stamp] = key
        return {ident: (stamp := newest(stamps), stamps[stamp]) for ident, stamps in found.items()}

    # --- rules.Facts ------------------------------------------------------------------------------

    def stamps(self, ids: Collection[str]) -> dict[str, Stamp]:
        return {ident: stamp for ident, (stamp, _key) in self.current(ids).items()}

    def forgets(self, ids: Collection[str]) -> dict[str, list[Stamp]]:
        # Every line that forgets applies, even if a later line has its id.
        until = "" if self.moment.micros is None else " AND micros <= ?"
        rows = select_in(
            self.connection,
            "SELECT of, written, log, position FROM line"
            f" WHERE of IN ({{}}) AND kind = 'forget'{until}",
            ids,
            () if self.moment.micros is None else (self.moment.micros,),
        )
        found: dict[str, list[Stamp]] = {}
        for of, written, log, position in rows:
            stamp = Stamp(written, log, position)
            found.setdefault(of, []).append(stamp)
        return found

    def supports(self, ids: Collection[str]) -> list[Support]:
        derived = self._edges("of", "derived_from", ids)
        found = [Support(of, to, by) for of, to, by in derived]
        rows = self._lines(
            'SELECT line.id, line.key, line.of, line."to" FROM line'
            " WHERE id IN ({}) AND of IS NOT NULL AND kind != 'forget'",
            ids,
        )
        for ident, _key, *subjects in rows:
            found += [Support(ident, on, ident) for on in subjects if on is not None]
        return found

    def superseders(self, ids: Collection[str]) -> list[Support]:
        return [Support(to, of, by) for of, to, by in self._edges("to", "supersedes", ids)]

    def _edges(self, end: str, rel: str, ids: Collection[str]) -> list[tuple[str, str, str]]:
        rows = self._lines(
            'SELECT line.id, line.key, edge.of, edge."to", edge.by FROM edge JOIN line USING (key)'
            f" WHERE edge.\"{end}\" IN ({{}}) AND rel = '{rel}'",
            ids,
        )
        return [(of, to, by) for _id, _key, of, to, by in rows]

    def _lines(self, query: str, values: Collection[str]) -> list[tuple[Any, ...]]:
        """Return the rows of *query*, which selects id and key first, that belong to current lines.

        Now, a line that is not current has no standing. At a past moment the condition finds the
        last line of each log; of one id in two logs, only the newest is current.
        """
        rows = select_in(
            self.connection,
            f"{query} AND {self.moment.condition}",
            values,
            self.moment.arguments,
        )
        if self.moment.micros is None or not rows:
            return rows
        current = self.current({row[0] for row in rows})
        return [row for row in rows if current[row[0]][1] == row[1]]

    # --- The other direction ----------------------------------------------------------------------

    def dependents(self, ids: Collection[str]) -> set[str]:
        """Return everything that rests on *ids*, directly or through others, without *ids*."""
        found: set[str] = set()
        spread(set(ids), self._resting_on, found)
        return found.difference(ids)

    def _resting_on(self, ids: set[str]) -> set[str]:
        """Return what rests directly on *ids*."""
        found = {of for of, _to, _by in self._edges("to", "derived_from", ids)}
        for column in ("of", '"to"'):
            rows = self._lines(
                f"SELECT line.id, line.key FROM line WHERE {column} IN ({{}}) AND kind != 'forget'",
                ids,
            )
            found.update(ident for ident, _key in rows)
        return found

    def superseded_below(self, ids: Collection[str]) -> set[str]:
        """Return *ids* and all that they supersede, directly or through others.

        A new link may close a circle, in which nothing supersedes anything.
        """
        found: set[str] = set()
        spread(
            set(ids),
            lambda some: {to for _of, to, _by in self._edges("of", "supersedes", some)},
            found,
        )
        return found

    def linked_by(self, ids: Collection[str]) -> set[str]:
        """Return the records whose standing is decided by the edges that *ids* state."""
        rels = ",".join(f"'{rel}'" for rel in DECIDING)
        rows = self._lines(
            'SELECT line.id, line.key, edge.of, edge."to" FROM line JOIN edge USING (key)'
            f" WHERE line.id IN ({{}}) AND edge.rel IN ({rels})",
            ids,
        )
        return {end for _id, _key, *ends in rows for end in ends}

    # --- Feedback ---------------------------------------------------------------------------------

    def feedback(self, ids: Collection[str]) -> dict[str, dict[str, str]]:
        """Return the feedback about each of *ids* that was not forgotten: feedback id → outcome."""
        rows = self._lines(
            "SELECT line.id, line.key, of, outcome FROM line"
            " WHERE of IN ({}) AND kind = 'feedback'",
            ids,
        )
        if not rows:
            return {}
        forgotten = find_forgotten({row[0] for row in rows}, self)
        found: dict[str, dict[str, str]] = {}
        for ident, _key, of, outcome in rows:
            if ident not in forgotten:
                found.setdefault(of, {})[ident] = outcome
        return found
