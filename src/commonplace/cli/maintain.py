"""`commonplace maintain`: move old lines of long logs to the archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_json
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import print_json

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.memory import Memory

EXAMPLES = ("commonplace maintain",)


def add_arguments(parser: ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        return maintain(memory, as_json=args.json)


def maintain(memory: Memory, *, as_json: bool) -> int:
    """Rotate the logs that are too long, and print which."""
    rotations = memory.maintain()
    if as_json:
        print_json([{**rotation._asdict(), "path": str(rotation.path)} for rotation in rotations])
        return 0
    for rotation in rotations:
        print(
            f"Rotated {rotation.path.name}: {rotation.lines_moved:,} lines to the archive,"
            f" {rotation.lines_left:,} left"
        )
    if not rotations:
        print("Nothing to do")
    return 0
