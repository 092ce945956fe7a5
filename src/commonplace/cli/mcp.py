"""`commonplace mcp`: serve the memory to one agent over stdio."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_agent, add_home, add_toolsets

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLES = ("commonplace mcp --agent reviewer", "claude mcp add commonplace -- commonplace mcp")


def add_arguments(parser: ArgumentParser) -> None:
    add_agent(parser, "The agent that is served")
    add_toolsets(parser)
    add_home(parser)


def run(args: Namespace) -> int:
    from commonplace.server.stdio import serve  # noqa: PLC0415 (loads the protocol's SDK)

    serve(args.home or None, args.agent, args.toolsets)
    return 0
