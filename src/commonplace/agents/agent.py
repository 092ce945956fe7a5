"""What there is to know about a coding agent. The defaults are those of Claude Code's hooks.

Many agents have taken over the names and forms of Claude Code's hooks, so an agent module states
only what differs. It must be cheap to import: the standard library only, nothing of `setup/`.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from commonplace.agents.parts import Part, Scope

    JsonObject = dict[str, Any]
    ContextReply = Callable[[str, str], JsonObject]
    MessageReply = Callable[[str], JsonObject]

Kind = Literal["start", "prompt", "tool", "failure", "compact", "stop", "subagent_stop", "end"]
# What a tool does. A `write` replaces a whole file, an `edit` changes one; `dispatch` starts a
# subagent.
ToolAction = Literal["shell", "read", "edit", "write", "dispatch"]
# How an agent reports that a tool failed:
# - `event`: with an event of its own. An exit code in a tool's output is then only text.
# - `exit_code`: with an exit code, in a field or on a line of the output.
# - `output`: often not at all. Failures are recognised by how programs word them.
FailureReport = Literal["event", "exit_code", "output"]

# Claude Code's names of events. Every agent may use them besides its own.
EVENTS: Mapping[str, Kind] = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "PostToolUse": "tool",
    "PostToolUseFailure": "failure",
    "PreCompact": "compact",
    "Stop": "stop",
    "StopFailure": "stop",
    "SubagentStop": "subagent_stop",
    "SessionEnd": "end",
}
# Names of tools, in lower case. Agents share most of them.
TOOLS: Mapping[str, ToolAction] = {
    "bash": "shell",
    "shell": "shell",
    "powershell": "shell",
    "terminal": "shell",
    "run_shell_command": "shell",
    "exec_command": "shell",
    "local_shell": "shell",
    "read": "read",
    "view": "read",
    "read_file": "read",
    "read_many_files": "read",
    "notebookread": "read",
    "edit": "edit",
    "multiedit": "edit",
    "notebookedit": "edit",
    "apply_patch": "edit",
    "patch": "edit",
    "str_replace": "edit",
    "strreplace": "edit",
    "search_replace": "edit",
    "replace": "edit",
    "edit_file": "edit",
    "delete": "edit",
    "delete_file": "edit",
    "write": "write",
    "write_file": "write",
    "create": "write",
    "task": "dispatch",
    "agent": "dispatch",
    "subagent": "dispatch",
    "delegate": "dispatch",
}
_EVENT_NAME_FIELDS = ("hook_event_name", "hookEventName", "event", "type")


def event_name_field(payload: Mapping[str, Any]) -> str:
    """Return the event's name as the payload states it; "" if it does not."""
    named = (payload.get(field) for field in _EVENT_NAME_FIELDS)
    return next((name for name in named if isinstance(name, str) and name), "")


def hook_specific_output(event_name: str, text: str) -> JsonObject:
    """Return *text* as context in Claude Code's form."""
    # These two keys and no others: Codex rejects a reply with a key that it does not know.
    return {"hookSpecificOutput": {"hookEventName": event_name, "additionalContext": text}}


def system_message(text: str) -> JsonObject:
    """Return a message for the user; the agent goes on."""
    return {"systemMessage": text}


def block_decision(text: str) -> JsonObject:
    """Return a reply that keeps the agent from stopping, with *text* as the reason."""
    return {"decision": "block", "reason": text}


def no_parts(_scope: Scope) -> list[Part]:
    return []


class Agent(NamedTuple):
    """One coding agent: its events, its replies, how to tell that it runs, and its files."""

    name: str  # As in `commonplace-hook NAME` and `commonplace setup NAME`.
    aliases: tuple[str, ...] = ()
    order: int = 100  # Its position in lists of agents, lowest first.

    # --- Events -----------------------------------------------------------------------------------

    events: Mapping[str, Kind] = {}
    # Event names, in lower case, that also say what a `source` field would.
    event_sources: Mapping[str, str] = {}
    event_name: Callable[[Mapping[str, Any]], str] = event_name_field
    tools: Mapping[str, ToolAction] = {}  # In lower case; only those that `TOOLS` does not have.
    failure_report: FailureReport = "exit_code"

    # --- Replies. `None`: the agent does not read one there. --------------------------------------

    start_reply: ContextReply | None = hook_specific_output
    prompt_reply: ContextReply | None = hook_specific_output
    completion_report: MessageReply | None = system_message
    completion_block: MessageReply | None = block_decision

    # --- Which agent runs the hook ----------------------------------------------------------------

    host_variables: tuple[str, ...] = ()  # Environment variables that say that it is this one.
    host_priority: int = 0  # If variables of several agents are set, the highest is the host.
    # Other agents read its settings and call the hooks in them, so the host may be another agent.
    settings_read_by_others: bool = False
    # Reads replies in its own form even to a hook that it found in another agent's settings.
    own_replies_always: bool = False

    # --- Setup ------------------------------------------------------------------------------------

    commands: tuple[str, ...] = ()  # Programs on the PATH that show that it is installed.
    folder: Callable[[Scope], Path] | None = None
    project_signs: tuple[str, ...] = ()  # Files that show that a project uses it.
    parts: Callable[[Scope], list[Part]] = no_parts  # What `commonplace setup` writes where.
    # What the agent asks of the user before it uses the user's or the project's files.
    user_condition: str = ""
    project_condition: str = ""

    def kind_of(self, event_name: str) -> Kind | None:
        """Return the kind of the event *event_name*, in any case; `None` if it is not used."""
        wanted = event_name.lower()
        for events in (self.events, EVENTS):
            for name, kind in events.items():
                if name.lower() == wanted:
                    return kind
        return None

    def action_of(self, tool: str) -> ToolAction | None:
        """Return what *tool* does; `None` if that is not known."""
        return self.tools.get(tool.lower()) or TOOLS.get(tool.lower())

    def condition(self, scope_name: str) -> str:
        """Return what the agent asks before it uses what setup wrote in that scope, if anything."""
        return self.user_condition if scope_name == "user" else self.project_condition

    def folder_in(self, scope: Scope) -> Path:
        """Return the folder with the agent's own settings."""
        return self.folder(scope) if self.folder else scope.folder(f".{self.name}")
