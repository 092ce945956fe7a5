"""`Recaller`: the part of the memory that reads. It connects homes, logs, notes and the engine."""

# Every command and hook imports this module and its imports. So modules that only some calls need
# are imported where they are used.
# ruff: noqa: PLC0415

from __future__ import annotations

import os
import threading
from copy import copy
from pathlib import Path
from typing import Any

from commonplace.errors import NothingTrusted, UsageError
from commonplace.log import names
from commonplace.lookup import Lookup
from commonplace.record_changer import RecordChanger
from commonplace.records import Record, encode, to_utc
from commonplace.scope import Scope, Searched
from commonplace.usage import Usage
from commonplace.where import repository, trust
from commonplace.where.aliases import Aliases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import Self, Unpack

    from commonplace.embed.early import EarlyQuestion
    from commonplace.engine import Answer, Engine
    from commonplace.erasure import Receipt
    from commonplace.log.check import Finding
    from commonplace.log.read import Damage
    from commonplace.log.scan import Secret
    from commonplace.lookup import FoundRecord
    from commonplace.notes import Notes
    from commonplace.notes_of_homes import NotesOfHomes
    from commonplace.recall.hits import Hit
    from commonplace.recall.listing import Page
    from commonplace.recall.overview import Verdict
    from commonplace.recall.query import Narrowing, Query
    from commonplace.where.home import Home

# The ids of files begin like this: they are not records.
TEXT_PREFIXES = ("note:", "skill:")


