"""`commonplace show`: a record as it is now."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from commonplace.cli.arguments import add_home, add_id, add_json
from commonplace.cli.columns import print_pairs
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import print_json, report_damages, terminal_columns
from commonplace.foreign import block, one_line, render_value

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.memory import Memory

# What a record says, in this order, and then its other fields.
_FIRST = ("lesson", "pattern", "what_fails", "label", "text", "context", "command", "success_rate")
# What is known about it, in this order.
_ABOUT = (
    *("id", "kind", "event_type", "timestamp", "agent_id", "repo", "standing", "feedback"),
    *("confidence", "usage_count", "last_used", "sources", "delivered", "last_delivered"),
    *("links", "meta", "whole", "path", "home", "trusted"),
)
# What the numbers of a pattern count.
_COUNTED = {"sources": "record", "delivered": "time"}
EXAMPLES = ("commonplace show les-always-ver",)


def add_arguments(parser: ArgumentParser) -> None:
    add_id(parser)
    parser.add_argument(
        "--whole",
        action="store_true",
        help="Show an episode that was summarized as it was before that",
    )
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        return show(memory, args.id, as_json=args.json, whole=args.whole)


def show(memory: Memory, ident: str, *, as_json: bool, whole: bool = False) -> int:
    """Print the latest version of the record, with the feedback on it."""
    described = memory.describe(ident, whole=whole)
    if as_json:
        print_json(described)
    else:
        print_record(described)
    report_damages(memory)
    return 0


def print_record(described: dict[str, Any]) -> None:
    """Print what the record says first, and what is known about it last."""
    filled = {name: value for name, value in described.items() if value not in ("", [], {}, None)}
    names = [*(name for name in _FIRST if name in filled), *filled]
    text, about = (
        [
            (one_line(name), block(_text(name, filled[name])))
            for name in dict.fromkeys(names)
            if (name in _ABOUT) == is_about
        ]
        for is_about in (False, True)
    )
    about.sort(key=lambda pair: _ABOUT.index(pair[0]))
    if terminal_columns() is None or not text:
        print_pairs([*text, *about])
        return
    from commonplace.cli.render import print_fields  # noqa: PLC0415 (it imports rich)

    print_fields(text[0][1], text[1:], about)


def _text(name: str, value: object) -> str:
    if name == "whole":
        return f"in the {value}; `commonplace show --whole` prints it"
    if name == "feedback" and isinstance(value, dict):
        counts = [f"{count} {outcome}" for outcome, count in value.items() if count]
        return ", ".join(counts) or "none yet"
    if name in _COUNTED and isinstance(value, int):
        return f"{value:,} {_COUNTED[name]}{'' if value == 1 else 's'}"
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return json.dumps(render_value(value), ensure_ascii=False)
