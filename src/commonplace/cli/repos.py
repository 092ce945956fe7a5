"""`commonplace repos`: the repositories of a home; list, name, join, archive and delete them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from commonplace import repos
from commonplace.cli.arguments import add_home, add_json
from commonplace.cli.columns import print_table
from commonplace.cli.commands import Command
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, number_of, print_json, report_damages
from commonplace.errors import UsageError
from commonplace.foreign import one_line
from commonplace.where.repository import plain_name

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable

    from commonplace.memory import Memory

NAME_HELP = "The repository: its whole name, its plain name, or an older one"


def add_list(parser: ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


def run_list(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        return list_repos(memory, as_json=args.json)


def list_repos(memory: Memory, *, as_json: bool) -> int:
    """Print each log of the nearest home with its numbers of records, newest record and size."""
    aliases = memory.known_aliases()
    rows = [{**row, "aliases": names_of(aliases.of_log(row["repo"]))} for row in memory.repos()]
    if as_json:
        print_json(rows)
    elif not rows:
        note("No logs yet; `commonplace log --type … --lesson …` starts one")
    else:
        here = memory.repository.name
        print_table(
            ("repo", "records", "archived", "newest", "bytes"),
            [
                (
                    one_line(row["repo"]) + (" (here)" if row["repo"] == here else ""),
                    f"{row['records']:,}",
                    f"{row['archived']:,}",
                    one_line(row["newest"]),
                    f"{row['bytes']:,}",
                )
                for row in rows
            ],
            right=("records", "archived", "bytes"),
        )
        for row in rows:
            others = {plain_name(alias) for alias in row["aliases"]} - {plain_name(row["repo"])}
            if others:
                also = ", ".join(map(one_line, sorted(others)))
                note(f"{one_line(row['repo'])} is also known as {also}")
    report_damages(memory)
    return 0


def names_of(aliases: list[str]) -> list[str]:
    """Return the aliases that are names, without the hashes of ids."""
    return sorted(alias for alias in aliases if not alias.startswith("id-"))


def add_one(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help=NAME_HELP)
    add_list(parser)


def add_new(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="The name of the new log")
    add_list(parser)


def add_rename(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help=NAME_HELP)
    parser.add_argument("new", metavar="NEW", help="The name that it gets")
    add_list(parser)


def add_merge(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help=f"{NAME_HELP}; its log goes")
    parser.add_argument("into", metavar="INTO", help="The repository that gets its records")
    add_list(parser)


def add_delete(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help=NAME_HELP)
    parser.add_argument("--yes", action="store_true", help="Do not ask")
    add_list(parser)


def run_new(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        name = repos.new(memory, args.name)
    if args.json:
        print_json({"repo": name})
    else:
        print(f"Started: {one_line(name)}")
    return 0


def run_rename(args: Namespace) -> int:
    return _change(args, lambda memory: repos.rename(memory, args.name, args.new), "Renamed")


def run_merge(args: Namespace) -> int:
    return _change(args, lambda memory: repos.merge(memory, args.name, args.into), "Merged")


def run_archive(args: Namespace) -> int:
    code = _change(args, lambda memory: repos.archive(memory, args.name), "Archived")
    if not args.json:
        note("`commonplace recall --all` still finds its records")
    return code


def run_delete(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        if not args.yes:
            confirm(memory, args.name)
        deleted = repos.delete(memory, args.name)
        in_git = (memory.home.path / ".git").exists() or not memory.home.of_user
    if args.json:
        print_json({"repo": deleted.repo, "lines": deleted.lines})
        return 0
    print(f"Deleted: {one_line(deleted.repo)} ({number_of(deleted.lines, 'line')})")
    if in_git:
        note("If this home is in git, older commits still hold the records")
    return 0


def confirm(memory: Memory, name: str) -> None:
    """Ask on the terminal whether to delete *name*. Raises `UsageError` unless the user agrees."""
    if not sys.stdin.isatty():
        raise UsageError("deleting needs `--yes` where nobody can be asked", "add `--yes`")
    log = repos.find(memory, name)
    rows = {row["repo"]: row["records"] + row["archived"] for row in memory.repos()}
    # The logs of its older names are deleted with it.
    count = sum(rows.get(one, 0) for one in memory.known_aliases().names_of(log))
    note(f"Delete {number_of(count, 'record')} of {one_line(log)} for good? [y/N] ")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was deleted", "answer `y` to delete it")


def _change(args: Namespace, change: Callable[[Memory], repos.Moved], verb: str) -> int:
    """Make a change and print which log it concerned."""
    with open_memory(args.home) as memory:
        moved = change(memory)
    if args.json:
        print_json(moved._asdict())
    else:
        lines = number_of(moved.lines, "line")
        now = f" into {one_line(moved.now)}" if moved.now != moved.repo else ""
        print(f"{verb}: {one_line(moved.repo)}{now} ({lines})")
    return 0


COMMANDS = {
    "list": Command("List the logs of this home", add_list, run_list, ("commonplace repos",)),
    "new": Command(
        "Start an empty log", add_new, run_new, ("commonplace repos new release-notes",)
    ),
    "rename": Command(
        "Give a log another name; the old one still finds it",
        add_rename,
        run_rename,
        ("commonplace repos rename shop-1a2b3c4d shop",),
    ),
    "merge": Command(
        "Move all records of a repository into another",
        add_merge,
        run_merge,
        ("commonplace repos merge shop-1a2b3c4d shop",),
    ),
    "archive": Command(
        "Move all records of a repository to its archive",
        add_one,
        run_archive,
        ("commonplace repos archive shop",),
    ),
    "delete": Command(
        "Remove a repository's records for good",
        add_delete,
        run_delete,
        ("commonplace repos delete shop --yes",),
    ),
}
DEFAULT = "list"
