"""What an agent accepts as an answer to its event: text becomes context, in the one form that agent reads."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from commonplace.sessions.events import Event


def printed(event: Event, text: str) -> str:
    """What to print so that the agent reads *text*; nothing where it would not, or where there is no text."""
    if not text or event.kind not in ("start", "prompt"):
        return ""
    # An agent that reads another's settings still reads answers its own way.
    dialect = "copilot" if event.host == "copilot" else event.agent
    form = _FORMS.get(dialect)
    return form(event, text) if form is not None else ""


def _specific(event: Event, text: str) -> str:
    # Two keys and no more: Codex refuses what it does not know.
    return _json({"hookSpecificOutput": {"hookEventName": event.called, "additionalContext": text}})


def _cursor(event: Event, text: str) -> str:
    return _json({"additional_context": text}) if event.kind == "start" else ""


def _copilot(event: Event, text: str) -> str:
    return _json({"additionalContext": text}) if event.kind == "start" else ""


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


_FORMS: dict[str, Callable[[Event, str], str]] = {
    "claude-code": _specific,
    "codex": _specific,
    "gemini": _specific,
    "opencode": _specific,
    "cursor": _cursor,
    "copilot": _copilot,
}
