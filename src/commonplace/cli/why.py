"""`commonplace why`: why a memory is, or is not, in the answer to a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_id, add_json
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, print_json
from commonplace.foreign import one_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.memory import Memory

EXAMPLES = ('commonplace why "npm install fails" les-always-ver',)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", help="The question")
    add_id(parser, "memory")
    parser.add_argument(
        "--repo",
        metavar="NAME",
        help="Search only this repository's log (default: as `recall` does)",
    )
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        return explain(memory, args.query, args.id, args.repo, as_json=args.json)


def explain(memory: Memory, query: str, ident: str, repo: str | None, *, as_json: bool) -> int:
    """Print the memory's place among all candidates, and every factor of its score."""
    explained = memory.why(query, ident, repo=repo).as_dict()
    here = memory.scope().here()
    explained["searched_here"] = explained.get("repo") in here
    if as_json:
        print_json(explained)
        return 0
    print(f"{explained['verdict'][0].upper()}{explained['verdict'][1:]}")
    if explained.get("repo") and not explained["searched_here"]:
        note(
            f"A recall in this folder searches {' and '.join(map(one_line, here))} first;"
            f" this memory is in `{one_line(explained['repo'])}`"
        )
    for name in ("place", "score", "relevance", "relevance_floor"):
        if explained.get(name) is not None:
            print(f"  {name:16} {explained[name]}")
    for name, value in explained["why"].items():
        print(f"  {name:16} {value:g}")
    return 0
