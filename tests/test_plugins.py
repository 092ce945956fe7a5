"""The plugin trees: made from one table, valid by each agent's own tool where that is at hand, and the shim really runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tools import build_plugins

import commonplace
from commonplace.agents.opencode import plugin_source
from commonplace.agents.parts import INSTRUCTIONS
from commonplace.memory import Memory
from conftest import ROOT

TOOLS = ROOT / ".tools" / "node_modules" / ".bin"
FILES = build_plugins.files()


def agent_tool(name: str) -> str:
    """An agent's own program, or a skip that says how to have it."""
    found = shutil.which(name, path=str(TOOLS)) or shutil.which(name)
    if found is None:
        pytest.skip(f"`{name}` is not here: `make agents` installs it with npm")
    return found


def run(*command: str, cwd: Path = ROOT, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_trees_are_what_the_tool_writes() -> None:
    on_disk = {
        path.relative_to(ROOT).as_posix(): path.read_bytes().decode()
        for folder in ("plugins", ".claude-plugin", ".agents")
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    }

    assert on_disk == FILES, "run `python tools/build_plugins.py`"


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.endswith("plugin.json") or "extension" in path]
)
def test_every_manifest_has_the_packages_version(path: str) -> None:
    assert json.loads(FILES[path])["version"] == commonplace.__version__


def test_the_vendor_neutral_plugin_keeps_to_agent_plugins_1_0_0() -> None:
    """Its schemas are closed: these keys and no others, a server of one closed variant, one version for both files."""
    manifest = json.loads(FILES["plugins/agent-plugin/plugin.json"])
    servers = json.loads(FILES["plugins/agent-plugin/mcp.json"])
    allowed = {
        "$schema",
        "name",
        "version",
        "description",
        "author",
        "homepage",
        "repository",
        "license",
        "keywords",
    }

    assert manifest.keys() <= allowed | {"extensions"}
    assert manifest["author"].keys() <= {"name", "email", "url"}
    assert re.fullmatch(r"(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?", manifest["name"])
    assert servers.keys() == {"$schema", "mcpServers"}
    assert servers["mcpServers"]["commonplace"].keys() <= {"type", "command", "args", "env", "cwd"}
    assert manifest["$schema"].rpartition("/")[0] == servers["$schema"].rpartition("/")[0]


def test_the_skill_keeps_to_the_agent_skills_specification() -> None:
    path = next(path for path in FILES if path.endswith("SKILL.md"))
    _, front, body = FILES[path].split("---\n", 2)
    fields = dict(
        line.split(": ", 1)
        for line in front.splitlines()
        if not line.startswith(" ") and ": " in line
    )

    assert fields["name"] == Path(path).parent.name
    assert fields.keys() | {"metadata"} <= {
        "name",
        "description",
        "license",
        "compatibility",
        "metadata",
    }
    assert 1 <= len(json.loads(fields["description"])) <= 1024
    assert len(body.splitlines()) < 500


def test_every_plugin_gets_the_hooks_that_setup_writes() -> None:
    for plugin, ensure in (
        ("claude-code", "--ensure"),
        ("codex", "codex --ensure"),
        ("gemini", "gemini --ensure"),
    ):
        hooks = json.loads(FILES[f"plugins/{plugin}/hooks/hooks.json"])["hooks"]
        assert ensure in json.dumps(hooks["SessionStart"])
        assert "--ensure" not in json.dumps(
            {event: one for event, one in hooks.items() if event != "SessionStart"}
        )


# --- The agents' own tools ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", [".", "plugins/claude-code"])
def test_claude_code_validates_the_plugin_and_the_marketplace(folder: str) -> None:
    assert "Validation passed" in run(
        agent_tool("claude"), "plugin", "validate", "--strict", folder
    )


def test_gemini_validates_the_extension(tmp_path: Path) -> None:
    said = run(
        agent_tool("gemini"),
        "extensions",
        "validate",
        str(ROOT / "plugins" / "gemini"),
        cwd=tmp_path,
    )

    assert "successfully validated" in said


def test_codex_installs_the_plugin_with_its_server(tmp_path: Path) -> None:
    codex = agent_tool("codex")
    home = {"CODEX_HOME": str(tmp_path / "codex")}
    (tmp_path / "codex").mkdir()

    run(codex, "plugin", "marketplace", "add", str(ROOT), cwd=tmp_path, **home)
    run(codex, "plugin", "add", "commonplace@commonplace", cwd=tmp_path, **home)

    assert "mcp --agent codex" in run(codex, "mcp", "list", cwd=tmp_path, **home)


