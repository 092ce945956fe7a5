"""`commonplace setup`: show what would change, ask, change it. For `doctor`: who is connected."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace import agents
from commonplace.agents.parts import Scope
from commonplace.errors import NoAgentFound, SetupIncomplete, UsageError
from commonplace.setup import launch, plan
from commonplace.where import homes, repository

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from commonplace.memory import Memory
    from commonplace.setup.plan import Change


class Request(NamedTuple):
    """The arguments of the command."""

    agents: list[str]
    project: bool
    dry_run: bool
    undo: bool


def setup(
    request: Request,
    show: Callable[[dict[str, Any], Sequence[Change]], None],
    confirm: Callable[[Request, int], bool],
) -> None:
    """Show the plan; apply it, unless this is a dry run or *confirm* says no; show the result."""
    scope = _project() if request.project else _user()
    programs = launch.programs(shared=request.project)
    chosen, changes = _plan(request, scope, programs)
    report: dict[str, Any] = {
        "scope": "project" if request.project else "user",
        "root": str(scope.root),
        "undo": request.undo,
        "agents": chosen,
        "temporary": launch.is_temporary(programs),
        "conditions": {},
        "done": None,  # Not yet known.
    }
    if not request.undo:
        report["conditions"] = {
            name: condition
            for name in chosen
            if (condition := agents.find(name).condition(report["scope"]))
        }
    pending = [change for change in changes if change.action not in ("unchanged", "left alone")]
    # `setup --yes | head` closes the pipe: what was asked for is done nevertheless.
    with suppress(BrokenPipeError):
        show(report, changes)
    done = bool(pending) and not request.dry_run and confirm(request, len(pending))
    if done:
        home = homes.user_home(os.environ)
        homes.check_usable(home)
        folders = plan.Folders(home.setup_file)
        changes = [plan.apply(change, scope, folders) for change in changes]
        folders.save()
    show({**report, "done": done}, changes)
    left = [change for change in changes if change.left_alone]
    if left:
        raise SetupIncomplete([(change.path, change.left_alone) for change in left], len(changes))


def _plan(
    request: Request, scope: Scope, programs: launch.Programs
) -> tuple[dict[str, str], list[Change]]:
    """Return the agents to set up, each with the reason, and what changes for them."""
    names = [agent.name for agent in agents.all()]
    for name in request.agents:
        if name not in names:
            raise UsageError(f"there is no agent `{name}`", f"there are {', '.join(names)}")
    if request.agents:
        chosen = dict.fromkeys(request.agents, "it was named")
    elif request.undo:
        chosen = dict.fromkeys(names, "")
    else:
        chosen = plan.find_agents(scope)
        if not chosen:
            raise NoAgentFound(names)
    changes = plan.plan_changes(list(chosen), scope, programs, undo=request.undo)
    if request.undo and not request.agents:
        # The files of every agent were checked; those without anything of ours are not reported.
        # Several agents may share a file; only those that something was set up for are named.
        chosen = {row.agent: "it is connected" for row in plan.find_wiring(scope, programs)}
        changes = [
            change._replace(
                agents=tuple(name for name in change.agents if name in chosen) or change.agents
            )
            for change in changes
            if change.action != "unchanged"
        ]
    return chosen, changes


def wiring(memory: Memory) -> list[dict[str, Any]]:
    """Return the agents that are connected, for user and project, and when their hooks last ran."""
    scopes = [_user()] + ([_project()] if memory.repository.root is not None else [])
    found = [
        row
        for scope in scopes
        for row in plan.find_wiring(scope, launch.programs(shared=not scope.of_user))
    ]
    folders = [home.hook_marks_folder for home in memory.homes]
    rows: list[dict[str, Any]] = []
    for row in found:
        last = _last_ran(folders, row.agent)
        # A hook that has run has been accepted.
        condition = "" if last else agents.find(row.agent).condition(row.scope)
        rows.append({**row._asdict(), "hook_last_ran": last, "condition": condition})
    unconnected = [
        name for name in plan.find_agents(_user()) if name not in {row.agent for row in found}
    ]
    return rows + [
        {
            "agent": name,
            "scope": "",
            "parts": [],
            "outdated": [],
            "hook_last_ran": None,
            "condition": "",
        }
        for name in unconnected
    ]


def ask(request: Request, count: int) -> bool:
    """Ask at a terminal whether to go on. Without one, the command must have said what it changes.

    Naming the agents and `--project` does: those files are in the repository, whose diff shows
    them. The user's own settings, or those of whatever agents are found, need `--yes`.
    """
    files = "this file" if count == 1 else f"these {count} files"
    if sys.stdin is None or not sys.stdin.isatty():
        if request.project and request.agents:
            return True
        raise UsageError(
            f"`setup` asks before it changes {files}, and there is no terminal to ask at",
            "`--yes` changes without asking, `--dry-run` only shows what would change",
        )
    sys.stderr.write(f"Change {files}? [Y/n] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("", "y", "yes")


def _project() -> Scope:
    here = homes.current_folder()
    return Scope(repository.find(here).root or here, of_user=False, environment=os.environ)


def _user() -> Scope:
    return Scope(homes.user_folder(os.environ), of_user=True, environment=os.environ)


def _last_ran(folders: Sequence[Path], agent: str) -> str | None:
    """Return when the agent's hook last ran: it touches a file with the agent's name."""
    times = []
    for folder in folders:
        try:
            times.append((folder / agent).stat().st_mtime)
        except OSError:
            continue
    return datetime.fromtimestamp(max(times), UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if times else None
