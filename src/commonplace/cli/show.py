"""`commonplace show`: a record as it is now."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_id, add_json
from commonplace.cli.columns import print_pairs
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import print_json, report_damages
from commonplace.foreign import block, one_line, render_value

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.memory import Memory

EXAMPLES = ("commonplace show les-always-ver",)


def add_arguments(parser: ArgumentParser) -> None:
    add_id(parser)
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        return show(memory, args.id, as_json=args.json)


def show(memory: Memory, ident: str, *, as_json: bool) -> int:
    """Print the latest version of the record, with the feedback on it."""
    described = memory.describe(ident)
    if as_json:
        print_json(described)
    else:
        print_pairs(
            [
                (one_line(name), block(_text(name, value)))
                for name, value in described.items()
                if value not in ("", [], {}, None)
            ]
        )
    report_damages(memory)
    return 0


def _text(name: str, value: object) -> str:
    if name == "feedback" and isinstance(value, dict):
        counts = [f"{count} {outcome}" for outcome, count in value.items() if count]
        return ", ".join(counts) or "none yet"
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return json.dumps(render_value(value), ensure_ascii=False)
