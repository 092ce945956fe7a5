"""`commonplace snapshot`: keep what the memory holds now, compare it, and restore it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.cli.arguments import add_home, add_json
from commonplace.cli.columns import print_table
from commonplace.cli.commands import Command
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, number_of, print_json
from commonplace.foreign import one_line
from commonplace.records.nodes import node_of

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable

    from commonplace.records import Record

_TITLE_CHARS_MAX = 100
_LISTED_MAX = 20


def _add_snapshot(parser: ArgumentParser, name: str = "id", **options: Any) -> None:  # noqa: ANN401
    what = "The id of a snapshot, the start of it, or its name"
    parser.add_argument(name, metavar=name.upper(), help=what, **options)


def add_create(parser: ArgumentParser) -> None:
    parser.add_argument("--name", default="", help="A name to find it by")
    add_home(parser)
    add_json(parser)


def create(args: Namespace) -> int:
    with open_memory(args.home, to_write=True) as memory:
        made = memory.create_snapshot(args.name)
    if args.json:
        written = {"is_new": made.is_new, "bytes_written": made.bytes_written}
        print_json({**made.snapshot._asdict(), **written})
        return 0
    print(made.snapshot.id)
    held = f"{number_of(made.snapshot.lines, 'line')} of {number_of(made.snapshot.logs, 'log')}"
    cost = f"{made.bytes_written:,} new bytes" if made.is_new else "the same as before"
    note(f"{held}; {cost}")
    return 0


def add_list(parser: ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


def list_(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        found, unreadable = memory.snapshots(), memory.unreadable_snapshots()
    for path in unreadable:
        note(f"{path} cannot be read; `commonplace doctor` says why")
    if args.json:
        print_json([one._asdict() for one in found])
        return 0
    if not found:
        note("No snapshots yet; `commonplace snapshot create` makes one")
        return 0
    print_table(
        ("id", "created", "lines", "name"),
        [(one.id, one.created, f"{one.lines:,}", one_line(one.name)) for one in found],
        right=("lines",),
    )
    return 0


def add_show(parser: ArgumentParser) -> None:
    _add_snapshot(parser)
    add_home(parser)
    add_json(parser)


def show(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        snapshot, kinds = memory.describe_snapshot(args.id)
    if args.json:
        print_json({**snapshot._asdict(), "kinds": kinds, "records": sum(kinds.values())})
        return 0
    print(f"id       {snapshot.id}")
    if snapshot.name:
        print(f"name     {one_line(snapshot.name)}")
    print(f"created  {snapshot.created}")
    size = f"{number_of(snapshot.lines, 'line')}, {snapshot.bytes:,} bytes"
    print(f"logs     {snapshot.logs:,}: {size}")
    print(f"records  {sum(kinds.values()):,}{_counts(kinds)}")
    if snapshot.erased:
        print(f"erased   {number_of(snapshot.erased, 'erasure')} changed it since")
    return 0


def _counts(kinds: dict[str, int]) -> str:
    rows = ", ".join(f"{one_line(kind)} {count:,}" for kind, count in kinds.items())
    return f" ({rows})" if rows else ""


def add_diff(parser: ArgumentParser) -> None:
    _add_snapshot(parser)
    _add_snapshot(parser, "other", nargs="?", default="")
    add_home(parser)
    add_json(parser)


def diff(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        found = memory.snapshot_difference(args.id, args.other)
    if args.json:
        print_json(
            {
                "added": [record.fields for record in found.added.values()],
                "removed": [record.fields for record in found.removed.values()],
                "changed": [
                    {"before": before.fields, "after": after.fields}
                    for before, after in found.changed.values()
                ],
            }
        )
        return 0
    _print_records("+", found.added.values())
    _print_records("-", found.removed.values())
    _print_records("~", (after for _before, after in found.changed.values()))
    note(
        f"{len(found.added):,} added, {len(found.removed):,} removed or hidden,"
        f" {len(found.changed):,} changed"
    )
    return 0


def _print_records(sign: str, records: Iterable[Record]) -> None:
    for record in records:
        title = one_line(node_of(record).label)[:_TITLE_CHARS_MAX]
        print(f"{sign} {one_line(record.id)}  {one_line(record.kind)}  {title}")


def add_restore(parser: ArgumentParser) -> None:
    _add_snapshot(parser)
    parser.add_argument("--dry-run", action="store_true", help="Only say what would be written")
    add_home(parser)
    add_json(parser)


def restore(args: Namespace) -> int:
    with open_memory(args.home, to_write=True) as memory:
        done = memory.restore_snapshot(args.id, dry_run=args.dry_run)
    if args.json:
        print_json({**done._asdict(), "snapshot": done.snapshot.id, "dry_run": args.dry_run})
        return 0
    would = "Would restore" if args.dry_run else "Restored"
    print(f"{would} {done.snapshot.id}, made {done.snapshot.created}")
    for what, ids in (("the version of then", done.changed), ("came back", done.returned)):
        print(f"  {number_of(len(ids), 'record')}: {what}")
        for ident in ids[:_LISTED_MAX]:
            print(f"    {one_line(ident)}")
        if len(ids) > _LISTED_MAX:
            print(f"    and {len(ids) - _LISTED_MAX:,} more")
    print(f"  {number_of(done.stayed, 'record')} added since: left as they are")
    if done.before:
        note(
            f"The state before is kept: `commonplace snapshot restore {done.before}` writes its"
            " versions again; what came back now stays until you forget it"
        )
    return 0


COMMANDS = {
    "create": Command(
        "Keep what the logs hold now, and print the id of the snapshot",
        add_create,
        create,
        ("commonplace snapshot create --name before-import",),
    ),
    "list": Command(
        "List the snapshots, the newest first", add_list, list_, ("commonplace snapshot list",)
    ),
    "show": Command(
        "Show what a snapshot holds", add_show, show, ("commonplace snapshot show before-merge",)
    ),
    "diff": Command(
        "Show what was added, removed and changed since a snapshot, or until another",
        add_diff,
        diff,
        ("commonplace snapshot diff before-import",),
    ),
    "restore": Command(
        "Bring back what a snapshot held; it appends, and deletes nothing",
        add_restore,
        restore,
        ("commonplace snapshot restore before-import --dry-run",),
    ),
}
