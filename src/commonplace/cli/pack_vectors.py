"""Make the vectors of a pack that was just installed: then it is found by meaning at once."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from commonplace.cli.output import note
from commonplace.cli.progress import progress
from commonplace.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from commonplace.memory import Memory

# More are left to the process that the next question starts.
_RECORDS_MAX = 2000
_SECONDS_MAX = 60.0


def make_vectors(memory: Memory, records: int, *, quiet: bool) -> None:
    """Make the vectors of a pack with so many *records*, unless that would take long."""
    if not records:
        return
    engine = memory.engine()
    if not engine.embedder_state().is_available:
        return
    if records > _RECORDS_MAX:
        if not quiet:
            note("`commonplace index embed` makes its vectors; until then it is found by words")
        return
    end = time.monotonic() + _SECONDS_MAX
    with (
        suppress(EmbedderUnavailable),
        progress("vectors", records, quiet=quiet) as advance,
    ):
        engine.vectors.embed_alone(lambda: time.monotonic() > end, advance)
