"""Cursor. Its events and replies have forms of their own; it also calls Claude Code's hooks."""

from __future__ import annotations

from commonplace.agents.agent import Agent
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
    from pathlib import Path

    from commonplace.agents.parts import JsonObject


def _start_reply(_event_name: str, text: str) -> JsonObject:
    return {"additional_context": text}


def _block(text: str) -> JsonObject:
    # It cannot be kept from stopping; this message starts its next turn.
    return {"followup_message": text}


def _handler(call: HookCall) -> JsonObject:
    return {"command": call.line, "timeout": call.timeout_s}


HOOKS = HookEntries(
    events=(
        HookEvent("sessionStart", START_S),
        HookEvent("beforeSubmitPrompt"),
        HookEvent("postToolUse"),
        HookEvent("postToolUseFailure"),
        HookEvent("stop"),
        HookEvent("subagentStop"),
        HookEvent("preCompact"),
        HookEvent("sessionEnd", END_S),
    ),
    handler=_handler,
    grouped=False,
    version=1,
)


def _folder(scope: Scope) -> Path:
    return scope.folder(".cursor")


def _parts(scope: Scope) -> list[Part]:
    folder = _folder(scope)
    parts = [
        Part("hooks", folder / "hooks.json", HOOKS),
        Part("MCP server", folder / "mcp.json", ServerEntry("mcpServers")),
    ]
    if not scope.of_user:  # The user's own rules are kept in the application, not in a file.
        parts.append(Part("instructions", scope.root / "AGENTS.md", Instructions()))
    return parts


AGENT = Agent(
    name="cursor",
    order=40,
    events={
        "sessionStart": "start",
        "beforeSubmitPrompt": "prompt",
        "postToolUse": "tool",
        "afterShellExecution": "tool",
        "afterMCPExecution": "tool",
        "afterFileEdit": "tool",
        "postToolUseFailure": "failure",
        "preCompact": "compact",
        "stop": "stop",
        "subagentStop": "subagent_stop",
        "sessionEnd": "end",
    },
    # `afterFileEdit` names no tool; the event's name stands for it.
    tools={"afterfileedit": "edit"},
    # `afterShellExecution` has no exit code.
    failure_report="output",
    start_reply=_start_reply,
    prompt_reply=None,  # A prompt can be stopped, but not be given context.
    completion_report=None,
    completion_block=_block,
    # Set for Cursor's hooks only. Other agents' variables may come from a shell it was started in.
    host_variables=("CURSOR_VERSION",),
    host_priority=2,
    commands=("cursor", "cursor-agent"),
    folder=_folder,
    project_signs=(".cursor",),
    parts=_parts,
)
