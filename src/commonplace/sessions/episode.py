"""The episode of a session: a draft that grows with every event, and the record it becomes.

The record's id is the session's, so a later version replaces an earlier one. A session that did nothing leaves none.
"""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from commonplace.sessions.events import DISPATCHING, EDITING, READING, SHELLS
from commonplace.sessions.failures import error_lines
from commonplace.sessions.intents import intents, is_check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.sessions.events import Event
    from commonplace.sessions.state import State

GOAL_CHARS_MAX = 400
TARGET_CHARS_MAX = 160
# How a session began and how it ended says most; the middle of a long one is counted, not kept.
ACTIONS_HEAD_MAX = 20
ACTIONS_MAX = 120
FILES_MAX = 60
ERRORS_MAX = 15
# While a session lasts it is written down again only when it has grown by a quarter.
GROWTH = 1.25


def note(state: State, event: Event, prefixes: Sequence[str] = ()) -> None:
    """Add *event* to the draft. What it says behind one of *prefixes* is a lesson of its own, and not repeated here."""
    fields = state.fields
    fields.setdefault("started", event.at)
    fields["last"] = max(event.at, fields.get("last", 0.0))
    # A session belongs to where it began, wherever its agent looks later.
    for name in ("repo", "name", "root", "worktree"):
        fields.setdefault(name, getattr(event, name))
    asked = event.kind in ("start", "prompt") and event.prompt and not event.prompt.startswith("/")
    if asked and not fields.get("goal"):
        fields["goal"] = " ".join(event.prompt.split())[:GOAL_CHARS_MAX]
    if event.tool:
        _act(fields, event, prefixes)
    if event.kind == "end":
        fields["ended"] = event.source or "end"


def resolve(state: State, candidate: dict[str, Any]) -> None:
    """Say in the draft how an error was solved."""
    for error in state.fields.get("errors", []):
        if error["type"] == candidate["intent"] and not error.get("resolution"):
            error["resolution"] = candidate["worked"][:TARGET_CHARS_MAX]


def is_due(state: State, kind: str) -> bool:
    """Whether the draft should be written down now."""
    done, written = state.fields.get("done", 0), state.fields.get("written", 0)
    return done > written and (kind != "stop" or done >= written * GROWTH)


def record(state: State) -> dict[str, Any]:
    """The episode as it stands."""
    fields = state.fields
    started = float(fields["started"])
    identity = f"{fields['session']}\x1f{fields['repo']}"
    context: dict[str, Any] = {
        "goal": fields.get("goal", ""),
        "files_involved": fields.get("files", []),
    }
    commit, branch = head(fields.get("root", ""))
    meta = {
        "source": source_of(worktree=bool(fields.get("worktree"))),
        "origin": "hooks",
        "branch": branch,
    }
    skipped = fields.get("done", 0) - len(fields.get("actions", []))
    return {
        "id": f"ep-{blake2b(identity.encode('utf-8', 'replace'), digest_size=7).hexdigest()}",
        "kind": "episode",
        "task_id": fields["session"],
        "timestamp": datetime.fromtimestamp(started, UTC).replace(microsecond=0),
        "agent_id": fields["name"],
        "repo": fields["repo"],
        "duration_seconds": round(float(fields["last"]) - started),
        "context": context,
        "action_log": fields.get("actions", []),
        "outcome": _outcome(fields),
        "errors_encountered": fields.get("errors", []),
        "artifacts_produced": fields.get("changed", []),
        "git_commit": commit,
        "meta": {
            name: value for name, value in {**meta, "actions_left_out": skipped}.items() if value
        },
    }


def source_of(*, worktree: bool) -> str:
    """Who speaks (seed 003): in a worktree a supervisor, else the orchestrator."""
    return "supervisor" if worktree else "orchestrator"


def head(root: str) -> tuple[str, str]:
    """The commit and the branch that are checked out, from git's own files."""
    try:
        git = Path(root) / ".git"
        if git.is_file():
            git = Path(root) / git.read_text("utf-8").removeprefix("gitdir:").strip()
        said = (git / "HEAD").read_text("utf-8").strip()
        if not said.startswith("ref:"):
            return said[:40], ""
        ref = said.removeprefix("ref:").strip()
        branch = ref.removeprefix("refs/heads/")
        common = git
        if (git / "commondir").is_file():
            common = git / (git / "commondir").read_text("utf-8").strip()
        if (common / ref).is_file():
            return (common / ref).read_text("utf-8").strip()[:40], branch
        packed = (common / "packed-refs").read_text("utf-8", "replace")
        return next(
            (line[:40] for line in packed.splitlines() if line.endswith(f" {ref}")), ""
        ), branch
    except (OSError, UnicodeDecodeError, ValueError):
        return "", ""


def _act(fields: dict[str, Any], event: Event, prefixes: Sequence[str]) -> None:
    target = " ".join(event.command.split()) if event.command else ", ".join(event.files)
    for prefix in prefixes:
        target = target.partition(prefix)[0] + f"{prefix} …" if prefix in target else target
    action: dict[str, Any] = {
        "t": max(0, round(event.at - fields["started"])),
        "action": _called(event),
    }
    action["target"] = target[:TARGET_CHARS_MAX]
    wanted = intents(event.command)
    if event.failed:
        action["result"] = "fail"
        action["error"] = error_lines(event.error)[:TARGET_CHARS_MAX]
        errors = fields.setdefault("errors", [])
        errors.append(
            {"type": wanted[-1] if wanted else event.tool, "message": error_lines(event.error)}
        )
        del errors[:-ERRORS_MAX]
    elif event.command and not event.interrupted:
        action["result"] = "pass"
    actions = fields.setdefault("actions", [])
    actions.append({name: value for name, value in action.items() if value != ""})
    del actions[
        ACTIONS_HEAD_MAX : max(ACTIONS_HEAD_MAX, len(actions) - (ACTIONS_MAX - ACTIONS_HEAD_MAX))
    ]
    fields["done"] = fields.get("done", 0) + 1
    for name, several in (("files", event.files), ("changed", event.files if event.edits else ())):
        fields[name] = list(dict.fromkeys([*fields.get(name, []), *several]))[-FILES_MAX:]
    if any(is_check(intent) for intent in wanted):
        fields["checked"] = "failure" if event.failed else "success"
    elif event.edits and fields.get("checked") == "success":
        fields["checked"] = ""  # What was checked is no longer what is there.


def _called(event: Event) -> str:
    """What was done, in seed 001's words."""
    if event.command and (event.tool in SHELLS or not event.files):
        return (
            "run_test"
            if any(" test" in f" {one}" or one == "pytest" for one in intents(event.command))
            else "run"
        )
    for names, word in ((READING, "read_file"), (EDITING, "edit_file"), (DISPATCHING, "dispatch")):
        if event.tool in names:
            return "write_file" if event.tool in ("write", "create", "write_file") else word
    return event.tool


def _outcome(fields: dict[str, Any]) -> str:
    if fields.get("ended") in ("error", "abort", "aborted", "timeout"):
        return "failure"
    return fields.get("checked") or "unknown"
