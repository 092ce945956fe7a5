"""`commonplace setup`: say what would change, ask, do it; and for `doctor`, say who is wired."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import NoAgentFound, SetupIncomplete, UsageError
from commonplace.setup import launch, plan
from commonplace.setup.agents import AGENTS, Where
from commonplace.where import homes, repository

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from commonplace.memory import Memory
    from commonplace.setup.plan import Change


class Asked(NamedTuple):
    """What the command line asked for."""

    agents: list[str]
    project: bool
    dry_run: bool
    undo: bool


def setup(
    asked: Asked,
    tell: Callable[[dict[str, Any], Sequence[Change]], None],
    agree: Callable[[int], bool],
) -> None:
    """Tell what would change; do it, unless this is a dry run or *agree* says no; and tell what was done."""
    where = _project() if asked.project else _user()
    programs = launch.programs(shared=asked.project)
    agents, changes = _chosen(asked, where, programs)
    told: dict[str, Any] = {
        "scope": "project" if asked.project else "user",
        "root": str(where.root),
        "undo": asked.undo,
        "agents": agents,
        "temporary": launch.is_temporary(programs),
        "done": None,  # Not yet known.
    }
    to_do = [change for change in changes if change.action not in ("unchanged", "left alone")]
    tell(told, changes)
    done = bool(to_do) and not asked.dry_run and agree(len(to_do))
    if done:
        folders = plan.Folders(homes.of_user(os.environ).setup_file)
        changes = [plan.carry_out(change, where, folders) for change in changes]
        folders.save()
    tell({**told, "done": done}, changes)
    left = [change for change in changes if change.left_alone]
    if left:
        raise SetupIncomplete([(change.path, change.left_alone) for change in left], len(changes))


def _chosen(
    asked: Asked, where: Where, programs: launch.Programs
) -> tuple[dict[str, str], list[Change]]:
    """The agents to set up, each with the reason, and what changes for them."""
    for name in asked.agents:
        if name not in AGENTS:
            raise UsageError(f"there is no agent `{name}`", f"there are {', '.join(AGENTS)}")
    if asked.agents:
        agents = dict.fromkeys(asked.agents, "it was named")
    elif asked.undo:
        agents = dict.fromkeys(AGENTS, "")
    else:
        agents = plan.present(where)
        if not agents:
            raise NoAgentFound(list(AGENTS))
    changes = plan.planned(list(agents), where, programs, undo=asked.undo)
    if asked.undo and not asked.agents:
        # Every agent's files were looked at; those with nothing of ours in them are nobody's concern.
        changes = [change for change in changes if change.action != "unchanged"]
        agents = {
            name: "it is wired"
            for name in agents
            if any(name in change.agents for change in changes)
        }
    return agents, changes


def wiring(memory: Memory) -> list[dict[str, Any]]:
    """Who is wired here, for the user and for the project, and when each one's hook last ran."""
    places = [_user()] + ([_project()] if memory.repository.root is not None else [])
    found = [
        row
        for where in places
        for row in plan.wired(where, launch.programs(shared=not where.of_user))
    ]
    folders = [home.hook_marks_folder for home in memory.homes]
    rows: list[dict[str, Any]] = [
        {**row._asdict(), "hook_last_ran": _last_ran(folders, row.agent)} for row in found
    ]
    unwired = [name for name in plan.present(_user()) if name not in {row.agent for row in found}]
    return rows + [
        {"agent": name, "scope": "", "parts": [], "outdated": [], "hook_last_ran": None}
        for name in unwired
    ]


def ask(count: int) -> bool:
    """Whether to go on: asked of a person at a terminal, and taken for granted everywhere else."""
    if sys.stdin is None or not sys.stdin.isatty():
        return True
    sys.stderr.write(f"Change {'this file' if count == 1 else f'these {count} files'}? [Y/n] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("", "y", "yes")


def _project() -> Where:
    here = homes.current_folder()
    return Where(repository.find(here).root or here, of_user=False, environment=os.environ)


def _user() -> Where:
    return Where(homes.user_folder(os.environ), of_user=True, environment=os.environ)


def _last_ran(folders: Sequence[Path], agent: str) -> str | None:
    """When the agent's hook last ran here: it touches a file of its name each time."""
    times = []
    for folder in folders:
        try:
            times.append((folder / agent).stat().st_mtime)
        except OSError:
            continue
    return datetime.fromtimestamp(max(times), UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if times else None
