"""Failures that get solved: a command fails, and later another command with the same intent succeeds.

Seed 000: log "after any error that required more than one attempt". What comes of it is a candidate, for a person or an
agent to accept; it is never a lesson by itself.
"""

from __future__ import annotations

import re
from typing import Any

from commonplace.sessions.intents import intents, is_test

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.sessions.events import Event
    from commonplace.sessions.state import State

OPEN_MAX = 20
TRIED_MAX = 6
COMMAND_CHARS_MAX = 500
ERROR_CHARS_MAX = 400
ERROR_LINES_MAX = 3
# Lines that say what is wrong, rather than that something is.
_TELLING = (
    r"(?i)\b(error|fatal|panic|exception|denied|refused|not found|no such|cannot|can't|unable|failed|invalid|missing|"
    r"unexpected|undefined|conflict|timed? ?out|E[A-Z]{4,}|[A-Z]+\d{3,})\b"
)
_NOISE = (
    r"(?i)^\s*(exit code|process exited|at |File \"|\^+|~+|warning\b|npm warn|=+$|-+$|"
    r"(command|directory|signal|background pids|process group pgid): |error: \(none\))"
)
# What Gemini writes before a command's output.
_LABELLED = r"^(?:Output|Stdout|Stderr): "


def follow(state: State, event: Event) -> dict[str, Any] | None:
    """Take note of a command's outcome; a candidate when it solves what failed before."""
    wanted = intents(event.command)
    if event.edits:
        for failure in _open(state):
            failure["edits"] = list(dict.fromkeys([*failure["edits"], *event.files]))[:TRIED_MAX]
    if not wanted or event.interrupted:
        return None
    command = " ".join(event.command.split())[:COMMAND_CHARS_MAX]
    if event.failed:
        _fail(state, wanted, command, event)
        return None
    return _solve(state, wanted, command, event)


def error_lines(text: str) -> str:
    """The few lines of *text* that say what is wrong."""
    given = (re.sub(_LABELLED, "", line).strip() for line in text.splitlines())
    lines = [line for line in given if line and not re.match(_NOISE, line)]
    telling = [line for line in lines if re.search(_TELLING, line)] or lines[-ERROR_LINES_MAX:]
    return "\n".join(dict.fromkeys(telling[:ERROR_LINES_MAX]))[:ERROR_CHARS_MAX]


def _open(state: State) -> list[dict[str, Any]]:
    value = state.fields.get("open")
    if not isinstance(value, list):
        value = state.fields["open"] = []
    return value


def _fail(state: State, wanted: Sequence[str], command: str, event: Event) -> None:
    intent = wanted[-1]  # What stands last is what the others prepared.
    for failure in _open(state):
        if failure["intent"] == intent:
            failure["attempts"] += 1
            failure["tried"] = list(dict.fromkeys([*failure["tried"], command]))[-TRIED_MAX:]
            failure["edits"] = []
            return
    _open(state).append(
        {
            "intent": intent,
            "tried": [command],
            "error": error_lines(event.error),
            "attempts": 1,
            "edits": [],
        }
    )
    del _open(state)[:-OPEN_MAX]


def _solve(
    state: State, wanted: Sequence[str], command: str, event: Event
) -> dict[str, Any] | None:
    for failure in _open(state):
        if failure["intent"] not in wanted:
            continue
        _open(state).remove(failure)
        # The same command again: what changed lies elsewhere. Tests that pass after an edit are a day's work.
        if command in failure["tried"] or (failure["edits"] and is_test(failure["intent"])):
            return None
        return {
            "intent": failure["intent"],
            "error": failure["error"],
            "tried": failure["tried"],
            "worked": command,
            "attempts": failure["attempts"] + 1,
            "edits": failure["edits"],
            "at": event.at,
            "agent": event.name,
            "repo": event.repo,
            "session": event.session,
        }
    return None
