"""`commonplace init`: make a home."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_json
from commonplace.cli.output import print_json
from commonplace.where import homes, repository
from commonplace.where.home import FOLDER

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLES = ("commonplace init", "commonplace init --user")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--user",
        action="store_true",
        help="Make the user's home (default: one at the root of this repository)",
    )
    add_json(parser)


def run(args: Namespace) -> int:
    here = homes.current_folder()
    root = repository.find(here).root or here
    home = homes.user_home(os.environ) if args.user else homes.at(root / FOLDER, os.environ)
    new_paths = homes.make(home)
    if args.json:
        print_json({"home": str(home.path), "made": [str(path) for path in new_paths]})
    elif not new_paths:
        print(f"`{home.path}` is a home already; nothing changed")
    else:
        print(f"Made a home in `{home.path}`")
        for path in new_paths[1:] if new_paths[0] == home.path else new_paths:
            print(f"  + {path.relative_to(home.path)}")
    return 0
