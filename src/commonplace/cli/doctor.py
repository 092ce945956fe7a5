"""`commonplace doctor`: what is wrong with a home, and which agents are connected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace import inbox
from commonplace.cli.apply_setup import wiring
from commonplace.cli.arguments import add_home, add_json
from commonplace.cli.columns import print_wrapped
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import number_of, print_json, relative_path
from commonplace.errors import FindingsLeft
from commonplace.foreign import one_line
from commonplace.graph.dangling import is_of_file

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence
    from pathlib import Path

    from commonplace.graph.dangling import DanglingLink
    from commonplace.log.check import Finding
    from commonplace.memory import Memory

DANGLING_SHOWN_MAX = 10
EXAMPLES = ("commonplace doctor", "commonplace doctor --fix")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--fix",
        action="store_true",
        help="Repair what can be repaired; damaged lines move to log/damaged/",
    )
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        return check(memory, fix=args.fix, as_json=args.json)


def check(memory: Memory, *, fix: bool, as_json: bool) -> int:
    """Print the findings, the unknown settings and the agents."""
    findings = memory.mend() if fix else memory.check()
    agents = wiring(memory)
    home = memory.home.path
    settings = [
        {"what": "unknown setting", "path": relative_path(path, home), "reason": name}
        for path, name in memory.settings.unknown
    ]
    settings += [
        {
            "what": "unknown value",
            "path": relative_path(path, home),
            "reason": f"`{one_line(item)}` is no value of `{name}`",
        }
        for path, name, item in memory.settings.unknown_items
    ]
    dangling = memory.dangling_links()
    waiting = inbox.counts(inbox.waiting(memory))
    if as_json:
        rows = [
            {**finding._asdict(), "path": relative_path(finding.path, home)} for finding in findings
        ]
        print_json(
            {
                "home": str(home),
                "findings": [*rows, *settings],
                "agents": agents,
                "inbox": sum(waiting.values()),
                "inbox_kinds": waiting,
                "dangling": [link._asdict() for link in dangling],
                "fixed": fix,
            }
        )
    else:
        _print_findings(findings, home, fixed=fix)
        for setting in settings:
            place, reason = one_line(setting["path"]), one_line(setting["reason"])
            is_name = setting["what"] == "unknown setting"
            told = f"`{reason}` is not a setting" if is_name else reason
            print_wrapped(f"{setting['what']}  {place}  {told}")
        if not findings and not settings:
            print_wrapped(f"All is well in `{home}`")
        _print_dangling(dangling)
        for row in agents:
            print_wrapped(f"agent  {row['agent']}  {_agent_state(row)}")
        if waiting:
            print_wrapped(
                f"inbox  {number_of(sum(waiting.values()), 'candidate')} to accept or drop"
                f" ({inbox.counts_text(waiting)})  [`commonplace inbox`]"
            )
    fixable = sum(1 for finding in findings if finding.fix)
    if fixable and not fix:
        raise FindingsLeft(
            f"{number_of(fixable, 'finding')} can be repaired",
            "`commonplace doctor --fix` repairs them",
        )
    return 0


def _print_findings(findings: Sequence[Finding], home: Path, *, fixed: bool) -> None:
    for finding in findings:
        location = (
            f"{relative_path(finding.path, home)}{f':{finding.line}' if finding.line else ''}"
        )
        done = f"  [{'done' if fixed else '--fix'}: {finding.fix}]" if finding.fix else ""
        print_wrapped(f"{finding.what}  {one_line(location)}  {one_line(finding.reason)}{done}")


def _print_dangling(links: Sequence[DanglingLink]) -> None:
    """Print the links that lead nowhere. They are allowed: the other end may come later."""
    for link in links[:DANGLING_SHOWN_MAX]:
        of, rel, to = map(one_line, link)
        reason = "there is no such file" if is_of_file(link.to) else "no record has that id"
        print_wrapped(f"dangling link  {of} {rel} {to}: {reason}")
    if len(links) > DANGLING_SHOWN_MAX:
        rest = number_of(len(links) - DANGLING_SHOWN_MAX, "dangling link")
        print_wrapped(f"and {rest} more  [`commonplace doctor --json` lists all]")


def _agent_state(row: dict[str, Any]) -> str:
    if not row["parts"]:
        return f"is installed and not set up  [`commonplace setup {row['agent']}`]"
    flag = " --project" if row["scope"] == "project" else ""
    again = f"  [out of date: `commonplace setup {row['agent']}{flag}`]" if row["outdated"] else ""
    ran = ""
    if "hooks" in row["parts"]:
        last = row["hook_last_ran"]
        ran = f"; its hook last ran {last}" if last else "; its hook has not run yet"
    asks = f". {row['condition']}" if row["condition"] else ""
    return f"set up for the {row['scope']}: {', '.join(row['parts'])}{ran}{again}{asks}"
