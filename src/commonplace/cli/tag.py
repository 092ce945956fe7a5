"""`commonplace tag`: add tags to a record, or remove some."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_id, add_json, suggest
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, print_json
from commonplace.editing import change_tags
from commonplace.foreign import one_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLES = ("commonplace tag les-always-ver +ci -npm", "commonplace tag les-always-ver")
# `-npm` is a tag to remove, not a flag.
DASHED_VALUES = True


def add_arguments(parser: ArgumentParser) -> None:
    add_id(parser)
    tags = parser.add_argument(
        "tags",
        metavar="+TAG",
        nargs="*",
        default=[],
        help="Tag to add; -TAG removes one (default: print its tags)",
    )
    suggest(tags, ())
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    words = [word for text in args.tags for word in text.split(",")]
    with open_memory(args.home) as memory:
        record = memory.get(args.id)
        if words:
            # Here a tag without a sign is one to add: the command is not called `set-tags`.
            signed = [word if word[:1] in ("+", "-") else f"+{word}" for word in words if word]
            record = memory.edit(
                record.id, lambda latest: {"tags": change_tags(latest.tags, signed)}
            )
    if args.json:
        print_json({"id": record.id, "tags": list(record.tags)})
        return 0
    print(f"{one_line(record.id)}  {one_line(', '.join(record.tags))}".rstrip())
    if not record.tags:
        note("It has no tags")
    return 0
