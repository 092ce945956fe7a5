"""How an import and an export to a layout are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.cli import plain
from commonplace.cli.render import as_json_line, note

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commonplace.exchange.exporter import Layout
    from commonplace.exchange.importer import Report

SHOWN_MAX = 20


def imported(report: Report, *, as_json: bool) -> None:
    if as_json:
        as_json_line(_import_fields(report))
        return
    verb = "Would import" if report.dry_run else "Imported"
    texts = _counted({"notes": report.notes, "skills": report.skills})
    print(f"{verb} {report.records:,} records{f', {texts}' if texts else ''}")
    print(f"  from {_counted(report.formats)} {'file' if report.formats.total() == 1 else 'files'}")
    if report.kinds:
        print(f"  + {_counted(report.kinds)}")
    for count, what in (
        (report.unchanged, "= {} here already"),
        (report.kept, "= {} that your own records of the same id stand for; those stay"),
        (report.forgotten, "= {} that you forgot; they stay forgotten"),
        (report.withdrawn, "- {} that their own system withdrew"),
        (report.redacted, "! {} held secrets, which were taken out"),
    ):
        if count:
            print(f"  {what.format(f'{count:,}')}")
    _places("could not be read", report.unread_count, report.unread)
    _places("passed over", report.passed_count, report.passed)
    if report.foreign:
        note(f"{report.foreign:,} other files were not looked into")


def _import_fields(report: Report) -> dict[str, Any]:
    places = {"unread": report.unread, "passed_over": report.passed}
    return {
        "dry_run": report.dry_run,
        "records": report.records,
        "kinds": dict(report.kinds),
        "formats": dict(report.formats),
        "notes": report.notes,
        "skills": report.skills,
        "unchanged": report.unchanged,
        "kept": report.kept,
        "forgotten": report.forgotten,
        "withdrawn": report.withdrawn,
        "redacted": report.redacted,
        "unread_count": report.unread_count,
        "passed_over_count": report.passed_count,
        "other_files": report.foreign,
        **{
            name: [{"path": path, "line": line, "reason": reason} for path, line, reason in told]
            for name, told in places.items()
        },
    }


def _places(what: str, count: int, told: Sequence[tuple[str, int, str]]) -> None:
    if not count:
        return
    note(f"{count:,} {what}:")
    for path, line, reason in told[:SHOWN_MAX]:
        note(f"  {path}{f':{line}' if line else ''}  {reason}")
    if count > SHOWN_MAX:
        note(f"  … {count - SHOWN_MAX:,} more (`--json` lists up to 1,000)")


def laid_out(report: Layout, *, as_json: bool) -> None:
    if as_json:
        as_json_line({name: getattr(report, name) for name in type(report).__dataclass_fields__})
        return
    texts = {"notes": report.notes, "skills": report.skills}
    said = _counted({**report.kinds, **texts}) or "nothing"
    print(f"Exported {said} to {len(report.files):,} files in `{plain(report.folder)}`")
    if report.left_out:
        note(f"The layout has no place for {_counted(report.left_out)}")
    for path in report.stayed[:SHOWN_MAX]:
        note(f"  {path} is there and not ours; it stays (`--force` writes over it)")


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
