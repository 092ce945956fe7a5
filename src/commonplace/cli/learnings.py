"""`commonplace learnings`: the errors of episodes with what solved them, by day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_json
from commonplace.cli.filters import add_scope, check_scope
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, print_json
from commonplace.foreign import one_line
from commonplace.records.episodes import NOTED_IN_FAILED_TASK

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLES = ("commonplace learnings", "commonplace learnings --day 2026-01-06 --json")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--day", metavar="DAY", help="Only this day, as YYYY-MM-DD (default: all)")
    add_scope(parser)
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    check_scope(args)
    with open_memory(args.home) as memory:
        days = memory.learnings(args.day, repo=args.repo, all_repos=args.all_repos)
    if args.json:
        print_json(days)
        return 0
    for day in days:
        print(day["day"])
        for learned in day["learnings"]:
            names = (one_line(learned[name]) for name in ("type", "message"))
            error = ": ".join(name for name in names if name)
            print(f"  {error}" if error else "  (an error without a message)")
            all_failed = learned["failed"] == learned["episodes"]
            label = NOTED_IN_FAILED_TASK.lower() if all_failed else "fixed by"
            print(f"    {label}: {one_line(learned['resolution'])}")
            print(f"    in {', '.join(map(one_line, learned['episodes']))}")
    if not days:
        note("No error in the episodes has a resolution yet")
    return 0
