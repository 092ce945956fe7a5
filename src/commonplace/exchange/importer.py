"""Import the files of other systems as records, notes and skills.

Every imported record has a `meta.origin` that starts with `import:`. An import never changes or
hides the user's own records. Importing the same files again adds nothing.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace import frontmatter, skills
from commonplace.characters import remove_hidden
from commonplace.errors import FormatUnknown, NoteRefused, RecordInvalid, UsageError
from commonplace.exchange import files, normalize
from commonplace.exchange.existing import Existing, digest
from commonplace.exchange.formats import FORMATS
from commonplace.exchange.items import (
    Head,
    ImportedRecord,
    Item,
    NoteText,
    SkillText,
    Skipped,
    Source,
    Unreadable,
    Withdrawal,
    relative_name,
)
from commonplace.exchange.own_ids import with_own_ids
from commonplace.exchange.projects import Projects
from commonplace.files.plain import read_all
from commonplace.foreign import OUTSIDE
from commonplace.memory import Memory
from commonplace.notes import NOTE_BYTES_MAX
from commonplace.records import slug, to_utc
from commonplace.redaction.text import redact_text
from commonplace.writing import BULK_LINES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from commonplace.log.prepare import PreparedLine

LISTED_MAX = 1000
_SKILL_NAME_CHARS_MAX = 64
# Formats of programs that count their records in each project.
COUNTED_IDS = ("loki",)
# Kinds of records that say something about another record.
ABOUT_OTHERS = ("feedback", "forget", "link")
# Files that may hold memories. The report lists these when no format fits; others are only counted.
_LIKELY_SUFFIXES = (*files.LINE_SUFFIXES, *files.TEXT_SUFFIXES)


@dataclass
class Report:
    """The result of an import: counts, and each file or line that was not imported, and why."""

    dry_run: bool
    formats: Counter[str] = field(default_factory=Counter)
    # The lines that were written, by kind.
    kinds: Counter[str] = field(default_factory=Counter)
    # The records among them that `stats` and `repos` count, by kind: no statements, no older
    # versions, nothing that is hidden.
    shown: Counter[str] = field(default_factory=Counter)
    notes: int = 0
    skills: int = 0
    withdrawn: int = 0
    unchanged: int = 0
    kept: int = 0
    forgotten: int = 0
    # Records with an id that another repository's record has; they got one of their own.
    renamed: int = 0
    redacted: int = 0
    unread_count: int = 0
    skipped_count: int = 0
    foreign: int = 0
    unread: list[tuple[str, int, str]] = field(default_factory=list)
    skipped: list[tuple[str, int, str]] = field(default_factory=list)

    @property
    def records(self) -> int:
        return self.shown.total()

    @property
    def lines(self) -> int:
        return self.kinds.total()

    def add_problem(self, path: str, item: Unreadable | Skipped) -> None:
        """Count *item*, and list it unless the list is full."""
        if isinstance(item, Unreadable):
            self.unread_count += 1
            listed = self.unread
        else:
            self.skipped_count += 1
            listed = self.skipped
        if len(listed) < LISTED_MAX:
            listed.append((path, item.line, item.reason))


def import_files(
    memory: Memory,
    path: Path,
    *,
    format_name: str | None = None,
    repo: str | None = None,
    dry_run: bool = False,
    progress: Callable[[int], None] = lambda _count: None,
) -> Report:
    """Import the file or folder at *path* into the nearest home of *memory*.

    Without *format_name*, each file's format is recognised. *repo* names the log for all records;
    without it, those of each project go to its own log. *progress* is told how many more items
    were read.
    """
    if format_name is not None and format_name not in FORMATS:
        raise UsageError(
            f"there is no format `{format_name}`", f"choose among {', '.join(FORMATS)}"
        )
    if repo is not None:
        repo = memory.log_to_write(repo)
    root = _root(path)
    report = Report(dry_run)
    paths_by_format = _group_by_format(root, format_name, report)
    if not paths_by_format:
        raise FormatUnknown(path, FORMATS)
    importer = _Importer(memory, report, repo)
    projects = Projects(memory)
    for name, paths in paths_by_format.items():
        report.formats[name] = len(paths)
        sources = [
            Source(file, root, repo or projects.log_of(file), tuple(paths)) for file in paths
        ]
        for source in sources if name in COUNTED_IDS else ():
            importer.note_ids(source, FORMATS[name].read(source))
        for source in sources:
            for item in FORMATS[name].read(source):
                importer.add(name, source, item)
                progress(1)
    importer.finish()
    return report


def import_items(
    memory: Memory,
    format_name: str,
    source: Source,
    items: Iterable[Item],
    refuse: Callable[[Unreadable], Exception],
) -> Report:
    """Import *items*, all or none: if one is not valid, what *refuse* makes of it is raised."""
    report = Report(dry_run=False)
    # Nothing is written before every item was read.
    importer = _Importer(memory, report, None, batch_max=sys.maxsize)
    for item in items:
        importer.add(format_name, source, item)
        if report.unread:
            _path, line, reason = report.unread[0]
            raise refuse(Unreadable(line, reason))
    importer.finish()
    return report


def _root(path: Path) -> Path:
    try:
        return path.expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as error:
        reason = (
            error.strerror if isinstance(error, OSError) else "it is a link that leads to itself"
        )
        raise UsageError(
            f"`{path}` cannot be opened: {reason}", "name a file or a folder that exists"
        ) from None


def _group_by_format(root: Path, format_name: str | None, report: Report) -> dict[str, list[Path]]:
    """Return the files of each format, in order; report or count the others."""
    grouped: dict[str, list[Path]] = {}
    for path, problem in files.find_files(root):
        name = problem or _format_or_problem(path, root, format_name)
        if isinstance(name, str):
            grouped.setdefault(name, []).append(path)
        elif isinstance(name, Unreadable | Skipped):
            report.add_problem(relative_name(path, root), name)
        elif path.suffix in _LIKELY_SUFFIXES:
            report.add_problem(relative_name(path, root), Skipped(0, "is of no known format"))
        else:
            report.foreign += 1
    return grouped


def _format_or_problem(
    path: Path, root: Path, format_name: str | None
) -> str | Unreadable | Skipped | None:
    if format_name:
        return format_name if _may_have_format(path, root, format_name) else None
    try:
        return _recognise_format(path)
    except files.BinaryFile as error:
        return Skipped(0, str(error))
    except files.UnreadableFile as error:
        return Unreadable(0, str(error))


def _may_have_format(path: Path, root: Path, format_name: str) -> bool:
    suffixes = FORMATS[format_name].SUFFIXES
    return path == root or "" in suffixes or path.suffix in suffixes


def _recognise_format(path: Path) -> str | None:
    head = files.read_head(path) if path.suffix in _LIKELY_SUFFIXES else Head()
    return next((name for name, module in FORMATS.items() if module.recognises(path, head)), None)


class _Importer:
    """Compares items with the existing records one by one, and writes the new ones in batches."""

    def __init__(
        self, memory: Memory, report: Report, repo: str | None, *, batch_max: int = BULK_LINES
    ) -> None:
        self.memory = memory
        self._batch_max = batch_max
        self.report = report
        self.repo = repo
        self.existing = Existing()
        for number, home in enumerate(memory.homes):
            self.existing.load(home, nearest=not number)
        self._batch: list[PreparedLine] = []
        # Versions that exist but are not current. `finish` writes them again to make them
        # current, unless a later line of the import replaces or withdraws them.
        self._again: dict[str, PreparedLine] = {}
        self._withdrawn: dict[str, tuple[str, Source, Withdrawal]] = {}
        self._texts: set[tuple[str, str]] = set()
        self._ids: set[str] = set()
        # The ids that the files give to records of each repository, where a program counts them.
        self._given: dict[str, set[str]] = {}

    def note_ids(self, source: Source, items: Iterable[Item]) -> None:
        """Note which records a file has: only those may need another id (see `own_ids.py`)."""
        for item in items:
            if isinstance(item, ImportedRecord) and isinstance(item.fields.get("id"), str):
                repo = source.repo if self.repo else item.fields.get("repo") or source.repo
                self._given.setdefault(str(repo), set()).add(item.fields["id"])

    def add(self, format_name: str, source: Source, item: Item) -> None:
        try:
            if isinstance(item, ImportedRecord):
                self._record(format_name, source, item)
            elif isinstance(item, Withdrawal):
                self._withdrawn[item.id] = (format_name, source, item)
                self._again.pop(item.id, None)
            elif isinstance(item, NoteText):
                self._note(source, item)
            elif isinstance(item, SkillText):
                self._skill(source, item)
            else:
                self.report.add_problem(source.name, item)
        except (RecordInvalid, NoteRefused) as error:
            self.report.add_problem(source.name, Unreadable(getattr(item, "line", 0), str(error)))

    def finish(self) -> None:
        """Write the entries that were held back until all items were added."""
        for entry in self._again.values():
            self._append(entry)
            self.report.unchanged -= 1
        for format_name, source, item in self._withdrawn.values():
            self._withdraw(format_name, source, item)
        self._write()
        self.report.shown = self.existing.count_shown(self._ids)
        if not self.report.dry_run:
            self.memory.flush()

    # --- Records ----------------------------------------------------------------------------------

    def _record(self, format_name: str, source: Source, item: ImportedRecord) -> None:
        fields = normalize.fit_to_kind(item.fields, format_name, source.repo)
        stamped = self._add_provenance(fields, format_name, source)
        entry = self.memory.prepare(stamped)
        if format_name in COUNTED_IDS:
            given = self._given.get(str(stamped["repo"]), set())
            own = with_own_ids(
                stamped,
                entry.record.repo,
                lambda ident, log: ident in given and self.existing.is_elsewhere(ident, log),
            )
            self.report.renamed += own.get("id") != stamped.get("id")
            entry = self.memory.prepare(own) if own != stamped else entry
        ident, version = entry.record.id, digest(entry.record.fields)
        self._withdrawn.pop(ident, None)
        self._again.pop(ident, None)
        if entry.record.kind == "forget":
            self._again.pop(str(entry.record.fields["of"]), None)
        if self.existing.is_current(ident, version):
            if self.existing.is_forgotten(ident) and not self.existing.is_forgotten_by_user(ident):
                self._again[ident] = entry
            self.report.unchanged += 1
        elif ident in self.existing.own:
            self.report.kept += 1
        elif self.existing.is_forgotten_by_user(ident):
            self.report.forgotten += 1
        elif self.existing.is_older_version(ident, version):
            self._again[ident] = entry
            self.report.unchanged += 1
        elif (reason := self._forbidden_change(entry.record.fields)) is not None:
            self.report.add_problem(source.name, Skipped(item.line, reason))
        else:
            self._append(entry, version)

    def _add_provenance(
        self, fields: dict[str, Any], format_name: str, source: Source
    ) -> dict[str, Any]:
        """Return *fields* with origin, file, repository and time, where these are missing."""
        meta = dict(fields.get("meta") or {})
        before = meta.get("origin")
        if not (isinstance(before, str) and before.startswith(OUTSIDE)):
            meta["origin"] = f"import:{format_name}" + (f" of {before}" if before else "")
        meta.setdefault("file", source.name)
        stamped = {"agent_id": "", **fields, "meta": meta}
        if "links" in stamped:
            stamped["links"] = self._demote_links(stamped["links"])
        if not stamped.get("timestamp"):
            stamped["timestamp"] = to_utc(
                datetime.fromtimestamp(int(files.modification_time(source.path)), UTC)
            )
            meta["dated"] = "file"
        if self.repo or not stamped.get("repo"):
            stamped["repo"] = source.repo
        return stamped

    def _demote_links(self, links: object) -> object:
        """Return *links* with each `supersedes` of the user's own record as a `related_to`."""
        if not isinstance(links, list):
            return links
        return [
            {**edge, "rel": "related_to", "as": "supersedes"}
            if (edge.get("rel") or edge.get("relation")) == "supersedes"
            and edge["to"] in self.existing.own
            else edge
            for edge in links
        ]

    def _forbidden_change(self, fields: Mapping[str, Any]) -> str | None:
        """Return why the record may not be imported, if it would change one of the user's own."""
        if fields["kind"] not in ABOUT_OTHERS:
            return None
        hides = (fields.get("to") if fields.get("rel") == "supersedes" else None, fields.get("of"))
        ours = next((str(ident) for ident in hides if ident in self.existing.own), None)
        plain_link = fields["kind"] == "link" and fields.get("rel") not in (
            "supersedes",
            "superseded_by",
        )
        return f"would change `{ours}`, a record of your own" if ours and not plain_link else None

    def _append(self, entry: PreparedLine, version: int | None = None) -> None:
        self.existing.add(entry.record, entry.record.repo, version)
        self.report.kinds[entry.record.kind] += 1
        self._ids.add(entry.record.id)
        self.report.redacted += bool(entry.record.redactions)
        self._batch.append(entry)
        if len(self._batch) >= self._batch_max:
            self._write()

    def _withdraw(self, format_name: str, source: Source, item: Withdrawal) -> None:
        """Forget a record that its own system withdrew, unless it is the user's own."""
        known = self.existing
        if item.id not in known or item.id in known.own or known.is_forgotten(item.id):
            self.report.unchanged += item.id in known
            return
        forget = {
            "kind": "forget",
            "of": item.id,
            "reason": item.reason,
            "timestamp": item.at or None,
        }
        entry = self.memory.prepare(self._add_provenance(forget, format_name, source))
        known.add(entry.record, entry.record.repo)
        self.report.withdrawn += 1
        self._batch.append(entry)

    def _write(self) -> None:
        if self._batch and not self.report.dry_run:
            self.memory.store(self._batch)
        self._batch = []

    # --- Notes and skills -------------------------------------------------------------------------

    def _note(self, source: Source, item: NoteText) -> None:
        notes = self.memory.notes(item.agent)
        clean, redacted = redact_text(remove_hidden(item.text))
        existing = notes.optional(item.path)
        if existing == clean or (item.agent, item.path) in self._texts:
            self.report.unchanged += 1
        elif existing:
            self.report.add_problem(
                source.name,
                Skipped(0, f"differs from the note `{item.path}` of {item.agent}, which stays"),
            )
        else:
            if not self.report.dry_run:
                notes.write(item.path, item.text, if_sha256="")
            self._texts.add((item.agent, item.path))
            self.report.notes += 1
            self.report.redacted += bool(redacted)

    def _skill(self, source: Source, item: SkillText) -> None:
        name = slug(item.name, _SKILL_NAME_CHARS_MAX) or normalize.stable_id("skill", item.name)
        clean, redacted = redact_text(_add_front_matter(name, remove_hidden(item.text)))
        path = self.memory.home.skill(name)
        raw = clean.encode("utf-8")
        if len(raw) > NOTE_BYTES_MAX:
            self.report.add_problem(
                source.name, Unreadable(0, f"has {len(raw):,} bytes, over {NOTE_BYTES_MAX:,}")
            )
        elif path.is_symlink() or path.parent.is_symlink():
            self.report.add_problem(
                source.name,
                Unreadable(0, f"the skill `{name}` is a symbolic link, which is left alone"),
            )
        elif path.is_file():
            self._compare_skill(source, path, raw, name)
        else:
            if not self.report.dry_run:
                skills.create(self.memory.home, name, clean)
            self.report.skills += 1
            self.report.redacted += bool(redacted)

    def _compare_skill(self, source: Source, path: Path, raw: bytes, name: str) -> None:
        if read_all(path) == raw:
            self.report.unchanged += 1
        else:
            self.report.add_problem(
                source.name, Skipped(0, f"differs from the skill `{name}`, which stays")
            )


def _add_front_matter(name: str, text: str) -> str:
    """Return *text* in the Agent Skills format: with a name and a description before it."""
    if frontmatter.split(text)[0] is not None:
        return text
    first = next(
        (line.strip("# ").strip() for line in text.splitlines() if line.strip("# ").strip()), name
    )
    about = first.removeprefix("Skill:").strip().replace('"', "'")
    return f'---\nname: {name}\ndescription: "{about}"\n---\n\n{text}'
