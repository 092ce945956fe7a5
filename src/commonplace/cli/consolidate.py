"""`commonplace consolidate`: make patterns of what several tasks have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_json
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, number_of, print_json
from commonplace.errors import UsageError
from commonplace.foreign import one_line
from commonplace.records.sentences import sentence_of

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.learn.batches import Batch
    from commonplace.learn.consolidation import Report
    from commonplace.memory import Memory
    from commonplace.records import Record

EXAMPLES = (
    "commonplace consolidate --dry-run",
    "commonplace consolidate --since 30d",
    "commonplace consolidate --undo batch-20261116-101500-1f3a",
)
HELD_BACK_SHOWN_MAX = 10


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--since",
        metavar="WHEN",
        help="Look at episodes and lessons that are not older: a date, or an age"
        " (default: all that are new; at the first time, of the last 24h)",
    )
    parser.add_argument("--dry-run", action="store_true", help="Say what would be written")
    parser.add_argument("--log", action="store_true", help="List the batches of automatic changes")
    parser.add_argument("--undo", metavar="BATCH", help="Undo a batch, by its name or its start")
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    if args.log + (args.undo is not None) + (args.since is not None or args.dry_run) > 1:
        raise UsageError("`--log`, `--undo` and a consolidation exclude each other", "give one")
    with open_memory(args.home) as memory:
        if args.log:
            return _log(memory, as_json=args.json)
        if args.undo is not None:
            return _undo(memory, args.undo, as_json=args.json)
        report = memory.consolidate(args.since, dry_run=args.dry_run)
    if args.json:
        print_json(report.as_dict())
    else:
        _print(report)
    return 0


def _print(report: Report) -> None:
    if report.busy:
        note("Another process consolidates this home at the moment; nothing was done")
        return
    for record in report.made:
        print(f"{one_line(record.id)}  {_text(record)}")
    for record in report.changed:
        print(f"{one_line(record.id)}  gained evidence: {_text(record)}")
    for held in report.held_back[:HELD_BACK_SHOWN_MAX]:
        says = held.fields.get("pattern") or held.fields.get("what_fails")
        note(f"held back: {one_line(str(says))}: {one_line(held.reason)}")
    if more := len(report.held_back[HELD_BACK_SHOWN_MAX:]):
        note(f"… and {number_of(more, 'more', 'more')}; `--json` has all")
    made = number_of(len(report.made), "record")
    would = "would be " if report.dry_run else ""
    note(
        f"{number_of(report.looked_at, 'new record')} read: {made} {would}made,"
        f" {len(report.changed)} {would}given evidence, {len(report.held_back)} held back"
    )
    if report.proposed:
        note(f"{number_of(report.proposed, 'candidate')} in the inbox: `commonplace inbox`")
    if report.batch and not report.dry_run:
        note(f"`commonplace consolidate --undo {report.batch}` undoes it")


def _text(record: Record) -> str:
    confidence = record.fields.get("confidence")
    sure = "" if confidence is None else f" ({confidence})"
    return one_line(sentence_of(record) + sure)


def _log(memory: Memory, *, as_json: bool) -> int:
    found = memory.batches()
    if as_json:
        print_json([one.as_dict() for one in found])
    elif not found:
        note("No batch yet")
    else:
        for one in found:
            print(_line(one))
    return 0


def _undo(memory: Memory, name: str, *, as_json: bool) -> int:
    batch = memory.undo(name)
    if as_json:
        print_json(batch.as_dict())
    elif batch.made or batch.changed:
        print(f"Undone: {_line(batch._replace(undone=False))}")
    else:
        note(
            f"{one_line(batch.id)} was undone before; nothing was changed."
            " `commonplace forget ID` forgets a record that somebody has brought back"
        )
    return 0


def _line(batch: Batch) -> str:
    undone = "  (undone)" if batch.undone else ""
    return (
        f"{one_line(batch.id)}  {one_line(batch.step)}  {len(batch.made)} made,"
        f" {len(batch.changed)} changed{undone}"
    )
