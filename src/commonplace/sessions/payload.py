"""Payloads: what an agent's hook sends on stdin, read as an `Event`.

Agents differ in the names of events and fields. What is particular to one agent is in `agents/`;
field names are looked up in every agent's spelling, since agents call each other's hooks. Nothing
here raises for what an agent sent: what is not understood is left out.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any

from commonplace import agents
from commonplace.sessions.events import Event, cut, redact_event
from commonplace.sessions.fields import clean_text, first_text, parse_object
from commonplace.sessions.tool_call import NAME_CHARS_MAX, PROMPT_CHARS_MAX, add_tool_call
from commonplace.where import repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def read_event(
    agent: str, raw: bytes, *, at: float, cwd: str, environment: Collection[str] = ()
) -> Event | None:
    """Return the event in *raw*; `None` if that holds none we use.

    *agent* is an agent's name, or `agent:name` where the user has named it. *cwd* is the folder the
    hook runs in; a folder in the payload takes precedence. *environment* has the names of the
    environment variables that are set, which show the agent that runs the hook.
    """
    payload = parse_object(raw)
    if payload is None:
        return None
    form, _colon, named = agent.partition(":")
    sender = agents.find(form)
    called = clean_text(sender.event_name(payload))
    kind = sender.kind_of(called)
    if kind is None:
        return None
    host = _host(sender, environment)
    folder = _folder(payload, cwd)
    here = repository.find(Path(folder))
    event = Event(
        agent=sender.name,
        kind=kind,
        session=_session(payload) or f"{sender.name}@{folder}",
        at=at,
        called=called,
        name=named or host,
        host=host,
        cwd=folder,
        repo=here.name,
        short=here.short,
        root=str(here.root or ""),
        worktree=here.root is not None
        and here.main_root is not None
        and here.root.resolve() != here.main_root,
        source=sender.event_sources.get(called.lower(), _source(payload)),
        subagent=_subagent(payload),
        mode=first_text(payload, "permission_mode", "permissionMode")[:NAME_CHARS_MAX],
        prompt=cut(
            first_text(payload, "prompt", "user_prompt", "initial_prompt", "initialPrompt"),
            PROMPT_CHARS_MAX,
        ),
    )
    if kind in ("tool", "failure"):
        event = add_tool_call(event, payload, sender.failure_report)
    event = redact_event(event)
    return event._replace(key=_key(event, payload))


def _host(sender: agents.Agent, environment: Collection[str]) -> str:
    """Return the agent that runs the hook.

    Any agent may have been started by another and have inherited its variables: `codex exec` in a
    shell of Claude Code is still Codex. So they matter only for a hook that others call as well.
    """
    found = agents.find_host(environment) if sender.settings_read_by_others else ""
    return found or sender.name


def _session(payload: Mapping[str, Any]) -> str:
    names = ("session_id", "sessionId", "sessionID", "conversation_id", "conversationId")
    return first_text(payload, *names)[:NAME_CHARS_MAX]


def _source(payload: Mapping[str, Any]) -> str:
    names = ("source", "trigger", "reason", "status", "stop_reason", "stopReason")
    return first_text(payload, *names)[:NAME_CHARS_MAX]


def _subagent(payload: Mapping[str, Any]) -> str:
    names = ("agent_type", "subagent_type", "agent_name", "agentName", "agentType")
    return first_text(payload, *names)[:NAME_CHARS_MAX]


def _folder(payload: Mapping[str, Any], cwd: str) -> str:
    """Return the folder that the payload names, if it exists; else *cwd*."""
    roots = payload.get("workspace_roots")
    first = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else ""
    for folder in (first_text(payload, "cwd", "directory", "workingDirectory"), first):
        if folder and "\0" not in folder and Path(folder).is_absolute() and Path(folder).is_dir():
            return folder
    return cwd


def _key(event: Event, payload: Mapping[str, Any]) -> str:
    """Return what identifies the event: the agent's id of the call, else its content.

    The first character says which; content is the same event only within a short time.
    """
    names = ("tool_use_id", "toolUseId", "tool_call_id", "callID", "call_id", "prompt_id")
    call = first_text(payload, *names)
    content: tuple[str, ...] = ()
    if event.tool:
        content = (event.tool, event.command, *event.files, event.output[:500], event.error[:500])
    elif event.kind == "prompt":
        content = (event.prompt,)
    elif event.source == "compact":
        content = ("compact",)  # A second start of the same session, soon after the first.
    digest = blake2b(digest_size=10)
    identity = (call,) if call else content
    for part in (event.session, event.kind, *identity):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\x1f")
    return ("=" if call else "~") + digest.hexdigest()
