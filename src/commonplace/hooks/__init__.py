"""`commonplace-hook`: a guest in somebody's agent. It reads one event on stdin, says nothing, and always exits 0.

Standard library only. What it takes from an event so far: `LEARNED: …` in a comment command (seed 003).
"""

from __future__ import annotations

import json
import sys

EVENT_BYTES_MAX = 20 << 20


def main() -> int:
    """Take what the event on stdin has to offer. Nothing that goes wrong here may disturb the agent."""
    try:
        event = json.loads(sys.stdin.buffer.read(EVENT_BYTES_MAX) or b"{}")
        if isinstance(event, dict):
            _capture(event, sys.argv[1] if len(sys.argv) > 1 else "default")
    except Exception:  # noqa: BLE001, S110 (the outer edge of a surface: an agent must never see a traceback of ours)
        pass
    return 0


def _capture(event: dict[str, object], agent: str) -> None:
    given = event.get("tool_input")
    command = given.get("command") if isinstance(given, dict) else None
    if not isinstance(command, str) or "LEARNED:" not in command:
        return
    from commonplace.capture.spoken import lessons_in  # noqa: PLC0415 (most events stop above)
    from commonplace.memory import Memory  # noqa: PLC0415

    lessons = lessons_in(command)
    if lessons:
        with Memory.open(cwd=str(event.get("cwd") or "."), agent_id=agent) as memory:
            memory.append({"event_type": "learned", "lesson": lesson, "tags": ["learned"]} for lesson in lessons)
