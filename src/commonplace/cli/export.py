"""`commonplace export`: all current records as JSON lines, or as the files of another system."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_json, suggest
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import count_list, note, number_of, print_json, report_damages
from commonplace.errors import UsageError
from commonplace.foreign import one_line
from commonplace.vocabulary import KIND_NAMES

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.exchange.exporter import ExportReport
    from commonplace.memory import Memory

PATHS_SHOWN_MAX = 20
LAYOUTS = ("agent-knowledge", "loki", "beads", "harness")
FORMATS = ("jsonl", "markdown")
EXAMPLES = (
    "commonplace export --kind lesson > lessons.jsonl",
    "commonplace export --format markdown > memories.md",
    "commonplace export --layout beads --to ../other-project",
)


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--repo", metavar="NAME", help="Export only this log (default: all)")
    kind = add("--kind", metavar="KIND", help="Export only records of this kind (default: all)")
    suggest(kind, KIND_NAMES)
    layout = add(
        "--layout",
        metavar="NAME",
        help=f"Write files as another system keeps them: {', '.join(LAYOUTS)}"
        " (default: print JSON lines)",
    )
    suggest(layout, LAYOUTS)
    add("--to", metavar="FOLDER", type=Path, help="Folder for the files of the layout")
    add(
        "--force",
        action="store_true",
        help="Write into a folder that holds other things, and overwrite files",
    )
    format_name = add(
        "--format",
        metavar="FORMAT",
        default=FORMATS[0],
        help=f"What to print: {', '.join(FORMATS)} (default: %(default)s)",
    )
    suggest(format_name, FORMATS)
    add("--superseded", action="store_true", help="Export what newer records supersede, too")
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    if args.kind is not None and args.kind not in KIND_NAMES:
        raise UsageError(f"`--kind` is `{args.kind}`, not one of {', '.join(KIND_NAMES)}")
    if args.format not in FORMATS:
        raise UsageError(f"`--format` is `{args.format}`, not one of {', '.join(FORMATS)}")
    if args.format == "markdown" and (args.json or args.layout is not None):
        raise UsageError(
            "`--format markdown` is a page to read", "leave `--json` or `--layout` out"
        )
    if (args.layout is None) != (args.to is None):
        raise UsageError(
            "`--layout` and `--to` belong together", "e.g. `--layout beads --to ../other-project`"
        )
    with open_memory(args.home) as memory:
        if args.layout is None:
            _print_records(memory, args)
        else:
            from commonplace.exchange.exporter import (  # noqa: PLC0415 (loads every format)
                export_layout,
            )

            report = export_layout(
                memory,
                args.layout,
                args.to,
                repo=args.repo,
                kind=args.kind,
                superseded=args.superseded,
                force=args.force,
            )
            _print_report(report, as_json=args.json)
        if memory.superseded_left_out:
            left_out = number_of(memory.superseded_left_out, "superseded record")
            note(f"Not exported: {left_out}; use `--superseded` to export them too")
        report_damages(memory)
    return 0


def _print_records(memory: Memory, args: Namespace) -> None:
    lines = memory.export_lines(args.repo, args.kind, superseded=args.superseded)
    if args.json:
        print(f"[{','.join(lines)}]")
        return
    if args.format == "markdown":
        from commonplace.exchange.markdown import to_markdown  # noqa: PLC0415 (seldom needed)

        lines = to_markdown(lines)
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()  # Before any remark on stderr.


def _print_report(report: ExportReport, *, as_json: bool) -> None:
    if as_json:
        print_json({name: getattr(report, name) for name in type(report).__dataclass_fields__})
        return
    texts = {"notes": report.notes, "skills": report.skills}
    counts = count_list({**report.kinds, **texts}) or "nothing"
    files = number_of(len(report.files), "file")
    print(f"Exported {counts} to {files} in `{one_line(report.folder)}`")
    if report.left_out:
        note(f"The layout cannot hold {count_list(report.left_out)}")
    for path in report.stayed[:PATHS_SHOWN_MAX]:
        note(f"  {path} was not written: another file is there (`--force` overwrites it)")
