"""`commonplace forget`: hide a record, or remove it for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_id, add_json
from commonplace.cli.confirm import confirm
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, number_of, print_json
from commonplace.cli.progress import progress
from commonplace.errors import FindingsLeft, RecordNotFound, UsageError
from commonplace.files.walk import walk
from commonplace.foreign import one_line
from commonplace.where import repository

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.erasure import Receipt
    from commonplace.memory import Memory

EXAMPLES = (
    "commonplace forget les-always-ver --reason 'no longer true'",
    "commonplace forget les-always-ver --undo",
    "commonplace forget les-always-ver --erase --yes",
)


def add_arguments(parser: ArgumentParser) -> None:
    add_id(parser)
    parser.add_argument(
        "--reason", metavar="TEXT", default="", help="Why; the history keeps it (default: none)"
    )
    parser.add_argument(
        "--erase",
        action="store_true",
        help="Remove the record and all copies for good, and search every file for leftovers",
    )
    parser.add_argument(
        "--yes", action="store_true", help="Erase without asking (a script is never asked)"
    )
    parser.add_argument("--undo", action="store_true", help="Bring back a forgotten record")
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    if args.undo and (args.erase or args.reason):
        raise UsageError("`--undo` takes no other flag", "leave `--erase` and `--reason` out")
    with open_memory(args.home) as memory:
        if args.undo:
            return restore(memory, args.id, as_json=args.json)
        if args.erase:
            if confirm(lambda: _question(memory, args.id), yes=args.yes):
                return erase(memory, args.id, as_json=args.json)
            note("Nothing was erased")
            return 0
        return hide(memory, args.id, args.reason, as_json=args.json)


def hide(memory: Memory, ident: str, reason: str, *, as_json: bool) -> int:
    """Hide the record and what derives from it."""
    if as_json:
        print_json(memory.forget(ident, reason).fields)
    else:
        others = memory.count_hidden_with(memory.get(ident).id)
        print(f"Forgotten: {one_line(memory.forget(ident, reason).fields['of'])}")
        if others:
            note(f"Hidden with it: {number_of(others, 'record')} derived from it")
        note(
            "It is no longer recalled; the history keeps it."
            " `--undo` brings it back, `--erase` removes it for good"
        )
    return 0


def restore(memory: Memory, ident: str, *, as_json: bool) -> int:
    """Bring back the record and what derives from it."""
    record = memory.restore(ident)
    if as_json:
        print_json(record.fields)
    else:
        print(f"Restored: {one_line(record.id)}")
    return 0


def _question(memory: Memory, ident: str) -> str:
    try:
        record = memory.get(ident)
    except RecordNotFound:
        return f"Erase `{one_line(ident)}` for good?"  # An interrupted erasure may know it.
    others = memory.count_derived(record.id)
    more = f", and {number_of(others, 'record')} derived from it" if others else ""
    return f"Erase `{one_line(record.id)}`{more}, for good? It cannot be undone."


def erase(memory: Memory, ident: str, *, as_json: bool) -> int:
    """Remove the record for good, and print a receipt."""
    with progress("lines", quiet=as_json) as advance:
        receipt = memory.erase(ident, advance)
    in_git = repository.find(memory.home.path).root is not None
    packs = _count_packs(memory)
    if as_json:
        print_json(
            {**receipt._asdict(), "git_history_may_hold_it": in_git, "packs_not_searched": packs}
        )
    else:
        _print_receipt(receipt)
        if in_git:
            note("This home is in a git repository: older commits still hold the record")
        if packs:
            held = number_of(packs, "encrypted pack")
            note(f"{held} in `packs/` could not be searched: delete those that hold it")
    if receipt.left_in:
        raise FindingsLeft(
            f"its text is still in {number_of(len(receipt.left_in), 'file')} of the home",
            "those are notes or records of their own: edit them, or erase them as well",
        )
    return 0


def _count_packs(memory: Memory) -> int:
    """Return how many files are in the folders of encrypted packs."""
    folders = [home.packs_folder for home in memory.homes]
    return sum(path.is_file() for folder in folders for path in walk(folder))


def _print_receipt(receipt: Receipt) -> None:
    print(f"Erased: {one_line(receipt.id)}")
    print(f"  records erased   {receipt.records_erased} ({receipt.derived_erased} derived from it)")
    rewritten = number_of(len(receipt.files_rewritten), "file")
    print(f"  lines removed    {receipt.lines_removed} in {rewritten}")
    if receipt.snapshot_lines:
        print(f"  in snapshots     {number_of(receipt.snapshot_lines, 'line')} removed")
    print(f"  searched after   {number_of(receipt.files_searched, 'file')}")
    print(f"  still found in   {one_line(', '.join(receipt.left_in)) or 'none'}")
