"""`commonplace where`: which home is in use here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_json
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, print_json

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.memory import Memory

EXAMPLES = ("commonplace where",)


def add_arguments(parser: ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    with open_memory(args.home, to_write=True) as memory:
        return show_homes(memory, as_json=args.json)


def show_homes(memory: Memory, *, as_json: bool) -> int:
    """Print the home in use, why it is, the homes that are read too, and the log of this folder."""
    nearest, *others = memory.homes
    repo = memory.repository.name
    if as_json:
        rows = [
            {
                "path": str(home.path),
                "why": home.why,
                "exists": home.path.is_dir(),
                "index": str(home.index_folder),
                "state": str(home.state_folder),
            }
            for home in memory.homes
        ]
        first = {name: rows[0][name] for name in ("why", "index", "state")}
        print_json({"home": rows[0]["path"], **first, "homes": rows, "repo": repo})
        return 0
    print(nearest.path)
    note(f"  {nearest.why}{'' if nearest.path.is_dir() else '; it is made on first use'}")
    if nearest.state_elsewhere:
        note(f"  this machine's state of it: {nearest.state_elsewhere}")
    for home in others:
        note(f"  also read: {home.path} ({home.why})")
    note(f"  lessons from this folder go to log/{repo}.jsonl")
    return 0
