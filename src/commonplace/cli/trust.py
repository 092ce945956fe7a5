"""`commonplace trust`: trust the home that a repository brought."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.announce import describe
from commonplace.cli.arguments import add_json
from commonplace.cli.output import print_json
from commonplace.errors import CommonplaceError, UsageError
from commonplace.foreign import one_line
from commonplace.memory import Memory
from commonplace.where import homes, repository, trust
from commonplace.where.home import FOLDER

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.where.home import Home

EXAMPLES = (
    "commonplace trust",
    "commonplace trust ~/src/shop",
    "commonplace trust --undo",
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "folder",
        nargs="?",
        default="",
        metavar="FOLDER",
        help="A folder of the repository (default: this folder)",
    )
    parser.add_argument("--undo", action="store_true", help="Trust it no longer")
    add_json(parser)


def _trust(home: Home, folder: Path) -> str:
    """Trust *home*, and return what it holds. If it cannot be opened, it is not trusted either."""
    before = trust.is_trusted(home)
    trust.trust(home)
    try:
        with Memory.open(cwd=folder) as memory:
            return describe(memory)
    except CommonplaceError:
        if not before:
            trust.distrust(home)
        raise


def run(args: Namespace) -> int:
    folder = Path(args.folder).expanduser() if args.folder else homes.current_folder()
    if not folder.is_dir():
        raise UsageError(f"`{folder}` is no folder", "name a folder of the repository")
    if folder.name == FOLDER:
        folder = folder.parent
    home = homes.find(None, folder.resolve(), repository.find(folder.resolve()), os.environ)[0]
    if home.of_user:
        raise UsageError(
            f"the repository of `{folder}` has no home of its own",
            "the user's home is always trusted; `commonplace init` makes one in a repository",
        )
    homes.check_usable(home._replace(trusted=True))  # Its owner may be the reason to trust it.
    if args.undo:
        trust.distrust(home)
        text = ""
    else:
        text = f" ({_trust(home, folder)})"
    if args.json:
        print_json({"home": str(home.path), "trusted": not args.undo})
    else:
        path = one_line(str(home.path))
        print(f"{'No longer trusted' if args.undo else 'Trusted'}: {path}{text}")
    return 0
