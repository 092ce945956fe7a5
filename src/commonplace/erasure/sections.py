"""Our sections of `CONTINUITY.md` files: which files have one, and taking erased records out.

A section may be in any repository, so each home notes the files that name its memories.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.erasure.lines import remove_temporaries
from commonplace.erasure.traces import find
from commonplace.errors import unusable
from commonplace.files import atomic, marked_section
from commonplace.files.lock import hold
from commonplace.files.plain import make_folder, read_small

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from commonplace.erasure.traces import Trace
    from commonplace.where.home import Home

FILE_BYTES_MAX = 1 << 20
MARKS = marked_section.CONTINUITY


def note(home: Home, file: Path, lock: Path) -> None:
    """Note that *file*, which is changed under *lock*, names memories of *home*."""
    if file == home.continuity_file or noted(home).get(file) == lock:
        return
    make_folder(home.state_folder)
    with hold(home.continuity_files):
        known = {str(path): str(held) for path, held in noted(home).items()}
        known[str(file)] = str(lock)
        atomic.replace(home.continuity_files, [json.dumps(known).encode()])


def noted(home: Home) -> dict[Path, Path]:
    """Return the files that may name memories of *home*, each with its lock."""
    found = {home.continuity_file: home.continuity_lock}
    try:
        known = json.loads(read_small(home.continuity_files, FILE_BYTES_MAX))
        found |= {Path(file): Path(lock) for file, lock in known.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        pass  # There is none yet, or it is damaged: the next update notes its file again.
    return found


def remove_from(
    file: Path, lock: Path, ids: Collection[str], names: Sequence[bytes], texts: Collection[Trace]
) -> bool:
    """Remove the lines of our section in *file* that name erased records or have their texts.

    Return whether the file was changed. Every other byte stays as it is.
    """
    if not file.is_file() or not lock.parent.is_dir():
        return False
    labels = [f"- [{ident}]".encode("utf-8", "surrogatepass") for ident in ids]
    labels += [f"- [{ident.replace(':', ': ', 1)}]".encode() for ident in ids if ":" in ident]
    with hold(lock):
        remove_temporaries(file)
        try:
            raw = read_small(file, FILE_BYTES_MAX)
            text = raw.decode("utf-8", "surrogateescape")
            section = marked_section.find(text, MARKS)
        except OSError as error:
            raise unusable(file, error) from error
        except marked_section.NotEditable:
            return False  # The search reports the file if it has a text.
        if section is None:
            return False
        lines = text[section.start : section.end].splitlines(keepends=True)
        kept = [
            line
            for line in lines
            if not _is_about(line.encode("utf-8", "surrogateescape"), labels, names, texts)
        ]
        if kept == lines:
            return False
        after = text[: section.start] + "".join(kept) + text[section.end :]
        atomic.replace(file, [after.encode("utf-8", "surrogateescape")])
    return True


def _is_about(
    line: bytes, labels: Sequence[bytes], names: Sequence[bytes], texts: Collection[Trace]
) -> bool:
    return (
        line.startswith(tuple(labels))
        or any(name in line for name in names)
        or any(True for _ in find(line, texts))
    )
