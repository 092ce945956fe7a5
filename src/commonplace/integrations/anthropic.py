"""Claude's memory tool (`memory_20250818`) for an agent's notes.

`/memories/…` is the agent's folder in a home. The messages are those of the tool's documentation,
which the model knows. Paths, limits, redaction, locks and atomic writes are those of the notes, so
an agent may use this tool and the `memory_*` tools of the server side by side.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from commonplace.errors import (
    CommonplaceError,
    ExtraMissing,
    NoteChanged,
    NoteExists,
    NoteNotFound,
    NoteRefused,
)
from commonplace.foreign import one_line, render

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

    With *overwrite*, `create` replaces an existing file; otherwise the model gets an error.
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
        """Return the listing of a folder two levels deep, or a file with line numbers."""
        path = _parameter(command, "path", str)
        missing = f"The path {path} does not exist. Please provide a valid path."
        with _errors_for_model(path, missing=missing):
            inner = _inner(path)
            if not inner:
                return _list_folder(self.notes, path, inner)
            try:
                text = self.notes.read(inner)
            except NoteNotFound:
                return _list_folder(self.notes, path, inner)
        lines = _lines(text)
        if len(lines) > LINES_MAX:
            raise ToolError(f"File {path} exceeds maximum line limit of {LINES_MAX:,} lines.")
        first, last = _range(command, len(lines))
        return _join_up_to_limit(
            f"Here's the content of {path} with line numbers:", _number_lines(lines, first, last)
        )

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file."""
        path, text = _parameter(command, "path", str), _parameter(command, "file_text", str)
        missing, exists = (
            f"Error: The path {path} is a directory",
            f"Error: File {path} already exists",
        )
        with _errors_for_model(path, missing=missing, exists=exists):
            self.notes.write(_file(path), text, None if self.overwrite else "")
        return f"File created successfully at: {path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once."""
        path, old = _parameter(command, "path", str), _parameter(command, "old_str", str)
        new = "" if command.new_str is None else _parameter(command, "new_str", str)
        with _errors_for_model(
            path, missing=f"Error: The path {path} does not exist. Please provide a valid path."
        ):
            try:
                line = self.notes.replace(_file(path), old, new).line
            except NoteRefused as error:
                if error.lines is None:
                    raise
                raise ToolError(_no_unique_match(path, old, error.lines)) from None
            lines = _lines(self.notes.read(_file(path)))
        snippet = _number_lines(
            lines, max(1, line - SNIPPET_LINES), line + new.count("\n") + SNIPPET_LINES
        )
        return _join_up_to_limit("The memory file has been edited.", snippet)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert a text after a line; 0 inserts at the top."""
        path, text = _parameter(command, "path", str), _parameter(command, "insert_text", str)
        line = _parameter(command, "insert_line", int)
        with _errors_for_model(path, missing=f"Error: The path {path} does not exist"):
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
        """Delete a file, or a folder with all that is in it."""
        path = _parameter(command, "path", str)
        with _errors_for_model(path, missing=f"Error: The path {path} does not exist"):
            inner = _inner(path)
            if not inner:
                raise ToolError(f"Error: Cannot delete the {ROOT} directory itself")
            self.notes.delete(inner)
        return f"Successfully deleted {path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file or folder to another path."""
        old, new = _parameter(command, "old_path", str), _parameter(command, "new_path", str)
        exists = f"Error: The destination {new} already exists"
        with _errors_for_model(new, missing=f"Error: The path {old} does not exist", exists=exists):
            source, target = _inner(old), _inner(new)
            if not source:
                raise ToolError(f"Error: Cannot rename the {ROOT} directory itself")
            if not target:
                raise ToolError(exists)
            self.notes.rename(source, target)
        return f"Successfully renamed {old} to {new}"

    def clear_all_memory(self) -> str:
        """Delete every note of the agent. Only programs call this; the model cannot."""
        for entry in self.notes.entries():
            self.notes.delete(entry.path)
        return "All memory cleared"


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """`MemoryTool` for an asynchronous client: each command runs in a thread."""

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


# --- Private --------------------------------------------------------------------------------------


@contextmanager
def _errors_for_model(path: str, *, missing: str = "", exists: str = "") -> Iterator[None]:
    """Raise errors of the notes as `ToolError` with the messages of the tool's documentation."""
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
    """Return the path within the agent's folder; empty for the folder itself."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise ToolError(f"Error: Path must start with {ROOT}, got: {path}")
    return path.removeprefix(ROOT).removeprefix("/").removesuffix("/")


def _file(path: str) -> str:
    inner = _inner(path)
    if not inner:
        raise NoteNotFound(path)
    return inner


def _no_unique_match(path: str, old: str, lines: Sequence[int]) -> str:
    if not lines:
        return f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
    numbers = ", ".join(map(str, lines))
    return (
        "No replacement was performed. "
        f"Multiple occurrences of old_str `{old}` in lines: {numbers}. "
        "Please ensure it is unique"
    )


def _parameter(command: object, name: str, kind: type[T]) -> T:
    """Return a parameter of *command*, whose type the SDK does not check."""
    value = getattr(command, name, None)
    if not isinstance(value, kind) or isinstance(value, bool):
        expected = "a whole number" if kind is int else "text"
        raise ToolError(f"Error: Invalid `{name}` parameter: {value}. It should be {expected}.")
    return value


def _range(command: BetaMemoryTool20250818ViewCommand, count: int) -> tuple[int, int]:
    """Return the first and the last line to show, limited to the lines of the file."""
    lines = command.view_range
    if lines is None:
        return 1, count
    if (
        not isinstance(lines, list)
        or len(lines) != 2  # noqa: PLR2004 (the first line and the last)
        or not all(isinstance(line, int) for line in lines)
    ):
        raise ToolError(
            f"Error: Invalid `view_range` parameter: {lines}. It should be two line numbers."
        )
    first, last = lines
    return max(1, first), count if last == -1 else min(last, count)


def _list_folder(notes: Notes, path: str, inner: str) -> str:
    start = path.rstrip("/")
    # `node_modules` is hidden in a listing, but not when *inner* names it.
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
        f"{_size(entry.bytes)}\t{ROOT}/{one_line(entry.path)}{'/' * entry.is_folder}"
        for entry in entries
    ]
    header = f"Here're the files and directories up to {DEPTH} levels deep in {path}"
    return _join_up_to_limit(f"{header}, excluding hidden items and node_modules:", lines)


def _size(count: int) -> str:
    """Return a size such as `0B`, `512B` or `5.5K`."""
    size, unit = float(count), "B"
    for larger in "KMG":
        if size < UNIT:
            break
        size, unit = size / UNIT, larger
    return f"{size:.0f}{unit}" if size == int(size) else f"{size:.1f}{unit}"


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _number_lines(lines: list[str], first: int, last: int) -> list[str]:
    # Other characters may end a line for the reader, but not in the numbers that the tool counts.
    shown = [" ".join(render(line).splitlines()) for line in lines[first - 1 : last]]
    return [f"{number:>6}\t{line}" for number, line in enumerate(shown, first)]


def _join_up_to_limit(header: str, lines: list[str]) -> str:
    """Return the header and as many lines as the model expects at once."""
    left = VIEW_CHARS_MAX - len(header)
    for index, line in enumerate(lines):
        left -= len(line) + 1
        if left < 0:
            rest = len(lines) - index
            shown = lines[:index] or [line[:VIEW_CHARS_MAX]]
            return "\n".join([header, *shown, f"… {rest} more lines; use `view_range` to see them"])
    return "\n".join([header, *lines])
