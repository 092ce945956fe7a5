"""How each agent is pointed at the scripted model and run without a terminal."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from tools.e2e.dialects import Call
from tools.e2e.model import MODEL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


class Driver(NamedTuple):
    """One agent. `{url}` stands for the model's address."""

    agent: str  # As `commonplace setup` names it.
    package: str
    program: str
    first: tuple[str, ...]  # The command line for a prompt in a new session, which follows it.
    variables: Mapping[str, str]  # Also its own switches against telemetry and updates.
    shell: Callable[[str, list[str]], Call]
    # Files of the agent's own settings in HOME, before `commonplace setup`.
    files: Mapping[str, str] = MappingProxyType({})
    # The same session once more, for a compaction; the prompt follows.
    resume: tuple[str, ...] = ()
    compact_prompt: str = ""  # A command that compacts. Without one, the usage is reported as FULL.
    reports_compaction: bool = True  # Whether `commonplace setup` registers a hook for it.


def _bash(command: str, _tools: list[str]) -> Call:
    return Call("Bash", {"command": command, "description": "Build"})


def _lower_bash(command: str, _tools: list[str]) -> Call:
    return Call("bash", {"command": command, "description": "Build"})


def _gemini_shell(command: str, _tools: list[str]) -> Call:
    return Call("run_shell_command", {"command": command, "description": "Build"})


def _codex_shell(command: str, tools: list[str]) -> Call:
    if "exec_command" in tools:
        return Call("exec_command", {"cmd": command})
    if "shell_command" in tools:
        return Call("shell_command", {"command": command})
    return Call("shell", {"command": ["bash", "-lc", command]})


CLAUDE_CODE = Driver(
    agent="claude-code",
    package="@anthropic-ai/claude-code",
    program="claude",
    first=("--allowedTools", "Bash", "-p"),
    resume=("--allowedTools", "Bash", "--continue", "-p"),
    compact_prompt="/compact",
    variables={
        "ANTHROPIC_BASE_URL": "{url}",
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
    },
    shell=_bash,
)
CODEX = Driver(
    agent="codex",
    package="@openai/codex",
    program="codex",
    first=("exec", "--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox"),
    resume=(
        "exec",
        "--dangerously-bypass-hook-trust",
        "--dangerously-bypass-approvals-and-sandbox",
        "resume",
        "--last",
    ),
    variables={"CODEX_API_KEY": "none"},
    files={
        ".codex/config.toml": f"""\
# The scripted model.
model = "{MODEL}"
model_provider = "scripted"
model_context_window = 200000
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "Scripted"
base_url = "{{url}}/v1"
wire_api = "responses"
env_key = "CODEX_API_KEY"
"""
    },
    shell=_codex_shell,
)
GEMINI = Driver(
    agent="gemini",
    package="@google/gemini-cli",
    program="gemini",
    first=("--skip-trust", "--yolo", "--model", "gemini-2.5-pro", "--prompt"),
    resume=(
        "--skip-trust",
        "--yolo",
        "--model",
        "gemini-2.5-pro",
        "--resume",
        "latest",
        "--prompt",
    ),
    variables={
        "GEMINI_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": "{url}",
        "GEMINI_TELEMETRY_ENABLED": "false",
    },
    files={
        ".gemini/settings.json": json.dumps(
            {
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "privacy": {"usageStatisticsEnabled": False},
                "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            },
            indent=2,
        )
        + "\n"
    },
    shell=_gemini_shell,
    reports_compaction=False,
)
OPENCODE = Driver(
    agent="opencode",
    package="opencode-ai",
    program="opencode",
    first=("run", "--auto"),
    resume=("run", "--auto", "--continue"),
    variables={
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_SHARE": "1",
        # It would fetch a package for plugins that ours does not use.
        "npm_config_offline": "true",
        "npm_config_fetch_retries": "0",
    },
    files={
        ".config/opencode/opencode.json": json.dumps(
            {
                "model": f"scripted/{MODEL}",
                "small_model": f"scripted/{MODEL}",
                "autoupdate": False,
                "share": "disabled",
                "provider": {
                    "scripted": {
                        "npm": "@ai-sdk/openai-compatible",
                        "options": {"baseURL": "{url}/v1", "apiKey": "none"},
                        "models": {MODEL: {"limit": {"context": 200000, "output": 8000}}},
                    }
                },
            },
            indent=2,
        )
        + "\n"
    },
    shell=_lower_bash,
)
COPILOT = Driver(
    agent="copilot",
    package="@github/copilot",
    program="copilot",
    first=("--allow-all", "--no-auto-update", "--prompt"),
    resume=("--allow-all", "--no-auto-update", "--continue", "--prompt"),
    variables={
        "COPILOT_PROVIDER_BASE_URL": "{url}/v1",
        "COPILOT_PROVIDER_API_KEY": "none",
        "COPILOT_MODEL": MODEL,
        "COPILOT_OFFLINE": "true",
    },
    shell=_lower_bash,
)
DRIVERS = {one.agent: one for one in (CLAUDE_CODE, CODEX, GEMINI, COPILOT, OPENCODE)}


def write_settings(driver: Driver, home: Path, url: str) -> None:
    for name, text in driver.files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("{url}", url), "utf-8")


def variables(driver: Driver, url: str) -> dict[str, str]:
    return {name: value.replace("{url}", url) for name, value in driver.variables.items()}
