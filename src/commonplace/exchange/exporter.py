"""Exporting: the memory laid out as another system keeps it, so that both can be used side by side.

What an export did not write it does not destroy: foreign entries of a file stay in it, foreign files stay as they are.
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
from commonplace.log.read import lines
from commonplace.records import decode, encode
from commonplace.redaction import redact_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

    from commonplace.memory import Memory


@dataclass
class Layout:
    """What became of an export: counts by kind, what had no place, and the files."""

    layout: str
    folder: str
    kinds: Counter[str] = field(default_factory=Counter)
    notes: int = 0
    skills: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    files: list[str] = field(default_factory=list)
    stayed: list[str] = field(default_factory=list)


def lay_out(
    memory: Memory,
    layout: str,
    folder: Path,
    *,
    repo: str | None = None,
    kind: str | None = None,
    superseded: bool = False,
    force: bool = False,
) -> Layout:
    """Write the current view of the nearest home into *folder*, as *layout* keeps such things."""
    if layout not in LAYOUTS:
        raise UsageError(f"there is no layout `{layout}`", f"choose among {', '.join(LAYOUTS)}")
    module = LAYOUTS[layout]
    target = folder.expanduser().absolute()
    report = Layout(layout, str(target))
    with _reached(target):
        _check(target, module, force=force)
    lines = memory.export_lines(repo, kind, superseded=superseded)
    records = _choose(lines, module, report)
    notes, skills = list(_notes(memory, report)), _skills(memory)
    writer = _Writer(target, module.MARK, report, force=force)
    with _reached(target):
        if module is harness:
            report.notes = sum(
                writer.put_text(harness.place(agent, path), text) for agent, path, text in notes
            )
        else:
            report.left_out["note"] += len(notes)
        if module is loki:
            _put_loki(records, skills, writer, report)
        else:
            report.left_out["skill"] = len(skills)
            _put_lines(module, records, writer)
    report.left_out = +report.left_out  # Nothing is said about nothing.
    return report


@contextmanager
def _reached(folder: Path) -> Iterator[None]:
    """Whatever the system says against a file in *folder* is said of the folder: it is no home."""
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
            folder, "it is no folder" if not folder.is_symlink() else "it is a symbolic link"
        )
    if force or not folder.exists() or not any(folder.iterdir()) or (folder / module.MARK).is_dir():
        return
    raise FolderRefused(
        folder,
        f"it holds other things, and no `{module.MARK}`",
        "name an empty folder or one with such a layout, or give `--force`",
    )


def _choose(lines: Iterable[str], module: ModuleType, report: Layout) -> list[dict[str, Any]]:
    """The records the layout has a place for; the others are counted."""
    held = []
    for line in lines:
        fields = decode(line.encode("utf-8"))
        if fields["kind"] in module.KINDS_HELD:
            report.kinds[fields["kind"]] += 1
            held.append(fields)
        else:
            report.left_out[fields["kind"]] += 1
    return held


def _put_lines(module: ModuleType, records: Sequence[dict[str, Any]], writer: _Writer) -> None:
    by_file: dict[str, list[dict[str, Any]]] = {}
    for name, entry in module.write(records) if records else ():
        by_file.setdefault(name, []).append(entry)
    for name, entries in by_file.items():
        writer.put_lines(name, entries)


def _put_loki(
    records: Sequence[dict[str, Any]], skills: Mapping[str, str], writer: _Writer, report: Layout
) -> None:
    by_file: dict[str, list[dict[str, Any]]] = {}
    placed = list(zip(loki.write(records), records, strict=True))
    for (name, entry), _fields in placed:
        by_file.setdefault(name, []).append(entry)
    for name, entries in by_file.items():
        if loki.shared(name):
            writer.put_list(name, entries)
        else:
            writer.put_text(name, _json(entries[0]))
    index = loki.index((name, fields) for (name, _entry), fields in placed)
    if index:
        writer.put_text(loki.INDEX, _json(index), derived=True)
    for name, text in skills.items():
        report.skills += writer.put_text(f"skills/{name}.md", text)


def _notes(memory: Memory, report: Layout) -> Iterator[tuple[str, str, str]]:
    """Every note of every agent; one that is no text of ours to hand out is counted."""
    folder = memory.home.notes_folder
    if not folder.is_dir():
        return
    for place in sorted(folder.iterdir()):
        if not place.is_dir() or place.is_symlink() or place.name.startswith("."):
            continue
        try:
            notes = memory.notes(place.name)
            found = notes.list()
        except NoteRefused:
            report.left_out["note"] += 1
            continue
        for note in found:
            try:
                yield place.name, note.path, redact_text(notes.read(note.path))[0]
            except NoteRefused:
                report.left_out["note"] += 1


def _skills(memory: Memory) -> dict[str, str]:
    found = sorted(memory.home.skills_folder.glob("*/SKILL.md"))
    try:
        texts = {
            path: path.read_text("utf-8", "replace") for path in found if not path.is_symlink()
        }
    except OSError as error:
        raise unusable(memory.home.skills_folder, error) from error
    return {path.parent.name: redact_text(text)[0] for path, text in texts.items()}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


class _Writer:
    """Puts files below the layout's folder: whole, for their owner only, never through a link."""

    def __init__(self, folder: Path, mark: str, report: Layout, *, force: bool) -> None:
        self.folder = folder
        self.mark = mark
        self.report = report
        self.force = force

    def put_lines(self, name: str, entries: Sequence[dict[str, Any]]) -> None:
        """A file of JSON lines. Lines that are not ours stay, before ours, so that ours are the latest."""
        path = self._path(name)
        ours = [encode(entry).encode("utf-8") + b"\n" for entry in entries]
        foreign = (
            []
            if self.force or not path.is_file()
            else [line.raw for line in lines(path, whole=True) if _is_foreign(line.raw)]
        )
        self._replace(path, [*(raw + b"\n" for raw in foreign), *ours])

    def put_list(self, name: str, entries: Sequence[dict[str, Any]]) -> None:
        """A file that holds one list. Entries that are not ours stay."""
        path = self._path(name)
        ids = {entry.get("id") for entry in entries}
        there = [] if self.force else _listed(path)
        if there is None:
            self.report.stayed.append(self._told(path))
            return
        foreign = [
            entry
            for entry in there
            if not is_ours(entry) and not (isinstance(entry, dict) and entry.get("id") in ids)
        ]
        self._replace(path, [_json([*foreign, *entries]).encode("utf-8")])

    def put_text(self, name: str, text: str, *, derived: bool = False) -> bool:
        """A file of its own. One that is there and not ours stays; whether it was written or is the same."""
        path, raw = self._path(name), text.encode("utf-8")
        if path.is_file() and not self.force and not derived:
            there = path.read_bytes()
            if there != raw and not _is_our_json(there):
                self.report.stayed.append(self._told(path))
                return False
        self._replace(path, [raw])
        return True

    def _path(self, name: str) -> Path:
        path = self.folder
        for part in (*self.mark.split("/"), *name.split("/")):
            path /= part
            if path.is_symlink():
                raise FolderRefused(self.folder, f"`{self._told(path)}` in it is a symbolic link")
        return path

    def _told(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def _replace(self, path: Path, chunks: Sequence[bytes]) -> None:
        for folder in reversed([path.parent, *path.parent.parents]):
            if folder.is_relative_to(self.folder) and not folder.is_dir():
                folder.mkdir(mode=0o700, parents=folder == self.folder)
        atomic.replace(path, chunks)
        self.report.files.append(self._told(path))


def _is_foreign(raw: bytes) -> bool:
    if not raw.strip():
        return False
    try:
        return not is_ours(decode(raw))
    except ValueError:
        return True


def _listed(path: Path) -> list[Any] | None:
    """The entries of a list that is there; `None` if what is there is no list."""
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
