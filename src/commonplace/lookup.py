"""Look records up in the logs themselves, without an index, for `show` and `export`."""

from __future__ import annotations

from typing import NamedTuple

from commonplace.errors import IdAmbiguous, RecordNotFound, UsageError
from commonplace.log.fold import Stored, fold, history
from commonplace.log.logs import list_repos
from commonplace.records import Record
from commonplace.rules import (
    Fold,
    SeveralHomes,
    Standing,
    find_forgotten,
    is_gone,
    spread,
    standings,
    tally,
    written_micros,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Any

    from commonplace.log.read import Damage
    from commonplace.records import Rate
    from commonplace.rules import Tally
    from commonplace.where.home import Home


class FoundRecord(NamedTuple):
    """A record, its home and log, and its standing over all homes."""

    record: Record
    home_number: int
    repo: str
    standing: Standing
    rate: Rate | None
    feedback: Tally


class Lookup:
    """Looks up records in the logs of *homes*, the nearest first; *trusts* judges each of them."""

    def __init__(self, homes: Sequence[Home], trusts: Callable[[Home], bool]) -> None:
        self._homes = homes
        self.trusts = trusts
        self._damages: set[Damage] = set()
        self.superseded_left_out = 0

    @property
    def damages(self) -> list[Damage]:
        """The damaged lines found so far."""
        return sorted(self._damages)

    def fold(
        self,
        home: Home,
        repos: Iterable[str] | None = None,
        needle: bytes = b"",
        *,
        whole: bool = False,
    ) -> Fold[Stored]:
        folded, damages = fold(home, repos, needle, whole=whole)
        self._damages.update(damages)
        return folded

    def resolve(self, prefix: str) -> tuple[int, str]:
        """Return a home's number and the one id that starts with *prefix*, nearest home first."""
        if not prefix.strip():
            raise UsageError("an id is needed", "`commonplace export` lists every id")
        needle = prefix.encode("utf-8", "surrogatepass")
        matches: dict[str, int] = {}
        # The user's own record comes before one with its id in a home that is not trusted.
        by_trust = sorted(enumerate(self._homes), key=lambda one: not self.trusts(one[1]))
        for number, home in by_trust:
            for ident in self.fold(home, needle=needle).ids():
                if ident.startswith(prefix):
                    matches.setdefault(ident, number)
        if prefix in matches:
            return matches[prefix], prefix
        if not matches:
            raise RecordNotFound(prefix)
        if len(matches) > 1:
            raise IdAmbiguous(prefix, sorted(matches))
        ((ident, number),) = matches.items()
        return number, ident

    def logs_with(self, ident: str) -> set[str]:
        """Return the names of the logs that have a record of that id."""
        found: set[str] = set()
        for home in self._homes:
            folded = self.fold(home, needle=ident.encode())
            found |= {line.value.repo for line in folded.last_lines(ident)}
        return found

    def find(self, prefix: str) -> FoundRecord:
        """Return the current version of a record; raise if there is none or it was forgotten."""
        number, ident = self.resolve(prefix)
        found = self._read_current(number, ident)
        if found.standing is Standing.DERIVED:
            raise self._hidden_error(ident, self._heard(number))
        if is_gone(found.standing):
            raise self._forgotten_error(ident, self._heard(number))
        return found

    def find_whole(self, prefix: str) -> FoundRecord:
        """Return a record as `find` does, an episode as it was before it was summarized."""
        found = self.find(prefix)
        home, ident = self._homes[found.home_number], found.record.id
        folded = self.fold(home, needle=ident.encode(), whole=True)
        return found._replace(record=folded.current(ident).value.record)

    def find_forgotten(self, prefix: str) -> tuple[FoundRecord, bool]:
        """Return a record that was forgotten, and whether its next line needs a later time.

        In its own log a later line is enough. Another log's forget is compared by time.
        """
        try:
            number, ident = self.resolve(prefix)
        except RecordNotFound:
            from commonplace.erasure import erased  # noqa: PLC0415 (it loads the index)

            if when := erased.find(self._homes, prefix):
                message = f"`{prefix}` was erased on {when[:10]} and is gone for good"
                raise RecordNotFound(prefix, message, "log it anew") from None
            raise
        found = self._read_current(number, ident)
        if found.standing is Standing.DERIVED:
            raise self._hidden_error(ident, self._heard(number))
        if found.standing is not Standing.FORGOTTEN:
            raise UsageError(f"`{ident}` is not forgotten", f"`commonplace show {ident}` shows it")
        heard = self._heard(number)
        forgets = SeveralHomes([self.fold(home, needle=ident.encode()) for home in heard])
        own = f"{heard.index(self._homes[number])}/{found.repo}"
        written = written_micros(found.record)
        return found, any(
            stamp.log != own and stamp.micros > written for stamp in forgets.forgets([ident])[ident]
        )

    def is_undone(self, batch: str) -> bool:
        """Whether a trusted home says that *batch* was undone."""
        folds = (
            self.fold(home, needle=batch.encode()) for home in filter(self.trusts, self._homes)
        )
        return any(folded.forgets([batch]) for folded in folds)

    def _read_current(self, number: int, ident: str) -> FoundRecord:
        heard = self._heard(number)
        folds = [self.fold(home, needle=ident.encode()) for home in heard]
        if any(_depends_on_others(folded, ident) for folded in folds):
            # They decide whether it is hidden, and their latest versions may not name it.
            folds = [self.fold(home) for home in heard]
        kept = folds[heard.index(self._homes[number])].current(ident)
        facts = SeveralHomes(folds)
        outcomes: dict[str, str] = {}
        for folded in reversed(folds):  # The nearest home's feedback replaces others.
            outcomes |= folded.feedback(ident)
        feedback = tally(outcomes.values())
        return FoundRecord(
            kept.value.record,
            number,
            kept.value.repo,
            standings([ident], facts)[ident],
            kept.rate(feedback),
            feedback,
        )

    def _heard(self, number: int) -> list[Home]:
        """Return the homes whose statements count for the records of that home.

        A home that is not trusted speaks for its own records only.
        """
        home = self._homes[number]
        return list(filter(self.trusts, self._homes)) if self.trusts(home) else [home]

    def _hidden_error(self, ident: str, heard: Sequence[Home]) -> RecordNotFound:
        """Return an error that names the forgotten records on which *ident* rests."""
        facts = SeveralHomes([self.fold(home) for home in heard])
        reached: set[str] = set()
        spread({ident}, lambda ids: (one.on for one in facts.supports(ids)), reached)
        first, *others = sorted(find_forgotten(reached, facts))
        more = f" and {len(others)} more" if others else ""
        return RecordNotFound(
            ident,
            f"`{ident}` is hidden because it rests on `{first}`{more}, which"
            f" {'were' if others else 'was'} forgotten",
            f"`commonplace forget --undo {first}` brings {'that one' if others else 'both'} back;"
            " `commonplace history` shows it",
        )

    def _forgotten_error(self, ident: str, heard: Sequence[Home]) -> RecordNotFound:
        forgets = [
            record
            for home in heard
            for record in history(home, ident)
            if record.kind == "forget" and record.fields.get("of") == ident
        ]
        when = ""
        if forgets:
            last = max(forgets, key=lambda record: record.timestamp)
            reason = f" ({last.fields['reason']})" if last.fields.get("reason") else ""
            when = f" on {last.timestamp[:10]}{reason}"
        return RecordNotFound(
            ident,
            f"`{ident}` was forgotten{when}",
            f"`commonplace forget --undo {ident}` brings it back; `commonplace history` shows it",
        )

    def history(self, prefix: str) -> list[Record]:
        """Return every version of a record and the statements about it, oldest first."""
        number, ident = self.resolve(prefix)
        own = self._homes[number]
        others = [home for home in self._heard(number) if home is not own]
        # What other homes say about it comes after what its own home says.
        return [one for home in (self._homes[number], *others) for one in history(home, ident)]

    def records(
        self,
        repos: Collection[str] | None = None,
        kind: str | None = None,
        *,
        superseded: bool = False,
    ) -> Iterator[Record]:
        """Yield the current records of the nearest home, with archive, and their statements.

        Of an episode that was summarized it is the whole one. Superseded ones are counted in
        `superseded_left_out`, unless *superseded* is set.
        """
        self.superseded_left_out = 0
        folded = self.fold(self._homes[0], whole=True)
        current = set(folded.visible_ids(statements=True))
        for ident in folded.visible_ids(superseded=True, statements=True):
            kept = folded.current(ident)
            if kind is not None and kept.kind != kind:
                continue
            record = kept.value.record
            named = (record.repo or kept.value.repo, kept.value.repo)
            if repos is not None and not any(repo in repos for repo in named):
                continue
            if superseded or ident in current:
                yield record
            else:
                self.superseded_left_out += 1

    def archived_ids(self) -> frozenset[str]:
        """Return the ids in the nearest home whose current version is in an archive."""
        folded = self.fold(self._homes[0])
        return frozenset(one for one in folded.ids() if folded.current(one).value.archived)

    def repos(self) -> list[dict[str, Any]]:
        """Return each repository of the nearest home with its counts."""
        home = self._homes[0]
        folded = self.fold(home)
        rows: dict[str, dict[str, Any]] = {}
        for repo in list_repos(home):
            paths = (home.log(repo), home.archive(repo))
            size = sum(path.stat().st_size for path in paths if path.exists())
            rows[repo] = {"repo": repo, "records": 0, "archived": 0, "newest": "", "bytes": size}
        for ident in folded.visible_ids():
            stored = folded.current(ident).value
            record = stored.record
            repo = record.repo or stored.repo
            empty = {"repo": repo, "records": 0, "archived": 0, "newest": "", "bytes": 0}
            row = rows.setdefault(repo, empty)
            row["archived" if stored.archived else "records"] += 1
            row["newest"] = max(row["newest"], record.timestamp)
        return list(rows.values())


def _depends_on_others(folded: Fold[Stored], ident: str) -> bool:
    """Whether it rests on other records, or one supersedes it."""
    return any(folded.supports([ident])) or any(folded.superseders([ident]))
