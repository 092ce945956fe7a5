"""The filters of the commands that list what there is: which records, of which logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import comma_list, suggest
from commonplace.errors import UsageError
from commonplace.vocabulary import EVENT_TYPES, KIND_NAMES

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.recall.query import Narrowing


def add_scope(parser: ArgumentParser) -> None:
    parser.add_argument("--repo", metavar="NAME", help="Only this log (default: this repository's)")
    parser.add_argument("--all-repos", action="store_true", help="Every log of the homes in use")


def check_scope(args: Namespace) -> None:
    """Raise `UsageError` if both flags of `add_scope` are given."""
    if args.repo is not None and args.all_repos:
        raise UsageError("`--repo` and `--all-repos` exclude each other", "give one of them")


def add_filters(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add_scope(parser)
    for flag, metavar, values in (
        ("--type", "TYPE", EVENT_TYPES),
        ("--kind", "KIND", (*KIND_NAMES, "skill")),
        ("--tag", "TAG", ()),
    ):
        action = add(
            flag,
            metavar=metavar,
            action="extend",
            type=comma_list,
            help=f"Only records with this {metavar.lower()}; repeat it or use commas for several",
        )
        suggest(action, values)
    add("--agent", metavar="NAME", help="Only what this agent wrote")
    add("--since", metavar="WHEN", help="Nothing older: a date, or an age such as 30d or 12h")
    add("--all", action="store_true", help="The archive too")


def narrowing_of(args: Namespace) -> Narrowing:
    """Return the filters among the arguments."""
    check_scope(args)
    return {
        "repo": args.repo,
        "all_repos": args.all_repos,
        "types": args.type,
        "kinds": args.kind,
        "tags": args.tag,
        "agent": args.agent,
        "since": args.since,
        "archived": args.all,
    }
