"""Copilot CLI. Its events have two forms, and it also calls Claude Code's hooks.

Hooks for camelCase names get payloads of its own form, without the event's name; hooks for
PascalCase names get payloads of Claude Code's form.
"""

from __future__ import annotations

from commonplace.agents.agent import Agent, event_name_field
from commonplace.agents.parts import (
    END_S,
    START_S,
    HookCall,
    HookEntries,
    HookEvent,
    Instructions,
    Part,
    Scope,
    ServerEntry,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from commonplace.agents.parts import JsonObject

# Fields that only one event has, for payloads that do not name theirs. The order matters:
# `agentStop` and `subagentStop` both have `stopReason`, `sessionStart` may have a `prompt`.
_EVENT_OF_FIELD = (
    ("toolResult", "postToolUse"),
    ("customInstructions", "preCompact"),
    ("trigger", "preCompact"),
    ("agentName", "subagentStop"),
    ("stopReason", "agentStop"),
    ("reason", "sessionEnd"),
    ("source", "sessionStart"),
    ("prompt", "userPromptSubmitted"),
)


def _event_name(payload: Mapping[str, Any]) -> str:
    name = event_name_field(payload)
    if name or "sessionId" not in payload:
        return name
    for field, event in _EVENT_OF_FIELD:
        # `subagentStart` has an `agentName` too, but no reason to stop.
        if field in payload and not (field == "agentName" and "stopReason" not in payload):
            return event
    return "postToolUseFailure" if "error" in payload and "toolName" in payload else ""


def _start_reply(_event_name: str, text: str) -> JsonObject:
    return {"additionalContext": text}


def _handler(call: HookCall) -> JsonObject:
    return {
        "type": "command",
        "bash": call.line,
        "powershell": call.powershell_line,
        "timeoutSec": call.timeout_s,
    }


def _server(command: str, arguments: list[str]) -> JsonObject:
    return {"type": "local", "command": command, "args": arguments, "tools": ["*"]}


HOOKS = HookEntries(
    # PascalCase, for payloads with the event's name. `PreToolUse` must not be among them: the agent
    # refuses the tool if that hook fails.
    events=(
        HookEvent("SessionStart", START_S),
        HookEvent("UserPromptSubmit"),
        HookEvent("PostToolUse"),
        HookEvent("PostToolUseFailure"),
        HookEvent("Stop"),
        HookEvent("SubagentStop"),
        HookEvent("PreCompact"),
        HookEvent("SessionEnd", END_S),
    ),
    handler=_handler,
    grouped=False,
    version=1,
)


def _folder(scope: Scope) -> Path:
    return scope.folder(".copilot", "COPILOT_HOME")


def _parts(scope: Scope) -> list[Part]:
    folder = _folder(scope) if scope.of_user else scope.root / ".github"
    servers = folder / ("mcp-config.json" if scope.of_user else "mcp.json")
    instructions = scope.root / "AGENTS.md"
    if scope.of_user:
        instructions = folder / "copilot-instructions.md"
    return [
        Part("hooks", folder / "hooks" / "commonplace.json", HOOKS),
        Part("MCP server", servers, ServerEntry("mcpServers", _server)),
        Part("instructions", instructions, Instructions()),
    ]


AGENT = Agent(
    name="copilot",
    aliases=("copilot-cli",),
    order=50,
    events={
        "sessionStart": "start",
        "userPromptSubmitted": "prompt",
        "postToolUse": "tool",
        "postToolUseFailure": "failure",
        "preCompact": "compact",
        "agentStop": "stop",
        "subagentStop": "subagent_stop",
        "sessionEnd": "end",
        # The PascalCase names that differ in more than their case.
        "UserPromptSubmit": "prompt",
        "Stop": "stop",
    },
    event_name=_event_name,
    failure_report="exit_code",
    start_reply=_start_reply,
    prompt_reply=None,  # The output of a hook for prompts is dropped.
    completion_report=None,
    host_variables=("COPILOT_CLI", "COPILOT_AGENT_SESSION_ID"),
    own_replies_always=True,
    commands=("copilot",),
    folder=_folder,
    project_signs=(".github/hooks", ".github/copilot-instructions.md"),
    parts=_parts,
    project_condition=(
        "Copilot CLI uses the hooks and the server of a project only in a folder that you trust: "
        "start `copilot` here once and trust it, or give `--trust-folder` with a prompt"
    ),
)
