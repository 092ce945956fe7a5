"""Failures that get solved: a command fails, and later another with the same intent succeeds.

The same command may succeed, too, after something was installed. The result is a candidate, which
becomes a lesson only if a person or an agent accepts it.
"""

from __future__ import annotations

import re

from commonplace.inbox import SolvedFailure
from commonplace.sessions.intents import intents, is_install, is_test

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.sessions.events import Event
    from commonplace.sessions.state import State

OPEN_MAX = 20
TRIED_MAX = 6
INSTALLS_MAX = 3
COMMAND_CHARS_MAX = 500
ERROR_CHARS_MAX = 400
ERROR_LINES_MAX = 3
# Lines that say what is wrong, rather than that something is.
_SPECIFIC_LINE = (
    r"(?i)\b(error|fatal|panic|exception|denied|refused|not found|no such|cannot|can't|unable|"
    r"failed|invalid|missing|unexpected|undefined|conflict|timed? ?out|E[A-Z]{4,}|[A-Z]+\d{3,})\b"
)
_NOISE_LINE = (
    r"(?i)^\s*(exit code|process exited|at |File \"|\^+|~+|warning\b|npm warn|=+$|-+$|"
    r"(command|directory|signal|background pids|process group pgid): |error: \(none\))"
)
# What Gemini writes before a command's output.
_OUTPUT_LABEL = r"^(?:Output|Stdout|Stderr): "


def track(state: State, event: Event) -> SolvedFailure | None:
    """Record the outcome of a tool call; return the failure that it solves, if any."""
    if event.edits:
        for failure in state.fields.get("open", []):
            failure["edits"] = list(dict.fromkeys([*failure["edits"], *event.files]))[:TRIED_MAX]
    found = intents(event.run_command)
    if not found or event.interrupted:
        return None
    command = " ".join(event.run_command.split())[:COMMAND_CHARS_MAX]
    if event.failed:
        # The last intent is the goal; the commands before it prepare for it.
        _add_failure(state, found[-1], command, event)
        return None
    solved = _solve(state, found, command, event)
    if any(is_install(intent) for intent in found):
        for failure in state.fields.get("open", []):
            installs = [*failure.get("installs", []), command]
            failure["installs"] = list(dict.fromkeys(installs))[-INSTALLS_MAX:]
    return solved


def error_lines(text: str) -> str:
    """Return the few lines of *text* that say what is wrong."""
    stripped = (re.sub(_OUTPUT_LABEL, "", line).strip() for line in text.splitlines())
    lines = [line for line in stripped if line and not re.match(_NOISE_LINE, line)]
    specific = [line for line in lines if re.search(_SPECIFIC_LINE, line)]
    chosen = specific or lines[-ERROR_LINES_MAX:]
    return "\n".join(dict.fromkeys(chosen[:ERROR_LINES_MAX]))[:ERROR_CHARS_MAX]


def _add_failure(state: State, intent: str, command: str, event: Event) -> None:
    failures = state.fields.setdefault("open", [])
    for failure in failures:
        if failure["intent"] == intent:
            failure["attempts"] += 1
            failure["tried"] = list(dict.fromkeys([*failure["tried"], command]))[-TRIED_MAX:]
            failure["edits"] = []
            failure["installs"] = []  # They did not help.
            return
    failures.append(
        {
            "intent": intent,
            "tried": [command],
            "error": error_lines(event.error),
            "attempts": 1,
            "edits": [],
            "installs": [],
        }
    )
    del failures[:-OPEN_MAX]


def _solve(state: State, found: Sequence[str], command: str, event: Event) -> SolvedFailure | None:
    failures = state.fields.get("open", [])
    for failure in failures:
        if failure["intent"] not in found:
            continue
        failures.remove(failure)
        # If the same command now works, something else has changed: what was installed since, or
        # nothing that we know of. Tests that pass after an edit are everyday work.
        installs = failure.get("installs", [])
        is_same = command in failure["tried"]
        if (is_same and not installs) or (failure["edits"] and is_test(failure["intent"])):
            return None
        worked = " && ".join([*installs, command]) if is_same else command
        return SolvedFailure(
            intent=failure["intent"],
            error=failure["error"],
            tried=failure["tried"],
            worked=worked[:COMMAND_CHARS_MAX],
            attempts=failure["attempts"] + 1,
            edits=failure["edits"],
            at=event.at,
            agent=event.name,
            repo=event.repo,
            session=event.session,
        )
    return None
