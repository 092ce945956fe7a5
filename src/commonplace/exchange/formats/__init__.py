"""The formats that can be imported or exported, one module each, by name.

A module has `SUFFIXES`, `recognises(path, head)` and `read(source)`. A module for export also has
`MARK` (the folder by which the layout is recognised) and `KINDS_HELD` (the kinds of records it can
hold). It has `write`, too, unless it holds only notes.
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

# The order in which `recognises` is called: the more specific format comes first.
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
