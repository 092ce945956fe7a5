"""Claude Code. Its hooks are the model that most other agents have followed."""

from __future__ import annotations

from commonplace.agents.agent import EVENTS, Agent
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
TOOLS = "Bash|PowerShell|Edit|MultiEdit|Write|NotebookEdit|Task|Agent"


def _handler(call: HookCall) -> JsonObject:
    # With `args` no shell is involved, so that no path needs quotes.
    return {
        "type": "command",
        "command": call.program,
        "args": call.arguments,
        "timeout": call.timeout_s,
        **({} if call.waits else {"async": True}),
    }


def _server(command: str, arguments: list[str]) -> JsonObject:
    return {"type": "stdio", "command": command, "args": arguments}


def _folder(scope: Scope) -> Path:
    return scope.folder(".claude", "CLAUDE_CONFIG_DIR")


HOOKS = HookEntries(
    events=(
        HookEvent("SessionStart", START_S),
        HookEvent("UserPromptSubmit"),
        HookEvent("PostToolUse", matcher=TOOLS, waits=False),
        HookEvent("PostToolUseFailure", matcher=TOOLS, waits=False),
        HookEvent("Stop"),
        HookEvent("SubagentStop"),
        HookEvent("PreCompact"),
        # All hooks of this event together get 1.5 s, unless a settings file states more.
        HookEvent("SessionEnd", END_S),
    ),
    handler=_handler,
)


def _parts(scope: Scope) -> list[Part]:
    folder = _folder(scope)
    servers, instructions = scope.root / ".mcp.json", scope.root / "CLAUDE.md"
    if scope.of_user:
        # `.claude.json` stands beside the folder; where a variable names the folder, inside it.
        moved = bool(scope.environment.get("CLAUDE_CONFIG_DIR"))
        servers = (folder if moved else scope.root) / ".claude.json"
        instructions = folder / "CLAUDE.md"
    return [
        Part("hooks", folder / "settings.json", HOOKS),
        Part("MCP server", servers, ServerEntry("mcpServers", _server)),
        Part("instructions", instructions, Instructions()),
    ]


AGENT = Agent(
    name="claude-code",
    aliases=("claude",),
    order=10,
    events=EVENTS,
    failure_report="event",
    host_variables=("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"),
    # Above Copilot, which may have been started by Claude Code or the other way round: a hook in
    # Claude Code's settings is more often its own.
    host_priority=1,
    # Cursor and Copilot call the hooks they find in Claude Code's settings.
    settings_read_by_others=True,
    commands=("claude",),
    folder=_folder,
    project_signs=(".claude", "CLAUDE.md", ".mcp.json"),
    parts=_parts,
    project_condition=(
        "Claude Code uses the hooks and the server of a project only after you have trusted its "
        "folder: start `claude` here once and accept both"
    ),
)
