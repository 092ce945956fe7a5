"""The completion check (seed 003's SubagentStop): is the worktree clean, is it pushed, what does the bead say.

Off unless a setting says otherwise; it reports, and keeps the agent at work only if the setting says `block`. It asks
git, so it is a hook line of its own and not part of the others.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.memory import Memory
from commonplace.sessions import events

if TYPE_CHECKING:
    from commonplace.sessions.events import Event

GIT_S_MAX = 3.0
FILES_SHOWN_MAX = 5
ISSUES_BYTES_MAX = 32 << 20
_UNFINISHED = frozenset(["open", "in_progress", "blocked", "todo"])


def checked(agent: str, raw: bytes, cwd: str, host: str) -> str:
    """What to print when an agent or subagent stops: nothing, a report, or what keeps it at work."""
    event = events.taken(agent, raw, at=time.time(), cwd=cwd, host=host)
    if event is None or event.kind not in ("stop", "subagent_stop") or not event.root:
        return ""
    with Memory.open(cwd=event.cwd, agent_id=event.name) as memory:
        wanted = memory.settings["hooks.completion"]
        exempt = {event.subagent, event.name, event.agent} & set(memory.settings["hooks.exempt"])
    payload = events.decoded(raw) or {}
    again = payload.get("stop_hook_active") is True or bool(payload.get("loop_count"))
    if wanted == "off" or exempt:
        return ""
    found = findings(Path(event.root))
    if not found:
        return ""
    said = f"Not finished in {event.root}: {'; '.join(found)}"
    # Told once: an agent that stops again has read it, and may have a reason.
    return _blocking(event, said) if wanted == "block" and not again else _report(event, said)


def findings(root: Path) -> list[str]:
    """What is left to do in the worktree at *root*."""
    found: list[str] = []
    changed = [
        line[3:] for line in _git(root, "status", "--porcelain").splitlines() if line.strip()
    ]
    if changed:
        more = " …" if len(changed) > FILES_SHOWN_MAX else ""
        found.append(
            f"{len(changed)} uncommitted files ({', '.join(changed[:FILES_SHOWN_MAX])}{more})"
        )
    branch = _git(root, "rev-parse", "--abbrev-ref", "HEAD").strip()
    if _git(root, "remote").strip():
        ahead = _git(root, "rev-list", "--count", "@{upstream}..HEAD").strip()
        if not ahead:
            found.append(f"branch {branch} was never pushed")
        elif ahead != "0":
            found.append(f"{ahead} commits are not pushed")
    return found + _bead(root, branch)


def _bead(root: Path, branch: str) -> list[str]:
    """The bead the branch is named after, if beads says that it is not done."""
    path = root / ".beads" / "issues.jsonl"
    with suppress(OSError, ValueError):
        if not path.is_file() or path.stat().st_size > ISSUES_BYTES_MAX:
            return []
        for line in path.read_text("utf-8", "replace").splitlines():
            issue = json.loads(line) if line.strip() else {}
            ident, status = issue.get("id"), issue.get("status")
            named = isinstance(ident, str) and re.search(
                rf"(?<![\w.]){re.escape(ident)}(?![\w.])", branch, re.IGNORECASE
            )
            if named and status in _UNFINISHED:
                return [f"bead {ident} is {status}"]
    return []


def _git(root: Path, *arguments: str) -> str:
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(  # noqa: S603 (git, with our own arguments)
            ["git", "--no-optional-locks", *arguments],  # noqa: S607
            cwd=root,
            capture_output=True,
            timeout=GIT_S_MAX,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        return done.stdout.decode("utf-8", "replace")
    return ""


def _report(event: Event, said: str) -> str:
    """For the user's eyes; the agent goes on as it would."""
    return (
        json.dumps({"systemMessage": said})
        if event.agent in ("claude-code", "codex", "gemini")
        else ""
    )


def _blocking(event: Event, said: str) -> str:
    if event.agent == "cursor":
        return json.dumps({"followup_message": said})
    return json.dumps({"decision": "deny" if event.agent == "gemini" else "block", "reason": said})