class Recaller(RecordChanger):
    """A writer that also answers questions, erases, and keeps notes."""

    _engine: Engine | None = None
    _origin: Recaller | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 (those of Writer)
        super().__init__(*arguments, **options)
        self._lookup = Lookup(self.homes, self.trusts)
        self._engine_lock = threading.Lock()

    def beside(
        self, *, agent_id: str | None = None, cwd: str | os.PathLike[str] | None = None
    ) -> Self:
        """Return the same homes for another agent or folder.

        For a server, which answers many agents: both share everything that is open, and only the
        memory that this was called on closes it.
        """
        other = copy(self)
        other.agent_id = agent_id or self.agent_id
        other._is_bound = False  # noqa: SLF001 (our own copy)
        other._names_now = {}  # noqa: SLF001
        if cwd is not None:
            other.repository = repository.find(Path(cwd).resolve())
        # A repository may have been renamed since.
        other._aliases = other.known_aliases()  # noqa: SLF001
        other.repository = other._aliases.resolve(other.repository)  # noqa: SLF001
        other._origin = self._origin or self  # noqa: SLF001 (our own copy)
        return other

    def close(self) -> None:
        if self._origin is not None:
            return
        if self._engine is not None:
            self._engine.close()
            self._engine = None
        super().close()

    @property
    def damages(self) -> list[Damage]:
        """The damaged lines found so far while reading."""
        return self._lookup.damages

    # --- Erasing ----------------------------------------------------------------------------------

    def logs_with(self, ident: str) -> set[str]:
        """Return the names of the logs that have a record of that id, read from the files."""
        return self._lookup.logs_with(ident)

    def count_derived(self, ident: str) -> int:
        """Return how many records `erase` removes with the one of this whole id."""
        from commonplace.erasure import reach

        return len(reach(self.homes, ident)[0]) - 1

    def count_hidden_with(self, ident: str) -> int:
        """Return how many records `forget` hides with the one of this whole id."""
        from commonplace.erasure import count_visible_dependents

        trusted = [home for home in self.homes if home.trusted]
        return count_visible_dependents(trusted, ident)

    def erase(self, ident: str, progress: Callable[[int], None] | None = None) -> Receipt:
        """Remove the record permanently: every version, every copy, and what derives from it.

        *progress* is told how many more lines were indexed again without it.
        """
        from commonplace.erasure.request import erase_record
        from commonplace.index.ports import no_progress

        return erase_record(
            self.homes,
            ident,
            resolve=self._lookup.resolve,
            trusts=self.trusts,
            when=to_utc(self._clock()),
            progress=progress or no_progress,
        )

    def _find(self, ident: str) -> FoundRecord:
        if self._engine_is_open():
            found = self.engine().find(ident, self._untrusted())
            if found is not None:
                return found
        return self._lookup.find(ident)

    # --- Reading ----------------------------------------------------------------------------------

    def find(self, ident: str) -> FoundRecord:
        """Return the current version of the one record whose id starts with *ident*, and where."""
        return self._find(ident)

    def get(self, ident: str) -> Record:
        """Return the current version of the one record whose id starts with *ident*."""
        return self._find(ident).record

    def history(self, ident: str) -> list[Record]:
        """Return every version of the record and the statements about it, oldest first.

        Forgotten records are included.
        """
        return self._lookup.history(ident)

    def whole(self, ident: str) -> Record:
        """Return the record as `get` does; an episode that was summarized as it was before."""
        return self._lookup.find_whole(ident).record

    def describe(self, ident: str, *, whole: bool = False) -> dict[str, Any]:
        """Return the record with its feedback, its use and its home.

        With *whole*, an episode that was summarized is returned as it was before that.
        """
        from commonplace import description

        if ident.startswith(TEXT_PREFIXES):
            return description.of_text(self.homes, self.agent_id, ident)
        found = self._lookup.find_whole(ident) if whole else self._find(ident)
        home = self.homes[found.home_number]
        return description.of_record(found, self._uses(found), home, is_trusted=self.trusts(home))

    def _uses(self, found: FoundRecord) -> tuple[int, str]:
        if self._engine_is_open():
            return self.engine().usage.of(found.record.id)
        usage = Usage(self.homes[found.home_number].usage_file)
        try:
            return usage.of(found.record.id)
        finally:
            usage.close()

    def records(
        self, repo: str | None = None, kind: str | None = None, *, superseded: bool = False
    ) -> Iterator[Record]:
        """Yield the current records of the nearest home, with archive, feedback and links.

        Forgotten ones are left out, and superseded ones unless *superseded* is set. An episode that
        was summarized is yielded as it was before that.
        """
        repos = None if repo is None else self.scope().named(repo)
        return self._lookup.records(repos, kind, superseded=superseded)

    @property
    def superseded_left_out(self) -> int:
        """How many superseded records the last complete `records` or `export_lines` left out."""
        return self._lookup.superseded_left_out

    def export_lines(
        self, repo: str | None = None, kind: str | None = None, *, superseded: bool = False
    ) -> Iterator[str]:
        """Yield the same records as JSON lines, redacted again."""
        from commonplace.redaction.fields import redact
        from commonplace.redaction.suspicion import may_hold_secret

        for record in self.records(repo, kind, superseded=superseded):
            line = encode(record.fields)
            yield encode(redact(record.fields)[0]) if may_hold_secret(line) else line

    def archived_ids(self) -> frozenset[str]:
        """Return the ids in the nearest home whose current version is in an archive."""
        return self._lookup.archived_ids()

    def repos(self) -> list[dict[str, Any]]:
        """Return each repository of the nearest home with its counts."""
        return self._lookup.repos()

    # --- Recalling --------------------------------------------------------------------------------

    def recall(
        self, query: str | Query = "", *, text: str = "", **narrowing: Unpack[Narrowing]
    ) -> Answer:
        """Return what is known about *query*: the few memories that help, best first.

        *text* is another name for it. Keywords narrow it (see `recall.query.Narrowing`). This
        repository is searched; if nothing in it is relevant, the best memory of another one is the
        answer, marked with its repository. `repo` names another repository, `all_repos` searches
        all; `as_of` answers as of that time.
        """
        if query and text:
            raise UsageError("`query` and `text` are two names of the question", "give one of them")
        asked = self._query(query or text, narrowing)
        answer = self.engine().recall(asked)
        if not asked.automatic and answer.hits:
            self.note_injection("recall", answer.tokens, [hit.id for hit in answer.hits])
        repo = narrowing.get("repo")
        if isinstance(repo, str) and (
            note := names.plain_name_note(repo, self.scope().named(repo))
        ):
            answer.notes.append(note)
        return answer

    def note_injection(
        self,
        source: str,
        tokens: int,
        ids: Collection[str],
        task: str = "",
        session: str = "",
        **measured: Any,  # noqa: ANN401 (fields of `Injection`)
    ) -> None:
        """Write down that an agent was given memories, for `stats --context`."""
        from commonplace import injections

        usage = self.engine().usage.nearest
        if usage is not None:
            measured = {"agent": self.agent_id, "repo": self.repository.name} | measured
            at = to_utc(self.now())
            made = injections.make(at, source, tokens, ids, task, session, **measured)
            injections.add(usage, made)

    def query(self, text: str = "", **narrowing: Unpack[Narrowing]) -> Query:
        """Return the question *text* of this agent; `scope` decides what it searches."""
        repo, all_repos = narrowing.pop("repo", None), narrowing.pop("all_repos", False)
        searched = self.scope().choose(repo, all_repos=all_repos)
        return self._exact_query(text, searched, narrowing)

    def query_in(self, logs: list[str], text: str, **narrowing: Unpack[Narrowing]) -> Query:
        """Return the question *text* about exactly these logs, by their whole names."""
        return self._exact_query(text, Searched(logs), narrowing)

    def _exact_query(self, text: str, searched: Searched, narrowing: Narrowing) -> Query:
        from commonplace.recall.query import Query

        untrusted = self._untrusted()
        options: dict[str, Any] = {**narrowing}
        return Query.build(
            text,
            repo=searched.logs,
            elsewhere=searched.elsewhere and narrowing.get("cutoff", True),
            untrusted=untrusted,
            # What nobody asked for comes from trusted homes only.
            without_homes=untrusted if narrowing.get("automatic") else frozenset(),
            now=self._clock(),
            here=self.repository.name,
            root=self.repository.root,
            reader=self.agent_id,
            **options,
        )

    def _query(self, query: str | Query, narrowing: Narrowing) -> Query:
        return self.query(query, **narrowing) if isinstance(query, str) else query

    def scope(self) -> Scope:
        """Return what decides which logs a question is about."""
        return Scope(
            self.homes,
            self.known_aliases(),
            self.repository,
            lambda: self.stats()["repos"],
        )

    def known_aliases(self) -> Aliases:
        """Return what the trusted homes say about which repository has which log."""
        return Aliases([home._replace(trusted=self.trusts(home)) for home in self.homes])

    def recent(self, count: int, **narrowing: Unpack[Narrowing]) -> list[Hit]:
        """Return the latest records, newest first, each with a line of text."""
        if count < 1:
            raise UsageError(f"the number of records is {count}, under 1")
        return self.engine().recent(count, self.query(**narrowing))

    def list_records(
        self, sort: str = "newest", page: int = 1, **narrowing: Unpack[Narrowing]
    ) -> Page:
        """Return a page of the records that pass the filters, `limit` of them, without a question.

        *sort* is newest, oldest, rate (the most successful first) or uses.
        """
        return self.engine().list_records(self.query(**narrowing), sort, page)

    def tags(self, **narrowing: Unpack[Narrowing]) -> dict[str, int]:
        """Return how many of the records that pass the filters have each tag."""
        return self.engine().tags(self.query(**narrowing))

    def rank(self, query: str | Query, **narrowing: Unpack[Narrowing]) -> list[Hit]:
        """Return the ranking, for programs that choose and count for themselves.

        `repo` gives whole names of logs; without it, all are ranked.
        """
        if isinstance(query, str):
            query = self._exact_query(query, _exactly(narrowing), narrowing)
        return self.engine().rank(query)

    def select(
        self, ids: Collection[str] | None = None, **narrowing: Unpack[Narrowing]
    ) -> list[Record]:
        """Return the current records of the nearest home that pass the filters, in line order.

        With *ids*, only those. `repo` gives whole names of logs. The index finds the records, so
        the cost depends on the result.
        """
        return self.engine().select(self._exact_query("", _exactly(narrowing), narrowing), ids)

    def select_everywhere(self, **narrowing: Unpack[Narrowing]) -> Iterator[Record]:
        """Yield the current records of all homes that pass the filters, in line order.

        With `automatic`, homes that the user does not trust are left out. `kinds` may name
        statements, such as feedback.
        """
        return self.engine().select_everywhere(self.query(**narrowing))

    def stats(
        self, repo: str | Collection[str] | None = None, *, query: Query | None = None
    ) -> dict[str, Any]:
        """Return how many records there are, by repository, kind and type, in all or in *repo*.

        With *query*, only those that pass its filters.
        """
        if query is None:
            query = self.query(repo=repo) if repo else self.query(all_repos=True)
        return self.engine().stats(query)

    def savings(self) -> dict[str, Any]:
        """Return how many tokens recalls delivered so far, and how many the searched logs have."""
        return self.engine().savings()

    def why(self, query: str | Query, ident: str, **narrowing: Unpack[Narrowing]) -> Verdict:
        """Return why the record is, or is not, in the answer to *query*."""
        whole = ident if ident.startswith(TEXT_PREFIXES) else self._lookup.resolve(ident)[1]
        return self.engine().why(self._query(query, narrowing), whole)

    def engine(self, *, for_one_query: bool = False, early: EarlyQuestion | None = None) -> Engine:
        """Return the engine that answers questions, opened on first use.

        *for_one_query* is for a process that asks once and ends: it loads the model faster, or has
        the *early* question embedded already.
        """
        if self._origin is not None:
            return self._origin.engine()
        if self._engine is None:
            from commonplace.embed.service import EmbeddingService
            from commonplace.engine import Engine

            with self._engine_lock:  # Two threads of a server may come first.
                if self._engine is None:
                    self._engine = Engine(
                        self.homes,
                        self.settings,
                        clock=self._clock,
                        embedding=EmbeddingService(
                            self.settings, self._clock, for_one_query=for_one_query, early=early
                        ),
                        for_one_query=for_one_query,
                        background=self.background,
                    )
        return self._engine

    def _engine_is_open(self) -> bool:
        return (self._origin or self)._engine is not None  # noqa: SLF001 (our own class)

    def ready(self, timeout_s: float | None = None) -> bool:
        """Wait until everything written is indexed and has its vectors; return whether it is.

        Without an embedder, or with a service that fails, vectors are not waited for.
        """
        engine = self.engine()
        engine.catch_up()
        return engine.vectors.wait(timeout_s)

    # --- Notes ------------------------------------------------------------------------------------

    def notes(self, agent: str | None = None) -> Notes:
        """Return the notes of an agent, in the nearest home."""
        return self._notes_in(self.home, agent)

    def visible_notes(self, agent: str | None = None) -> NotesOfHomes:
        """Return the notes of an agent in all homes: what it is given at start is among them."""
        from commonplace.notes_of_homes import NotesOfHomes

        trusted = [home for home in self.homes if self.trusts(home)]
        untrusted = [home for home in self.homes if home not in trusted]
        return NotesOfHomes(
            [self._notes_in(home, agent) for home in trusted],
            [self._notes_in(home, agent) for home in untrusted],
        )

    def _notes_in(self, home: Home, agent: str | None = None) -> Notes:
        from commonplace.notes import Notes

        return Notes(home, agent or self.agent_id)

    def trusts(self, home: Home) -> bool:
        """Whether the user trusts *home*: it is their own, or they said so.

        The mark is read each time, so that a server notices `commonplace trust`.
        """
        return home.of_user or bool(self.settings["trust.repositories"]) or trust.is_trusted(home)

    def trusted_home(self) -> int:
        """Return the number of the nearest home that the user trusts. Raises `NothingTrusted`."""
        found = next((n for n, home in enumerate(self.homes) if self.trusts(home)), None)
        if found is None:
            raise NothingTrusted(self.home.path)
        return found

    def _untrusted(self) -> frozenset[int]:
        return frozenset(n for n, home in enumerate(self.homes) if not self.trusts(home))

    def read_at_start(self, path: str = "CONTEXT.md", agent: str | None = None) -> str:
        """Return the note that the agent reads at start, from the nearest home that has one.

        A home that came with a repository must be trusted for that.
        """
        trusted = filter(self.trusts, self.homes)
        found = (self._notes_in(home, agent).optional(path) for home in trusted)
        return next((text for text in found if text.strip()), "")

    def preamble(self, agent: str | None = None, workspace: str | None = None) -> str:
        """Return what the program that runs an agent should put into its system prompt."""
        from commonplace.compose.preamble import preamble

        identity, context = (
            self.read_at_start(path, agent) for path in ("IDENTITY.md", "CONTEXT.md")
        )
        where = workspace or str(self.repository.root or Path.cwd())
        return preamble(identity, context, self._clock().astimezone(), where)

    # --- Keeping it in order ----------------------------------------------------------------------

    def check(self) -> list[Finding]:
        """Return the findings of `doctor` about the nearest home."""
        from commonplace import erasure
        from commonplace.log import check

        return [*check.check(self.home), *erasure.check(self.home)]

    def mend(self) -> list[Finding]:
        """Repair what can be repaired without losing anything; finish what was interrupted."""
        from commonplace import erasure
        from commonplace.log import check

        return [*check.fix(self.home), *erasure.fix(self.homes)]

    def scan(self, *, fix: bool = False) -> list[Secret]:
        """Return the secrets in the nearest home; with *fix*, remove them.

        Those in its snapshots are among them.
        """
        from commonplace.log import scan
        from commonplace.snapshots import secrets

        if fix:
            return [*scan.remove_secrets(self.home), *secrets.remove(self.home)]
        return [*scan.scan(self.home), *secrets.find(self.home)]


def _exactly(narrowing: Narrowing) -> Searched:
    """Remove the repositories from *narrowing*, and return them as logs; none stands for all."""
    narrowing.pop("all_repos", None)
    repo = narrowing.pop("repo", None)
    return Searched([repo] if isinstance(repo, str) else None if repo is None else list(repo))
