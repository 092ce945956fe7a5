"""Write about records that are there: rate, forget, edit, restore and link them.

The line goes to the log of the record, while that log is held: what it depends on cannot change
until it is written.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any

from commonplace.errors import RecordInvalid
from commonplace.log.logs import size_of
from commonplace.records import OUTCOMES, RELATIONS, Record
from commonplace.rules import is_statement, one_side
from commonplace.where.repository import log_for_changes
from commonplace.writing import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from commonplace.log.prepare import PreparedLine
    from commonplace.lookup import FoundRecord, Lookup


class RecordChanger(Writer):
    """A writer that also finds records."""

    _lookup: Lookup

    def _find(self, ident: str) -> FoundRecord:
        """Return the current version of the one record whose id starts with *ident*."""
        return self._lookup.find(ident)

    def feedback(self, ident: str, outcome: str) -> Record:
        """Rate the record after a use: worked, failed, wrong or stale."""
        if outcome not in OUTCOMES:
            raise RecordInvalid("outcome", f"is `{outcome}`, not one of {', '.join(OUTCOMES)}")
        return self._state(
            ident,
            {"id": f"fb-{outcome}-{os.urandom(7).hex()}", "kind": "feedback", "outcome": outcome},
        )

    def forget(self, ident: str, reason: str = "") -> Record:
        """Hide the record and what derives from it. Its history is kept; `erase` removes it."""
        return self._state(ident, {"kind": "forget", "reason": reason})

    def edit(
        self,
        ident: str,
        change: Callable[[Record], Mapping[str, Any]] | None = None,
        /,
        **changes: Any,  # noqa: ANN401 (any JSON)
    ) -> Record:
        """Change fields of the record, `None` removes one; a later line, so history is kept.

        *change* returns more changes for the current version, which no other process changes
        meanwhile.
        """
        from commonplace.editing import next_version  # noqa: PLC0415 (rarely needed)

        def fields_of(found: FoundRecord) -> dict[str, Any] | None:
            more = change(found.record) if change is not None else {}
            fields = next_version(found.record, {**changes, **more}, self._clock())
            return fields if fields != found.record.fields else None

        return self._append_beside(
            self._find(ident), lambda found: self._lookup.find(found.record.id), fields_of
        )

    def restore(self, ident: str) -> Record:
        """Bring back a record that was forgotten, and what derives from it."""
        is_time_needed = False

        def find(whole: str) -> FoundRecord:
            nonlocal is_time_needed
            found, is_time_needed = self._lookup.find_forgotten(whole)
            return found

        def fields_of(found: FoundRecord) -> dict[str, Any]:
            times = {"timestamp": None} if is_time_needed else {}
            return {**found.record.fields, **times, **self._without_undone_batch(found.record)}

        return self._append_beside(find(ident), lambda found: find(found.record.id), fields_of)

    def _without_undone_batch(self, record: Record) -> dict[str, Any]:
        """Return `meta` without the batch that wrote *record*, if that was undone.

        Somebody wants the record all the same, so from now on it is theirs.
        """
        from commonplace.editing import OF_BATCH  # noqa: PLC0415 (rarely needed)

        batch = record.meta.get("batch")
        if not isinstance(batch, str) or not self._lookup.is_undone(batch):
            return {}
        return {"meta": {name: one for name, one in record.meta.items() if name not in OF_BATCH}}

    def link(
        self,
        ident: str,
        rel: str,
        to: str,
        *,
        weight: float = 1.0,
        meta: Mapping[str, Any] | None = None,
    ) -> Record:
        """Link two records: *ident* *rel* *to*. The other end shows it by the inverse relation.

        Whichever side is named, the same link is written.
        """
        self.check_relation(rel)
        found = [self._find(end) for end in (ident, to)]
        for one in found:
            home = self.homes[one.home_number]
            if is_statement(one.record.kind):
                raise RecordInvalid(
                    "rel", f"cannot link `{one.record.id}`: it is itself {one.record.kind}",
                    "link the record that it is about",
                )  # fmt: skip
            if not self._lookup.trusts(home):
                raise RecordInvalid(
                    "rel", f"cannot link `{one.record.id}`: its home is not trusted",
                    "`commonplace trust` trusts the home that a repository brought",
                )  # fmt: skip
        first, second = (one.record.id for one in found)
        if first == second:
            raise RecordInvalid("to", f"is `{second}` itself", "a link has two ends")
        of, rel, end = one_side(first, rel, second)
        given = {"kind": "link", "rel": rel, "to": end, "w": weight, "meta": dict(meta or {})}
        return self._state(of, given)

    def check_relation(self, rel: str) -> None:
        """Raise `RecordInvalid` unless *rel* is a relation, in either direction."""
        if rel in RELATIONS:
            return
        from difflib import get_close_matches  # noqa: PLC0415 (rarely needed)

        near = get_close_matches(rel.lower().replace("-", "_"), RELATIONS, 1)
        hint = f"did you mean `{near[0]}`? " if near else ""
        raise RecordInvalid(
            "rel", f"is `{rel}`, which is no relation", f"{hint}There are {', '.join(RELATIONS)}"
        )

    def change(
        self, ident: str, fields_of: Callable[[Record], dict[str, Any] | None]
    ) -> Record | None:
        """Append the next version of a record, made from the current one while its log is held.

        Return it, or `None` if *fields_of* returns that. Raises if the record is not there.
        """
        changed: dict[str, Any] | None = None

        def next_fields(found: FoundRecord) -> dict[str, Any] | None:
            nonlocal changed
            changed = fields_of(found.record)
            return changed

        record = self._append_beside(
            self._find(ident), lambda found: self._find(found.record.id), next_fields
        )
        return record if changed is not None else None

    def append_if(
        self,
        log: str,
        entries: Sequence[PreparedLine],
        is_current: Callable[[], bool],
        home_number: int = 0,
    ) -> bool:
        """Append *entries* to a log of a home, the nearest, if *is_current* while we hold it.

        Return whether they were. For lines that depend on what nobody may change meanwhile.
        """
        return self.append_together({(home_number, log): entries} if entries else {}, is_current)

    def append_together(
        self,
        entries: Mapping[tuple[int, str], Sequence[PreparedLine]],
        is_current: Callable[[], bool],
    ) -> bool:
        """Append to several logs, by home and name, if *is_current* while we hold all of them.

        Return whether they were.
        """
        if not entries:
            return True
        with ExitStack() as held:
            appends = {}
            for number, log in sorted(entries):  # In one order, so that no two wait for each other.
                self._make_home(number)
                appends[number, log] = held.enter_context(self._logs[number].hold(log))
            if not is_current():
                return False
            for place, append in appends.items():
                append([entry.line for entry in entries[place]])
        for (number, _log), some in entries.items():
            self._after_write([entry.record for entry in some], number)
        return True

    def _state(self, ident: str, given: dict[str, Any]) -> Record:
        """Append a statement about the record."""

        def find_again(found: FoundRecord) -> FoundRecord:
            home = self.homes[found.home_number]
            paths = (home.log(found.repo), home.archive(found.repo))
            is_there = any(map(size_of, paths))
            return found if is_there else self._lookup.find(found.record.id)

        return self._append_beside(
            self._find(ident), find_again, lambda found: {**given, "of": found.record.id}
        )

    def _append_beside(
        self,
        found: FoundRecord,
        find_again: Callable[[FoundRecord], FoundRecord],
        fields_of: Callable[[FoundRecord], dict[str, Any] | None],
    ) -> Record:
        """Append what *fields_of* returns, if anything, to the log of the record.

        Until we hold its log, another process may change the record, or rename the log: a line that
        is then written by the old name could lose against an older one. So it is found again.
        """
        while True:
            log = log_for_changes(found.repo)
            with self._logs[found.home_number].hold(log) as append:
                now = find_again(found)
                if (now.home_number, log_for_changes(now.repo)) == (found.home_number, log):
                    fields = fields_of(now)
                    if fields is None:
                        return now.record
                    self._names_now.clear()
                    entry = self.prepare({**fields, "repo": log})
                    append([entry.line])
                    break
            found = now
        self._after_write([entry.record], found.home_number)
        return entry.record
