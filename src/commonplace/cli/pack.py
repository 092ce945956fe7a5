"""`commonplace pack`: knowledge in one signed file, to write, check, install and remove."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.cli.arguments import add_home, add_json, comma_list, suggest
from commonplace.cli.columns import print_table
from commonplace.cli.commands import Command
from commonplace.cli.confirm import confirm
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, number_of, print_json
from commonplace.cli.pack_keys import add_opening_keys, add_seal, opening_keys, seal
from commonplace.cli.pack_report import print_changes, print_exported, print_inspected
from commonplace.cli.pack_trust import add_trust, trust
from commonplace.cli.pack_vectors import make_vectors
from commonplace.cli.progress import progress
from commonplace.errors import UsageError
from commonplace.foreign import one_line
from commonplace.packs import (
    exporting,
    importing,
    inspection,
    installed,
    quarantine,
    review,
    shipped,
)
from commonplace.where import homes

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.memory import Memory
    from commonplace.packs.importing import Changes

DEFAULT = "list"


def _add_file(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="The file of the pack (`.kpack`)")


def _add_common(parser: ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


# --- Files ----------------------------------------------------------------------------------------


def add_export(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--select",
        required=True,
        metavar="WORDS",
        help="Which records: `domain:cpp`, `repo:x kind:pattern since:30d tag:y`; `*` for all",
    )
    add("--out", required=True, metavar="FILE", type=Path, help="The file to write (`.kpack`)")
    add_seal(parser)
    add("--name", help="The name of the pack (default: that of the file)")
    add("--version", help="Its version (default: the date)")
    add("--title", help="What it is about, in a line")
    add("--authors", metavar="NAMES", type=comma_list, help="Who wrote it")
    add("--licence", help="The licence of its texts, e.g. `CC-BY-4.0`")
    _add_common(parser)


def export(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        how = seal(memory, args)
        names = ("name", "version", "title", "authors", "licence")
        fields = {name: getattr(args, name) for name in names}
        out = args.out.expanduser().absolute()
        if not out.parent.is_dir():
            raise UsageError(f"there is no folder `{out.parent}`", "make it, or name another file")
        with progress("records", quiet=args.json) as advance:
            done = exporting.export_pack(memory, args.select, out, how, fields, advance)
    if args.json:
        print_json(done._asdict())
    else:
        print_exported(done)
    return 0


def add_inspect(parser: ArgumentParser) -> None:
    _add_file(parser)
    add_opening_keys(parser)
    _add_common(parser)


def inspect(args: Namespace) -> int:
    with open_memory(args.home, to_write=True) as memory:
        found = review.inspect(memory, args.file.expanduser(), opening_keys(memory, args))
    if args.json:
        print_json(found.as_dict())
    else:
        print_inspected(found)
    return 0


def verify(args: Namespace) -> int:
    with (
        open_memory(args.home, to_write=True) as memory,
        progress("bytes", quiet=args.json) as advance,
    ):
        keys = opening_keys(memory, args)
        found = inspection.inspect(args.file.expanduser(), keys, advance)
    if args.json:
        print_json(found._asdict())
    else:
        print(f"Verified: {found.manifest['id']}, {number_of(found.records, 'record')}")
        print(f"  signed by {found.signer}")
    return 0


def _add_dry_run(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="Show what would change only")


def add_import(parser: ArgumentParser) -> None:
    _add_file(parser)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--trust", action="store_true", help="Install it, whoever signed it")
    where.add_argument(
        "--quarantine", action="store_true", help="Put it into quarantine, whoever signed it"
    )
    _add_dry_run(parser)
    add_opening_keys(parser)
    _add_common(parser)


def import_(args: Namespace) -> int:
    options = importing.Options(trust=args.trust, quarantine=args.quarantine, dry_run=args.dry_run)
    return _import(args, options, "Installed")


def add_upgrade(parser: ArgumentParser) -> None:
    _add_file(parser)
    parser.add_argument("--trust", action="store_true", help="Even if its signer is not trusted")
    _add_dry_run(parser)
    add_opening_keys(parser)
    _add_common(parser)


def upgrade(args: Namespace) -> int:
    options = importing.Options(trust=args.trust, dry_run=args.dry_run, upgrade=True)
    return _import(args, options, "Upgraded")


def _import(args: Namespace, options: importing.Options, verb: str) -> int:
    with (
        open_memory(args.home, to_write=True) as memory,
        progress("records", quiet=args.json) as advance,
    ):
        keys = opening_keys(memory, args)
        if not args.dry_run:
            homes.make(importing.home_of(memory))
        done = importing.import_pack(memory, args.file.expanduser(), keys, options, advance)
        _settle(memory, done, quiet=args.json)
    return _report(done, verb, as_json=args.json)


def _settle(memory: Memory, done: Changes, *, quiet: bool) -> None:
    quarantine.settle(memory, done)
    if done.place == importing.INSTALLED and not done.dry_run:
        make_vectors(memory, done.added + done.changed, quiet=quiet)


def _report(done: Changes, verb: str, *, as_json: bool) -> int:
    if as_json:
        fields: dict[str, Any] = asdict(done)
        print_json({**fields, "flags": [flag._asdict() for flag in done.flags]})
    else:
        print_changes(done, verb)
    return 0


# --- Installed packs ------------------------------------------------------------------------------


def list_(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        found = installed.list_packs(memory)
    if args.json:
        print_json([one._asdict() for one in found])
        return 0
    if not found:
        names = ", ".join(shipped.names())
        note(f"No packs yet; `commonplace pack add NAME` installs one of {names}")
        return 0
    print_table(
        ("name", "version", "records", "state", "signer", "title"),
        [
            (
                one.name,
                one_line(one.version),
                f"{one.records:,}",
                "interrupted: import or remove it" if one.is_broken else one.place,
                one_line(one.signed_by) or one.signer[:24],
                one_line(one.title),
            )
            for one in found
        ],
        right=("records",),
    )
    return 0


def add_add(parser: ArgumentParser) -> None:
    name = parser.add_argument(
        "name", nargs="?", default="", metavar="NAME", help="Its name (default: list the names)"
    )
    suggest(name, shipped.names())
    _add_dry_run(parser)
    _add_common(parser)


def add(args: Namespace) -> int:
    if not args.name:
        if args.json:
            print_json(shipped.names())
        else:
            print("\n".join(shipped.names()))
        return 0
    with (
        open_memory(args.home, to_write=True) as memory,
        progress("records", quiet=args.json) as advance,
    ):
        done = shipped.add(memory, args.name, dry_run=args.dry_run, progress=advance)
        _settle(memory, done, quiet=args.json)
    return _report(done, "Installed", as_json=args.json)


def add_remove(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="The name of the pack")
    parser.add_argument("--yes", action="store_true", help="Do not ask at a terminal")
    _add_common(parser)


def remove(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        installed.find(memory, args.name)

        def question() -> str:
            edits = installed.count_edited(memory, args.name)
            theirs = f", and {number_of(edits, 'record')} of it that you edited" if edits else ""
            return f"Remove `{args.name}` with all its records{theirs}?"

        if not confirm(question, yes=args.yes or args.json):
            note("Nothing was removed")
            return 1
        with progress("lines", quiet=args.json) as advance:
            done = installed.remove(memory, args.name, advance)
    if args.json:
        print_json(done._asdict())
        return 0
    print(f"Removed: {done.name}, {number_of(done.records, 'record')}")
    if done.edited:
        print(f"  - {number_of(done.edited, 'record')} that had been edited here")
    if done.lines_about:
        print(f"  - {number_of(done.lines_about, 'line')} about its records in other logs")
    for path in done.left_in:
        note(f"`{one_line(path)}` still names one of its records")
    return 0


def keygen(args: Namespace) -> int:
    with open_memory(args.home, to_write=True) as memory:
        found = inspection.make_keys(memory)
    if args.json:
        print_json(found._asdict())
        return 0
    print(f"recipient    {found.recipient}")
    print(f"signer       {found.signer}")
    print(f"fingerprint  {found.fingerprint}")
    note("Others encrypt packs for you with `--to RECIPIENT`; they trust yours by the signer")
    return 0


COMMANDS = {
    "export": Command(
        "Write chosen records to a file, encrypted or plain, and signed",
        add_export,
        export,
        (
            'commonplace pack export --select "domain:cpp" --out cpp.kpack --to age1…',
            "commonplace pack export --select repo:shop --out shop.kpack --plain",
        ),
    ),
    "inspect": Command(
        "Show what a pack says it is, who signed it, and what in it is suspicious",
        add_inspect,
        inspect,
        ("commonplace pack inspect cpp.kpack",),
    ),
    "verify": Command(
        "Check the signature and every byte of a pack",
        add_inspect,
        verify,
        ("commonplace pack verify cpp.kpack",),
    ),
    "import": Command(
        "Install a pack; by an unknown signer, it goes to quarantine",
        add_import,
        import_,
        ("commonplace pack import cpp.kpack --dry-run", "commonplace pack import cpp.kpack"),
    ),
    "upgrade": Command(
        "Put another version in the place of an installed pack",
        add_upgrade,
        upgrade,
        ("commonplace pack upgrade cpp.kpack --dry-run",),
    ),
    "list": Command(
        "List the packs that are installed or in quarantine",
        _add_common,
        list_,
        ("commonplace pack list",),
    ),
    "remove": Command(
        "Remove a pack with all its records",
        add_remove,
        remove,
        ("commonplace pack remove cpp-core",),
    ),
    "add": Command(
        "Install a pack that comes with Commonplace",
        add_add,
        add,
        ("commonplace pack add cpp-core",),
    ),
    "trust": Command(
        "Trust a signer, or install one pack from quarantine",
        add_trust,
        trust,
        ("commonplace pack trust ed25519:… --name alice", "commonplace pack trust their-pack"),
    ),
    "keygen": Command(
        "Show your keys for packs, and make them if there are none",
        _add_common,
        keygen,
        ("commonplace pack keygen",),
    ),
}
