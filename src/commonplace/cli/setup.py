"""`commonplace setup`: its arguments, and how the changes to settings files are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace import agents
from commonplace.characters import remove_hidden
from commonplace.cli.apply_setup import Request, ask, setup
from commonplace.cli.arguments import add_json, suggest
from commonplace.cli.output import note, print_json, style
from commonplace.errors import UsageError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from commonplace.setup.plan import Change

EXAMPLES = (
    "commonplace setup --dry-run",
    "commonplace setup claude-code codex --project",
    "commonplace setup --undo",
)
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_DONE = {"make": "Made", "change": "Changed", "remove": "Removed"}


def add_arguments(parser: ArgumentParser) -> None:
    names = [agent.name for agent in agents.all()]
    chosen = parser.add_argument(
        "agents",
        metavar="AGENT",
        nargs="*",
        help=f"Agents to set up: {', '.join(names)} (default: those that are installed)",
    )
    suggest(chosen, names)
    add = parser.add_argument
    add("--project", action="store_true", help="Change the settings files of this repository")
    add("--user", action="store_true", help="Change your own, for every repository (default)")
    add("--dry-run", action="store_true", help="Show what would change, and change nothing")
    add("--undo", action="store_true", help="Remove everything that setup added")
    add("-y", "--yes", action="store_true", help="Do not ask before changing files")
    add_json(parser)


def run(args: Namespace) -> int:
    if args.project and args.user:
        raise UsageError(
            "`--project` and `--user` contradict each other", "give one; the default is `--user`"
        )
    setup(
        Request(args.agents, args.project, args.dry_run, args.undo),
        lambda report, changes: _report(report, changes, as_json=args.json),
        (lambda _request, _count: True) if args.yes else ask,
    )
    return 0


def _report(report: dict[str, Any], changes: Sequence[Change], *, as_json: bool) -> None:
    """Print what setup would change, as a diff, and afterwards what it did; as JSON, only that."""
    if as_json:
        if report["done"] is not None:
            print_json({**report, "files": [_file_fields(change) for change in changes]})
    elif report["done"] is None:
        _print_plan(report, changes)
    elif report["done"]:
        for change in changes:
            if change.action != "unchanged" and not change.left_alone:
                print(f"{_DONE[change.action]} {change.path} ({', '.join(change.what)})")
        for condition in report["conditions"].values():
            note(condition)
        undo = "" if report["undo"] else "; `--undo` removes it again"
        note(f"Restart the agents for this to take effect{undo}")


def _print_plan(report: dict[str, Any], changes: Sequence[Change]) -> None:
    for name, why in report["agents"].items():
        note(f"{name}: {why}")
    if report["temporary"] and not report["undo"]:
        note(
            "This installation is temporary;"
            " `uv tool install commonplace` makes one that agents can rely on"
        )
    for change in changes:
        for line in change.diff():
            print(style(remove_hidden(line), _COLOURS.get(line[:1], "")))
        if change.remark:
            note(f"{change.path}: {change.remark}")
    if all(change.action == "unchanged" for change in changes):
        print("Nothing to undo" if report["undo"] else "Everything is set up already")


def _file_fields(change: Change) -> dict[str, Any]:
    return {
        "path": str(change.path),
        "agents": change.agents,
        "what": change.what,
        "action": change.action,
        "reason": change.left_alone or change.remark,
        "diff": "\n".join(change.diff()),
    }
