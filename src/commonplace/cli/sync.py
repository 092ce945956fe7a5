"""`commonplace sync`: pull, merge and push a home that is a git repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_json
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import number_of, print_json
from commonplace.foreign import one_line
from commonplace.transfer.sync import sync

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLES = ("commonplace sync", "commonplace sync --home ~/.commonplace")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--message",
        metavar="TEXT",
        default="memory: sync",
        help="Message of the commit (default: %(default)s)",
    )
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        done = sync(memory.home, args.message, trusted=memory.trusts(memory.home))
    if args.json:
        print_json(done._asdict())
        return 0
    print(f"Synced with `{one_line(done.remote)}` ({one_line(done.branch)})")
    print(f"  received  {number_of(done.received, 'commit')}")
    print(f"  sent      {number_of(done.sent, 'commit')}")
    return 0
