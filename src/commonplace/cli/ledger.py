"""`commonplace ledger`: what an agent is doing, kept so that it can go on later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.cli.arguments import add_agent, add_home, add_json, comma_list
from commonplace.cli.commands import Command
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, number_of, print_json
from commonplace.foreign import flat, one_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def add_checkpoint(parser: ArgumentParser) -> None:
    parser.add_argument("--task", metavar="ID", help="The task (default: as before)")
    parser.add_argument("--goal", metavar="TEXT", help="What is to be reached (default: as before)")
    parser.add_argument("--done", action="store_true", help="The task is completed")
    parser.add_argument(
        "--tech",
        metavar="A,B",
        type=comma_list,
        action="extend",
        help="What the work uses, added to what is noted",
    )
    parser.add_argument(
        "--pattern",
        dest="patterns",
        metavar="ID",
        action="append",
        help="A record that was learned (may be repeated)",
    )
    _add_shared(parser)


def checkpoint(args: Namespace) -> int:
    with open_memory(args.home, to_write=True) as memory:
        record = memory.checkpoint(
            args.agent,
            task=args.task,
            goal=args.goal,
            done=args.done,
            tech_stack=args.tech or (),
            patterns=args.patterns or (),
        )
        is_known = memory.repository.common is None or "last_git_commit" in record.fields["state"]
    if args.json:
        print_json(record.fields)
    else:
        print(record.id)
    if not is_known:
        note("note: git did not answer, so the state of the repository is not in the ledger")
    for one in record.redactions:
        note(f"redacted: {one.kind} in {one.field}")
    return 0


def add_show(parser: ArgumentParser) -> None:
    _add_shared(parser)


def show(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        found = memory.ledger(args.agent)
    if args.json:
        print_json(found)
        return 0
    for name, value in found.items():
        inner = value.items() if isinstance(value, dict) else [("", value)]
        for key, one in inner:
            print(one_line(f"{f'{name}.{key}' if key else name}: {flat(one)}"))
    return 0


def add_list(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--all-repos", action="store_true", help="Those of every repository (default: this one)"
    )
    add_home(parser)
    add_json(parser)


def list_ledgers(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        found = memory.ledgers(all_repos=args.all_repos)
    if args.json:
        print_json(found)
        return 0
    for one in found:
        print(_line(one))
    if not found:
        note("No ledgers yet")
    return 0


def _line(fields: dict[str, Any]) -> str:
    when = str(fields.get("last_checkpoint", ""))[:16].replace("T", " ")
    goal = (fields.get("context") or {}).get("current_goal") or fields.get("current_task") or ""
    tasks = number_of(int(fields.get("tasks_completed", 0)), "task")
    parts = (str(fields["agent_id"]), when, f"{tasks} done", str(goal))
    return "  ".join(map(one_line, parts)).rstrip()


def add_resume(parser: ArgumentParser) -> None:
    _add_shared(parser)


def resume(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        found = memory.resume(args.agent)
    if args.json:
        print_json(found.as_dict())
    else:
        print(found.text)
    return 0


def _add_shared(parser: ArgumentParser) -> None:
    add_agent(parser, "Whose ledger")
    add_home(parser)
    add_json(parser)


COMMANDS = {
    "checkpoint": Command(
        "Write down what an agent is doing now",
        add_checkpoint,
        checkpoint,
        (
            "commonplace ledger checkpoint --task task-042 --goal 'CRUD for todos'",
            "commonplace ledger checkpoint --done --agent backend",
        ),
    ),
    "show": Command("Show the ledger of an agent", add_show, show, ("commonplace ledger show",)),
    "list": Command(
        "List the ledgers",
        add_list,
        list_ledgers,
        ("commonplace ledger list", "commonplace ledger list --all-repos"),
    ),
    "resume": Command(
        "Show what an agent was doing, and what waits for it",
        add_resume,
        resume,
        ("commonplace ledger resume --agent backend",),
    ),
}
