"""`commonplace scan`: secrets in a home."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_json
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, number_of, print_json, relative_path
from commonplace.errors import FindingsLeft
from commonplace.foreign import one_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.memory import Memory

EXAMPLES = ("commonplace scan", "commonplace scan --fix")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--fix", action="store_true", help="Remove the secrets from the files")
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        return scan(memory, fix=args.fix, as_json=args.json)


def scan(memory: Memory, *, fix: bool, as_json: bool) -> int:
    """Print each secret by file, line, kind and field, never its value."""
    secrets = memory.scan(fix=fix)
    home = memory.home.path
    if as_json:
        rows = [
            {**secret._asdict(), "path": relative_path(secret.path, home)} for secret in secrets
        ]
        print_json({"secrets": rows, "fixed": fix})
    else:
        for secret in secrets:
            location = f"{relative_path(secret.path, home)}:{secret.line}"
            print(f"{one_line(location)}  {secret.kind}  {one_line(secret.field)}")
        if not secrets:
            note("No secrets found")
        elif fix:
            note(
                f"Removed {len(secrets)};"
                " change those passwords and keys all the same: they were on the disk"
            )
    if secrets and not fix:
        raise FindingsLeft(
            f"{number_of(len(secrets), 'secret')} found", "`commonplace scan --fix` removes them"
        )
    return 0
