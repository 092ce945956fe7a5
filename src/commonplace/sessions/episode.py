"""The episode of a session: a draft that grows with every event, and the record it becomes.

The record's id comes from the session's, so a later version replaces an earlier one. A session
without any action leaves no episode.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from commonplace.sessions.failures import error_lines
from commonplace.sessions.intents import intents, is_build, is_check
from commonplace.where.head import git_head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from commonplace.inbox import SolvedFailure
    from commonplace.sessions.events import Event
    from commonplace.sessions.state import Action, Draft, State

GOAL_CHARS_MAX = 400
TARGET_CHARS_MAX = 160
# The beginning and the end of a session say most; of a long one the middle is only counted.
ACTIONS_HEAD_MAX = 20
ACTIONS_MAX = 120
FILES_MAX = 60
ERRORS_MAX = 15
LINKS_MAX = 20
# A lesson that was given to the agent may not have been of use to it.
LOGGED_WEIGHT = 1.0
SHOWN_WEIGHT = 0.5
TEXT_PREFIXES = ("note:", "skill:")
# A call of ours that rates a record, of which it may give the beginning of the id.
_RATING = re.compile(r"\bfeedback\s+(?:--\S+\s+)*['\"]?([\w][^\s'\"]*)")
# At the end of a turn the episode is written again only if it has grown by a quarter.
GROWTH = 1.25
# An episode's names of actions, by what the tool does.
_ACTION_NAMES = {
    "read": "read_file",
    "edit": "edit_file",
    "write": "write_file",
    "dispatch": "dispatch",
}


def add_event(state: State, event: Event, prefixes: Sequence[str] = ()) -> None:
    """Add *event* to the draft, without the text after one of *prefixes*: that is a lesson."""
    draft = state.fields
    draft.setdefault("started", event.at)
    draft["last"] = max(event.at, draft.get("last", 0.0))
    # A session belongs to the repository it began in, wherever its agent goes later.
    draft.setdefault("repo", event.repo)
    draft.setdefault("name", event.name)
    draft.setdefault("root", event.root)
    draft.setdefault("worktree", event.worktree)
    is_goal = event.kind in ("start", "prompt") and not event.prompt.startswith("/")
    if is_goal and event.prompt and not draft.get("goal"):
        draft["goal"] = " ".join(event.prompt.split())[:GOAL_CHARS_MAX]
    if event.mode:
        draft["mode"] = event.mode
    if event.kind == "start" and event.subagent:
        draft["role"] = event.subagent
    if is_goal and event.prompt:
        # A hook pays for every import, and few events have a prompt.
        from commonplace.sessions.task_context import (  # noqa: PLC0415
            CONSTRAINTS_MAX,
            constraints_in,
        )

        stated = dict.fromkeys([*draft.get("constraints", []), *constraints_in(event.prompt)])
        draft["constraints"] = list(stated)[:CONSTRAINTS_MAX]
    if event.tool:
        _add_action(draft, event, prefixes)
    if event.kind == "end":
        draft["ended"] = event.source or "end"


def add_resolution(state: State, solved: SolvedFailure) -> None:
    """Note in the draft how an error was solved."""
    for error in state.fields.get("errors", []):
        if error["type"] == solved.intent and not error.get("resolution"):
            error["resolution"] = solved.worked[:TARGET_CHARS_MAX]


def is_due(state: State, kind: str) -> bool:
    """Whether the episode should be written after an event of *kind*."""
    done, written = state.fields.get("done", 0), state.fields.get("written", 0)
    return done > written and (kind != "stop" or done >= written * GROWTH)


def to_record(state: State) -> dict[str, Any]:
    """Return the draft as the fields of an episode."""
    from commonplace.sessions.task_context import phase_of  # noqa: PLC0415 (as above)

    draft = state.fields
    started = float(draft["started"])
    identity = f"{draft['session']}\x1f{draft['repo']}"
    commit, branch = git_head(draft.get("root", ""))
    phase = phase_of(draft.get("mode", ""), draft.get("role", ""), branch)
    meta = {
        "source": source_of(worktree=draft.get("worktree", False)),
        "origin": "hooks",
        "branch": branch,
        "actions_left_out": draft.get("done", 0) - len(draft.get("actions", [])),
    }
    return {
        "id": f"ep-{blake2b(identity.encode('utf-8', 'replace'), digest_size=7).hexdigest()}",
        "kind": "episode",
        "task_id": draft["session"],
        "timestamp": datetime.fromtimestamp(started, UTC).replace(microsecond=0),
        "agent_id": draft["name"],
        "repo": draft["repo"],
        "duration_seconds": round(float(draft["last"]) - started),
        "context": {
            **({"phase": phase} if phase else {}),
            "goal": draft.get("goal", ""),
            "constraints": draft.get("constraints", []),
            "files_involved": draft.get("files", []),
        },
        "action_log": draft.get("actions", []),
        "outcome": _outcome(draft),
        "errors_encountered": draft.get("errors", []),
        "artifacts_produced": draft.get("changed", []),
        "git_commit": commit,
        "links": _links(draft),
        "meta": {name: value for name, value in meta.items() if value},
    }


def rated_in(event: Event) -> list[str]:
    """Return the ids, or their beginnings, of the records that a call of ours has rated."""
    return [] if event.failed else _RATING.findall(event.run_command)


def _links(draft: Draft) -> list[dict[str, Any]]:
    """Return links to the records of the session: those it rated, stated, and was given."""
    logged = dict.fromkeys(draft.get("logged", []), LOGGED_WEIGHT)
    shown = [ident for ident in draft.get("shown", []) if not ident.startswith(TEXT_PREFIXES)]
    weights = dict.fromkeys(reversed(shown), SHOWN_WEIGHT) | logged
    used = _rated(draft, weights)
    ids = [*used, *logged, *weights]
    return [
        {
            "to": ident,
            "rel": "uses" if ident in used else "related_to",
            "w": LOGGED_WEIGHT if ident in used else weights[ident],
        }
        for ident in list(dict.fromkeys(ids))[:LINKS_MAX]
    ]


def _rated(draft: Draft, known: Collection[str]) -> list[str]:
    """Return the records that the session rated and that it was given or had stated."""
    named = [[one for one in known if one.startswith(start)] for start in draft.get("rated", [])]
    return [ids[0] for ids in named if len(ids) == 1]


def source_of(*, worktree: bool) -> str:
    """Return who acts: in a worktree a supervisor, else the orchestrator."""
    return "supervisor" if worktree else "orchestrator"


def _add_action(draft: Draft, event: Event, prefixes: Sequence[str]) -> None:
    target = " ".join(event.run_command.split()) or ", ".join(event.files)
    for prefix in prefixes:
        target = target.partition(prefix)[0] + f"{prefix} …" if prefix in target else target
    action: Action = {"t": max(0, round(event.at - draft["started"])), "action": _action(event)}
    if target:
        action["target"] = target[:TARGET_CHARS_MAX]
    found = intents(event.run_command)
    failed = event.failed and not event.interrupted
    if failed:
        message = error_lines(event.error)
        action["result"] = "fail"
        if message:
            action["error"] = message[:TARGET_CHARS_MAX]
        errors = draft.setdefault("errors", [])
        errors.append({"type": found[-1] if found else event.tool, "message": message})
        del errors[:-ERRORS_MAX]
    elif event.run_command and not event.interrupted:
        action["result"] = "pass"
    actions = draft.setdefault("actions", [])
    actions.append(action)
    del actions[
        ACTIONS_HEAD_MAX : max(ACTIONS_HEAD_MAX, len(actions) - (ACTIONS_MAX - ACTIONS_HEAD_MAX))
    ]
    draft["done"] = draft.get("done", 0) + 1
    draft["files"] = _add_files(draft.get("files", []), event.files)
    draft["changed"] = _add_files(draft.get("changed", []), event.files if event.edits else ())
    if any(is_check(intent) for intent in found) and not event.interrupted:
        draft["checked"] = "failure" if failed else "success"
    elif event.edits and draft.get("checked") == "success":
        draft["checked"] = ""  # The check was of the code before this edit.


def _add_files(before: list[str], files: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*before, *files]))[-FILES_MAX:]


def _action(event: Event) -> str:
    """Return the name of the action in an episode."""
    if event.run_command and (event.action == "shell" or not event.files):
        found = intents(event.run_command)
        if any(" test" in f" {intent}" or intent == "pytest" for intent in found):
            return "run_test"
        return "run_build" if any(is_build(intent) for intent in found) else "run"
    return _ACTION_NAMES.get(event.action, event.tool)


def _outcome(draft: Draft) -> str:
    if draft.get("ended") in ("error", "abort", "aborted", "timeout"):
        return "failure"
    return draft.get("checked") or "unknown"
