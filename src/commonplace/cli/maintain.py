"""`commonplace maintain`: rotate, summarize, merge, embed: what keeps a home small and complete."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_json, comma_list, suggest, whole_number
from commonplace.cli.output import note, number_of, print_json
from commonplace.errors import FindingsLeft
from commonplace.foreign import render
from commonplace.maintenance.due import is_due
from commonplace.maintenance.runner import Report
from commonplace.maintenance.runner import run as run_steps
from commonplace.maintenance.steps import STEPS
from commonplace.memory import Memory
from commonplace.where import homes

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

MERGES_SHOWN_MAX = 5
WAIT_S_MAX = 3600
EXAMPLES = ("commonplace maintain", "commonplace maintain --step rotation --dry-run")


def add_arguments(parser: ArgumentParser) -> None:
    steps = ", ".join(STEPS)
    step = parser.add_argument(
        "--step",
        metavar="NAME",
        action="extend",
        type=comma_list,
        help=f"Run only this step: {steps}; repeat it or use commas for several (default: all)",
    )
    suggest(step, list(STEPS))
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="Say what would be done; only the index is brought up to date, to see it",
    )
    parser.add_argument(
        "--if-due",
        action="store_true",
        help="Do nothing within a minute of the last run, or if `maintenance.background` is off",
    )
    parser.add_argument(
        "--wait",
        metavar="SECONDS",
        type=whole_number(0, WAIT_S_MAX),
        default=0,
        help="Wait before, as the process does that the end of a task starts",
    )
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    time.sleep(args.wait)
    with Memory.open(args.home or None) as memory:
        homes.check_exists(memory.home)
        if args.if_due and not is_due(memory):
            report = Report(str(memory.home.path), args.dry_run)
        else:
            report = run_steps(memory, args.step, dry_run=args.dry_run)
    if args.json:
        print_json(report.as_dict())
    else:
        if report.busy:
            note("Another process maintains this home at the moment; nothing was done")
        for name, done in report.steps.items():
            print(render(f"{name:10} {_summary(done)}"))
    failed = [name for name, done in report.steps.items() if "error" in done]
    if failed:
        raise FindingsLeft(
            f"{number_of(len(failed), 'step')} failed: {', '.join(failed)}",
            "correct the reason named above and run it again; the other steps are done",
        )
    return 0


def _summary(done: dict[str, object]) -> str:
    """Return what a step did, as words: `12 events`, `app: 500 lines moved, 501 left`."""
    rotated = done.get("rotated")
    if isinstance(rotated, list):
        rows = (
            f"{row['repo']}: {number_of(row['lines_moved'], 'line')} moved,"
            f" {row['lines_left']:,} left"
            for row in rotated
        )
        return "; ".join(rows) or "nothing to do"
    if "error" in done:
        return f"failed: {done['error']}"
    counts = ", ".join(
        _counted(name, value) for name, value in done.items() if isinstance(value, int)
    )
    texts = [str(value) for value in done.values() if isinstance(value, str) and value]
    texts += _merges(done.get("merges"))
    return "; ".join([counts, *texts] if counts else texts) or "nothing to do"


def _merges(merges: object) -> list[str]:
    """Return which records were merged: `pat-a takes in pat-b`."""
    if not isinstance(merges, list):
        return []
    rows = [f"{row['kept']} takes in {', '.join(row['superseded'])}" for row in merges]
    left = len(rows) - MERGES_SHOWN_MAX
    return [*rows[:MERGES_SHOWN_MAX], *([f"and {left:,} more"] if left > 0 else [])]


def _counted(name: str, value: int) -> str:
    """Return a count with its name: `1 event`, `1,200 events`, `3 missing`."""
    words = name.replace("_", " ")
    return number_of(value, words.removesuffix("s"), words)
