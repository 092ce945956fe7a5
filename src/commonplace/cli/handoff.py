"""`commonplace handoff`: leave work for another agent, list what is open, accept it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.cli.arguments import add_agent, add_home, add_id, add_json
from commonplace.cli.commands import Command
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, print_json
from commonplace.errors import UsageError
from commonplace.foreign import flat, one_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

_LABELS = {
    "artifacts": "artifacts",
    "git_state": "git",
    "needs_testing": "needs testing",
    "known_issues": "known issues",
    "relevant_patterns": "patterns",
}


def add_create(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--from",
        dest="from_agent",
        metavar="NAME",
        help="Who hands over (default: $COMMONPLACE_AGENT, else `default`)",
    )
    parser.add_argument("--to", metavar="NAME", help="Who takes over; `any` for anybody (needed)")
    parser.add_argument("--done", metavar="TEXT", help="What was done (needed)")
    for flag, dest, metavar, text in (
        ("--artifact", "artifacts", "FILE", "A file that came out of it"),
        ("--needs-testing", "needs_testing", "TEXT", "Something to test"),
        ("--known-issue", "known_issues", "TEXT", "Something that does not work yet"),
        ("--pattern", "patterns", "ID", "A record that helps"),
    ):
        parser.add_argument(
            flag,
            dest=dest,
            metavar=metavar,
            action="append",
            help=f"{text} (may be repeated)",
        )
    parser.add_argument(
        "--git-state", metavar="TEXT", help="The state of the repository (default: what git says)"
    )
    add_home(parser)
    add_json(parser)


def create(args: Namespace) -> int:
    for name, flag in (("to", "--to"), ("done", "--done")):
        if not (getattr(args, name) or "").strip():
            raise UsageError("is needed", "`commonplace handoff create --help` explains it", flag)
    with open_memory(args.home, to_write=True) as memory:
        record = memory.create_handoff(
            args.to,
            args.done,
            from_agent=args.from_agent,
            artifacts=args.artifacts or (),
            git_state=args.git_state,
            needs_testing=args.needs_testing or (),
            known_issues=args.known_issues or (),
            patterns=args.patterns or (),
        )
    if args.json:
        print_json(record.fields)
    else:
        print(record.id)
    for one in record.redactions:
        note(f"redacted: {one.kind} in {one.field}")
    return 0


def add_list(parser: ArgumentParser) -> None:
    parser.add_argument("--to", metavar="NAME", default="", help="Only those for this agent")
    parser.add_argument("--all", action="store_true", help="Those that are closed, too")
    parser.add_argument(
        "--all-repos", action="store_true", help="Those of every repository (default: this one)"
    )
    add_home(parser)
    add_json(parser)


def list_handoffs(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        found = memory.handoffs(args.to, closed=args.all, all_repos=args.all_repos)
    if args.json:
        print_json(found)
        return 0
    for one in found:
        _print(one)
    if not found:
        note("No handoffs" if args.all else "No open handoffs")
    return 0


def _print(fields: dict[str, Any]) -> None:
    context = fields.get("context") or {}
    who = f"{fields['from_agent']} → {fields['to_agent']}"
    by = f" by {fields['accepted_by']}" if fields.get("accepted_by") else ""
    parts = (fields["id"], f"{fields['status']}{by}", who, fields["timestamp"][:10])
    print("  ".join(map(one_line, parts)))
    for name, value in context.items():
        text = flat(value)
        if text:
            label = "" if name == "what_was_done" else f"{_LABELS.get(name, name)}: "
            print(f"  {one_line(label + text)}")


def add_accept(parser: ArgumentParser) -> None:
    add_id(parser, "handoff")
    add_agent(parser, "Who accepts it")
    add_home(parser)
    add_json(parser)


def accept(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        record = memory.accept_handoff(args.id, args.agent)
    if args.json:
        print_json(record.fields)
    else:
        print(f"Accepted by {one_line(record.fields['accepted_by'])}  {one_line(record.id)}")
    return 0


COMMANDS = {
    "create": Command(
        "Leave work for another agent",
        add_create,
        create,
        ("commonplace handoff create --to qa --done 'POST /todos'",),
    ),
    "list": Command(
        "List the open handoffs",
        add_list,
        list_handoffs,
        ("commonplace handoff list --to qa", "commonplace handoff list --all"),
    ),
    "accept": Command(
        "Take over a handoff, which closes it",
        add_accept,
        accept,
        ("commonplace handoff accept handoff-qa-1c3f --agent qa",),
    ),
}
