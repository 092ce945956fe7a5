"""Claude's memory tool (`memory_20250818`) over an agent's notes: `/memories/…` is the agent's folder of a home.

The texts are those the tool is documented with; the model has learned to read them. Paths, limits, redaction, locks and
whole writes are those of the notes, so an agent may use this and the `memory_*` tools of the server side by side.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from commonplace.errors import (
    CommonplaceError,
    ExtraMissing,
    NoteChanged,
    NoteExists,
    NoteNotFound,
    NoteRefused,
)

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
except ImportError as error:
    raise ExtraMissing("anthropic", "anthropic>=2.8") from error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )

    from commonplace.memory import Memory
    from commonplace.notes import Notes

ROOT = "/memories"
DEPTH = 2
LINES_MAX = 999_999
# The model expects a long view to be cut, and asks for the rest with `view_range`.
VIEW_CHARS_MAX = 16_000
SNIPPET_LINES = 2
UNIT = 1024

T = TypeVar("T")


class MemoryTool(BetaAbstractMemoryTool):
    """The notes of *agent* (by default the memory's own) as Claude's memory tool.

    With *overwrite*, `create` replaces a file that is there; otherwise it is an error the model reads.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        agent: str | None = None,
        overwrite: bool = False,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self.notes = memory.notes(agent)
        self.overwrite = overwrite

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """A folder two levels deep, or a file with line numbers."""
        path = _given(command, "path", str)
        missing = f"The path {path} does not exist. Please provide a valid path."
        with _told(path, missing=missing):
            inner = _inner(path)
            if not inner:
                return _listed(self.notes, path, inner)
            try:
                text = self.notes.read(inner)
            except NoteNotFound:
                return _listed(self.notes, path, inner)
        lines = _lines(text)
        if len(lines) > LINES_MAX:
            raise ToolError(f"File {path} exceeds maximum line limit of {LINES_MAX:,} lines.")
        first, last = _range(command, len(lines))
        return _cut(
            f"Here's the content of {path} with line numbers:", _numbered(lines, first, last)
        )

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Make a file."""
        path, text = _given(command, "path", str), _given(command, "file_text", str)
        missing, exists = (
            f"Error: The path {path} is a directory",
            f"Error: File {path} already exists",
        )
        with _told(path, missing=missing, exists=exists):
            self.notes.write(_file(path), text, None if self.overwrite else "")
        return f"File created successfully at: {path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once."""
        path, old = _given(command, "path", str), _given(command, "old_str", str)
        new = "" if command.new_str is None else _given(command, "new_str", str)
        with _told(
            path, missing=f"Error: The path {path} does not exist. Please provide a valid path."
        ):
            try:
                line = self.notes.replace(_file(path), old, new).line
            except NoteRefused as error:
                if error.lines is None:
                    raise
                raise ToolError(_unmatched(path, old, error.lines)) from None
            lines = _lines(self.notes.read(_file(path)))
        snippet = _numbered(
            lines, max(1, line - SNIPPET_LINES), line + new.count("\n") + SNIPPET_LINES
        )
        return _cut("The memory file has been edited.", snippet)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert behind a line; 0 is the top."""
        path, text = _given(command, "path", str), _given(command, "insert_text", str)
        line = _given(command, "insert_line", int)
        with _told(path, missing=f"Error: The path {path} does not exist"):
            inner = _file(path)
            count = len(_lines(self.notes.read(inner)))
            if not 0 <= line <= count:
                raise ToolError(
                    f"Error: Invalid `insert_line` parameter: {line}. "
                    f"It should be within the range of lines of the file: [0, {count}]"
                )
            self.notes.insert(inner, line, text)
        return f"The file {path} has been edited."

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Remove a file, or a folder with all that is in it."""
        path = _given(command, "path", str)
        with _told(path, missing=f"Error: The path {path} does not exist"):
            inner = _inner(path)
            if not inner:
                raise ToolError(f"Error: Cannot delete the {ROOT} directory itself")
            self.notes.delete(inner)
        return f"Successfully deleted {path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Give a file or folder another path."""
        old, new = _given(command, "old_path", str), _given(command, "new_path", str)
        taken = f"Error: The destination {new} already exists"
        with _told(new, missing=f"Error: The path {old} does not exist", exists=taken):
            source, target = _inner(old), _inner(new)
            if not source:
                raise ToolError(f"Error: Cannot rename the {ROOT} directory itself")
            if not target:
                raise ToolError(taken)
            self.notes.rename(source, target)
        return f"Successfully renamed {old} to {new}"

    def clear_all_memory(self) -> str:
        """Delete every note of the agent. For programs: the model cannot call it."""
        for entry in self.notes.entries():
            self.notes.delete(entry.path)
        return "All memory cleared"


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for an asynchronous client: each command runs in a thread."""

    def __init__(
        self,
        memory: Memory,
        *,
        agent: str | None = None,
        overwrite: bool = False,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = MemoryTool(memory, agent=agent, overwrite=overwrite)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return await asyncio.to_thread(self._tool.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return await asyncio.to_thread(self._tool.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return await asyncio.to_thread(self._tool.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return await asyncio.to_thread(self._tool.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return await asyncio.to_thread(self._tool.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return await asyncio.to_thread(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        return await asyncio.to_thread(self._tool.clear_all_memory)


# --- Inside -------------------------------------------------------------------------------------------------------


@contextmanager
def _told(path: str, *, missing: str = "", exists: str = "") -> Iterator[None]:
    """Turns what the notes refuse into the tool's own words."""
    try:
        yield
    except NoteNotFound:
        raise ToolError(missing) from None
    except (NoteChanged, NoteExists):
        raise ToolError(exists) from None
    except NoteRefused as error:
        raise ToolError(f"Error: The path {path} {error.reason}") from error
    except CommonplaceError as error:
        raise ToolError(f"Error: {error}. {error.hint}".rstrip(". ")) from error


def _inner(path: str) -> str:
    """The path within the agent's folder; empty for the folder itself."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise ToolError(f"Error: Path must start with {ROOT}, got: {path}")
    return path.removeprefix(ROOT).removeprefix("/").removesuffix("/")


def _file(path: str) -> str:
    inner = _inner(path)
    if not inner:
        raise NoteNotFound(path)
    return inner


def _unmatched(path: str, old: str, lines: Sequence[int]) -> str:
    if not lines:
        return f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
    places = ", ".join(map(str, lines))
    return (
        f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {places}. "
        "Please ensure it is unique"
    )


def _given(command: Any, name: str, kind: type[T]) -> T:  # noqa: ANN401 (the SDK does not check what the model sent)
    value = getattr(command, name, None)
    if not isinstance(value, kind) or isinstance(value, bool):
        wanted = "a whole number" if kind is int else "text"
        raise ToolError(f"Error: Invalid `{name}` parameter: {value}. It should be {wanted}.")
    return value


def _range(command: BetaMemoryTool20250818ViewCommand, count: int) -> tuple[int, int]:
    """The first and the last line to show; a range that goes too far ends where the file does."""
    asked = command.view_range
    if asked is None:
        return 1, count
    if (
        not isinstance(asked, list)
        or len(asked) != 2  # noqa: PLR2004 (the first line and the last)
        or not all(isinstance(one, int) for one in asked)
    ):
        raise ToolError(
            f"Error: Invalid `view_range` parameter: {asked}. It should be two line numbers."
        )
    first, last = asked
    return max(1, first), count if last == -1 else min(last, count)


def _listed(notes: Notes, path: str, inner: str) -> str:
    start = path.rstrip("/")
    # Whoever asks for `node_modules` by name gets to see it.
    below = [
        (entry, entry.path.removeprefix(inner).split("/")) for entry in notes.entries(inner, DEPTH)
    ]
    entries = [entry for entry, parts in below if "node_modules" not in parts]
    whole = sum(
        entry.bytes
        for entry in entries
        if entry.path.count("/") == (inner.count("/") + 1 if inner else 0)
    )
    lines = [f"{_size(whole)}\t{start}"]
    lines += [
        f"{_size(entry.bytes)}\t{ROOT}/{entry.path}{'/' * entry.is_folder}" for entry in entries
    ]
    header = f"Here're the files and directories up to {DEPTH} levels deep in {path}"
    return _cut(f"{header}, excluding hidden items and node_modules:", lines)


def _size(count: int) -> str:
    """`0B`, `512B`, `5.5K`."""
    size, unit = float(count), "B"
    for larger in "KMG":
        if size < UNIT:
            break
        size, unit = size / UNIT, larger
    return f"{size:.0f}{unit}" if size == int(size) else f"{size:.1f}{unit}"


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _numbered(lines: list[str], first: int, last: int) -> list[str]:
    return [f"{number:>6}\t{line}" for number, line in enumerate(lines[first - 1 : last], first)]


def _cut(header: str, lines: list[str]) -> str:
    """The lines under their header, as many as the model expects at once."""
    left = VIEW_CHARS_MAX - len(header)
    for place, line in enumerate(lines):
        left -= len(line) + 1
        if left < 0:
            rest = len(lines) - place
            kept = lines[:place] or [line[:VIEW_CHARS_MAX]]
            return "\n".join([header, *kept, f"… {rest} more lines; use `view_range` to see them"])
    return "\n".join([header, *lines])
