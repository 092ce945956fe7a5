"""OpenCode. It runs only plugins in JavaScript: `opencode.js` sends our hook its events.

The plugin translates them into Claude Code's form.
"""

from __future__ import annotations

import json
from pathlib import Path

from commonplace.agents.agent import Agent
from commonplace.agents.parts import Instructions, OwnFile, Part, Scope, ServerEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from commonplace.agents.parts import JsonObject


def plugin_source(program: str) -> str:
    """Return the plugin that starts the hook *program*."""
    source = (Path(__file__).parent / "opencode.js").read_text("utf-8")
    return source.replace('"commonplace-hook"', json.dumps(program, ensure_ascii=False), 1)


def _server(command: str, arguments: list[str]) -> JsonObject:
    return {"type": "local", "command": [command, *arguments], "enabled": True}


def _folder(scope: Scope) -> Path:
    return scope.folder(".config", "XDG_CONFIG_HOME") / "opencode"


def _parts(scope: Scope) -> list[Part]:
    folder = _folder(scope) if scope.of_user else scope.root
    plugins = (folder if scope.of_user else scope.root / ".opencode") / "plugins"
    with_comments = folder / "opencode.jsonc"
    settings = with_comments if with_comments.exists() else folder / "opencode.json"
    return [
        Part("hooks", plugins / "commonplace.js", OwnFile(plugin_source)),
        Part("MCP server", settings, ServerEntry("mcp", _server)),
        Part("instructions", folder / "AGENTS.md", Instructions()),
    ]


AGENT = Agent(
    name="opencode",
    order=60,
    events={
        # What our plugin sends.
        "SessionStart": "start",
        "UserPromptSubmit": "prompt",
        "PostToolUse": "tool",
        "PostToolUseFailure": "failure",
        "PreCompact": "compact",
        "Stop": "stop",
        "SessionEnd": "end",
        # OpenCode's own names, for other plugins that call the hook.
        "session.created": "start",
        "session.compacted": "start",
        "chat.message": "prompt",
        "tool.execute.after": "tool",
        "session.compacting": "compact",
        "experimental.session.compacting": "compact",
        "session.idle": "stop",
        "session.deleted": "end",
        "dispose": "end",
    },
    event_sources={"session.compacted": "compact"},
    failure_report="event",
    completion_report=None,
    commands=("opencode",),
    folder=_folder,
    project_signs=(".opencode", "opencode.json", "opencode.jsonc"),
    parts=_parts,
)
