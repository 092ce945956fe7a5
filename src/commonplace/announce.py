"""Say once that a repository brought a home: who wrote it, and how many records it has."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from commonplace.errors import CommonplaceError
from commonplace.files.plain import touch
from commonplace.foreign import one_line

if TYPE_CHECKING:
    from commonplace.memory import Memory

RECORDS_MAX = 2_000
WRITERS_SHOWN_MAX = 3
NAME_CHARS_MAX = 40


def announcement(memory: Memory, surface: str) -> str:
    """Return a sentence about the nearest home, if *surface* has not shown it yet; else ""."""
    home = memory.home
    mark = home.announcement_mark(surface)
    is_empty = not home.log_folder.is_dir() and not home.settings_file.exists()
    if memory.trusts(home) or is_empty or mark.exists():
        return ""
    with suppress(CommonplaceError, OSError):
        text = f"this repository brought its own memory: {describe(memory)}. "
        touch(mark)
        return (
            f"{text}Its records are marked in recall, hooks do not show them, and its settings are "
            "not used. "
            "If you trust who wrote it, run `commonplace trust`"
        )
    return ""


def describe(memory: Memory) -> str:
    """Return how many records the nearest home has, and which agents wrote most of them."""
    writers: Counter[str] = Counter()
    for record in islice(memory.records(superseded=True), RECORDS_MAX):
        writers[_name(record.agent_id)] += 1
    count = writers.total()
    if not count:
        return "no records"
    number = f"over {RECORDS_MAX:,}" if count == RECORDS_MAX else f"{count:,}"
    names = [name for name, _count in writers.most_common(WRITERS_SHOWN_MAX)]
    others = f" and {len(writers) - len(names)} others" if len(writers) > len(names) else ""
    return f"{number} record{'s' if count > 1 else ''}, written by {', '.join(names)}{others}"


def _name(agent: str | None) -> str:
    text = one_line(agent or "")[:NAME_CHARS_MAX].replace("`", "'").strip()
    return f"`{text}`" if text else "an unnamed agent"
