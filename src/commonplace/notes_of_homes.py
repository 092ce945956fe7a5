"""The notes of one agent in all homes that apply, seen as one folder.

The homes that the user trusts come first, the nearest before the others: in this order the start of
a session looks for CONTEXT.md, so what an agent was given is what it lists, reads and edits. New
notes go to the first home.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from commonplace.errors import NoteNotFound, NoteRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from commonplace.notes import Note, Notes, Reading, Written

    T = TypeVar("T")


class NotesOfHomes:
    """The notes of an agent. Of two with the same path, only the one of the first home is seen."""

    def __init__(self, trusted: Sequence[Notes], untrusted: Sequence[Notes]) -> None:
        assert trusted or untrusted, "a memory has a home"
        self._own = trusted or untrusted
        self._untrusted = untrusted if trusted else []

    def list(self, path: str = "") -> list[Note]:
        """Return the notes below *path*, in order."""
        found: dict[str, Note] = {}
        is_there = False
        for notes in (*self._own, *self._untrusted):
            # What a stranger put in the place of a folder keeps no other note from being listed.
            ignored = (NoteRefused,) if notes in self._untrusted else ()
            with suppress(NoteNotFound, *ignored):
                for note in notes.list(path):
                    found.setdefault(note.path, self._marked(notes, note))
                is_there = True
        if not is_there:
            raise NoteNotFound(path)
        return [found[name] for name in sorted(found)]

    def read_with_hash(self, path: str, view_range: tuple[int, int] | None = None) -> Reading:
        """Return the text of a note, or its lines in *view_range*, and its hash."""

        def read(notes: Notes) -> Reading:
            found = notes.read_with_hash(path, view_range)
            return found._replace(note=self._marked(notes, found.note))

        return self._first(path, read)

    def write(self, path: str, content: str, if_sha256: str | None = None) -> Written:
        """Create or replace a note, never in a home that is not trusted.

        A note there would not be read at the start of a session.
        """
        for notes in self._own:
            if notes.has(path):
                return notes.write(path, content, if_sha256)
        with suppress(NoteNotFound):
            seen = self.read_with_hash(path).note
            if if_sha256 and seen.sha256.startswith(if_sha256.lower()):
                if_sha256 = ""  # It has not changed, and the agent's own note is new.
        return self._own[0].write(path, content, if_sha256)

    def replace(self, path: str, old: str, new: str, if_sha256: str | None = None) -> Written:
        """Replace *old*, which must occur exactly once, with *new*."""
        return self._own_with(path).replace(path, old, new, if_sha256)

    def insert(self, path: str, line: int, text: str, if_sha256: str | None = None) -> Written:
        """Insert *text* after the line with the number *line*; 0 inserts at the top."""
        return self._own_with(path).insert(path, line, text, if_sha256)

    def _own_with(self, path: str) -> Notes:
        """Return the first notes that have *path*, never those of a home that is not trusted."""
        for notes in self._own:
            if notes.has(path):
                return notes
        if any(notes.has(path) for notes in self._untrusted):
            raise NoteRefused(
                path,
                "came with this repository, which is not trusted, and is not edited there; write "
                "a note of your own with the text that you want",
            )
        return self._own[0]

    def _first(self, path: str, call: Callable[[Notes], T]) -> T:
        """Return what *call* gives for the first home that has the note."""
        for notes in (*self._own, *self._untrusted):
            with suppress(NoteNotFound):
                return call(notes)
        raise NoteNotFound(path)

    def _marked(self, notes: Notes, note: Note) -> Note:
        return note._replace(trusted=False) if notes in self._untrusted else note
