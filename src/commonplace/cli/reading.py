"""Read the file that a command is given, or stdin, up to a limit."""

from __future__ import annotations

import codecs
import sys
from pathlib import Path

from commonplace.errors import UsageError

FILE_BYTES_MAX = 64 << 20


def read_file(name: str) -> bytes:
    """Return the content of the file *name*; `-` is stdin."""
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(FILE_BYTES_MAX + 1)
        else:
            with Path(name).open("rb") as stream:
                raw = stream.read(FILE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"`{name}` cannot be read: {reason}", "give a file, or - for stdin"
        ) from None
    if len(raw) > FILE_BYTES_MAX:
        raise UsageError(f"`{name}` is longer than {FILE_BYTES_MAX:,} bytes")
    return raw.removeprefix(codecs.BOM_UTF8)  # Windows programs write one.
