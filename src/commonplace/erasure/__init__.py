"""Erase a record: remove every version, every copy and what derives from it, then verify it.

An intent is written first, and removed when nothing is left to remove. All that happens in between
can be repeated, so a process that was killed is finished by running any part of it again.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from commonplace.erasure import intent as intents
from commonplace.erasure import sections
from commonplace.erasure.intent import Intent, count_visible_dependents, pending, reach
from commonplace.erasure.lines import claims, rewrite_without, strip
from commonplace.erasure.traces import CHARS_MIN, find
from commonplace.errors import CommonplaceError, FindingsLeft, unusable
from commonplace.files import atomic
from commonplace.files.database import files_of
from commonplace.files.lock import hold
from commonplace.files.plain import read_all
from commonplace.index import removal
from commonplace.index.ports import no_progress
from commonplace.log.check import Finding
from commonplace.log.fold import fold
from commonplace.log.logs import files
from commonplace.snapshots import removal as snapshots
from commonplace.usage import Usage
from commonplace.where.home import LOG_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from commonplace.erasure.traces import Trace
    from commonplace.index.embedded.kept_vectors import KeptVectors
    from commonplace.where.home import Home

__all__ = [
    "Intent",
    "Receipt",
    "check",
    "count_visible_dependents",
    "erase",
    "finish",
    "fix",
    "pending",
    "reach",
]

# A rotation may move a line to a file that was rewritten already; then all are rewritten again.
_ROUNDS_MAX = 5
_NAMED_MAX = 5


class Receipt(NamedTuple):
    """What an erasure removed, how much it searched afterwards, and where traces are left."""

    id: str
    records_erased: int
    derived_erased: int
    lines_removed: int
    files_rewritten: list[str]
    files_searched: int
    left_in: list[str]
    snapshot_lines: int = 0


def erase(
    homes: Sequence[Home], ident: str, progress: Callable[[int], None] = no_progress
) -> Receipt:
    """Remove *ident*, what derives from it and what mentions it from every file of *homes*.

    *progress* is told of the lines that are indexed again.

    Raises `FindingsLeft` if a file cannot be removed or rewritten. The intent stays then, and the
    same call later goes on.
    """
    begun = [one for one in pending(homes) if one.id == ident]
    if not begun or any(ident in fold(home)[0] for home in homes):
        begun.append(intents.plan(homes, ident, _logs_of(homes)))
    intent = begun[0]
    for other in begun[1:]:
        intent = intent.plus(other)
    return _carry_out(homes, intent, progress)


def finish(homes: Sequence[Home]) -> list[Receipt]:
    """Finish every erasure that was interrupted in one of *homes*.

    If one cannot be finished, the others are, and then its error is raised.
    """
    receipts: list[Receipt] = []
    errors: list[CommonplaceError] = []
    for intent in pending(homes):
        try:
            receipts.append(_carry_out(homes, intent))
        except CommonplaceError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return receipts


def check(home: Home) -> list[Finding]:
    """Return the interrupted erasures of *home*, and the indexes whose removal was interrupted."""
    begun = [
        Finding(
            "unfinished erasure",
            path,
            0,
            "a process was interrupted while it erased a record: copies may be left",
            "finish it",
        )
        for path in intents.files(home)
    ]
    aside = [
        Finding("stale lock", path, 0, "an interrupted removal of the index left it", "remove it")
        for path in removal.set_aside(home)
    ]
    return [*begun, *aside]


def fix(homes: Sequence[Home]) -> list[Finding]:
    """Finish what `check` finds in *homes*, and return what it was in the nearest."""
    findings = check(homes[0])
    for receipt in finish(homes):
        about = f"it holds text of `{receipt.id}`, which is erased: edit it, or erase it as well"
        findings += [
            Finding("text left", homes[0].path / name, 0, about, "") for name in receipt.left_in
        ]
    removal.remove_set_aside(homes[0])
    return findings


def _carry_out(
    homes: Sequence[Home], intent: Intent, progress: Callable[[int], None] = no_progress
) -> Receipt:
    existing = [home for home in homes if home.path.is_dir()]
    for home in existing:
        intent.save(home)
    removals = [_Removal(home, intent, progress) for home in existing]
    for each in removals:
        each.run()
    problems = list(dict.fromkeys(problem for each in removals for problem in each.problems))
    if problems:
        named = "; ".join(problems[:_NAMED_MAX])
        more = f"; and {len(problems) - _NAMED_MAX} more" if len(problems) > _NAMED_MAX else ""
        raise FindingsLeft(
            f"`{intent.id}` is not erased everywhere: {named}{more}",
            "correct that and run `commonplace forget ID --erase` or `commonplace doctor --fix`,"
            " which goes on with it",
        )
    for home in existing:
        intent.remove(home)
    for each in removals:
        each.restore_vectors()
    return Receipt(
        id=intent.id,
        records_erased=len(intent.records),
        derived_erased=len(intent.records) - 1,
        lines_removed=sum(sum(each.rewritten.values()) for each in removals),
        files_rewritten=[
            _display_path(path, homes) for each in removals for path in each.rewritten
        ],
        files_searched=sum(each.searched for each in removals),
        left_in=[_display_path(path, homes) for each in removals for path in each.left],
        snapshot_lines=sum(each.snapshot_lines for each in removals),
    )


class _Removal:
    """The removal from one home. What cannot be done is noted, and the rest is still done."""

    def __init__(self, home: Home, intent: Intent, progress: Callable[[int], None]) -> None:
        self._home = home
        self._intent = intent
        self._progress = progress
        self._kept: KeptVectors | None = None
        long_ids = [ident.encode() for ident in intent.ids if len(ident) >= CHARS_MIN]
        self._names = [*claims(intent.ids), *long_ids]
        self._hook_folders = set(home.hook_folders)
        self.problems: list[str] = []
        self.rewritten: dict[Path, int] = {}
        self._rewrites = 0
        self.searched = 0
        self.left: list[Path] = []
        self.snapshot_lines = 0

    def run(self) -> None:
        """Remove all there is, then search every file."""
        for step in (
            self._rewrite_lines,
            self._rewrite_snapshots,
            self._forget_usage,
            self._remove_working_set,
            self._remove_hook_files,
            self._remove_client_states,
            self._rewrite_sections,
            self._remove_index,
            self._remove_leftovers,
            self._search,
            self._read_logs,
        ):
            self._try(step)

    def _try(self, action: Callable[..., None], *paths: Path) -> None:
        try:
            action(*paths)
        except CommonplaceError as error:
            self.problems.append(str(error))

    def _rewrite_lines(self) -> None:
        for _round in range(_ROUNDS_MAX):
            before = self._rewrites
            for path in _logs_of([self._home]):
                self._try(self._rewrite, path)
            if self._rewrites == before:
                return

    def _rewrite(self, path: Path) -> None:
        is_state = self._home.state_folder in path.parents
        texts = self._intent.starts | self._intent.texts if is_state else self._intent.texts
        removed = rewrite_without(path, self._intent.ids, texts)
        if removed is not None:
            self.rewritten[path] = self.rewritten.get(path, 0) + removed
            self._rewrites += 1

    def _rewrite_snapshots(self) -> None:
        """Remove the record from the snapshots, which are compressed: no search would find it."""
        self.snapshot_lines = snapshots.rewrite(self._home, self._without)

    def _without(self, lines: bytes) -> tuple[bytes, int]:
        pairs = strip(lines, self._intent.ids, self._intent.texts)
        if pairs is None:
            return lines, 0
        kept = b"".join(raw + b"\n" for _line, raw in pairs if raw is not None)
        return kept, sum(raw != line.raw for line, raw in pairs)

    def _forget_usage(self) -> None:
        usage = Usage(self._home.usage_file)
        usage.forget(self._intent.ids)
        usage.close()

    def _remove_working_set(self) -> None:
        """Remove the working set if it has an erased id; the next contexts make it again."""
        paths = files_of(self._home.resonance_file)
        if any(self._is_mentioned_in(path, ()) for path in paths):
            for path in paths:
                self._try(_unlink, path)

    def _remove_hook_files(self) -> None:
        """Remove what hooks wrote about an erased record: events, drafts of sessions, candidates.

        Under their lock, so that no process writes a draft again that it read before.
        """
        if not any(folder.is_dir() for folder in self._hook_folders):
            return
        with hold(self._home.spool_lock):
            for path in files(self._home):
                if self._hook_folders.intersection(path.parents):
                    self._try(self._remove_if_mentioned, path)

    def _remove_client_states(self) -> None:
        """Remove the working sets of orchestrators that have an erased text; they start over."""
        for path in files(self._home):
            if self._home.clients_folder in path.parents and path.suffix != LOG_SUFFIX:
                self._try(self._remove_if_mentioned, path)

    def _rewrite_sections(self) -> None:
        """Remove the lines about an erased record from our sections of `CONTINUITY.md` files."""
        for file, lock in sections.noted(self._home).items():
            self._try(self._rewrite_section, file, lock)

    def _rewrite_section(self, file: Path, lock: Path) -> None:
        texts = self._intent.texts | self._intent.starts
        sections.remove_from(file, lock, self._intent.ids, self._names, texts)

    def _remove_if_mentioned(self, path: Path) -> None:
        if self._is_mentioned_in(path, self._intent.texts | self._intent.starts):
            _unlink(path)

    def _remove_index(self) -> None:
        """Remove the index, which is rebuilt without the record, and keep the others' vectors."""
        if self._home.index_folder.is_dir():
            # It loads Tantivy, and `doctor` imports this module.
            from commonplace.index.embedded import kept_vectors  # noqa: PLC0415

            self._kept = kept_vectors.read(self._home, self._intent.ids)
        removal.remove(self._home)
        self.problems += [f"`{path}` cannot be removed" for path in removal.set_aside(self._home)]

    def _remove_leftovers(self) -> None:
        for path in files(self._home):
            if atomic.is_leftover(path):
                self._try(_unlink, path)

    def _search(self) -> None:
        found = dict.fromkeys(files(self._home))
        found.update(dict.fromkeys(path for path in sections.noted(self._home) if path.is_file()))
        # Snapshots are compressed: `_rewrite_snapshots` has searched what they hold.
        apart = {self._home.erasures_folder, self._home.snapshot_objects}
        for path in found:
            if apart.isdisjoint(path.parents):
                self.searched += 1
                self._try(self._search_file, path)

    def _search_file(self, path: Path) -> None:
        if not self._is_mentioned_in(path, self._intent.texts):
            return
        if atomic.in_progress(path):
            self.problems.append(f"`{path}`: another process is writing it")
        elif path == self._home.usage_file or self._hook_folders.intersection(path.parents):
            self.problems.append(f"`{path}`: another process wrote it again")
        else:
            self.left.append(path)

    def _read_logs(self) -> None:
        """Look the record up as every command does: whatever the search misses, it must be gone."""
        if self._intent.id in fold(self._home, needle=self._intent.id.encode())[0]:
            self.problems.append(f"`{self._home.log_folder}` still has lines of it")

    def restore_vectors(self) -> None:
        """Build the index again with the vectors of all other lines.

        If this is interrupted or fails, the next recall builds it, and they are made again. The
        record is erased by then, so no error of the index is one of the erasure.
        """
        if self._kept is not None:
            from commonplace.index.embedded.index import EmbeddedIndex  # noqa: PLC0415 (see above)

            with suppress(CommonplaceError, OSError, sqlite3.Error):
                index = EmbeddedIndex(self._home)
                try:
                    index.restore_vectors(self._kept, self._progress)
                finally:
                    index.close()

    def _is_mentioned_in(self, path: Path, texts: Iterable[Trace]) -> bool:
        raw = read_all(path)
        return any(name in raw for name in self._names) or any(True for _ in find(raw, texts))


def _logs_of(homes: Iterable[Home]) -> list[Path]:
    return [path for home in homes for path in files(home) if path.suffix == LOG_SUFFIX]


def _unlink(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise unusable(path, error) from error


def _display_path(path: Path, homes: Sequence[Home]) -> str:
    """Return the path relative to the nearest home, if it is inside."""
    nearest = homes[0].path
    return str(path.relative_to(nearest) if path.is_relative_to(nearest) else path)
