"""The part of the memory that writes, for `commonplace log`. It loads no code for reading."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from commonplace import settings as settings_module
from commonplace.errors import DiskFull, HomeUnusable, RecordInvalid
from commonplace.files.lock import LOCK_S_MAX
from commonplace.log.logs import Logs
from commonplace.log.prepare import PreparedLine, prepare
from commonplace.records import Record, decode
from commonplace.where import aliases, homes, repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType
    from typing import Self

    from commonplace.settings import Settings
    from commonplace.where.home import Home
    from commonplace.where.repository import Repository

BULK_LINES = 4000


class Refusal(NamedTuple):
    """A line of a bulk write that was rejected, and why."""

    line: int
    reason: str


class Bulk(NamedTuple):
    """The result of a bulk write."""

    taken: int
    refused: list[Refusal]
    redacted: int
    remarks: list[str]


def now_utc() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


class Writer:
    """The homes that apply in a folder, open for writing; the nearest one is written to."""

    def __init__(
        self,
        homes_found: list[Home],
        here: Repository,
        *,
        agent_id: str = "default",
        clock: Callable[[], datetime] = now_utc,
        wait_s_max: float = LOCK_S_MAX,
        settings: Mapping[str, Any] | None = None,
        background: bool = True,
    ) -> None:
        self.homes = homes_found
        self.agent_id = agent_id
        # Whether threads and processes may be started for background work.
        self.background = background
        for home in homes_found:
            homes.check_usable(home)
        self.settings: Settings = settings_module.load(reversed(homes_found))
        self.settings.override(settings or {})
        if self.settings["trust.repositories"]:
            self.homes = [home._replace(trusted=True) for home in homes_found]
        self._aliases = aliases.Aliases(self.homes)
        self.repository = self._aliases.resolve(here)
        self._is_bound = False
        self._names_now: dict[str, str] = {}
        self._clock = clock
        fsync = self.settings["fsync"]
        self._logs = [Logs(home, fsync=fsync, wait_s_max=wait_s_max) for home in homes_found]
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
        settings: Mapping[str, Any] | None = None,
        background: bool = True,
    ) -> Self:
        """Return the memory of *home* alone, or the one that applies in *cwd*.

        Nothing is created before the first write. A write waits *wait_s_max* for a log that
        another process holds, then raises `LogBusy`. *settings* override those of the homes.
        Without *background*, no thread or process is started for work that is left.
        """
        folder = Path(cwd).resolve() if cwd is not None else homes.current_folder()
        here = repository.find(folder)
        found = homes.find(Path(home) if home is not None else None, folder, here, environment)
        return cls(
            found,
            here,
            agent_id=agent_id or environment.get("COMMONPLACE_AGENT") or "default",
            clock=clock,
            wait_s_max=wait_s_max,
            settings=settings,
            background=background,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def now(self) -> datetime:
        """Return the time by the memory's clock."""
        return self._clock()

    @property
    def home(self) -> Home:
        """The nearest home: the one that is written to."""
        return self.homes[0]

    def check_homes(self) -> None:
        """Raise `HomeUnusable` if a home that was there is gone.

        The first write creates a home, so a missing home is usually empty. One that disappears
        while a server runs (a disk was removed, a folder moved) must not be taken for an empty one,
        nor be created again without the user's knowledge.
        """
        for home in self.homes:
            if home.path.is_dir():
                self._seen.add(home.path)
            elif home.path in self._seen:
                hint = "restore it, then try again; `commonplace init` would create a new one"
                raise HomeUnusable(home.path, "it was removed or moved", hint)

    def log(self, **fields: Any) -> Record:  # noqa: ANN401 (any JSON)
        """Write one record, a lesson unless `kind` says otherwise, and return it as stored.

        `record.redactions` says what was redacted. The same content twice is the same id. A
        `repo` may be given by its plain name. A lesson without an `event_type` was learned.
        """
        if fields.get("kind", "lesson") == "lesson" and fields.get("event_type") is None:
            fields["event_type"] = "learned"
        if fields.get("repo"):
            fields["repo"] = log = self.log_to_write(fields["repo"])
            self._names_now[log] = log
        return self.append([fields])[0]

    def log_to_write(self, repo: str) -> str:
        """Return the log of the repository *repo*, by its whole, plain or older name.

        The plain name of the repository here is that repository, whatever others have that name.
        Raises if several of those do, or the name looks like a typing mistake.
        """
        from commonplace.log.names import log_to_write  # noqa: PLC0415 (rarely needed)

        here = self.repository
        is_here = here.common is not None and repo == here.short
        if is_here and not any(home.log(repo).is_file() for home in self.homes):
            return here.name
        return log_to_write(self.homes, repo)

    def append(self, records: Iterable[Mapping[str, Any] | Record]) -> list[Record]:
        """Write *records*: all are checked before the first is written."""
        entries = [
            self.prepare(given.fields if isinstance(given, Record) else given) for given in records
        ]
        self.store(entries)
        return [entry.record for entry in entries]

    def plain_password_note(self, record: Record) -> str:
        """Return a sentence if *record* names a password and gives a plain word, which stayed."""
        texts = " ".join(text for text in record.fields.values() if isinstance(text, str)).lower()
        if "pass" not in texts and "pw" not in texts:
            return ""
        from commonplace.redaction.plain_words import plain_password_note  # noqa: PLC0415

        return plain_password_note(record.fields, record.id)

    def append_lines(self, lines: Iterable[bytes]) -> Bulk:
        """Write the JSON objects in *lines*, one a line, in batches; bad lines are reported."""
        taken, redacted, refused, remarks = 0, 0, list[Refusal](), list[str]()
        batch: list[PreparedLine] = []
        now = self._clock()
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                entry = self.prepare(decode(line), now)
            except (RecordInvalid, ValueError) as error:
                refused.append(Refusal(number, str(error)))
                continue
            batch.append(entry)
            redacted += bool(entry.record.redactions)
            if remark := self.plain_password_note(entry.record):
                remarks.append(remark)
            if len(batch) >= BULK_LINES:
                taken = self._store_batch(batch, taken)
                batch, now = [], self._clock()
        return Bulk(self._store_batch(batch, taken), refused, redacted, remarks)

    def prepare(self, given: Mapping[str, Any], now: datetime | None = None) -> PreparedLine:
        """Return *given* as a line for `store`, checked and redacted."""
        repo = given.get("repo")
        if isinstance(repo, str) and repo != self.repository.name:
            given = {**given, "repo": self._log_now_called(repo)}
        return prepare(
            given,
            now=now or self._clock(),
            repo=self.repository.name,
            agent_id=self.agent_id,
            line_bytes_max=self.settings["line_bytes_max"],
        )

    def store(self, entries: list[PreparedLine], home_number: int = 0) -> None:
        """Append prepared entries to the logs of a home, by default the nearest."""
        if not entries:
            return
        self._make_home(home_number)
        self._logs[home_number].append(entries)
        self._after_write([entry.record for entry in entries], home_number)

    def _make_home(self, home_number: int) -> None:
        home = self.homes[home_number]
        if not home.log_folder.is_dir():
            homes.make(home)

    def _after_write(self, records: list[Record], home_number: int) -> None:
        """Note which repository has this log, the first time that a record is written to it."""
        self._names_now.clear()  # Another process may rename a log before the next write.
        home = self.homes[home_number]
        here = self.repository
        if (
            not (self._is_bound or home_number)
            and here.common is not None
            and any(record.repo == here.name for record in records)
        ):
            is_only = len(self.homes) == 1
            aliases.bind(here, home, self._aliases if is_only else aliases.Aliases([home]))
            self._is_bound = True

    def _log_now_called(self, repo: str) -> str:
        """Return the log *repo*, by the name that it has now if it was renamed or merged."""
        found = self._names_now.get(repo)
        if found is None:
            known = aliases.Aliases(self.homes)
            found = repo if known.has_log(repo) else known.log_of(repo) or repo
            self._names_now[repo] = found
        return found

    def _store_batch(self, batch: list[PreparedLine], taken: int) -> int:
        try:
            self.store(batch)
        except DiskFull as error:
            raise DiskFull(error.path, taken + error.stored) from error
        return taken + len(batch)

    def flush(self) -> None:
        """Sync everything to the disk, unless the `fsync` setting is `never`."""
        for logs in self._logs:
            logs.flush()

    def close(self) -> None:
        for logs in self._logs:
            logs.close()
