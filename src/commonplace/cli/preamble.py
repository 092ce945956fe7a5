"""`commonplace preamble`: what a harness puts into an agent's system prompt."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_agent, add_home, add_json
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import print_json

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLES = ("commonplace preamble --agent reviewer",)


def add_arguments(parser: ArgumentParser) -> None:
    add_agent(parser, "Whose system prompt")
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        text = memory.preamble(args.agent)
    if args.json:
        print_json({"text": text})
    else:
        sys.stdout.write(text)
    return 0
