"""Memory: the library's face. It wires homes, settings and logs together, once; every surface goes through it.

Whatever only some commands need (rotation, repair, erasure) is imported where it is called: `commonplace log` starts
in a few milliseconds because it loads none of that.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

import os
import threading
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from commonplace import settings
from commonplace.errors import (
    DiskFull,
    HomeUnusable,
    IdAmbiguous,
    NoteNotFound,
    NoteRefused,
    RecordInvalid,
    RecordNotFound,
    UsageError,
)
from commonplace.files.lock import LOCK_S_MAX
from commonplace.log.logs import Logs
from commonplace.log.prepare import Entry, prepare
from commonplace.records import (
    EVENT_TYPES,
    KINDS,
    OUTCOMES,
    Record,
    check_repo_name,
    decode,
    encode,
)
from commonplace.redaction import redact, suspicious
from commonplace.where import homes, repository
from commonplace.where.home import Home, repo_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from commonplace.engine import Asking, Recall
    from commonplace.erasure import Receipt
    from commonplace.log.check import Finding
    from commonplace.log.read import Damage
    from commonplace.log.rotate import Rotation
    from commonplace.log.scan import Secret
    from commonplace.log.view import Version, View
    from commonplace.notes import Notes
    from commonplace.recall.hits import Hit, Query
    from commonplace.usage import Usage

BULK_LINES = 4000
# What the index holds beside records: files, whose ids begin so.
TEXT_KINDS = ("note", "skill")
TEXT_PREFIXES = ("note:", "skill:")


class Refusal(NamedTuple):
    """A line of a bulk write that was not taken, and why."""

    line: int
    reason: str


class Bulk(NamedTuple):
    """What became of a bulk write."""

    taken: int
    refused: list[Refusal]
    redacted: int


def now_utc() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


class Memory:
    """The memory that counts in a folder: its own home, if there is one, and the user's."""

    def __init__(
        self,
        found: list[Home],
        here: repository.Repository,
        *,
        agent_id: str = "default",
        clock: Callable[[], datetime] = now_utc,
        token: Callable[[], str] = lambda: os.urandom(7).hex(),
        wait_s_max: float = LOCK_S_MAX,
    ) -> None:
        self.homes = found
        self.repository = here
        self.agent_id = agent_id
        for home in found:
            homes.check_usable(home.path)
        self.settings = settings.load(reversed(found))
        self._clock = clock
        self._token = token
        self._logs = [
            Logs(home, fsync=self.settings["fsync"], wait_s_max=wait_s_max) for home in found
        ]
        self._asked: Asking | None = None
        self._making = threading.Lock()
        self._source: Memory | None = None
        self._seen: set[Path] = set()
        self.check_homes()

    @classmethod
    def open(
        cls,
        home: str | os.PathLike[str] | None = None,
        *,
        cwd: str | os.PathLike[str] | None = None,
        environment: Mapping[str, str] = os.environ,
        agent_id: str | None = None,
        clock: Callable[[], datetime] = now_utc,
        wait_s_max: float = LOCK_S_MAX,
    ) -> Self:
        """The memory of *home* alone, or the one that counts in *cwd*. Nothing is made until something is written.

        A write waits *wait_s_max* for a log that somebody else holds, then raises `LogBusy`.
        """
        folder = Path(cwd).resolve() if cwd is not None else homes.current_folder()
        here = repository.find(folder)
        found = homes.find(Path(home) if home is not None else None, folder, here, environment)
        agent = agent_id or environment.get("COMMONPLACE_AGENT") or "default"
        return cls(found, here, agent_id=agent, clock=clock, wait_s_max=wait_s_max)

    def beside(
        self, *, agent_id: str | None = None, cwd: str | os.PathLike[str] | None = None
    ) -> Memory:
        """The same homes as another agent sees them, or from another folder; it shares everything that is open.

        For a server, which answers many agents. Closing it is left to the memory it stands beside.
        """
        from copy import copy

        other = copy(self)
        other.agent_id = agent_id or self.agent_id
        if cwd is not None:
            other.repository = repository.find(Path(cwd).resolve())
        other._source = self._source or self  # noqa: SLF001 (our own copy)
        return other

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def check_homes(self) -> None:
        """Raise `HomeUnusable` if a home that was there is gone.

        A home is made by the first write, so one that is missing knows nothing yet. One that has gone missing under a
        server (a disk was taken out, a folder moved) must not pass for that, nor be made anew behind the user's back.
        """
        for home in self.homes:
            if home.path.is_dir():
                self._seen.add(home.path)
            elif home.path in self._seen:
                hint = "ask for it to be put back, then try again; `commonplace init` would make a new one"
                raise HomeUnusable(home.path, "it was here and is gone", hint)

    @property
    def home(self) -> Home:
        """The nearest home: the one that is written to."""
        return self.homes[0]

    @property
    def damages(self) -> list[Damage]:
        """The damaged lines met so far while reading."""
        return sorted({damage for logs in self._logs for damage in logs.damages})

    # --- Writing --------------------------------------------------------------------------------------------------

    def log(self, **fields: Any) -> Record:  # noqa: ANN401
        """Write one record, a lesson unless `kind` says otherwise, and return it as it was stored.

        `record.redactions` tells what was taken out on the way. The same content twice is the same id.
        """
        return self.append([fields])[0]

    def append(self, records: Iterable[Mapping[str, Any] | Record]) -> list[Record]:
        """Write *records*: all are checked before the first is written, so a refusal costs nothing."""
        entries = [
            self._prepare(given.fields if isinstance(given, Record) else given) for given in records
        ]
        self._write(entries)
        return [entry.record for entry in entries]

    def append_lines(self, lines: Iterable[bytes]) -> Bulk:
        """Write the JSON objects in *lines*, one a line, in batches; lines that hold none are told, not fatal."""
        taken, redacted, refused = 0, 0, list[Refusal]()
        batch: list[Entry] = []
        now = self._clock()
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                entry = self._prepare(decode(line), now)
            except (RecordInvalid, ValueError) as error:
                refused.append(Refusal(number, str(error)))
                continue
            batch.append(entry)
            redacted += bool(entry.record.redactions)
            if len(batch) >= BULK_LINES:
                taken = self._write_batch(batch, taken)
                batch, now = [], self._clock()
        return Bulk(self._write_batch(batch, taken), refused, redacted)

    def prepared(self, given: Mapping[str, Any]) -> Entry:
        """The line *given* makes, checked and redacted, for `store`; nothing is written yet."""
        return self._prepare(given)

    def store(self, entries: list[Entry]) -> None:
        """Write what was `prepared`."""
        self._write(entries)

    def feedback(self, ident: str, outcome: str) -> Record:
        """Say how a use of the record went: worked, failed, wrong or stale."""
        if outcome not in OUTCOMES:
            raise RecordInvalid("outcome", f"is `{outcome}`, not one of {', '.join(OUTCOMES)}")
        book, version = self._found(ident)
        given = {
            "id": f"fb-{outcome}-{self._token()}",
            "kind": "feedback",
            "of": version.record.id,
            "outcome": outcome,
        }
        return self._append_beside(book, version, given)

    def forget(self, ident: str, reason: str = "") -> Record:
        """Hide the record and what derives from it. It stays in the history; `erase` removes it."""
        book, version = self._found(ident)
        return self._append_beside(
            book, version, {"kind": "forget", "of": version.record.id, "reason": reason}
        )

    def erase(self, ident: str) -> Receipt:
        """Remove the record for good: every version, what derives from it, every derived copy."""
        from commonplace.erasure import erase

        _book, whole = self._resolved(ident)
        for book, logs in enumerate(self._logs):
            with closing(self._usage(book)) as usage:
                usage.forget(logs.view().closure({whole}))
        return erase(list(zip(self.homes, self._logs, strict=True)), whole)

    # --- Reading --------------------------------------------------------------------------------------------------

    def get(self, ident: str) -> Record:
        """The latest version of the record whose id is, or uniquely starts with, *ident*."""
        return self._found(ident)[1].record

    def history(self, ident: str) -> list[Record]:
        """Every version of the record and what was said of it, oldest first; what was forgotten is here too."""
        book, whole = self._resolved(ident)
        return [version.record for version in self._logs[book].history(whole)]

    def describe(self, ident: str) -> dict[str, Any]:
        """The record as a person wants to see it: feedback counted in, where it lies."""
        if ident.startswith(TEXT_PREFIXES):
            return self._described_text(ident)
        book, version = self._found(ident)
        record = version.record
        view = self._logs[book].view(needle=record.id.encode())
        described = dict(record.fields)
        rate = view.rate(record)
        if rate is not None:
            described["success_rate"] = str(rate)
        described["feedback"] = view.feedback(record.id)
        with closing(self._usage(book)) as usage:
            described["usage_count"], described["last_used"] = usage.of(record.id)
        described["home"] = str(self.homes[book].path)
        return described

    def _described_text(self, ident: str) -> dict[str, Any]:
        """A skill, or one of this agent's own notes, by the id under which it is recalled."""
        from commonplace.notes import Notes

        kind, _colon, name = ident.partition(":")
        agent, _slash, note = name.partition("/")
        for home in self.homes:
            if kind == "note":
                mine = Notes(home, self.agent_id)
                with suppress(NoteNotFound, NoteRefused):
                    if agent == self.agent_id:
                        return {
                            "id": ident,
                            "kind": kind,
                            "path": str(mine.folder / note),
                            "text": mine.read(note),
                        }
                continue
            path = home.skill(name)
            # One folder's name, and no path: what lies elsewhere is no skill of this home.
            plain = path.parent.parent == home.skills_folder and path.parent.name == name != ".."
            with suppress(OSError, ValueError):  # A name no file system takes.
                if plain and path.is_file() and not path.is_symlink():
                    return {
                        "id": ident,
                        "kind": kind,
                        "path": str(path),
                        "text": path.read_text("utf-8", "replace"),
                    }
        raise RecordNotFound(ident)

    def records(self, repo: str | None = None, kind: str | None = None) -> Iterator[Record]:
        """The current view of the nearest home, archive included: latest versions, nothing forgotten."""
        if repo is not None:
            _check_repo(repo)
        for record in self._logs[0].view(repo).records():
            if kind is None or record.kind == kind:
                yield record

    def exported(self, repo: str | None = None, kind: str | None = None) -> Iterator[str]:
        """The same as JSON lines, redacted once more on their way out."""
        for record in self.records(repo, kind):
            line = encode(record.fields)
            yield encode(redact(record.fields)[0]) if suspicious(line) else line

    def repos(self) -> list[dict[str, Any]]:
        """Each log of the nearest home with its counts."""
        rows = []
        for repo in self._logs[0].repos():
            view = self._logs[0].view(repo)
            records = list(view.records())
            newest = max((record.timestamp for record in records), default="")
            size = sum(
                path.stat().st_size
                for path in (self.home.log(repo), self.home.archive(repo))
                if path.exists()
            )
            rows.append({"repo": repo, "records": len(records), "newest": newest, "bytes": size})
        return rows

    # --- Recalling ------------------------------------------------------------------------------------------------

    def recall(  # noqa: PLR0913 (what may narrow a question)
        self,
        query: str,
        *,
        repo: str | Iterable[str] | None = None,
        kinds: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        agent: str | None = None,
        files: Iterable[str] = (),
        limit: int = 5,
        tokens_max: int = 500,
        since: str | None = None,
        as_of: str | None = None,
        cutoff: bool = True,
        archived: bool = False,
        relevance_min: float = 0.0,
        without: Iterable[str] = (),
        unasked: bool = False,
    ) -> Recall:
        """What is known about *query*: the few memories that help, best first, in at most *tokens_max* tokens.

        With no *repo* every repository is searched, this one preferred. *as_of* answers as the memory stood then.
        Without *cutoff* the plain ranking comes back, up to *limit*, for measuring. *relevance_min* raises what the
        setting asks for, and the ids in *without* are passed over. What is looked up *unasked* saves nobody a reading.
        """
        question = self._question(
            query,
            repo=repo,
            kinds=kinds,
            types=types,
            tags=tags,
            agent=agent,
            files=files,
            limit=limit,
            since=since,
            cutoff=cutoff,
            archived=archived,
            relevance_min=relevance_min,
            without=without,
            unasked=unasked,
        )
        return self.asking().recall(question, tokens_max, as_of)

    def recent(self, count: int, **narrowing: Any) -> list[Hit]:  # noqa: ANN401
        """The latest records, newest first, one line of text each; narrowed as `recall` is."""
        if count < 1:
            raise UsageError(f"the number of records is {count}, under 1")
        return self.asking().recent(count, self._question("", **narrowing))

    def ranked(self, query: str, **narrowing: Any) -> list[Hit]:  # noqa: ANN401
        """The plain ranking for *query*, narrowed as `recall` is: for programs that choose and count for themselves."""
        return (
            self.asking()
            .recall(self._question(query, cutoff=False, **narrowing), 0, count=False)
            .hits
        )

    def select(self, ids: Collection[str] | None = None, **narrowing: Any) -> list[Record]:  # noqa: ANN401
        """The current records of the nearest home that the filters of `recall` let through, in the order of the lines.

        With *ids*, only those of them. Looked up in the index, so it costs what it gives and not what the log holds.
        """
        return self.asking().select(self._question("", **narrowing), ids)

    def stats(self, repo: Collection[str] | None = None) -> dict[str, Any]:
        """How many records there are, by repository, kind and type."""
        return self.asking().stats(repo)

    def savings(self) -> dict[str, Any]:
        """How many tokens recalls delivered so far, against reading the logs they searched."""
        return self.asking().savings()

    def why(self, query: str, ident: str, **narrowing: Any) -> dict[str, Any]:  # noqa: ANN401
        """Why the record is, or is not, in the answer to *query*, narrowed as `recall` is."""
        whole = ident if ident.startswith(TEXT_PREFIXES) else self._resolved(ident)[1]
        return self.asking().why(self._question(query, **narrowing), whole)

    def asking(self, *, one_shot: bool = False) -> Asking:
        """What answers questions, opened on first use; *one_shot* by a process that asks once and ends."""
        if self._source is not None:
            return self._source.asking()
        if self._asked is None:
            from commonplace.engine import Asking

            with self._making:  # Two threads of a server may be the first.
                if self._asked is None:
                    self._asked = Asking(
                        self.homes, self.settings, clock=self._clock, one_shot=one_shot
                    )
        return self._asked

    def _question(  # noqa: PLR0913 (what may narrow a question)
        self,
        text: str,
        *,
        repo: str | Iterable[str] | None = None,
        kinds: str | Iterable[str] | None = None,
        types: str | Iterable[str] | None = None,
        tags: str | Iterable[str] | None = None,
        agent: str | None = None,
        files: str | Iterable[str] = (),
        limit: int = 5,
        since: str | None = None,
        cutoff: bool = True,
        archived: bool = False,
        relevance_min: float = 0.0,
        without: Iterable[str] = (),
        unasked: bool = False,
    ) -> Query:
        from commonplace.recall.hits import Query

        return Query(
            text,
            repos=_set_of(repo),
            kinds=_known(_set_of(kinds), (*KINDS, *TEXT_KINDS), "kind"),
            types=_known(_set_of(types), EVENT_TYPES, "type"),
            tags=frozenset(tag.lower() for tag in _set_of(tags) or ()),
            agent=agent,
            files=tuple(sorted(_set_of(files) or ())),
            since=self.asking().moment(since) if since else "",
            archived=archived,
            limit=limit,
            cutoff=cutoff,
            relevance_min=relevance_min,
            without=frozenset(without),
            unasked=unasked,
            here=self.repository.name,
            asking=self.agent_id,
            root=self.repository.root,
        )

    # --- Notes ----------------------------------------------------------------------------------------------------

    def notes(self, agent: str | None = None) -> Notes:
        """The notes of an agent, in the nearest home."""
        from commonplace.notes import Notes

        return Notes(self.home, agent or self.agent_id)

    def read_at_start(self, path: str = "CONTEXT.md", agent: str | None = None) -> str:
        """The agent's note that is read before its first word, from the nearest home that has one; else nothing."""
        from commonplace.notes import Notes

        found = (Notes(home, agent or self.agent_id).optional(path) for home in self.homes)
        return next((text for text in found if text.strip()), "")

    def preamble(self, agent: str | None = None, workspace: str | None = None) -> str:
        """What a harness should put into the system prompt: identity, context, date and time, workspace (seed 004)."""
        from commonplace.compose.preamble import preamble

        identity, context = (
            self.read_at_start(path, agent) for path in ("IDENTITY.md", "CONTEXT.md")
        )
        where = workspace or str(self.repository.root or Path.cwd())
        return preamble(identity, context, self._clock().astimezone(), where)

    # --- Upkeep ---------------------------------------------------------------------------------------------------

    def check(self) -> list[Finding]:
        """What `doctor` has to say about the nearest home."""
        from commonplace.log.check import check

        return check(self.home)

    def mend(self) -> list[Finding]:
        """Put right what can be without losing anything."""
        from commonplace.log.check import mend

        return mend(self.home)

    def scan(self, *, fix: bool = False) -> list[Secret]:
        """Secrets in the nearest home; with *fix*, taken out of it."""
        from commonplace.log.scan import clean, scan

        return clean(self.home) if fix else scan(self.home)

    def maintain(self) -> list[Rotation]:
        """The upkeep that appending never does itself: rotate long logs."""
        from commonplace.log.rotate import rotate

        logs, limits = (
            self._logs[0],
            (self.settings["rotation.lines_max"], self.settings["rotation.move"]),
        )
        rotations = (
            rotate(self.home.log(r), self.home.archive(r), lines_max=limits[0], move=limits[1])
            for r in logs.repos()
        )
        return [rotation for rotation in rotations if rotation is not None and rotation.lines_moved]

    def flush(self) -> None:
        """Bring everything written to the disk itself, unless the `fsync` setting is `never`."""
        for logs in self._logs:
            logs.flush()

    def close(self) -> None:
        if self._source is not None:
            return
        if self._asked is not None:
            self._asked.close()
            self._asked = None
        for logs in self._logs:
            logs.close()

    # --- Inside ---------------------------------------------------------------------------------------------------

    def _prepare(self, given: Mapping[str, Any], now: datetime | None = None) -> Entry:
        return prepare(
            given,
            now=now or self._clock(),
            repo=self.repository.name,
            agent_id=self.agent_id,
            line_bytes_max=self.settings["line_bytes_max"],
        )

    def _write(self, entries: list[Entry], book: int = 0) -> None:
        if not entries:
            return
        home = self.homes[book]
        if not home.log_folder.is_dir():
            homes.make(home)
        self._logs[book].append(entries)

    def _write_batch(self, batch: list[Entry], taken: int) -> int:
        try:
            self._write(batch)
        except DiskFull as error:
            raise DiskFull(error.path, taken + error.stored) from error
        return taken + len(batch)

    def _append_beside(self, book: int, version: Version, given: dict[str, Any]) -> Record:
        """Append to the log in which *version* lies, so that what belongs together moves together."""
        entry = self._prepare({**given, "repo": repo_of(version.path)})
        self._write([entry], book)
        return entry.record

    def _found(self, ident: str) -> tuple[int, Version]:
        """The record behind an id or a prefix of one, and the number of its home."""
        book, whole = self._resolved(ident)
        view = self._view_of(book, whole)
        if whole in view.hidden():
            forget = view.forgotten.get(whole)
            why = (
                f" on {forget.timestamp[:10]}{f' ({forget.reason})' if forget.reason else ''}"
                if forget
                else ""
            )
            raise RecordNotFound(
                whole,
                f"`{whole}` was forgotten{why}",
                f"`commonplace history {whole}` still shows it; log it again to bring it back",
            )
        return book, view.latest(whole)

    def _view_of(self, book: int, ident: str) -> View:
        view = self._logs[book].view(needle=ident.encode())
        # What it derives from decides whether it is hidden, and those lines need not name it.
        return self._logs[book].view() if view.latest(ident).record.sources else view

    def _resolved(self, prefix: str) -> tuple[int, str]:
        """The number of a home and the whole id that *prefix* stands for; the nearest home answers first."""
        if not prefix.strip():
            raise UsageError("an id is needed", "`commonplace export` lists every id")
        matches: dict[str, int] = {}
        for book, logs in enumerate(self._logs):
            for ident in logs.view(needle=prefix.encode("utf-8", "surrogatepass")).ids():
                if ident.startswith(prefix):
                    matches.setdefault(ident, book)
        if prefix in matches:
            return matches[prefix], prefix
        if not matches:
            raise RecordNotFound(prefix)
        if len(matches) > 1:
            raise IdAmbiguous(prefix, sorted(matches))
        ((ident, book),) = matches.items()
        return book, ident

    def _usage(self, book: int) -> Usage:
        from commonplace.usage import Usage

        return Usage(self.homes[book].usage_file)


def _set_of(values: str | Iterable[str] | None) -> frozenset[str] | None:
    """One name or several, as a set; a text is one name, not its letters."""
    return None if values is None else frozenset([values] if isinstance(values, str) else values)


def _known(names: frozenset[str] | None, known: Iterable[str], what: str) -> frozenset[str] | None:
    unknown = sorted((names or frozenset()) - set(known))
    if unknown:
        raise UsageError(f"there is no {what} `{unknown[0]}`", f"choose among {', '.join(known)}")
    return names


def _check_repo(repo: str) -> None:
    try:
        check_repo_name(repo)
    except ValueError as error:
        raise RecordInvalid("repo", str(error)) from None
