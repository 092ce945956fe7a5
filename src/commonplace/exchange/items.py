"""What a format is given to read, and what it gives back: values, never an exception half-way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class Head(NamedTuple):
    """The beginning of a file, read once for all formats: objects of its first lines, its front matter, its text."""

    objects: tuple[dict[str, Any], ...] = ()
    front: dict[str, Any] | None = None
    text: str = ""


class Source(NamedTuple):
    """One file to read: where the import began, the log it goes to, and all files of its format."""

    path: Path
    root: Path
    repo: str
    files: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        """The file's path as it is told: relative to what the user named."""
        return relative(self.path, self.root)

    def below(self, *markers: str) -> str:
        """The path below the last folder that is named like one of *markers*, else below the root.

        So a file has the same name however far above it the import began.
        """
        parts = self.path.parts
        places = [place for place, part in enumerate(parts[:-1]) if part in markers]
        return "/".join(parts[places[-1] + 1 :]) if places else self.name


class Taken(NamedTuple):
    """Something read that becomes a record: its fields, and the line it came from (0: the whole file)."""

    fields: dict[str, Any]
    line: int = 0


class Withdrawn(NamedTuple):
    """A record that its own system no longer holds true."""

    id: str
    at: str
    reason: str
    line: int = 0


class NoteText(NamedTuple):
    """A file that becomes a note of an agent's."""

    agent: str
    path: str
    text: str


class SkillText(NamedTuple):
    """A file that becomes a skill."""

    name: str
    text: str


class Unread(NamedTuple):
    """What could not be read, and why."""

    line: int
    reason: str


class Passed(NamedTuple):
    """What was left out on purpose, and why."""

    line: int
    reason: str


Item = Taken | Withdrawn | NoteText | SkillText | Unread | Passed


def relative(path: Path, root: Path) -> str:
    if path == root or not path.is_relative_to(root):
        return path.name
    return path.relative_to(root).as_posix()
