"""The completion check of an agent that stops: a worktree that is clean and pushed, a bead done.

Off by default. The setting `hooks.completion` makes it report to the user, or keep the agent at
work (`block`). It runs git, so it is a separate hook.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace import agents
from commonplace.files.plain import read_small
from commonplace.foreign import one_line
from commonplace.memory import Memory
from commonplace.sessions.fields import parse_object
from commonplace.sessions.payload import read_event
from commonplace.where import git

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

GIT_S_MAX = 3.0
FILES_SHOWN_MAX = 5
ISSUES_BYTES_MAX = 32 << 20
_UNFINISHED = frozenset(["open", "in_progress", "blocked", "todo"])


def check(agent: str, raw: bytes, cwd: str, variables: Collection[str]) -> str:
    """Return the reply when an agent or subagent stops: "", a report, or one that blocks."""
    event = read_event(agent, raw, at=time.time(), cwd=cwd, environment=variables)
    if event is None or event.kind not in ("stop", "subagent_stop") or not event.root:
        return ""
    with Memory.open(cwd=event.cwd, agent_id=event.name) as memory:
        mode = memory.settings["hooks.completion"]
        exempt = {event.subagent, event.name, event.agent} & set(memory.settings["hooks.exempt"])
    if mode == "off" or exempt:
        return ""
    found = findings(Path(event.root))
    if not found:
        return ""
    payload = parse_object(raw) or {}
    # Block only once: an agent that stops again has read the message, and may have a reason.
    is_second_stop = payload.get("stop_hook_active") is True or bool(payload.get("loop_count"))
    stopping = agents.find(event.agent)
    reply = stopping.completion_report
    if mode == "block" and not is_second_stop:
        reply = stopping.completion_block
    text = one_line(f"Not finished in {event.root}: {'; '.join(found)}")
    return json.dumps(reply(text)) if reply is not None else ""


def findings(root: Path) -> list[str]:
    """Return what is left to do in the worktree at *root*."""
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
    """Return the bead that the branch is named after, if it is not done."""
    latest: dict[str, str] = {}
    for ident, status in _issues(root):
        latest.setdefault(ident, status)
    return [
        f"bead {ident} is {status}"
        for ident, status in latest.items()
        if status in _UNFINISHED
        and re.search(rf"(?<![\w.]){re.escape(ident)}(?![\w.])", branch, re.IGNORECASE)
    ][:1]


def _issues(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the id and the status of each bead of the repository, the latest first.

    In a worktree `bd` works on the beads of the main worktree. A copy that is checked out in the
    worktree itself may be older, and is read after that.
    """
    for folder in dict.fromkeys([*_main_worktree(root), root]):
        with suppress(OSError):
            raw = read_small(folder / ".beads" / "issues.jsonl", ISSUES_BYTES_MAX)
            for line in reversed(raw.split(b"\n")):
                issue = parse_object(line) or {}
                if isinstance(issue.get("id"), str):
                    yield issue["id"], str(issue.get("status"))


def _main_worktree(root: Path) -> list[Path]:
    common = _git(root, "rev-parse", "--path-format=absolute", "--git-common-dir").strip()
    return [Path(common).parent] if common else []


def _git(root: Path, *arguments: str) -> str:
    return git.output(root, *arguments, seconds_max=GIT_S_MAX)
