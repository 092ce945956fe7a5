"""`commonplace backup`: a home in one file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_json
from commonplace.cli.commands import Command
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, number_of, print_json
from commonplace.cli.progress import progress
from commonplace.foreign import one_line
from commonplace.records import to_utc
from commonplace.transfer import backup
from commonplace.writing import now_utc

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def _add_file(parser: ArgumentParser, what: str) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help=what)
    add_home(parser)
    add_json(parser)


def add_create(parser: ArgumentParser) -> None:
    _add_file(parser, "The file to write, e.g. `memory.tar.gz`")


def create(args: Namespace) -> int:
    with open_memory(args.home) as memory, progress("files", quiet=args.json) as advance:
        made = backup.create(memory.home, args.file, to_utc(now_utc()), advance)
        home = memory.home.path
    if args.json:
        print_json({**made._asdict(), "home": str(home)})
        return 0
    print(f"Backed up `{one_line(str(home))}` to `{one_line(made.path)}`")
    print(f"  {number_of(made.files, 'file')}, {number_of(made.records, 'line')} of logs; verified")
    note("In it: logs, archives, notes, skills, settings, the inbox, snapshots, packs. Not in it:")
    note("the index, which is made from the logs, access tokens, usage counts, git's own folder")
    return 0


def add_restore(parser: ArgumentParser) -> None:
    _add_file(parser, "The backup to restore")
    parser.add_argument(
        "--replace",
        action="store_true",
        help="Put it in the place of a home that is not empty; that one is kept beside it",
    )


def restore(args: Namespace) -> int:
    with open_memory(args.home, to_write=True) as memory:
        home = memory.home
    stamp = now_utc().strftime("%Y%m%dT%H%M%SZ")
    summary, old = backup.restore(home, args.file, replace=args.replace, stamp=stamp)
    if args.json:
        kept = None if old is None else str(old)
        print_json({**summary._asdict(), "home": str(home.path), "kept": kept})
        return 0
    print(f"Restored `{one_line(str(home.path))}` from `{one_line(str(args.file))}`")
    count = number_of(summary.records, "line")
    print(f"  {number_of(summary.files, 'file')}, {count} of logs, as of {summary.created}")
    if old is not None:
        print(f"  the home that was there is now `{one_line(str(old))}`")
    return 0


COMMANDS = {
    "create": Command(
        "Write this home to one file, and verify it by reading it back",
        add_create,
        create,
        ("commonplace backup create memory.tar.gz",),
    ),
    "restore": Command(
        "Verify a backup and make the home from it",
        add_restore,
        restore,
        ("commonplace backup restore memory.tar.gz --home ~/restored",),
    ),
}