@pytest.mark.parametrize(
    ("agent", "command"),
    [
        ("codex", ["codex", "mcp", "list"]),
        ("copilot", ["copilot", "mcp", "list"]),
        ("opencode", ["opencode", "debug", "config"]),
    ],
)
def test_an_agent_reads_what_setup_wrote(agent: str, command: list[str], tmp_path: Path) -> None:
    program = agent_tool(command[0])
    run(sys.executable, "-m", "commonplace", "setup", agent, "--user", "--yes", cwd=tmp_path)

    assert "commonplace" in run(program, *command[1:], cwd=tmp_path)


# --- The OpenCode shim ----------------------------------------------------------------------------------------------

DRIVER = """
import { Commonplace } from "./commonplace.mjs"
const plugin = await Commonplace({ directory: "/work" })
const session = { sessionID: "s-1" }
const parts = [{ type: "text", text: "why does it fail?" }, { type: "text", text: "made up", synthetic: true }]
await plugin["chat.message"](session, { parts })
const output = { system: ["you are"] }
await plugin["experimental.chat.system.transform"](session, output)
const call = { tool: "bash", ...session, callID: "c-1", args: { command: "npm ci" } }
await plugin["tool.execute.after"](call, { output: "EACCES", metadata: { exit: 1 } })
await plugin["tool.execute.after"](call, { output: "ok", metadata: { exit: 0 } })
await plugin["experimental.session.compacting"](session, { context: [] })
await plugin.event({ event: { type: "session.idle", properties: session } })
await plugin.event({ event: { type: "session.updated", properties: { info: { id: "s-1" } } } })
await plugin.dispose()
console.log(JSON.stringify(output.system))
"""
HOOK = """#!{python}
import json, sys
event = json.load(sys.stdin)
with open({log!r}, "a") as log:
    log.write(json.dumps([sys.argv[1:], event]) + "\\n")
known = {{"SessionStart": "known from before", "UserPromptSubmit": "known of this"}}.get(event["hook_event_name"])
if known:
    print(json.dumps({{"hookSpecificOutput": {{"hookEventName": event["hook_event_name"], "additionalContext": known}}}}))
"""


def shim(tmp_path: Path, hook: str) -> list[Any]:
    node = agent_tool("node")
    (tmp_path / "driver.mjs").write_text(DRIVER)
    (tmp_path / "commonplace.mjs").write_text(plugin_source(hook))
    said: list[Any] = json.loads(run(node, "driver.mjs", cwd=tmp_path))
    return said


@pytest.mark.skipif(os.name == "nt", reason="the recorder is started by its first line")
def test_the_shim_hands_every_event_to_the_hook_and_its_answer_to_the_model(tmp_path: Path) -> None:
    hook, log = tmp_path / "hook", tmp_path / "log"
    hook.write_text(HOOK.format(python=sys.executable, log=str(log)))
    hook.chmod(0o755)

    system = shim(tmp_path, str(hook))

    calls = [json.loads(line) for line in log.read_text().splitlines()]
    assert system == ["you are", "known from before\n\nknown of this"]
    assert [(event["hook_event_name"], arguments) for arguments, event in calls] == [
        ("SessionStart", ["opencode", "--ensure"]),
        ("UserPromptSubmit", ["opencode"]),
        ("PostToolUseFailure", ["opencode"]),
        ("PostToolUse", ["opencode"]),
        ("PreCompact", ["opencode"]),
        ("Stop", ["opencode"]),
        ("SessionEnd", ["opencode"]),
    ]
    assert all(event["session_id"] == "s-1" and event["cwd"] == "/work" for _, event in calls)
    assert calls[1][1]["prompt"] == "why does it fail?"
    assert calls[2][1]["tool_input"] == {"command": "npm ci"}
    assert calls[2][1]["error"] == "EACCES"
    assert calls[3][1]["tool_response"] == "ok"


def test_the_shim_is_silent_where_there_is_no_hook(tmp_path: Path) -> None:
    assert shim(tmp_path, str(tmp_path / "not-there")) == ["you are"]


def test_agents_are_told_to_state_what_they_learn_and_not_to_read_the_logs(tmp_path: Path) -> None:
    skills = list((ROOT / "plugins").glob("*/skills/*/SKILL.md"))
    with Memory.open(tmp_path / "home") as memory:
        preamble = memory.preamble()

    for text in (INSTRUCTIONS, *(path.read_text("utf-8") for path in skills)):
        assert "LEARNED: …" in text
    for text in (preamble, INSTRUCTIONS, *(path.read_text("utf-8") for path in skills)):
        assert "Never read" in text
        assert "recall" in text
