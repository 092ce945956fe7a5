"""Importing: what other systems keep, recognised, read and written as records, notes and skills of ours.

What is brought says so in `meta.origin` and never takes the place of what is the user's own. Bringing it again adds
nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.errors import FormatUnknown, HomeUnusable, NoteRefused, RecordInvalid, UsageError
from commonplace.exchange import files, frontmatter, normalize
from commonplace.exchange.existing import OUTSIDE, Existing, digest
from commonplace.exchange.formats import FORMATS
from commonplace.exchange.items import (
    Head,
    Item,
    NoteText,
    Passed,
    SkillText,
    Source,
    Taken,
    Unread,
    Withdrawn,
    relative,
)
from commonplace.files import atomic
from commonplace.files.plain import read_all
from commonplace.memory import Memory
from commonplace.notes import NOTE_BYTES_MAX
from commonplace.records import check_repo_name, slug, to_utc
from commonplace.redaction import redact_text
from commonplace.where import homes
from commonplace.writing import BULK_LINES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commonplace.log.prepare import Entry
    from commonplace.where.home import Home

TOLD_MAX = 1000
_SKILL_NAME_CHARS_MAX = 64
# Kinds that say something about another record.
_ABOUT_OTHERS = ("feedback", "forget", "link")
# What may well be somebody's memory; of other files only the number is told.
_LIKELY = (*files.LINE_SUFFIXES, *files.TEXT_SUFFIXES)


@dataclass
class Report:
    """What became of an import: counts, and by file and line what was not taken and why."""

    dry_run: bool
    formats: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    notes: int = 0
    skills: int = 0
    withdrawn: int = 0
    unchanged: int = 0
    kept: int = 0
    forgotten: int = 0
    redacted: int = 0
    unread_count: int = 0
    passed_count: int = 0
    foreign: int = 0
    unread: list[tuple[str, int, str]] = field(default_factory=list)
    passed: list[tuple[str, int, str]] = field(default_factory=list)

    @property
    def records(self) -> int:
        return sum(self.kinds.values())

    def tell(self, path: str, item: Unread | Passed) -> None:
        if isinstance(item, Unread):
            self.unread_count += 1
            told = self.unread
        else:
            self.passed_count += 1
            told = self.passed
        if len(told) < TOLD_MAX:
            told.append((path, item.line, item.reason))


def bring(
    memory: Memory,
    path: Path,
    *,
    format_name: str | None = None,
    repo: str | None = None,
    dry_run: bool = False,
) -> Report:
    """Import the file or folder at *path* into the nearest home of *memory*.

    Without *format_name* each file's format is recognised. *repo* names the log for all of it.
    """
    if format_name is not None and format_name not in FORMATS:
        raise UsageError(
            f"there is no format `{format_name}`", f"choose among {', '.join(FORMATS)}"
        )
    if repo is not None:
        try:
            check_repo_name(repo)
        except ValueError as error:
            raise RecordInvalid("repo", str(error)) from None
    root = _root(path)
    report = Report(dry_run)
    sorted_out = _by_format(root, format_name, report)
    if not sorted_out:
        raise FormatUnknown(path, FORMATS)
    carrier = _Carrier(memory, report, repo)
    for name, paths in sorted_out.items():
        report.formats[name] = len(paths)
        for found in paths:
            source = Source(found, root, repo or memory.repository.name, tuple(paths))
            for item in FORMATS[name].read(source):
                carrier.take(name, source, item)
    carrier.finish()
    return report


def _root(path: Path) -> Path:
    try:
        return path.expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as error:
        reason = (
            error.strerror if isinstance(error, OSError) else "it is a link that leads to itself"
        )
        raise UsageError(
            f"`{path}` cannot be opened: {reason}", "name a file or a folder that is there"
        ) from None


def _by_format(root: Path, format_name: str | None, report: Report) -> dict[str, list[Path]]:
    """The files of each format, in order. What belongs to none is counted; what was meant to is told."""
    found: dict[str, list[Path]] = {}
    for path, problem in files.found(root):
        try:
            name = problem or (
                _named(path, root, format_name) if format_name else _recognised(path)
            )
        except files.NotText as error:
            binary = str(error) == "is binary"
            name = Passed(0, str(error)) if binary else Unread(0, str(error))
        if isinstance(name, str):
            found.setdefault(name, []).append(path)
        elif isinstance(name, Unread | Passed):
            report.tell(relative(path, root), name)
        elif path.suffix in _LIKELY:
            report.tell(relative(path, root), Passed(0, "is of no format that is known"))
        else:
            report.foreign += 1
    return found


def _named(path: Path, root: Path, format_name: str) -> str | None:
    suffixes = FORMATS[format_name].SUFFIXES
    return format_name if path == root or "" in suffixes or path.suffix in suffixes else None


def _recognised(path: Path) -> str | None:
    head = files.head(path) if path.suffix in _LIKELY else Head()
    return next((name for name, module in FORMATS.items() if module.recognises(path, head)), None)


class _Carrier:
    """Takes items one by one and writes what is new, in batches."""

    def __init__(self, memory: Memory, report: Report, repo: str | None) -> None:
        self.memory = memory
        self.report = report
        self.repo = repo
        self.existing = Existing()
        for number, home in enumerate(memory.homes):
            self.existing.load(home, nearest=not number)
        self._batch: list[Entry] = []
        # What is here, but not as the last word: it becomes that once more, unless a later line says otherwise.
        self._again: dict[str, Entry] = {}
        self._withdrawn: dict[str, tuple[str, Source, Withdrawn]] = {}
        self._texts: set[tuple[str, str]] = set()

    def take(self, format_name: str, source: Source, item: Item) -> None:
        try:
            if isinstance(item, Taken):
                self._record(format_name, source, item)
            elif isinstance(item, Withdrawn):
                self._withdrawn[item.id] = (format_name, source, item)
                self._again.pop(item.id, None)
            elif isinstance(item, NoteText):
                self._note(source, item)
            elif isinstance(item, SkillText):
                self._skill(source, item)
            else:
                self.report.tell(source.name, item)
        except (RecordInvalid, NoteRefused) as error:
            self.report.tell(source.name, Unread(getattr(item, "line", 0), str(error)))

    def finish(self) -> None:
        """Write what is still held back."""
        for entry in self._again.values():
            self._append(entry)
            self.report.unchanged -= 1
        for format_name, source, item in self._withdrawn.values():
            self._withdraw(format_name, source, item)
        self._write()
        if not self.report.dry_run:
            self.memory.flush()

    # --- Records --------------------------------------------------------------------------------------------------

    def _record(self, format_name: str, source: Source, item: Taken) -> None:
        fields = normalize.fitted(item.fields, format_name, source.repo)
        entry = self.memory.prepare(self._stamped(fields, format_name, source))
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
        elif self.existing.was_before(ident, version):
            self._again[ident] = entry
            self.report.unchanged += 1
        elif (reason := self._overreach(entry.record.fields)) is not None:
            self.report.tell(source.name, Passed(item.line, reason))
        else:
            self._append(entry, version)

    def _stamped(self, fields: dict[str, Any], format_name: str, source: Source) -> dict[str, Any]:
        """*fields* with their provenance: where they come from, and that it was not the user who said it."""
        meta = dict(fields.get("meta") or {})
        before = meta.get("origin")
        if not (isinstance(before, str) and before.startswith(OUTSIDE)):
            meta["origin"] = f"import:{format_name}" + (f" of {before}" if before else "")
        meta.setdefault("file", source.name)
        stamped = {"agent_id": "", **fields, "meta": meta}
        if "links" in stamped:
            stamped["links"] = self._humbled(stamped["links"])
        if not stamped.get("timestamp"):
            stamped["timestamp"] = to_utc(
                datetime.fromtimestamp(int(files.modified(source.path)), UTC)
            )
            meta["dated"] = "file"
        if self.repo or not stamped.get("repo"):
            stamped["repo"] = source.repo
        return stamped

    def _humbled(self, links: Any) -> Any:  # noqa: ANN401 (what a record's links may be)
        """Nothing from outside takes the place of what is the user's own: such a link merely relates the two."""
        if not isinstance(links, list):
            return links
        return [
            {**edge, "rel": "related_to", "as": "supersedes"}
            if (edge.get("rel") or edge.get("relation")) == "supersedes"
            and edge["to"] in self.existing.own
            else edge
            for edge in links
        ]

    def _overreach(self, fields: Mapping[str, Any]) -> str | None:
        if fields["kind"] not in _ABOUT_OTHERS:
            return None
        hides = (fields.get("to") if fields.get("rel") == "supersedes" else None, fields.get("of"))
        ours = next((str(ident) for ident in hides if ident in self.existing.own), None)
        plain_link = fields["kind"] == "link" and fields.get("rel") not in (
            "supersedes",
            "superseded_by",
        )
        return f"would change `{ours}`, a record of your own" if ours and not plain_link else None

    def _append(self, entry: Entry, version: int | None = None) -> None:
        self.existing.add(entry.record, entry.record.repo, version)
        self.report.kinds[entry.record.kind] += 1
        self.report.redacted += bool(entry.record.redactions)
        self._batch.append(entry)
        if len(self._batch) >= BULK_LINES:
            self._write()

    def _withdraw(self, format_name: str, source: Source, item: Withdrawn) -> None:
        """Forget what its own system took back, if it came from there."""
        known = self.existing
        if item.id not in known or item.id in known.own or known.is_forgotten(item.id):
            self.report.unchanged += item.id in known
            return
        said = {
            "kind": "forget",
            "of": item.id,
            "reason": item.reason,
            "timestamp": item.at or None,
        }
        entry = self.memory.prepare(self._stamped(said, format_name, source))
        known.add(entry.record, entry.record.repo)
        self.report.withdrawn += 1
        self._batch.append(entry)

    def _write(self) -> None:
        if self._batch and not self.report.dry_run:
            self.memory.store(self._batch)
        self._batch = []

    # --- Notes and skills -----------------------------------------------------------------------------------------

    def _note(self, source: Source, item: NoteText) -> None:
        notes = self.memory.notes(item.agent)
        clean, redacted = redact_text(item.text)
        there = notes.optional(item.path)
        if there == clean or (item.agent, item.path) in self._texts:
            self.report.unchanged += 1
        elif there:
            self.report.tell(
                source.name,
                Passed(0, f"differs from the note `{item.path}` of {item.agent}, which stays"),
            )
        else:
            if not self.report.dry_run:
                notes.write(item.path, item.text, if_sha256="")
            self._texts.add((item.agent, item.path))
            self.report.notes += 1
            self.report.redacted += bool(redacted)

    def _skill(self, source: Source, item: SkillText) -> None:
        name = slug(item.name, _SKILL_NAME_CHARS_MAX) or normalize.ident("skill", item.name)
        clean, redacted = redact_text(_described(name, item.text))
        path = self.memory.home.skill(name)
        raw = clean.encode("utf-8")
        if len(raw) > NOTE_BYTES_MAX:
            self.report.tell(
                source.name, Unread(0, f"has {len(raw):,} bytes, over {NOTE_BYTES_MAX:,}")
            )
        elif path.is_symlink() or path.parent.is_symlink():
            self.report.tell(
                source.name,
                Unread(0, f"the skill `{name}` is a symbolic link, which is left alone"),
            )
        elif path.is_file():
            self._same_skill(source, path, raw, name)
        else:
            if not self.report.dry_run:
                _write_skill(self.memory.home, path, raw)
            self.report.skills += 1
            self.report.redacted += bool(redacted)

    def _same_skill(self, source: Source, path: Path, raw: bytes, name: str) -> None:
        if read_all(path) == raw:
            self.report.unchanged += 1
        else:
            self.report.tell(
                source.name, Passed(0, f"differs from the skill `{name}`, which stays")
            )


def _described(name: str, text: str) -> str:
    """A skill in the Agent Skills format: with a name and a description before it."""
    if frontmatter.split(text)[0] is not None:
        return text
    first = next(
        (line.strip("# ").strip() for line in text.splitlines() if line.strip("# ").strip()), name
    )
    about = first.removeprefix("Skill:").strip().replace('"', "'")
    return f'---\nname: {name}\ndescription: "{about}"\n---\n\n{text}'


def _write_skill(home: Home, path: Path, raw: bytes) -> None:
    homes.make(home)
    try:
        for folder in (path.parent.parent, path.parent):
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise HomeUnusable(path.parent, error.strerror or str(error)) from error
    atomic.replace(path, [raw])
