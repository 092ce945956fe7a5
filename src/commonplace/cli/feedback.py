"""`commonplace feedback`: report how using a memory went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_id, add_json, suggest
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import print_json
from commonplace.foreign import one_line
from commonplace.vocabulary import OUTCOMES

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.memory import Memory

EXAMPLES = ("commonplace feedback les-always-ver worked",)


def add_arguments(parser: ArgumentParser) -> None:
    add_id(parser, "memory")
    outcome = parser.add_argument(
        "outcome", metavar="OUTCOME", help=f"How it went: {', '.join(OUTCOMES)}"
    )
    suggest(outcome, OUTCOMES)
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        return give_feedback(memory, args.id, args.outcome, as_json=args.json)


def give_feedback(memory: Memory, ident: str, outcome: str, *, as_json: bool) -> int:
    """Record the *outcome* and print the success rate that results."""
    record = memory.feedback(ident, outcome)
    described = memory.describe(str(record.fields["of"]))
    if as_json:
        print_json({name: described.get(name) for name in ("id", "success_rate", "feedback")})
    else:
        rate = f", now {described['success_rate']}" if described.get("success_rate") else ""
        print(f"Noted: {outcome}{rate}  {one_line(described['id'])}")
    return 0
