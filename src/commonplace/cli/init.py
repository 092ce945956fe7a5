"""`commonplace init`: make a home."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import commonplace
from commonplace.cli.arguments import add_json
from commonplace.cli.output import print_json
from commonplace.errors import unusable
from commonplace.files import atomic
from commonplace.files.plain import read_small
from commonplace.where import homes, repository
from commonplace.where.home import FOLDER

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.where.home import Home

SCRIPT_BYTES_MAX = 1 << 16
EXAMPLES = ("commonplace init", "commonplace init --user", "commonplace init --script")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--user",
        action="store_true",
        help="Make the user's home (default: one at the root of this repository)",
    )
    parser.add_argument(
        "--script",
        action="store_true",
        help="Put `log_memory.sh`, which calls `commonplace log`, into the home's `scripts/`",
    )
    add_json(parser)


def run(args: Namespace) -> int:
    here = homes.current_folder()
    root = repository.find(here).root or here
    home = homes.user_home(os.environ) if args.user else homes.at(root / FOLDER, os.environ)
    new_paths = homes.make(home)
    if args.script and (script := _put_script(home)):
        new_paths.append(script)
    if args.json:
        print_json({"home": str(home.path), "made": [str(path) for path in new_paths]})
    elif not new_paths:
        print(f"`{home.path}` is a home already; nothing changed")
    else:
        print(f"Made a home in `{home.path}`")
        for path in new_paths[1:] if new_paths[0] == home.path else new_paths:
            print(f"  + {path.relative_to(home.path)}")
    return 0


def _put_script(home: Home) -> Path | None:
    """Write the script for agents that log from a shell; `None` if it is there as it should be."""
    content = (Path(commonplace.__file__).parent / "scripts" / home.script.name).read_bytes()
    try:
        if home.script.is_file() and read_small(home.script, SCRIPT_BYTES_MAX) == content:
            return None
        atomic.write(home.script, [content], mode=0o700)
    except OSError as error:
        raise unusable(home.script, error) from error
    return home.script
