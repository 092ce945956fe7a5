"""Settling: decide which line of each id is current, and its standing, after lines changed.

`rules` makes the decisions; this module only stores their results in the tables, for the ids that
may have changed and for the records that depend on them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from commonplace.index.document import document
from commonplace.index.embedded.facts import CURRENT, TableFacts
from commonplace.index.embedded.tables import FOREVER, select_in
from commonplace.index.terms import term_hash, terms
from commonplace.records import from_line
from commonplace.rules import (
    DECIDING,
    Stamp,
    Standing,
    is_gone,
    is_statement,
    newest,
    standings,
    tally,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable
    from typing import TypeAlias

    from commonplace.rules import Edge

    # key, micros, log, position, standing, until, written
    _Row: TypeAlias = tuple[int, int, str, int, int, int, int]

# A record with more versions than this is not read whole when a version is added.
VERSIONS_READ_MAX = 32
_VERSIONS = "SELECT key, micros, log, position, standing, until, written FROM line WHERE id = ?"
# The tables with rows of a line, by its key.
_TABLES = (
    "line",
    "body",
    "units",
    "edge",
    "topic",
    "term_set",
    "unembedded",
    "old_term",
    "old_vector",
    "piece_code",
)


class Settling:
    """The records to decide again at the end of one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        # The keys of lines whose rows changed, in this transaction and before; readers cache rows.
        self.changed_keys: set[int] = set()
        self.begin()

    def begin(self) -> None:
        """Start collecting the changes of a transaction."""
        # Ids whose current line may have changed.
        self._touched: set[str] = set()
        # Ids that added or removed lines are about.
        self._subjects: set[str] = set()
        # The standing of the line that was current before, if there was one.
        self._standing_before: dict[str, Standing] = {}
        # Whether lines were only added, each behind all others of its log.
        self.only_appended = True
        (self._newest_before,) = self._connection.execute(
            "SELECT coalesce(max(key), 0) FROM line"
        ).fetchone()

    def touch(
        self, ident: str, subjects: Iterable[str | None] = (), edges: Iterable[Edge] = ()
    ) -> None:
        """Record that a line of *ident* was added or moved, and the records that it is about."""
        self._touched.add(ident)
        self._subjects.update(subject for subject in subjects if subject is not None)
        for edge in edges:
            if edge.rel in DECIDING:
                self._subjects.update((edge.of, edge.to))

    def remove(self, keys: Iterable[int]) -> None:
        """Remove lines from the tables: they are no longer in their file."""
        execute = self._connection.execute
        for key in keys:
            self.only_appended = False
            ident, kind, of, to = execute(
                'SELECT id, kind, of, "to" FROM line WHERE key = ?', (key,)
            ).fetchone()
            self.touch(ident, (of, to, *self._ends_of(key)))
            if not is_statement(kind):
                self._drop_from_text(key)
            self.changed_keys.add(key)
            for table in (*_TABLES, "vector"):
                execute(f"DELETE FROM {table} WHERE key = ?", (key,))

    def finish(self) -> None:
        """Choose the current lines, then count feedback and decide standings."""
        for ident in self._touched:
            self._choose_current(ident)
        if self._has_statements():
            self._count_feedback()
            self._decide_standings()
        self._touched, self._subjects = set(), set()

    def _has_statements(self) -> bool:
        row = self._connection.execute(
            "SELECT EXISTS (SELECT 1 FROM line WHERE of IS NOT NULL) OR EXISTS (SELECT 1 FROM edge)"
        ).fetchone()
        # The removed lines may have held the last one.
        return bool(row[0]) or bool(self._subjects)

    # --- Which line is current --------------------------------------------------------------------

    def _choose_current(self, ident: str) -> None:
        rows = self._connection.execute(
            f"{_VERSIONS} ORDER BY log, position LIMIT {VERSIONS_READ_MAX + 1}", (ident,)
        ).fetchall()
        if len(rows) > VERSIONS_READ_MAX:
            rows = self._last_versions(ident)
        before = next((row[0] for row in rows if row[4] != Standing.REPLACED), None)
        if before is not None:
            self._standing_before[ident] = next(
                Standing(row[4]) for row in rows if row[0] == before
            )
        if len(rows) > 1:
            self._set_until(rows)
        last = {row[2]: row for row in rows}.values()
        stamps = {Stamp(row[6], row[2], row[3]): row[0] for row in last}
        current = stamps[newest(stamps)] if stamps else None
        for row in rows:
            # A line that was replaced in the same moment was never current; it is kept too.
            if row[0] > self._newest_before and row[0] not in (before, current):
                self._keep_old(row[0])
        if before == current:
            return
        if before is not None:
            self._retire(before)
        if current is not None:
            self._promote(current)

    def _last_versions(self, ident: str) -> list[_Row]:
        """Return the lines of *ident*; of each log only the last, if the others stay as they are.

        An older line stays as it is if the one after it was replaced by the same time as before.
        """
        if not self.only_appended:
            return self._connection.execute(
                f"{_VERSIONS} ORDER BY log, position", (ident,)
            ).fetchall()
        found: list[_Row] = []
        logs = self._connection.execute("SELECT DISTINCT log FROM line WHERE id = ?", (ident,))
        for (log,) in logs.fetchall():
            last: list[_Row] = []
            until = FOREVER
            for row in self._connection.execute(
                f"{_VERSIONS} AND log = ? ORDER BY position DESC", (ident, log)
            ):
                last.append(row)
                if row[0] <= self._newest_before and row[5] == until:
                    break
                until = min(until, row[1])
            found += reversed(last)
        return found

    def _set_until(self, rows: list[_Row]) -> None:
        """Store until when each line was the last of its log, by the times in the lines."""
        until, log = FOREVER, ""
        for key, micros, its_log, _position, _standing, known, _written in reversed(rows):
            if its_log != log:
                until, log = FOREVER, its_log
            if known != until:
                self._connection.execute("UPDATE line SET until = ? WHERE key = ?", (until, key))
            until = min(until, micros)

    def _promote(self, key: int) -> None:
        # The text index has skipped or deleted an older line, so it needs a new key there.
        if key <= self._newest_before:
            self.changed_keys.add(key)
            key = self._renew(key)
        self._connection.execute(
            "UPDATE line SET standing = ? WHERE key = ?", (Standing.CURRENT, key)
        )

    def _renew(self, key: int) -> int:
        """Give a line a new key and return it."""
        execute = self._connection.execute
        execute("UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'line'")
        (new,) = execute("SELECT seq FROM sqlite_sequence WHERE name = 'line'").fetchone()
        # As new rows, by which other processes see that there are new vectors.
        execute(
            "INSERT INTO vector (key, v) SELECT ?, v FROM old_vector WHERE key = ? ORDER BY row",
            (new, key),
        )
        execute("DELETE FROM old_vector WHERE key = ?", (key,))
        execute("DELETE FROM old_term WHERE key = ?", (key,))
        execute("DELETE FROM term_set WHERE key = ?", (key,))
        for table in ("line", "body", "units", "edge", "topic", "unembedded", "piece_code"):
            execute(f"UPDATE {table} SET key = ? WHERE key = ?", (new, key))
        return int(new)

    def _retire(self, key: int) -> None:
        """Mark a line as no longer current."""
        execute = self._connection.execute
        row = execute('SELECT kind, of, "to" FROM line WHERE key = ?', (key,)).fetchone()
        if row is None:
            return  # It was removed.
        kind, *subjects = row
        self.changed_keys.add(key)
        execute(
            "UPDATE line SET standing = ?, worked = 0, failed = 0, wrong = 0, stale = 0"
            " WHERE key = ?",
            (Standing.REPLACED, key),
        )
        # The records that it was about are decided again without it.
        self._subjects.update(self._ends_of(key))
        self._subjects.update(subject for subject in subjects if subject is not None)
        if not is_statement(kind):
            self._drop_from_text(key)
            self._keep_old(key)

    def _ends_of(self, key: int) -> list[str]:
        """Return the records whose standing the edges of a line decide."""
        marks = ",".join("?" * len(DECIDING))
        rows = self._connection.execute(
            f'SELECT of, "to" FROM edge WHERE key = ? AND rel IN ({marks})', (key, *DECIDING)
        )
        return [end for pair in rows for end in pair]

    def _keep_old(self, key: int) -> None:
        """Keep the terms and vectors of a replaced line for questions about the past."""
        execute = self._connection.execute
        kind, raw = execute(
            "SELECT kind, raw FROM line JOIN body USING (key) WHERE key = ?", (key,)
        ).fetchone()
        if is_statement(kind):
            return
        words = terms(document(from_line(raw)).text)
        counts = Counter(map(term_hash, words))
        self._connection.executemany(
            "INSERT OR REPLACE INTO old_term VALUES (?, ?, ?)",
            [(hash_, key, count) for hash_, count in counts.items()],
        )
        execute("INSERT OR REPLACE INTO term_set VALUES (?, ?, ?)", (key, len(words), b""))
        execute(
            "INSERT INTO old_vector (key, v) SELECT key, v FROM vector WHERE key = ? ORDER BY row",
            (key,),
        )
        execute("DELETE FROM vector WHERE key = ?", (key,))

    def _drop_from_text(self, key: int) -> None:
        """Mark a document for deletion from the text index; `terms` is NULL if it is not there."""
        row = self._connection.execute(
            "SELECT terms FROM term_set WHERE key = ?", (key,)
        ).fetchone()
        self._connection.execute(
            "INSERT OR IGNORE INTO dropped VALUES (?, ?)", (key, row[0] if row else None)
        )

    # --- Standings --------------------------------------------------------------------------------

    def _count_feedback(self) -> None:
        """Count the feedback of the records that were added or whose feedback changed."""
        ids = self._touched | self._subjects
        # Feedback that is forgotten, or written again, no longer counts for its subject, or again.
        subjects = select_in(
            self._connection,
            "SELECT of FROM line WHERE id IN ({}) AND kind = 'feedback' AND of IS NOT NULL",
            ids,
        )
        ids |= {of for (of,) in subjects}
        facts = TableFacts(self._connection, CURRENT)
        counted = facts.feedback(ids)
        rows = select_in(
            self._connection,
            "SELECT key, id, worked, failed, wrong, stale FROM line"
            f" WHERE id IN ({{}}) AND {CURRENT.condition}",
            ids,
        )
        for key, ident, *known in rows:
            now = tally(counted.get(ident, {}).values())
            if tuple(known) != now:
                self.changed_keys.add(key)
                self._connection.execute(
                    "UPDATE line SET worked = ?, failed = ?, wrong = ?, stale = ? WHERE key = ?",
                    (*now, key),
                )

    def _decide_standings(self) -> None:
        """Decide the standing of changed records, and of those that depend on them."""
        facts = TableFacts(self._connection, CURRENT)
        ids = facts.superseded_below(self._touched | self._subjects)
        changed = self._update_standings(ids, facts)
        if changed:
            # A link that was forgotten, or is there again, decides about its ends.
            ends = facts.superseded_below(facts.linked_by(changed))
            changed |= self._update_standings(ends, facts)
            dependents = facts.dependents(changed)
            self._update_standings(facts.superseded_below({*changed, *dependents}), facts)

    def _update_standings(self, ids: Collection[str], facts: TableFacts) -> set[str]:
        """Store the standing of *ids*; return those that became hidden or visible."""
        rows = select_in(
            self._connection,
            f"SELECT id, key, standing FROM line WHERE id IN ({{}}) AND {CURRENT.condition}",
            ids,
        )
        now = standings({ident for ident, _key, _standing in rows}, facts)
        # Ids whose first line was added or last line removed may have changed as well.
        changed = {ident for ident in ids if ident not in now or ident not in self._standing_before}
        for ident, key, stored in rows:
            standing, before = now[ident], self._standing_before.get(ident, Standing(stored))
            if standing != stored:
                self.changed_keys.add(key)
                self._connection.execute(
                    "UPDATE line SET standing = ? WHERE key = ?", (standing, key)
                )
            if is_gone(standing) != is_gone(before):
                changed.add(ident)
        return changed
