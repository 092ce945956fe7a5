"""`commonplace graph`: nodes and their links, as a tree to read, as DOT or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_json, whole_number
from commonplace.cli.columns import print_lines
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, print_json
from commonplace.errors import UsageError
from commonplace.learn.links import DEPTH_MAX

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLES = (
    "commonplace graph skill.cpp.raii --depth 2",
    "commonplace graph --dot",
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "id", metavar="ID", nargs="?", default="", help="The node in the middle (default: all)"
    )
    parser.add_argument(
        "--depth",
        metavar="N",
        type=whole_number(1, DEPTH_MAX),
        default=1,
        help="How many links to follow from it (default: 1)",
    )
    parser.add_argument("--dot", action="store_true", help="In the language of Graphviz")
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from commonplace.graph.drawing import to_dot, to_lines  # noqa: PLC0415 (help needs none of it)

    if args.dot and args.json:
        raise UsageError("`--dot` and `--json` exclude each other", "give one of them")
    with open_memory(args.home) as memory:
        drawing = memory.draw_graph(args.id, args.depth)
    if args.json:
        print_json(drawing.as_dict())
    elif args.dot:
        print(to_dot(drawing))
    else:
        print_lines(list(to_lines(drawing)))
    if not drawing.nodes:
        note("No nodes yet; `commonplace node put FILE` writes some")
    if drawing.is_cut:
        hint = "another node" if args.id else "a node"
        note(f"There is more than is drawn; name {hint} to see what is around it")
    return 0
