"""`commonplace links`: what a record is linked with, as seen from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_id, add_json, whole_number
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, print_json
from commonplace.foreign import one_line
from commonplace.learn.links import DEPTH_MAX, SeenLink

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLES = ("commonplace links les-use-npm-ci", "commonplace links les-use-npm-ci --depth 2")
ARROWS = {"out": "->", "in": "<-", "both": "<->"}
TITLE_CHARS_MAX = 80


def add_arguments(parser: ArgumentParser) -> None:
    add_id(parser)
    parser.add_argument(
        "--depth",
        metavar="N",
        type=whole_number(1, DEPTH_MAX),
        default=1,
        help="How many links to follow (default: 1)",
    )
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        found = memory.links(args.id, args.depth)
    if args.json:
        print_json([link.as_dict() for link in found])
        return 0
    for link in found:
        print(_line(link))
    if not found:
        note("It has no links")
    return 0


def _line(link: SeenLink) -> str:
    """Return a link in one line, indented by its distance from the record that was named."""
    weight = f" {link.w:g}" if link.w != 1 else ""
    start = "" if link.depth == 1 else f"{one_line(link.of)} "
    title = one_line(link.title[:TITLE_CHARS_MAX]) if link.kind else "(no such record here)"
    superseded = " (superseded)" if link.is_superseded else ""
    who = ", ".join(dict.fromkeys(f"{one['agent'] or one['id']}" for one in link.stated_by))
    return (
        f"{'  ' * (link.depth - 1)}{start}{ARROWS[link.direction]} {one_line(link.rel)}{weight}"
        f" {one_line(link.to)}  {title}{superseded}  [by {one_line(who)}]"
    )
