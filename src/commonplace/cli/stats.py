"""`commonplace stats`: how many memories there are, and how many tokens recalls saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.cli.arguments import add_home, add_json
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, number_of, print_json
from commonplace.errors import UsageError
from commonplace.foreign import one_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLES = ("commonplace stats", "commonplace stats --savings")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--repo", metavar="NAME", help="Count only this log (default: all)")
    parser.add_argument(
        "--savings",
        action="store_true",
        help="Show how many tokens recalls saved, against the ten best records and the whole logs",
    )
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    if args.savings and args.repo:
        raise UsageError("`--savings` is counted over all logs", "leave `--repo` out")
    with open_memory(args.home) as memory:
        if args.savings:
            print_savings(memory.savings(), as_json=args.json)
        else:
            print_counts(memory.stats(args.repo or None), as_json=args.json)
    return 0


def print_counts(counts: dict[str, Any], *, as_json: bool, with_archive: bool = False) -> None:
    """Print how many records there are, by repository, kind and type."""
    if as_json:
        print_json(counts)
        return
    more = "of them" if with_archive else "more"
    print(f"{number_of(counts['records'], 'record')}, {counts['archived']:,} {more} in the archive")
    for name in ("repos", "kinds", "types"):
        for value, count in counts[name].items():
            print(f"  {name[:-1]:5} {one_line(value):40} {count:,}")


def print_savings(savings: dict[str, Any], *, as_json: bool) -> None:
    """Print what recalls delivered, and what their best records or whole logs would have cost."""
    if as_json:
        print_json(savings)
        return
    count = savings["recalls"]
    since = (
        f" since {savings['since'][:10]}, {savings['empty']:,} of them found nothing"
        if count
        else ""
    )
    print(f"{'recalls':24}  {count:,}{since}")

    def line(label: str, tokens: int, share: float | None = None) -> None:
        each = f" ({tokens / count:,.0f} a recall)" if count and share is None else ""
        part = f" ({share:.1%})" if share is not None else ""
        print(f"{label:24}  {tokens:,} tokens{each}{part}")

    line("delivered", savings["tokens_delivered"])
    line("the ten best instead", savings["tokens_best"])
    line("saved of the ten best", savings["tokens_saved_of_best"], savings["share_saved_of_best"])
    line("the whole logs instead", savings["tokens_logs"])
    line("saved of the logs", savings["tokens_saved"], savings["share_saved"])
    print(f"{'all logs now':24}  {savings['tokens_logs_now']:,} tokens")
    note(savings["definition"])
