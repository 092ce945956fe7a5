"""The preamble of an agent's prompt: its identity, its CONTEXT.md, the time and the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.foreign import one_line, quote, render

if TYPE_CHECKING:
    from datetime import datetime


# The logs are long: reading them would cost the context that recalling saves.
RECALL = (
    "Memory: ask it with the tool `recall` or `commonplace recall`. Never read its logs (`*.jsonl`)"
    " yourself."
)


def preamble(identity: str, context: str, now: datetime, workspace: str) -> str:
    """Return the preamble; empty blocks are left out."""
    blocks = [
        render(identity).strip(),
        f"## Persistent memory (CONTEXT.md)\n\n{quote(context.strip())}" if context.strip() else "",
        f"Current date and time: {now:%Y-%m-%d %H:%M:%S} {now.tzname() or 'UTC'} (UTC{now:%z})",
        f"Workspace: {one_line(workspace)}",
        RECALL,
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"
