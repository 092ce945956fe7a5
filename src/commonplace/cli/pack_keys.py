"""The keys that a command for packs takes: a passphrase is asked for, and never an argument."""

from __future__ import annotations

import getpass
import os
import sys
from typing import TYPE_CHECKING

from commonplace.errors import UsageError
from commonplace.packs import keys
from commonplace.packs.importing import home_of

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.memory import Memory

_HINT = f"set {keys.VARIABLE}, give `--passphrase-file`, or run it at a terminal"


def add_opening_keys(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--identity",
        metavar="FILE",
        help="The file of your private key, of age or ssh (default: that of `pack keygen`)",
    )
    _add_passphrase_file(parser)


def add_seal(parser: ArgumentParser) -> None:
    """Add how a pack is encrypted: one of three ways."""
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument(
        "--to",
        metavar="RECIPIENT",
        action="append",
        help="Encrypt for this public key (`age1…`, `ssh-ed25519 …`); may be repeated",
    )
    ways.add_argument("--passphrase", action="store_true", help="Encrypt by a passphrase")
    ways.add_argument(
        "--plain", action="store_true", help="Do not encrypt: anybody may read it; still signed"
    )
    _add_passphrase_file(parser)


def _add_passphrase_file(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--passphrase-file", metavar="FILE", help="A file whose first line is the passphrase"
    )


def opening_keys(memory: Memory, args: Namespace) -> keys.Keys:
    """Return what opens packs: the user is asked for a passphrase if a pack needs one."""
    found = keys.keys_from(memory.settings, home_of(memory), identity=args.identity or "")
    return found._replace(passphrase=lambda: _passphrase(memory, args))


def seal(memory: Memory, args: Namespace) -> keys.Seal | None:
    """Return how to encrypt; `None` for `--plain`. Without a way named, the settings decide."""
    if args.passphrase_file and (args.plain or args.to):
        other = "--plain" if args.plain else "--to"
        both = f"`--passphrase-file` and `{other}` exclude each other"
        raise UsageError(both, "give one of them")
    if args.plain:
        return None
    if args.to or []:
        return keys.Seal(recipients=tuple(args.to))
    if args.passphrase or args.passphrase_file:
        return keys.Seal(passphrase=_passphrase(memory, args, again=True))
    settings = memory.settings
    if not settings["packs.recipients"] and not settings["packs.passphrase_file"]:
        raise UsageError(
            "say who may open the pack",
            "`--to age1…` encrypts it for a key, `--passphrase` by a passphrase, `--plain` not",
        )
    return keys.seal_from(settings)


def _passphrase(memory: Memory, args: Namespace, *, again: bool = False) -> str:
    if args.passphrase_file:
        return keys.read_passphrase(args.passphrase_file, "--passphrase-file")
    if found := os.environ.get(keys.VARIABLE):
        return found
    if file := memory.settings["packs.passphrase_file"]:
        return keys.read_passphrase(file, "packs.passphrase_file")
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("a passphrase is needed, and nobody can be asked for it", _HINT)
    given = getpass.getpass("Passphrase: ")
    if not given:
        raise UsageError("the passphrase is empty", _HINT)
    if again and getpass.getpass("The same again: ") != given:
        raise UsageError("the two passphrases differ", "try again")
    return given
