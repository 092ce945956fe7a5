"""`commonplace import`: import the files of another system as records, notes and skills."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.cli.arguments import add_home, add_json, suggest
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import count_list, note, number_of, print_json
from commonplace.cli.progress import progress
from commonplace.errors import LinesRefused, UsageError
from commonplace.exchange.formats import FORMATS
from commonplace.exchange.importer import ABOUT_OTHERS, import_files
from commonplace.foreign import one_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections import Counter
    from collections.abc import Sequence

    from commonplace.exchange.importer import Report

PROBLEMS_SHOWN_MAX = 20
EXAMPLES = (
    "commonplace import ~/.claude/projects --dry-run",
    "commonplace import .beads --from beads",
)


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "path", metavar="PATH", type=Path, help="A file, or a folder of files in any of the formats"
    )
    format_name = add(
        "--from",
        dest="format_name",
        metavar="FORMAT",
        help=f"One of {', '.join(FORMATS)} (default: each file's format is recognised)",
    )
    suggest(format_name, list(FORMATS))
    add(
        "--repo",
        metavar="NAME",
        help="Log for all records (default: the one each record names, else this repository's)",
    )
    add("--dry-run", action="store_true", help="Show what would be imported, and write nothing")
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    if args.path.suffix == ".kpack":
        raise UsageError(
            f"`{one_line(str(args.path))}` is a pack",
            f"`commonplace pack import {one_line(str(args.path))}` installs it",
        )
    with (
        open_memory(args.home, to_write=True) as memory,
        progress("items", quiet=args.json) as advance,
    ):
        report = import_files(
            memory,
            args.path,
            format_name=args.format_name,
            repo=args.repo,
            dry_run=args.dry_run,
            progress=advance,
        )
    if args.json:
        print_json(_fields(report))
    else:
        _print_report(report)
    if report.unread_count and not args.dry_run:
        raise LinesRefused(report.unread_count, report.lines + report.unchanged)
    return 0


def _print_report(report: Report) -> None:
    verb = "Would import" if report.dry_run else "Imported"
    texts = count_list({"notes": report.notes, "skills": report.skills})
    print(f"{verb} {number_of(report.records, 'record')}{f', {texts}' if texts else ''}")
    files = "file" if report.formats.total() == 1 else "files"
    print(f"  from {count_list(report.formats)} {files}")
    if report.shown:
        print(f"  + {count_list(report.shown)}")
    if more := report.kinds - report.shown:
        print(f"  + {number_of(more.total(), 'more line')}: {_name_lines(more)}")
    for count, text in (
        (report.unchanged, "= {} here already"),
        (report.kept, "= {} not imported: records of your own have the same ids"),
        (report.renamed, "~ {} got another id: another repository's record has theirs"),
        (report.forgotten, "= {} not imported: you have forgotten them"),
        (report.withdrawn, "- {} withdrawn by the system they come from"),
        (report.redacted, "! {} held secrets, which were removed"),
    ):
        if count:
            print(f"  {text.format(f'{count:,}')}")
    _print_problems("could not be read", report.unread_count, report.unread)
    _print_problems("skipped", report.skipped_count, report.skipped)
    if report.foreign:
        note(f"{report.foreign:,} other files were not read")


def _name_lines(kinds: Counter[str]) -> str:
    """Name lines that `stats` does not count: statements, and versions that are not shown."""
    statements = {kind: count for kind, count in kinds.items() if kind in ABOUT_OTHERS}
    hidden = kinds.total() - sum(statements.values())
    versions = number_of(hidden, "older or hidden version") if hidden else ""
    return ", ".join(part for part in (count_list(statements), versions) if part)


def _print_problems(what: str, count: int, problems: Sequence[tuple[str, int, str]]) -> None:
    if not count:
        return
    note(f"{count:,} {what}:")
    for path, line, reason in problems[:PROBLEMS_SHOWN_MAX]:
        note(f"  {one_line(path)}{f':{line}' if line else ''}  {one_line(reason)}")
    if count > PROBLEMS_SHOWN_MAX:
        note(f"  … {count - PROBLEMS_SHOWN_MAX:,} more (`--json` lists up to 1,000)")


def _fields(report: Report) -> dict[str, Any]:
    problems = {"unread": report.unread, "passed_over": report.skipped}
    return {
        "dry_run": report.dry_run,
        "records": report.records,
        "kinds": dict(report.kinds),
        "lines": report.lines,
        "formats": dict(report.formats),
        "notes": report.notes,
        "skills": report.skills,
        "unchanged": report.unchanged,
        "kept": report.kept,
        "renamed": report.renamed,
        "forgotten": report.forgotten,
        "withdrawn": report.withdrawn,
        "redacted": report.redacted,
        "unread_count": report.unread_count,
        "passed_over_count": report.skipped_count,
        "other_files": report.foreign,
        **{
            name: [{"path": path, "line": line, "reason": reason} for path, line, reason in rows]
            for name, rows in problems.items()
        },
    }
