"""Codex CLI. Its hooks have Claude Code's form, with fewer events and closed reply schemas."""

from __future__ import annotations

from commonplace.agents.agent import Agent
from commonplace.agents.parts import (
    START_S,
    HookCall,
    HookEntries,
    HookEvent,
    Instructions,
    Part,
    Scope,
    TomlServerEntry,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.agents.parts import JsonObject


def _handler(call: HookCall) -> JsonObject:
    # The user trusts a hook by a hash of its line, and is asked again when the line changes.
    handler: JsonObject = {"type": "command", "command": call.line, "timeout": call.timeout_s}
    return handler if call.waits else {**handler, "async": True}


HOOKS = HookEntries(
    events=(
        HookEvent("SessionStart", START_S),
        HookEvent("UserPromptSubmit"),
        HookEvent("PostToolUse", waits=False),
        HookEvent("Stop"),
        HookEvent("SubagentStop"),
        HookEvent("PreCompact"),
        HookEvent("SessionEnd", 1),  # Codex's default; it allows three seconds at most.
    ),
    handler=_handler,
)


def _folder(scope: Scope) -> Path:
    return scope.folder(".codex", "CODEX_HOME")


def _parts(scope: Scope) -> list[Part]:
    folder = _folder(scope)
    instructions = (folder if scope.of_user else scope.root) / "AGENTS.md"
    return [
        Part("hooks", folder / "hooks.json", HOOKS),
        Part("MCP server", folder / "config.toml", TomlServerEntry("mcp_servers")),
        Part("instructions", instructions, Instructions()),
    ]


AGENT = Agent(
    name="codex",
    aliases=("codex-cli",),
    order=20,
    events={
        "SessionStart": "start",
        "UserPromptSubmit": "prompt",
        "PostToolUse": "tool",
        "PreCompact": "compact",
        "Stop": "stop",
        "SubagentStop": "subagent_stop",
        "SessionEnd": "end",
    },
    # There is no event for failures, and the response of a shell tool is often its bare output.
    failure_report="output",
    commands=("codex",),
    folder=_folder,
    project_signs=(".codex",),
    parts=_parts,
    user_condition=(
        "Codex runs a hook only after you have trusted it: start `codex` once and answer its "
        "question about hooks"
    ),
    project_condition=(
        "Codex reads the files of a project only after you have trusted its folder, and runs a "
        "hook only after you have trusted that too: start `codex` here and answer both questions"
    ),
)
