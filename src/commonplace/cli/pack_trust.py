"""`commonplace pack trust`: whose packs are installed, and which pack leaves the quarantine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_json
from commonplace.cli.columns import print_table
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, number_of, print_json
from commonplace.cli.pack_vectors import make_vectors
from commonplace.errors import UsageError
from commonplace.foreign import one_line
from commonplace.packs import importing, quarantine, signing, trusted
from commonplace.records import to_utc

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.log.pack_logs import Released
    from commonplace.memory import Memory

# How the public key of a signer begins. No pack can be called that.
_KEY = "ed25519:"


def add_trust(parser: ArgumentParser) -> None:
    parser.add_argument(
        "key",
        nargs="?",
        default="",
        metavar="KEY|NAME",
        help="A signer's key, or a pack in quarantine (default: list the trusted signers)",
    )
    parser.add_argument("--name", default="", help="A name to know the signer by")
    parser.add_argument("--undo", action="store_true", help="Trust the signer no longer")
    add_home(parser)
    add_json(parser)


def trust(args: Namespace) -> int:
    with open_memory(args.home, to_write=bool(args.key)) as memory:
        if not args.key:
            return _list_signers(memory, as_json=args.json)
        if args.undo:
            return _distrust(memory, args)
        released = _release(memory, args)
        make_vectors(memory, sum(one.records for one in released), quiet=args.json)
    if args.json:
        rows = [one._asdict() for one in released]
        print_json({"key": args.key, "trusted": True, "installed": rows})
        return 0
    if args.key.startswith(_KEY):
        print(f"Trusted: {args.key}")
    for one in released:
        more = (
            f"; {one.kept:,} not taken, as records that are here have their ids" if one.kept else ""
        )
        print(f"Installed from quarantine: {one.name}, {number_of(one.records, 'record')}{more}")
    return 0


def _release(memory: Memory, args: Namespace) -> list[Released]:
    """Trust the signer, if one is named, and return what leaves the quarantine."""
    if not args.key.startswith(_KEY):
        return [quarantine.release(memory, args.key)]
    home = importing.home_of(memory)
    key = signing.parse_public(args.key)
    trusted.trust(home, key, one_line(args.name), to_utc(memory.now()))
    return [quarantine.release(memory, name) for name in quarantine.by_signer(home, key)]


def _distrust(memory: Memory, args: Namespace) -> int:
    if not args.key.startswith(_KEY):
        raise UsageError(
            "`--undo` takes the key of a signer", "`commonplace pack trust` lists them"
        )
    was_trusted = trusted.distrust(importing.home_of(memory), signing.parse_public(args.key))
    if args.json:
        print_json({"key": args.key, "trusted": False, "was_trusted": was_trusted})
    else:
        print(f"{'No longer trusted' if was_trusted else 'Was not trusted'}: {args.key}")
        note("Packs of that signer stay; `commonplace pack remove NAME` removes one")
    return 0


def _list_signers(memory: Memory, *, as_json: bool) -> int:
    found = trusted.signers(importing.home_of(memory))
    if as_json:
        print_json([one._asdict() for one in found])
    elif found:
        rows = [(one_line(one.name), one.since[:10], one.key) for one in found]
        print_table(("name", "since", "key"), rows, right=())
    else:
        note("Only you and Commonplace are trusted; `commonplace pack trust KEY` trusts one")
    return 0
