"""The format of the server's log: what failed and where, never a text of the user.

The message of an exception may quote what an agent sent or what a memory says, and the log is no
place for either. So an exception is logged as its type and the lines of code it came through.
"""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
FRAMES_MAX = 20


class Formatter(logging.Formatter):
    """Formats an exception without its message."""

    def formatException(  # noqa: N802 (the name that `logging` calls)
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None] | Any,  # noqa: ANN401
    ) -> str:
        lines = list[str]()
        error: BaseException | None = ei[1]
        seen = set[int]()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            lines.append(f"  {type(error).__name__}")
            frames = traceback.extract_tb(error.__traceback__)[-FRAMES_MAX:]
            lines += [f"    {Path(one.filename).name}:{one.lineno} {one.name}" for one in frames]
            error = error.__cause__ or error.__context__
        return "\n".join(lines)


def apply() -> None:
    """Log warnings and errors to stderr. Replaces the handlers of the SDK, which are verbose."""
    handler = logging.StreamHandler()
    handler.setFormatter(Formatter(FORMAT))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
