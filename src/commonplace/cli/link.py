"""`commonplace link`: say how two records relate to each other."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_ends, add_home, add_json
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, print_json
from commonplace.foreign import one_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLES = ("commonplace link les-use-npm-ci supersedes les-use-npm-install",)


def add_arguments(parser: ArgumentParser) -> None:
    add_ends(parser)
    parser.add_argument(
        "--weight",
        metavar="W",
        type=share,
        default=1.0,
        help="How strong the link is, from 0 to 1 (default: 1.0)",
    )
    add_home(parser)
    add_json(parser)


def share(text: str) -> float:
    """Return a number from 0 to 1: the type of an argument."""
    try:
        value = float(text)
    except ValueError:
        raise ArgumentTypeError(f"is `{text}`, not a number") from None
    if not 0 <= value <= 1:
        raise ArgumentTypeError(f"is {text}, not between 0 and 1")
    return value


def run(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        fields = memory.link(args.id, args.rel, args.to, weight=args.weight).fields
        is_mutual = fields["rel"] == "supersedes" and any(
            link.rel == "superseded_by" and link.to == fields["to"]
            for link in memory.links(fields["of"])
        )
    if args.json:
        print_json(fields)
    else:
        print(one_line(f"{fields['of']} {fields['rel']} {fields['to']}"))
    if is_mutual:
        note("each supersedes the other now, so neither is hidden; `unlink` removes a link")
    return 0
