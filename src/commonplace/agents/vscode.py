"""VS Code. It has MCP servers but no hooks, so nothing is captured there."""

from __future__ import annotations

import os
import sys

from commonplace.agents.agent import Agent
from commonplace.agents.parts import Instructions, Part, Scope, ServerEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.agents.parts import JsonObject


def _server(command: str, arguments: list[str]) -> JsonObject:
    return {"type": "stdio", "command": command, "args": arguments}  # `type` is mandatory here.


def _folder(scope: Scope) -> Path:
    if not scope.of_user:
        return scope.root / ".vscode"
    if os.name == "nt":
        return scope.folder("AppData/Roaming", "APPDATA") / "Code" / "User"
    if sys.platform == "darwin":
        return scope.root / "Library" / "Application Support" / "Code" / "User"
    return scope.folder(".config", "XDG_CONFIG_HOME") / "Code" / "User"


def _parts(scope: Scope) -> list[Part]:
    parts = [Part("MCP server", _folder(scope) / "mcp.json", ServerEntry("servers", _server))]
    if not scope.of_user:  # There is no file with instructions for all of a user's projects.
        parts.append(Part("instructions", scope.root / "AGENTS.md", Instructions()))
    return parts


AGENT = Agent(
    name="vscode",
    order=70,
    start_reply=None,
    prompt_reply=None,
    completion_report=None,
    commands=("code",),
    folder=_folder,
    project_signs=(".vscode",),
    parts=_parts,
)
