"""`commonplace resolve`: decide which of two contradicting records holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_id, add_json, suggest
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, print_json
from commonplace.errors import UsageError
from commonplace.foreign import one_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLES = (
    "commonplace resolve les-use-npm-ci les-use-npm-install --keep les-use-npm-ci",
    "commonplace resolve les-use-npm-ci les-use-npm-install --keep both",
)


def add_arguments(parser: ArgumentParser) -> None:
    add_id(parser)
    other = parser.add_argument("other", metavar="ID2", help="Id of the other, or its beginning")
    suggest(other, ())
    parser.add_argument(
        "--keep",
        metavar="ID|both",
        help="The one that holds; it then supersedes the other. `both`: they do not contradict",
    )
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    if args.keep is None:
        raise UsageError(
            "it is not said which of the two holds", "give `--keep ID` or `--keep both`"
        )
    with open_memory(args.home) as memory:
        done = memory.resolve(args.id, args.other, args.keep)
    if args.json:
        print_json(done)
    elif done["kept"] == "both":
        print(f"Both stay: {one_line(done['of'])} and {one_line(done['to'])}")
    else:
        loser = done["to"] if done["kept"] == done["of"] else done["of"]
        print(f"{one_line(done['kept'])} supersedes {one_line(loser)}")
        if not done["removed"]:
            note("nothing had said that the two contradict each other")
    return 0
