"""The formats: one module each, found by name.

A module has `SUFFIXES`, `recognises(path, head)` and `read(source)`. Those with a layout of their own to export to
also have `MARK` (the folder by which the layout is known) and `KINDS_HELD`, with `write`, or hold texts alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.exchange.formats import (
    agent_knowledge,
    basic_memory,
    beads,
    claude_memory,
    harness,
    jsonl,
    loki,
    mcp_memory,
    mulch,
    serena,
    solutions,
)

if TYPE_CHECKING:
    from types import ModuleType

# In the order in which they are asked: the surer sign goes first.
FORMATS: dict[str, ModuleType] = {
    "loki": loki,
    "harness": harness,
    "beads": beads,
    "mulch": mulch,
    "agent-knowledge": agent_knowledge,
    "mcp-memory": mcp_memory,
    "jsonl": jsonl,
    "serena": serena,
    "claude-memory": claude_memory,
    "basic-memory": basic_memory,
    "solutions": solutions,
}
LAYOUTS: dict[str, ModuleType] = {
    name: FORMATS[name] for name in ("agent-knowledge", "loki", "beads", "harness")
}
