"""The input of a format's `read`, and the items it yields. A `read` reports problems as items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class Head(NamedTuple):
    """The beginning of a file: the objects in its first lines, its front matter, its text.

    It is read once for all formats.
    """

    objects: tuple[dict[str, Any], ...] = ()
    front: dict[str, Any] | None = None
    text: str = ""


class Source(NamedTuple):
    """One file to read, the path the user gave, the target log, and all files of the format."""

    path: Path
    root: Path
    repo: str
    files: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        """The file's path relative to the path the user gave."""
        return relative_name(self.path, self.root)

    def name_below(self, *markers: str) -> str:
        """Return the path below the last folder named like one of *markers*, else `name`.

        A file has the same name whichever of its parent folders the user imports.
        """
        parts = self.path.parts
        found = [index for index, part in enumerate(parts[:-1]) if part in markers]
        return "/".join(parts[found[-1] + 1 :]) if found else self.name


class ImportedRecord(NamedTuple):
    """The fields of a record to write, and the line they came from (0: the whole file)."""

    fields: dict[str, Any]
    line: int = 0


class Withdrawal(NamedTuple):
    """The id of a record that its own system deleted or declared invalid."""

    id: str
    at: str
    reason: str
    line: int = 0


class NoteText(NamedTuple):
    """A file that becomes a note of an agent."""

    agent: str
    path: str
    text: str


class SkillText(NamedTuple):
    """A file that becomes a skill."""

    name: str
    text: str


class Unreadable(NamedTuple):
    """A line or file that could not be read, and why."""

    line: int
    reason: str


class Skipped(NamedTuple):
    """A line or file that was left out on purpose, and why."""

    line: int
    reason: str


Item = ImportedRecord | Withdrawal | NoteText | SkillText | Unreadable | Skipped


def relative_name(path: Path, root: Path) -> str:
    if path == root or not path.is_relative_to(root):
        return path.name
    return path.relative_to(root).as_posix()
