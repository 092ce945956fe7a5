"""The agents: every row of every agent's tables, its fixture, and its rows in the docs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commonplace import agents
from commonplace.agents import agent as agent_module
from commonplace.agents.parts import HookCall, HookEntries, Scope
from commonplace.hooks import ENVIRONMENT_CHARS_MAX, variable_names
from commonplace.sessions.payload import read_event
from commonplace.sessions.replies import context_reply
from commonplace.setup.edits import edit_for
from commonplace.setup.launch import Programs
from conftest import ROOT

NAMES = ["claude-code", "codex", "gemini", "cursor", "copilot", "opencode", "vscode"]
ALIASES = {
    "claude": "claude-code",
    "codex-cli": "codex",
    "gemini-cli": "gemini",
    "copilot-cli": "copilot",
}
EVENTS: dict[str, dict[str, str]] = {
    "claude-code": {
        "SessionStart": "start",
        "UserPromptSubmit": "prompt",
        "PostToolUse": "tool",
        "PostToolUseFailure": "failure",
        "PreCompact": "compact",
        "Stop": "stop",
        "StopFailure": "stop",
        "SubagentStop": "subagent_stop",
        "SessionEnd": "end",
    },
    "codex": {
        "SessionStart": "start",
        "UserPromptSubmit": "prompt",
        "PostToolUse": "tool",
        "PreCompact": "compact",
        "Stop": "stop",
        "SubagentStop": "subagent_stop",
        "SessionEnd": "end",
    },
    "gemini": {
        "SessionStart": "start",
        "BeforeAgent": "prompt",
        "AfterTool": "tool",
        "PreCompress": "stop",
        "AfterAgent": "stop",
        "SessionEnd": "end",
    },
    "cursor": {
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
    "copilot": {
        "sessionStart": "start",
        "userPromptSubmitted": "prompt",
        "UserPromptSubmit": "prompt",
        "postToolUse": "tool",
        "postToolUseFailure": "failure",
        "preCompact": "compact",
        "agentStop": "stop",
        "Stop": "stop",
        "subagentStop": "subagent_stop",
        "sessionEnd": "end",
    },
    "opencode": {
        "SessionStart": "start",
        "session.created": "start",
        "session.compacted": "start",
        "UserPromptSubmit": "prompt",
        "chat.message": "prompt",
        "PostToolUse": "tool",
        "tool.execute.after": "tool",
        "PostToolUseFailure": "failure",
        "PreCompact": "compact",
        "session.compacting": "compact",
        "experimental.session.compacting": "compact",
        "Stop": "stop",
        "session.idle": "stop",
        "SessionEnd": "end",
        "session.deleted": "end",
        "dispose": "end",
    },
    "vscode": {},
}
# Fields of a payload without the event's name, and the event that Copilot sends with them.
NAMELESS: list[tuple[dict[str, Any], str | None]] = [
    ({"toolName": "bash", "toolResult": {"resultType": "success"}}, "postToolUse"),
    ({"customInstructions": "", "transcriptPath": "t"}, "preCompact"),
    ({"trigger": "auto"}, "preCompact"),
    ({"agentName": "worker", "stopReason": "end_turn"}, "subagentStop"),
    ({"stopReason": "end_turn"}, "agentStop"),
    ({"reason": "complete"}, "sessionEnd"),
    ({"source": "startup", "initialPrompt": "go"}, "sessionStart"),
    ({"source": "startup", "prompt": "go"}, "sessionStart"),
    ({"prompt": "go"}, "userPromptSubmitted"),
    ({"toolName": "bash", "error": {"message": "boom"}}, "postToolUseFailure"),
    ({"agentName": "worker"}, None),
    ({"error": "boom"}, None),
    ({}, None),
]
HOSTS = {
    "CURSOR_VERSION": "cursor",
    "CLAUDECODE": "claude-code",
    "CLAUDE_CODE_ENTRYPOINT": "claude-code",
    "COPILOT_CLI": "copilot",
    "COPILOT_AGENT_SESSION_ID": "copilot",
}
SPECIFIC = {"hookSpecificOutput": {"hookEventName": "X", "additionalContext": "text"}}
MESSAGE, BLOCK = {"systemMessage": "text"}, {"decision": "block", "reason": "text"}
# What each agent is sent at a start, for a prompt, as a report and to block; `None` for nothing.
REPLIES: dict[str, tuple[Any, Any, Any, Any]] = {
    "claude-code": (SPECIFIC, SPECIFIC, MESSAGE, BLOCK),
    "codex": (SPECIFIC, SPECIFIC, MESSAGE, BLOCK),
    "gemini": (SPECIFIC, SPECIFIC, MESSAGE, {"decision": "deny", "reason": "text"}),
    "cursor": ({"additional_context": "text"}, None, None, {"followup_message": "text"}),
    "copilot": ({"additionalContext": "text"}, None, None, BLOCK),
    "opencode": (SPECIFIC, SPECIFIC, None, BLOCK),
    "vscode": (None, None, None, BLOCK),
    "an-unknown-one": (None, None, None, BLOCK),
}
FAILURE_REPORTS = {
    "claude-code": "event",
    "codex": "output",
    "gemini": "exit_code",
    "cursor": "output",
    "copilot": "exit_code",
    "opencode": "event",
    "vscode": "exit_code",
    "an-unknown-one": "exit_code",
}
TOOLS = {
    "shell": "bash shell powershell terminal run_shell_command exec_command local_shell",
    "read": "read view read_file read_many_files notebookread",
    "edit": "edit multiedit notebookedit apply_patch patch str_replace strreplace search_replace"
    " replace edit_file delete delete_file",
    "write": "write write_file create",
    "dispatch": "task agent subagent delegate",
}
DETECTION: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "claude-code": (("claude",), (".claude", "CLAUDE.md", ".mcp.json")),
    "codex": (("codex",), (".codex",)),
    "gemini": (("gemini",), (".gemini", "GEMINI.md")),
    "cursor": (("cursor", "cursor-agent"), (".cursor",)),
    "copilot": (("copilot",), (".github/hooks", ".github/copilot-instructions.md")),
    "opencode": (("opencode",), (".opencode", "opencode.json", "opencode.jsonc")),
    "vscode": (("code",), (".vscode",)),
}
SETTINGS_FILES: dict[str, dict[str, Any]] = json.loads(
    (ROOT / "tests" / "data" / "agents" / "settings_files.json").read_text("utf-8")
)
MOVED = {
    "CLAUDE_CONFIG_DIR": "/r/moved/claude",
    "CODEX_HOME": "/r/moved/codex",
    "GEMINI_CLI_HOME": "/r/moved/gemini",
    "COPILOT_HOME": "/r/moved/copilot",
    "XDG_CONFIG_HOME": "/r/moved/config",
}
PROGRAMS = Programs("/opt/a b/commonplace", "/opt/a b/commonplace-hook")


def event_of(agent: str, cwd: Path, variables: tuple[str, ...] = (), **fields: Any) -> Any:
    raw = json.dumps({"sessionId": "s", "cwd": str(cwd), **fields}).encode()
    return read_event(agent, raw, at=1.0, cwd=str(cwd), environment=variables)


# --- Finding --------------------------------------------------------------------------------------


def test_the_agents_are_listed_in_their_order() -> None:
    assert [agent.name for agent in agents.all()] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_is_found_by_its_name(name: str) -> None:
    assert agents.find(name).name == name


def test_every_alias_leads_to_its_agent() -> None:
    assert {alias: agent.name for agent in agents.all() for alias in agent.aliases} == ALIASES
    assert {alias: agents.find(alias).name for alias in ALIASES} == ALIASES


@pytest.mark.parametrize(
    "name", ["", "nobody", "agent", "parts", "__init__", "claude_code", "../codex", "os.path", "é"]
)
def test_any_other_name_is_a_generic_agent(name: str, tmp_path: Path) -> None:
    assert agents.find(name) == agents.generic(name)
    event = event_of(name, tmp_path, hook_event_name="SessionStart")
    assert (event.agent, event.kind) == (name, "start")
    assert context_reply(event, "text") == ""


def loaded(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print(sorted(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[str] = json.loads(done.stdout.replace("'", '"'))
    return set(found)


@pytest.mark.parametrize("name", NAMES)
def test_finding_an_agent_imports_its_module_alone(name: str) -> None:
    modules = loaded(f"from commonplace import agents; agents.find({name!r})")
    ours = {module for module in modules if module.startswith("commonplace")}
    own = f"commonplace.agents.{name.replace('-', '_')}"

    helpers = {"commonplace.agents.agent", "commonplace.agents.parts"}
    assert ours == {"commonplace", "commonplace.agents", *helpers, own}
    assert not modules & {"tomllib", "difflib", "inspect", "dataclasses", "subprocess", "shutil"}


# --- Events ---------------------------------------------------------------------------------------


def test_every_event_name_is_in_the_table_here() -> None:
    assert {agent.name: dict(agent.events) for agent in agents.all()} == EVENTS


@pytest.mark.parametrize(
    ("agent", "name", "kind"),
    [(agent, name, kind) for agent, rows in EVENTS.items() for name, kind in rows.items()],
)
def test_an_event_is_known_by_its_name(agent: str, name: str, kind: str, tmp_path: Path) -> None:
    for spelling in (name, name.lower(), name.upper()):
        event = event_of(agent, tmp_path, hook_event_name=spelling)
        assert (event.kind, event.called, event.agent) == (kind, spelling, agent)


@pytest.mark.parametrize("agent", [*NAMES, "an-unknown-one"])
@pytest.mark.parametrize(("name", "kind"), EVENTS["claude-code"].items())
def test_every_agent_may_use_claude_codes_names(
    agent: str, name: str, kind: str, tmp_path: Path
) -> None:
    assert event_of(agent, tmp_path, hook_event_name=name).kind == kind


@pytest.mark.parametrize("agent", [*NAMES, "an-unknown-one"])
def test_an_event_of_another_agent_is_not_known(agent: str, tmp_path: Path) -> None:
    names = {name for rows in EVENTS.values() for name in rows}
    own = {name.lower() for name in {**EVENTS.get(agent, {}), **EVENTS["claude-code"]}}
    for name in names:
        event = event_of(agent, tmp_path, hook_event_name=name)
        assert (event is not None) is (name.lower() in own), name


@pytest.mark.parametrize("field", ["hook_event_name", "hookEventName", "event", "type"])
def test_the_name_is_read_from_any_of_its_fields(field: str, tmp_path: Path) -> None:
    fields: dict[str, Any] = {field: "AfterAgent"}

    assert event_of("gemini", tmp_path, **fields).kind == "stop"


@pytest.mark.parametrize(("fields", "name"), NAMELESS)
def test_copilot_events_without_a_name_are_known_by_their_fields(
    fields: dict[str, Any], name: str | None, tmp_path: Path
) -> None:
    event = event_of("copilot", tmp_path, **fields)

    assert (event.called if event else None) == name
    assert event_of("claude-code", tmp_path, **fields) is None


def test_the_table_of_nameless_events_is_complete() -> None:
    from commonplace.agents.copilot import _EVENT_OF_FIELD

    used = {(field, name) for fields, name in NAMELESS for field in fields if name}
    assert set(_EVENT_OF_FIELD) <= used


def test_an_event_name_may_state_the_source(tmp_path: Path) -> None:
    sources = {agent.name: agent.event_sources for agent in agents.all() if agent.event_sources}
    assert sources == {"opencode": {"session.compacted": "compact"}}
    event = event_of("opencode", tmp_path, hook_event_name="session.compacted", source="startup")
    assert event.source == "compact"


def test_every_agent_reports_failures_in_its_way() -> None:
    found = {name: agents.find(name).failure_report for name in FAILURE_REPORTS}
    assert found == FAILURE_REPORTS
    assert set(FAILURE_REPORTS) >= set(NAMES)


@pytest.mark.parametrize("agent", FAILURE_REPORTS)
@pytest.mark.parametrize(
    ("output", "failed_for"),
    [
        ("Process exited with code 7\n", {"exit_code", "output"}),
        ("npm ERR! code EACCES", {"output"}),
        ("all is well", set()),
    ],
)
def test_output_is_read_for_a_failure_where_the_agent_does_not_report_it(
    agent: str, output: str, failed_for: set[str], tmp_path: Path
) -> None:
    event = event_of(
        agent,
        tmp_path,
        hook_event_name="PostToolUse",
        tool_name="bash",
        tool_input={"command": "npm install"},
        tool_response=output,
    )

    assert event.failed is (FAILURE_REPORTS[agent] in failed_for)


def test_every_tool_name_is_in_the_table_here() -> None:
    table = {name: action for action, names in TOOLS.items() for name in names.split()}
    own = {agent.name: dict(agent.tools) for agent in agents.all() if agent.tools}

    assert table == agent_module.TOOLS
    assert own == {"cursor": {"afterfileedit": "edit"}}


@pytest.mark.parametrize("action", TOOLS)
@pytest.mark.parametrize("agent", [*NAMES, "an-unknown-one"])
def test_a_tool_is_known_by_its_name_in_any_case(agent: str, action: str, tmp_path: Path) -> None:
    for name in TOOLS[action].split():
        event = event_of(agent, tmp_path, hook_event_name="PostToolUse", tool_name=name.title())
        assert event.action == action
        assert event.edits is (action in ("edit", "write"))
        assert event.dispatches is (action == "dispatch")


# --- Hosts ----------------------------------------------------------------------------------------


def test_every_host_variable_is_in_the_table_here() -> None:
    found = {name: agent.name for agent in agents.all() for name in agent.host_variables}
    assert found == HOSTS


@pytest.mark.parametrize(("variable", "host"), HOSTS.items())
def test_a_variable_shows_the_host(variable: str, host: str, tmp_path: Path) -> None:
    event = event_of("claude-code", tmp_path, ("HOME", variable), hook_event_name="Stop")

    assert agents.find_host(["HOME", variable]) == host
    assert (event.agent, event.host, event.name) == ("claude-code", host, host)


@pytest.mark.parametrize(
    ("variables", "host"),
    [
        (["COPILOT_CLI", "CLAUDECODE", "CURSOR_VERSION"], "cursor"),
        (["COPILOT_CLI", "CLAUDECODE"], "claude-code"),
        (["COPILOT_CLI", "CURSOR_VERSION"], "cursor"),
        (["HOME", "PATH"], ""),
        ([], ""),
        ([""], ""),
    ],
)
def test_of_several_hosts_one_is_chosen(variables: list[str], host: str) -> None:
    assert agents.find_host(variables) == host


@pytest.mark.parametrize("agent", [name for name in NAMES if name != "claude-code"])
@pytest.mark.parametrize("variable", HOSTS)
def test_only_claude_codes_hooks_are_called_by_other_agents(
    agent: str, variable: str, tmp_path: Path
) -> None:
    event = event_of(agent, tmp_path, (variable,), hook_event_name="SessionStart")

    assert (event.host, event.name) == (agent, agent)
    readers = [one.name for one in agents.all() if one.settings_read_by_others]
    assert readers == ["claude-code"]


def test_without_a_variable_the_host_is_the_agent_and_a_name_overrides(tmp_path: Path) -> None:
    event = event_of("claude", tmp_path, hook_event_name="Stop")
    named = event_of("claude:bob", tmp_path, ("CURSOR_VERSION",), hook_event_name="Stop")

    assert (event.agent, event.host, event.name) == ("claude-code", "claude-code", "claude-code")
    assert (named.agent, named.host, named.name) == ("claude-code", "cursor", "bob")


def test_a_hook_sends_names_of_variables_and_never_values() -> None:
    environment = {"HOME": "/home/me", "EMPTY": "", "BASH_FUNC_x%%": "() {", "ÄÖ": "1", "A B": "1"}

    assert variable_names(environment) == ["HOME"]


def test_of_too_many_variables_the_last_are_sent() -> None:
    names = [f"V{number:06}" for number in range(ENVIRONMENT_CHARS_MAX // 8)]
    assert variable_names(dict.fromkeys(names, "1")) == names[::-1]

    sent = variable_names(dict.fromkeys([*names, "CLAUDECODE"], "1"))
    assert sent[0] == "CLAUDECODE"
    assert names[0] not in sent
    assert len(",".join(sent)) < ENVIRONMENT_CHARS_MAX


# --- Replies --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "forms"), REPLIES.items())
def test_every_reply_has_the_agents_form(name: str, forms: tuple[Any, Any, Any, Any]) -> None:
    agent = agents.find(name)
    context = [form and form("X", "text") for form in (agent.start_reply, agent.prompt_reply)]
    messages = (agent.completion_report, agent.completion_block)

    assert (*context, *(form and form("text") for form in messages)) == forms
    assert set(REPLIES) >= set(NAMES)


@pytest.mark.parametrize("agent", [*NAMES, "an-unknown-one"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_reply_is_printed_in_the_agents_form(agent: str, place: int, tmp_path: Path) -> None:
    name = ("SessionStart", "UserPromptSubmit")[place]
    event = event_of(agent, tmp_path, hook_event_name=name)
    wanted = json.loads(json.dumps(REPLIES[agent][place]).replace('"X"', f'"{name}"'))

    printed = context_reply(event, "text")
    assert (json.loads(printed) if printed else None) == wanted
    assert context_reply(event, "") == ""


def test_only_copilot_reads_its_own_form_from_another_agents_hook(tmp_path: Path) -> None:
    forms = {}
    for variable, host in HOSTS.items():
        event = event_of("claude-code", tmp_path, (variable,), hook_event_name="SessionStart")
        forms[host] = json.loads(context_reply(event, "text"))

    assert [agent.name for agent in agents.all() if agent.own_replies_always] == ["copilot"]
    assert forms.pop("copilot") == {"additionalContext": "text"}
    assert {tuple(form) for form in forms.values()} == {("hookSpecificOutput",)}


# --- Setup ----------------------------------------------------------------------------------------


def test_every_sign_of_an_agent_is_in_the_table_here() -> None:
    assert {
        agent.name: (agent.commands, agent.project_signs) for agent in agents.all()
    } == DETECTION


@pytest.mark.skipif(os.name == "nt" or sys.platform == "darwin", reason="paths of Linux")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scope", ["project", "user", "user moved"])
def test_every_settings_file_is_written_as_before(name: str, scope: str) -> None:
    agent = agents.find(name)
    environment = MOVED if "moved" in scope else {}
    parts = agent.parts(Scope(Path("/r"), scope != "project", environment))
    files: dict[str, str | None] = {}
    for part in parts:
        path = str(part.path)
        files[path] = edit_for(agent, part, PROGRAMS).add(files.get(path))

    wanted = SETTINGS_FILES[f"{name} {scope}"]
    assert [[part.what, str(part.path)] for part in parts] == wanted["parts"]
    assert files == wanted["files"]


@pytest.mark.parametrize("agent", agents.all(), ids=lambda agent: agent.name)
def test_a_hook_is_registered_for_events_of_the_agents_own(agent: agents.Agent) -> None:
    kinds = set()
    for entries in hook_entries(agent):
        own = {name.lower() for name in {**agent.events, **agent_module.EVENTS}}
        assert {event.name.lower() for event in entries.events} <= own
        kinds |= {agent.kind_of(event.name) for event in entries.events}
        timeouts = [event.timeout_s for event in entries.events]
        assert all(1 <= timeout_s <= 10 for timeout_s in timeouts)
    # Gemini CLI announces a compaction before every request, so that hook is not registered.
    compact = set() if agent.name == "gemini" else {"compact"}
    assert not kinds or kinds >= {"start", "prompt", "tool", "stop", "end"} | compact


def test_an_agent_waits_for_a_hook_that_answers_or_that_must_not_be_cut_off() -> None:
    """In the background: only what is answered nothing, and what another event follows."""
    background = {
        agent.name: [event.name for event in entries.events if not event.waits]
        for agent in agents.all()
        for entries in hook_entries(agent)
    }

    assert background == {
        "claude-code": ["PostToolUse", "PostToolUseFailure"],
        "codex": ["PostToolUse"],
        "gemini": [],
        "cursor": [],
        "copilot": [],
    }
    for agent in agents.all():
        for entries in hook_entries(agent):
            for event in entries.events:
                handler = entries.handler(HookCall("p", [], "p", "p", 1, waits=event.waits))
                assert ("async" in handler) is not event.waits


def hook_entries(agent: agents.Agent) -> list[HookEntries]:
    parts = agent.parts(Scope(Path("/r"), of_user=False, environment={}))
    return [part.content for part in parts if isinstance(part.content, HookEntries)]


# --- Fixtures and docs ----------------------------------------------------------------------------


def has_hooks(name: str) -> bool:
    parts = agents.find(name).parts(Scope(Path("/r"), of_user=False, environment={}))
    return any(part.what == "hooks" for part in parts)


def row_of(document: str, name: str) -> list[str]:
    """The cells of the agent's row in a document."""
    text = (ROOT / "docs" / document).read_text("utf-8")
    rows = re.findall(rf"^\| `{name}` \|(.*)\|$", text, re.MULTILINE)
    assert len(rows) == 1, f"{document} has {len(rows)} rows for {name}"
    return [cell.strip() for cell in rows[0].split("|")]


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_with_hooks_has_a_fixture(name: str) -> None:
    folder = ROOT / "tests" / "data" / "hooks" / name
    readme = (folder.parent / "README.md").read_text("utf-8")

    assert folder.is_dir() is has_hooks(name)
    assert (f"`{name}`" in readme) is has_hooks(name)
    if has_hooks(name):
        golden = json.loads((folder.parent / "golden.json").read_text("utf-8"))
        assert {f"{name}/{path.stem}" for path in folder.glob("*.json")} <= set(golden)


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_has_a_row_with_its_events_in_hooks_md(name: str) -> None:
    columns = ["start", "prompt", "tool failure", "compact", "stop subagent_stop", "end"]
    cells = row_of("HOOKS.md", name)
    events = agents.find(name).events
    for kinds, cell in zip(columns, cells, strict=True):
        wanted = {event for event, kind in events.items() if kind in kinds.split()}
        assert set(re.findall(r"`([^`]+)`", cell)) == wanted, kinds


@pytest.mark.skipif(os.name == "nt" or sys.platform == "darwin", reason="paths of Linux")
@pytest.mark.parametrize("name", NAMES)
def test_an_agent_has_a_row_with_its_files_in_setup_md(name: str) -> None:
    for cell, of_user in zip(row_of("SETUP.md", name), (False, True), strict=True):
        root = Path("/r")
        parts = agents.find(name).parts(Scope(root, of_user=of_user, environment={}))
        start = "~/" if of_user else ""
        files = {f"{start}{part.path.relative_to(root)}" for part in parts}
        named = {found for found in re.findall(r"`([^`]+)`", cell) if found != ".jsonc"}
        assert named == files
