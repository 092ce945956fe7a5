"""Export the memory as files of another system, so that both can be used side by side.

An export overwrites only what an export wrote: other entries of a file and other files stay.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from commonplace.errors import FolderRefused, HomeUnusable, NoteRefused, UsageError, unusable
from commonplace.exchange.formats import LAYOUTS, harness, loki
from commonplace.exchange.round_trip import is_ours
from commonplace.files import atomic
from commonplace.files.plain import read_small
from commonplace.log.read import lines
from commonplace.records import Feedback, decode, encode
from commonplace.redaction.text import redact_text
from commonplace.where import homes
from commonplace.where.home import SKILL_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

    from commonplace.memory import Memory
    from commonplace.records import Record


@dataclass
class ExportReport:
    """The result of an export: counts by kind, what the layout cannot hold, and the files."""

    layout: str
    folder: str
    kinds: Counter[str] = field(default_factory=Counter)
    notes: int = 0
    skills: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    files: list[str] = field(default_factory=list)
    stayed: list[str] = field(default_factory=list)


def export_layout(
    memory: Memory,
    layout: str,
    folder: Path,
    *,
    repo: str | None = None,
    kind: str | None = None,
    superseded: bool = False,
    force: bool = False,
) -> ExportReport:
    """Write the current view of the nearest home into *folder*, in the layout named *layout*."""
    if layout not in LAYOUTS:
        raise UsageError(f"there is no layout `{layout}`", f"choose among {', '.join(LAYOUTS)}")
    module = LAYOUTS[layout]
    target = folder.expanduser().absolute()
    report = ExportReport(layout, str(target))
    with _raise_folder_refused(target):
        _check(target, module, force=force)
        target = target.resolve()  # Of what is written below it, no part may be a link.
        homes.check_outside(target, memory.homes)
    lines = memory.export_lines(repo, kind, superseded=superseded)
    feedback: list[Record] = []
    records = _choose(lines, module, report, feedback)
    notes, skills = list(_notes(memory, report)), _skills(memory)
    writer = _Writer(target, module.MARK, report, force=force)
    with _raise_folder_refused(target):
        if module is harness:
            report.notes = sum(
                writer.put_text(harness.note_path(agent, path), text) for agent, path, text in notes
            )
        else:
            report.left_out["note"] += len(notes)
        if module is loki:
            _put_loki(records, skills, writer, report)
            if any(fields["kind"] == "episode" for fields in records):
                figures = _Writer(target, loki.METRICS_MARK, report, force=force)
                _put_metrics(records, feedback, figures, memory)
        else:
            report.left_out["skill"] = len(skills)
            _put_lines(module, records, writer, memory)
    report.left_out = +report.left_out  # Drops the kinds with a count of zero.
    return report


@contextmanager
def _raise_folder_refused(folder: Path) -> Iterator[None]:
    """Raise `FolderRefused` for any error with a file in *folder*, which is not a home."""
    try:
        yield
    except (OSError, HomeUnusable) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        reason = (
            f"`{cause.filename}`: {cause.strerror}" if isinstance(cause, OSError) else str(error)
        )
        raise FolderRefused(folder, reason) from error


def _check(folder: Path, module: ModuleType, *, force: bool) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise FolderRefused(
            folder, "it is not a folder" if not folder.is_symlink() else "it is a symbolic link"
        )
    if force or not folder.exists() or not any(folder.iterdir()) or (folder / module.MARK).is_dir():
        return
    raise FolderRefused(
        folder,
        f"it is not empty and has no `{module.MARK}`",
        "name an empty folder or one with such a layout, or give `--force`",
    )


def _choose(
    lines: Iterable[str], module: ModuleType, report: ExportReport, feedback: list[Record]
) -> list[dict[str, Any]]:
    """Return the records of the kinds that the layout can hold; count the others.

    Feedback is added to *feedback*: metrics are computed from it.
    """
    held = []
    for line in lines:
        fields = decode(line.encode("utf-8"))
        if fields["kind"] in module.KINDS_HELD:
            report.kinds[fields["kind"]] += 1
            held.append(fields)
        else:
            report.left_out[fields["kind"]] += 1
            if fields["kind"] == "feedback":
                feedback.append(Feedback(fields))
    return held


def _put_lines(
    module: ModuleType, records: Sequence[dict[str, Any]], writer: _Writer, memory: Memory
) -> None:
    archive_of: Mapping[str, str] = getattr(module, "ARCHIVE_OF", {})
    archived = memory.archived_ids() if archive_of else frozenset[str]()
    # What an earlier export wrote into an archive may be in the other file now.
    by_file: dict[str, list[dict[str, Any]]] = {
        name: [] for name in archive_of.values() if writer.has(name)
    }
    written = zip(module.write(records) if records else (), records, strict=True)
    for (name, entry), fields in written:
        place = archive_of.get(name, name) if fields["id"] in archived else name
        by_file.setdefault(place, []).append(entry)
    for name, entries in by_file.items():
        writer.put_lines(name, entries)


def _put_metrics(
    records: Iterable[Mapping[str, Any]],
    feedback: Sequence[Record],
    writer: _Writer,
    memory: Memory,
) -> None:
    """Write what the tasks took, what they were worth, and a summary of the last days."""
    now = memory._clock()  # noqa: SLF001 (the clock of the memory is the only one)
    files = loki.write_metrics(records, feedback, now)
    for name, value in files.items():
        if isinstance(value, list):
            writer.put_list(name, value)
        else:
            writer.put_text(name, _json(value))


def _put_loki(
    records: Sequence[dict[str, Any]],
    skills: Mapping[str, str],
    writer: _Writer,
    report: ExportReport,
) -> None:
    by_file: dict[str, list[dict[str, Any]]] = {}
    placed = list(zip(loki.write(records), records, strict=True))
    for (name, entry), _fields in placed:
        by_file.setdefault(name, []).append(entry)
    for name, entry in loki.write_learnings(records):
        by_file.setdefault(name, []).append(entry)
    for name, entries in by_file.items():
        if loki.is_shared_file(name):
            writer.put_list(name, entries)
        else:
            writer.put_text(name, _json(entries[0]))
    index = loki.episode_index((name, fields) for (name, _entry), fields in placed)
    if index:
        writer.put_text(loki.INDEX, _json(index), derived=True)
    for name, text in skills.items():
        report.skills += writer.put_text(f"skills/{name}.md", text)


def _notes(memory: Memory, report: ExportReport) -> Iterator[tuple[str, str, str]]:
    """Yield the agent, path and text of every note; count those that cannot be read."""
    folder = memory.home.notes_folder
    if not folder.is_dir():
        return
    for agent_folder in sorted(folder.iterdir()):
        agent = agent_folder.name
        if not agent_folder.is_dir() or agent_folder.is_symlink() or agent.startswith("."):
            continue
        try:
            notes = memory.notes(agent)
            found = notes.list()
        except NoteRefused:
            report.left_out["note"] += 1
            continue
        for note in found:
            try:
                yield agent, note.path, redact_text(notes.read(note.path))[0]
            except NoteRefused:
                report.left_out["note"] += 1


def _skills(memory: Memory) -> dict[str, str]:
    found = sorted(memory.home.skills_folder.glob("*/SKILL.md"))
    try:
        texts = {
            path: read_small(path, SKILL_BYTES_MAX).decode("utf-8", "replace")
            for path in found
            if not path.is_symlink()
        }
    except OSError as error:
        raise unusable(memory.home.skills_folder, error) from error
    return {path.parent.name: redact_text(text)[0] for path, text in texts.items()}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


class _Writer:
    """Writes files below the layout's folder, in one step each, for their owner only.

    It never writes through a symbolic link.
    """

    def __init__(self, folder: Path, mark: str, report: ExportReport, *, force: bool) -> None:
        self.folder = folder
        self.mark = mark
        self.report = report
        self.force = force

    def has(self, name: str) -> bool:
        return self._path(name).is_file()

    def put_lines(self, name: str, entries: Sequence[dict[str, Any]]) -> None:
        """Write a file of JSON lines.

        Lines of other systems stay. They come first, so that ours are the latest.
        """
        path = self._path(name)
        ours = [encode(entry).encode("utf-8") + b"\n" for entry in entries]
        foreign = (
            []
            if self.force or not path.is_file()
            else [line.raw for line in lines(path, whole=True) if _is_foreign(line.raw)]
        )
        self._replace(path, [*(raw + b"\n" for raw in foreign), *ours])

    def put_list(self, name: str, entries: Sequence[dict[str, Any]]) -> None:
        """Write a file that holds one list. Entries of other systems stay."""
        path = self._path(name)
        ids = {entry["id"] for entry in entries if "id" in entry}
        existing = [] if self.force else _read_list(path)
        if existing is None:
            self.report.stayed.append(self._relative_name(path))
            return
        foreign = [
            entry
            for entry in existing
            if not is_ours(entry) and not (isinstance(entry, dict) and entry.get("id") in ids)
        ]
        self._replace(path, [_json([*foreign, *entries]).encode("utf-8")])

    def put_text(self, name: str, text: str, *, derived: bool = False) -> bool:
        """Write a file with *text*. Return whether the file now holds that text.

        A file that no export wrote stays, unless its content is *derived* from other files.
        """
        path, raw = self._path(name), text.encode("utf-8")
        if path.is_file() and not self.force and not derived:
            existing = path.read_bytes()
            if existing != raw and not _is_our_json(existing):
                self.report.stayed.append(self._relative_name(path))
                return False
        self._replace(path, [raw])
        return True

    def _path(self, name: str) -> Path:
        path = self.folder
        for part in (*self.mark.split("/"), *name.split("/")):
            path /= part
            if path.is_symlink():
                name = self._relative_name(path)
                raise FolderRefused(self.folder, f"`{name}` in it is a symbolic link")
        return path

    def _relative_name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def _replace(self, path: Path, chunks: Sequence[bytes]) -> None:
        for folder in reversed([path.parent, *path.parent.parents]):
            if folder.is_relative_to(self.folder) and not folder.is_dir():
                folder.mkdir(mode=0o700, parents=folder == self.folder)
        atomic.replace(path, chunks)
        self.report.files.append(self._relative_name(path))


def _is_foreign(raw: bytes) -> bool:
    if not raw.strip():
        return False
    try:
        return not is_ours(decode(raw))
    except ValueError:
        return True


def _read_list(path: Path) -> list[object] | None:
    """Return the list in the file at *path*; `None` if the file holds something else."""
    if not path.is_file():
        return []
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _is_our_json(raw: bytes) -> bool:
    try:
        return is_ours(json.loads(raw))
    except (ValueError, RecursionError):
        return False
