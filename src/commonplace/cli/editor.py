"""Let the user change a text in their own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.errors import CommonplaceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


def open_editor(text: str, instead: str) -> str:
    """Open *text* in `$VISUAL` or `$EDITOR`, and return what the user saved.

    *instead* says what to do where there is no editor. An empty file leaves the text as it was.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise UsageError("there is no editor to open", f"set `EDITOR`, or {instead}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lesson.txt"
        path.write_text(text + "\n", encoding="utf-8")
        try:
            command = [*shlex.split(editor), str(path)]
            done = subprocess.run(command, check=False)  # noqa: S603 (the user's own editor)
        except OSError as error:
            raise UsageError(
                f"the editor `{editor}` cannot be started ({error.strerror})"
            ) from error
        if done.returncode != 0:
            raise UsageError(
                f"the editor `{editor}` ended with {done.returncode}; nothing was changed"
            )
        try:
            return path.read_text("utf-8", "replace").strip() or text
        except OSError:
            raise UsageError(
                f"the editor `{editor}` left no file behind; nothing was changed"
            ) from None


@contextmanager
def keep_on_error(text: str) -> Iterator[None]:
    """If an error of ours follows, keep what the user wrote in a file, and name it in the hint."""
    try:
        yield
    except CommonplaceError as error:
        descriptor, path = tempfile.mkstemp(".txt", "commonplace-edit-")
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text + "\n")
        kept = f"what you wrote is in `{path}`"
        error.hint = f"{error.hint}; {kept}" if error.hint else kept
        raise
