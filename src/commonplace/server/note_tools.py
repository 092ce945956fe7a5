"""The tools for an agent's own notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult
from pydantic import Field

from commonplace.foreign import UNTRUSTED, one_line, quote
from commonplace.server import models
from commonplace.server.tools import (
    CHANGES,
    EDITS,
    READS,
    errors_as_tool_results,
    tool,
    tool_result,
)

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from commonplace.notes import Written
    from commonplace.server.tools import OpenMemory

NotePath = Annotated[
    str, Field(description="Relative to your own folder, e.g. CONTEXT.md or plans/release.md.")
]
Sha = Annotated[
    str | None,
    Field(
        description="Only if the note still has this hash, which `memory_list` and writes return; "
        "an empty text: only if there is no such note yet."
    ),
]


def add(server: MCPServer[Any], open_memory: OpenMemory) -> None:
    """Add the tools for the agent's own notes."""

    @tool(server, READS, "Read a note")
    def memory_read(
        path: NotePath,
        view_range: Annotated[
            list[int] | None, Field(description="[first, last] line, from 1; -1 is the end.")
        ] = None,
    ) -> Annotated[CallToolResult, models.NoteTextModel]:
        """Read one of your own notes.

        Use it when CONTEXT.md or `memory_list` names something you need now.
        """
        if view_range is not None and len(view_range) != 2:  # noqa: PLR2004
            raise ToolError("`view_range` takes two numbers: the first and the last line")
        with errors_as_tool_results():
            found = (
                open_memory()
                .visible_notes()
                .read_with_hash(path, (view_range[0], view_range[1]) if view_range else None)
            )
        note, text = found.note, found.text
        return tool_result(
            text if note.trusted else f"({UNTRUSTED})\n\n{quote(text)}",
            models.NoteTextModel(path=path, text=text, sha256=note.sha256, trusted=note.trusted),
        )

    @tool(server, CHANGES, "Write a note")
    def memory_write(
        path: NotePath, content: str, if_sha256: Sha = None
    ) -> Annotated[CallToolResult, models.NoteModel]:
        """Create or overwrite one of your own notes.

        Use it for what you want to carry into later sessions; only you read and write these files.
        CONTEXT.md is loaded at the start of every session: keep it short.
        """
        with errors_as_tool_results():
            return note_result(open_memory("write").visible_notes().write(path, content, if_sha256))

    @tool(server, EDITS, "Replace in a note")
    def memory_replace(
        path: NotePath,
        old: Annotated[str, Field(description="The text to replace; it must occur exactly once.")],
        new: str,
        if_sha256: Sha = None,
    ) -> Annotated[CallToolResult, models.NoteModel]:
        """Replace a text in one of your own notes.

        Use it to correct or delete a line and leave the rest as it is. The old text must match
        exactly once; else the error says where it matches. An empty new text deletes the old one.
        """
        with errors_as_tool_results():
            return note_result(
                open_memory("write").visible_notes().replace(path, old, new, if_sha256)
            )

    @tool(server, EDITS, "Insert into a note")
    def memory_insert(
        path: NotePath,
        line: Annotated[int, Field(ge=0, description="After this line; 0 is the top.")],
        text: str,
        if_sha256: Sha = None,
    ) -> Annotated[CallToolResult, models.NoteModel]:
        """Insert a text into one of your own notes, after a line.

        Use it to add to a list without rewriting it.
        """
        with errors_as_tool_results():
            return note_result(
                open_memory("write").visible_notes().insert(path, line, text, if_sha256)
            )

    @tool(server, READS, "List your notes")
    def memory_list(
        path: Annotated[str | None, Field(description="Only this folder.")] = None,
    ) -> Annotated[CallToolResult, models.NotesModel]:
        """List your own notes: bytes, hash, path.

        Use it at the start of a task to see what you wrote down before.
        """
        with errors_as_tool_results():
            found = open_memory().visible_notes().list(path or "")
        listed = [note._replace(path=one_line(note.path)) for note in found]
        text = (
            "\n".join(
                f"{note.bytes:>8}  {note.hash_start}  {one_line(note.path)}"
                f"{'' if note.trusted else f'  ({UNTRUSTED})'}"
                for note in found
            )
            or "No notes yet."
        )
        return tool_result(
            text, models.NotesModel(notes=[models.NoteModel(**note._asdict()) for note in listed])
        )


def note_result(done: Written) -> CallToolResult:
    note = f" (redacted: {', '.join(done.redacted)})" if done.redacted else ""
    model = models.NoteModel(**done.note._asdict(), redacted=done.redacted)
    return tool_result(
        f"Wrote {done.note.path}, {done.note.bytes} bytes, sha256 {done.note.hash_start}{note}",
        model,
    )
