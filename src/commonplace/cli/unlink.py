"""`commonplace unlink`: remove a link between two records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_ends, add_home, add_json
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import print_json
from commonplace.foreign import one_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLES = ("commonplace unlink les-use-npm-ci supersedes les-use-npm-install",)


def add_arguments(parser: ArgumentParser) -> None:
    add_ends(parser)
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        stated_by = memory.unlink(args.id, args.rel, args.to)
    if args.json:
        print_json({"removed": True, "stated_by": stated_by})
    else:
        print(f"Removed: {one_line(', '.join(stated_by))}")
    return 0
