"""How answers look: data on stdout, remarks on stderr, JSON on request, readable without colour."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from commonplace.cli import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from commonplace.engine import Engine
    from commonplace.erasure import Receipt
    from commonplace.index.ports import Status
    from commonplace.log.check import Finding
    from commonplace.log.read import Damage
    from commonplace.log.scan import Secret
    from commonplace.maintenance import Report
    from commonplace.notes import Note, Reading, Written
    from commonplace.records import Record
    from commonplace.setup.plan import Change
    from commonplace.where.home import Home
    from commonplace.where.repository import Repository

_SUMMARY_CHARS_MAX = 100
# The fields that say what a record is about, in the order they are looked for.
_SAYING = ("lesson", "pattern", "what_fails", "label", "outcome", "reason", "task_id", "to")


def note(text: str) -> None:
    print(plain(text), file=sys.stderr)


def damages(found: Sequence[Damage], home: Path) -> None:
    """Say that reading passed over lines that hold no record."""
    if found:
        places = ", ".join(dict.fromkeys(_within(damage.path, home) for damage in found))
        note(
            f"{len(found)} damaged {'line' if len(found) == 1 else 'lines'} in {places}; see `commonplace doctor`"
        )


def as_json_line(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False))


def made(path: Path, made: Sequence[Path], *, as_json: bool) -> None:
    if as_json:
        as_json_line({"home": str(path), "made": [str(item) for item in made]})
    elif not made:
        print(f"`{path}` is a home already; nothing changed")
    else:
        print(f"Made a home in `{path}`")
        for item in made[1:] if made[0] == path else made:
            print(f"  + {item.relative_to(path)}")


def record(described: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        as_json_line(described)
        return
    table = Table.grid(padding=(0, 2))
    for name, value in described.items():
        if value not in ("", [], {}, None):
            table.add_row(Text(name, style="bold"), Text(plain(_shown(name, value))))
    Console(highlight=False).print(table)


def _shown(name: str, value: object) -> str:
    if name == "feedback" and isinstance(value, dict):
        return (
            ", ".join(f"{count} {outcome}" for outcome, count in value.items() if count)
            or "none yet"
        )
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)


def history(records: Sequence[Record], *, as_json: bool) -> None:
    if as_json:
        as_json_line([record.fields for record in records])
        return
    for record in records:
        print(
            f"{plain(record.timestamp)}  {plain(record.kind):8}  {plain(record.agent_id)}  {summary(record)}"
        )


def summary(record: Record) -> str:
    """One line that says what the record is about."""
    said = next(
        (str(record.fields[name]) for name in _SAYING if record.fields.get(name)), record.id
    )
    text = plain(" ".join(said.split()))
    return text if len(text) <= _SUMMARY_CHARS_MAX else text[: _SUMMARY_CHARS_MAX - 1] + "…"


def why(explained: dict[str, Any], here: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        as_json_line(explained)
        return
    print(f"{explained['verdict'][0].upper()}{explained['verdict'][1:]}")
    if explained.get("repo") and not explained["searched_here"]:
        note(
            f"A plain recall in this folder searches {' and '.join(here)} only; this one is of `{explained['repo']}`"
        )
    for name in ("place", "score", "relevance", "relevance_floor"):
        if explained.get(name) is not None:
            print(f"  {name:16} {explained[name]}")
    for name, value in explained["why"].items():
        print(f"  {name:16} {value:g}")


def savings(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        as_json_line(found)
        return
    count = found["recalls"]
    since = (
        f" since {found['since'][:10]}, {found['empty']:,} of them found nothing" if count else ""
    )
    print(f"recalls           {count:,}{since}")
    for label, name in (("delivered", "tokens_delivered"), ("the logs instead", "tokens_logs")):
        each = f" ({found[name] / count:,.0f} a recall)" if count else ""
        print(f"{label:16}  {found[name]:,} tokens{each}")
    share = f" ({found['share_saved']:.1%})" if found["share_saved"] is not None else ""
    print(f"saved             {found['tokens_saved']:,} tokens{share}")
    print(f"all logs now      {found['tokens_logs_now']:,} tokens")
    note(found["definition"])


def index_status(found: Sequence[Status], embedder: str, *, as_json: bool) -> None:
    if as_json:
        as_json_line({"embedder": embedder, "indexes": [status._asdict() for status in found]})
        return
    for status in found:
        print(
            f"{status.home}{' (in memory: the home cannot be written)' if status.in_memory else ''}"
        )
        print(
            f"  records   {status.records:,} ({status.waiting:,} not yet merged into the text index)"
        )
        of = status.vectors + status.vectors_missing
        print(f"  vectors   {status.vectors:,} of {of:,} ({status.model or 'no model yet'})")
        print(f"  schema    {status.schema}, {status.bytes:,} bytes")
    print(f"embedder    {embedder}")


def rebuild(engine: Engine, *, vectors: bool) -> None:
    """Rebuild with a progress bar on stderr, where a person is watching."""
    with Progress(
        console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()
    ) as progress:
        lines = progress.add_task("lines", total=None)
        for index in engine.indexes:
            index.rebuild(lambda done: progress.advance(lines, done))
        progress.update(lines, total=progress.tasks[0].completed)
        if vectors and engine.embedder_state().is_available:
            missing = sum(index.status().vectors_missing for index in engine.indexes)
            task = progress.add_task("vectors", total=missing)
            engine.embed_all(lambda done: progress.advance(task, done))


def embedded(done: int | None, *, as_json: bool) -> None:
    if as_json:
        as_json_line({"embedded": done})
    else:
        print("Another process is at it" if done is None else f"Embedded {done:,} memories")


def feedback(described: dict[str, Any], outcome: str, *, as_json: bool) -> None:
    if as_json:
        as_json_line({name: described.get(name) for name in ("id", "success_rate", "feedback")})
    else:
        rate = f", now {described['success_rate']}" if described.get("success_rate") else ""
        print(f"Noted: {outcome}{rate}  {plain(described['id'])}")


def forgotten(said: Record, *, as_json: bool) -> None:
    if as_json:
        as_json_line(said.fields)
    else:
        print(f"Forgotten: {plain(said.fields['of'])}")
        note("It is no longer recalled; the history keeps it. `--erase` removes it for good")


def receipt(receipt: Receipt, *, in_git: bool, as_json: bool) -> None:
    if as_json:
        as_json_line({**receipt._asdict(), "git_history_may_hold_it": in_git})
        return
    print(f"Erased: {plain(receipt.id)}")
    print(f"  records erased   {receipt.records_erased} ({receipt.derived_erased} derived from it)")
    print(f"  lines removed    {receipt.lines_removed} in {len(receipt.files_rewritten)} files")
    print(f"  searched after   {receipt.files_searched} files")
    print(f"  still found in   {', '.join(receipt.left_in) if receipt.left_in else 'none'}")
    if in_git:
        note("This home lies in a git repository: commits made before still hold it")


def notes(found: Sequence[Note], *, as_json: bool) -> None:
    if as_json:
        as_json_line([one._asdict() for one in found])
        return
    for one in found:
        print(f"{one.bytes:>8,}  {plain(one.path)}")
    if not found:
        note("No notes yet")


def note_text(path: str, found: Reading, *, as_json: bool) -> None:
    if as_json:
        as_json_line({"path": path, "text": found.text, "sha256": found.note.sha256})
    else:
        sys.stdout.write(plain(found.text))


def preamble(text: str, *, as_json: bool) -> None:
    if as_json:
        as_json_line({"text": text})
    else:
        sys.stdout.write(plain(text))


def written(done: Written, *, as_json: bool) -> None:
    if as_json:
        as_json_line({**done.note._asdict(), "redacted": done.redacted})
    else:
        print(f"Wrote {done.note.path}, {done.note.bytes:,} bytes  {done.note.sha256}")
    for kind in done.redacted:
        note(f"redacted: {kind}")


def repos(rows: Sequence[dict[str, Any]], here: str, *, as_json: bool) -> None:
    if as_json:
        as_json_line(rows)
        return
    if not rows:
        note("No logs yet; `commonplace log --type … --lesson …` starts one")
        return
    table = Table(box=None, header_style="bold")
    for column in ("repo", "records", "newest", "bytes"):
        table.add_column(
            column, justify="right" if column in ("records", "bytes") else "left", overflow="fold"
        )
    for row in rows:
        mark = " (here)" if row["repo"] == here else ""
        table.add_row(
            Text(row["repo"] + mark), f"{row['records']:,}", row["newest"], f"{row['bytes']:,}"
        )
    Console(highlight=False).print(table)


def where(found: Sequence[Home], here: Repository, *, as_json: bool) -> None:
    if as_json:
        rows = [
            {"path": str(home.path), "why": home.why, "exists": home.path.is_dir()}
            for home in found
        ]
        as_json_line(
            {"home": rows[0]["path"], "why": rows[0]["why"], "homes": rows, "repo": here.name}
        )
        return
    print(found[0].path)
    note(f"  {found[0].why}{'' if found[0].path.is_dir() else '; it is made on first use'}")
    for home in found[1:]:
        note(f"  also read: {home.path} ({home.why})")
    note(f"  lessons from this folder go to log/{here.name}.jsonl")


def export(lines: Iterable[str], *, as_json: bool) -> None:
    if as_json:
        print(f"[{','.join(lines)}]")
        return
    try:
        for line in lines:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read it has seen enough (`| head`). Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def secrets(found: Sequence[Secret], home: Path, *, fixed: bool, as_json: bool) -> None:
    if as_json:
        rows = [{**secret._asdict(), "path": _within(secret.path, home)} for secret in found]
        as_json_line({"secrets": rows, "fixed": fixed})
        return
    for secret in found:
        print(f"{_within(secret.path, home)}:{secret.line}  {secret.kind}  {plain(secret.field)}")
    if not found:
        note("No secrets found")
    elif fixed:
        note(
            f"Took out {len(found)}; change those passwords and keys all the same: they were on the disk"
        )


def findings(
    found: Sequence[Finding],
    home: Path,
    unknown_settings: Sequence[tuple[Path, str]],
    agents: Sequence[dict[str, Any]],
    *,
    fixed: bool,
    as_json: bool,
) -> None:
    settings = [
        {"what": "unknown setting", "path": _within(path, home), "reason": name}
        for path, name in unknown_settings
    ]
    if as_json:
        rows = [{**finding._asdict(), "path": _within(finding.path, home)} for finding in found]
        as_json_line(
            {"home": str(home), "findings": [*rows, *settings], "agents": agents, "fixed": fixed}
        )
        return
    for finding in found:
        place = f"{_within(finding.path, home)}{f':{finding.line}' if finding.line else ''}"
        done = f"  [{'done' if fixed else '--fix'}: {finding.fix}]" if finding.fix else ""
        print(f"{finding.what}  {place}  {plain(finding.reason)}{done}")
    for setting in settings:
        print(f"{setting['what']}  {setting['path']}  `{setting['reason']}` means nothing here")
    if not found and not settings:
        print(f"All is well in `{home}`")
    for row in agents:
        print(f"agent  {row['agent']}  {_wired(row)}")


def _wired(row: dict[str, Any]) -> str:
    if not row["parts"]:
        return f"is here and not wired  [`commonplace setup {row['agent']}`]"
    flag = " --project" if row["scope"] == "project" else ""
    again = f"  [out of date: `commonplace setup {row['agent']}{flag}`]" if row["outdated"] else ""
    ran = (
        f"its hook last ran {row['hook_last_ran']}"
        if row["hook_last_ran"]
        else "its hook has not run yet"
    )
    ran = f"; {ran}" if "hooks" in row["parts"] else ""
    return f"wired for the {row['scope']}: {', '.join(row['parts'])}{ran}{again}"


def setup(told: dict[str, Any], changes: Sequence[Change], *, as_json: bool) -> None:
    """What setting up would change, as a diff; and afterwards, what it did. JSON comes once, at the end."""
    if as_json:
        if told["done"] is not None:
            as_json_line({**told, "files": [_file(change) for change in changes]})
    elif told["done"] is None:
        _setup_planned(told, changes)
    elif told["done"]:
        for change in changes:
            if change.action != "unchanged" and not change.left_alone:
                print(f"{_DONE[change.action]} {change.path} ({', '.join(change.what)})")
        note(
            "Start the agents anew to have it take effect"
            + ("" if told["undo"] else "; `--undo` takes it out again")
        )


_DONE = {"make": "Made", "change": "Changed", "remove": "Removed"}


def _setup_planned(told: dict[str, Any], changes: Sequence[Change]) -> None:
    for name, why in told["agents"].items():
        note(f"{name}: {why}")
    if told["temporary"] and not told["undo"]:
        note(
            "This installation is temporary; `uv tool install commonplace` makes one that agents can rely on"
        )
    for change in changes:
        _diff(change.diff())
        if change.remark:
            note(f"{change.path}: {change.remark}")
    if all(change.action == "unchanged" for change in changes):
        print("Nothing of ours is there" if told["undo"] else "Everything is in place already")


def _diff(lines: Sequence[str]) -> None:
    styles = {"+": "green", "-": "red", "@": "cyan"}
    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        if console.is_terminal and not console.no_color:
            console.print(Text(plain(line), style=styles.get(line[:1], "")))
        else:
            print(plain(line))


def _file(change: Change) -> dict[str, Any]:
    return {
        "path": str(change.path),
        "agents": change.agents,
        "what": change.what,
        "action": change.action,
        "reason": change.left_alone or change.remark,
        "diff": "\n".join(change.diff()),
    }


def maintenance(report: Report, *, as_json: bool) -> None:
    if as_json:
        as_json_line(report.as_dict())
        return
    for name, done in report.steps.items():
        told = ", ".join(f"{what} {value}" for what, value in done.items())
        print(f"{name:10} {told}")


def _within(path: Path, home: Path) -> str:
    return str(path.relative_to(home)) if path.is_relative_to(home) else str(path)
