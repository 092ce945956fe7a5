"""Gemini CLI. It has event names of its own, in Claude Code's form."""

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

# Tools that change something or may fail; reading a file is not worth starting a process.
TOOLS = "run_shell_command|write_file|replace"
SERVER_TIMEOUT_MS = 30_000


def _handler(call: HookCall) -> JsonObject:
    return {
        "name": "commonplace",
        "type": "command",
        # On Windows it starts hooks with PowerShell.
        "command": call.powershell_line,
        "timeout": call.timeout_s * 1000,  # In milliseconds.
    }


def _server(command: str, arguments: list[str]) -> JsonObject:
    return {"command": command, "args": arguments, "timeout": SERVER_TIMEOUT_MS}


def _block(text: str) -> JsonObject:
    return {"decision": "deny", "reason": text}


HOOKS = HookEntries(
    # Not `PreCompress`: it is sent before every request to the model, whether the context is
    # compressed or not, and Gemini waits for it.
    events=(
        HookEvent("SessionStart", START_S),
        HookEvent("BeforeAgent"),
        HookEvent("AfterTool", matcher=TOOLS),
        HookEvent("AfterAgent"),
        HookEvent("SessionEnd", END_S),  # Gemini does not wait for it.
    ),
    handler=_handler,
)


def _folder(scope: Scope) -> Path:
    # The variable names the folder that stands in for the home directory.
    return scope.folder("", "GEMINI_CLI_HOME") / ".gemini"


def _parts(scope: Scope) -> list[Part]:
    folder = _folder(scope)
    settings = folder / "settings.json"
    instructions = (folder if scope.of_user else scope.root) / "GEMINI.md"
    return [
        Part("hooks", settings, HOOKS),
        Part("MCP server", settings, ServerEntry("mcpServers", _server)),
        Part("instructions", instructions, Instructions()),
    ]


AGENT = Agent(
    name="gemini",
    aliases=("gemini-cli",),
    order=30,
    events={
        "SessionStart": "start",
        "BeforeAgent": "prompt",
        "AfterTool": "tool",
        # As a `compact`, every request to the model would write the whole episode anew.
        "PreCompress": "stop",
        "AfterAgent": "stop",
        "SessionEnd": "end",
    },
    # `Exit Code: 1` is a line of the tool's text.
    failure_report="exit_code",
    completion_block=_block,
    commands=("gemini",),
    folder=_folder,
    project_signs=(".gemini", "GEMINI.md"),
    parts=_parts,
    # `--skip-trust` comes too late for the settings: the session runs without them.
    project_condition=(
        "Gemini CLI reads the settings of a project only in a folder that you trust: start "
        "`gemini` here once and trust it, or set GEMINI_CLI_TRUST_WORKSPACE=true "
        "(`--skip-trust` is not enough)"
    ),
)
