"""`commonplace tags`: the tags, and how many records have each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_json
from commonplace.cli.columns import print_table
from commonplace.cli.filters import add_filters, narrowing_of
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, print_json
from commonplace.foreign import one_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

# Models mark turns with `[INST]`; `foreign` knows such a token in capitals, and these have none.
_BRACKETS = str.maketrans("[]", "\u2039\u203a")
EXAMPLES = ("commonplace tags", "commonplace tags --all-repos --type error")


def add_arguments(parser: ArgumentParser) -> None:
    add_filters(parser)
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        counts = memory.tags(**narrowing_of(args))
    if args.json:
        print_json(counts)
    elif counts:
        rows = [(f"{count:,}", one_line(tag).translate(_BRACKETS)) for tag, count in counts.items()]
        print_table(("records", "tag"), rows, right=("records",))
    else:
        note("No tags yet; `commonplace tag ID +TAG` adds one")
    return 0
