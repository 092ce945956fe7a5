"""`commonplace repos`: the logs of a home."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_json
from commonplace.cli.columns import print_table
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, print_json, report_damages
from commonplace.foreign import one_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.memory import Memory

EXAMPLES = ("commonplace repos",)


def add_arguments(parser: ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        return list_repos(memory, as_json=args.json)


def list_repos(memory: Memory, *, as_json: bool) -> int:
    """Print each log of the nearest home with its numbers of records, newest record and size."""
    rows = memory.repos()
    if as_json:
        print_json(rows)
    elif not rows:
        note("No logs yet; `commonplace log --type … --lesson …` starts one")
    else:
        here = memory.repository.name
        print_table(
            ("repo", "records", "archived", "newest", "bytes"),
            [
                (
                    one_line(row["repo"]) + (" (here)" if row["repo"] == here else ""),
                    f"{row['records']:,}",
                    f"{row['archived']:,}",
                    one_line(row["newest"]),
                    f"{row['bytes']:,}",
                )
                for row in rows
            ],
            right=("records", "archived", "bytes"),
        )
    report_damages(memory)
    return 0
