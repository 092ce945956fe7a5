"""`commonplace inbox`: errors that were solved, which a person or an agent may make lessons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.cli.arguments import add_home, add_id, add_json
from commonplace.cli.columns import print_pairs
from commonplace.cli.commands import Command
from commonplace.cli.editor import open_editor
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, number_of, print_json, terminal_columns
from commonplace.foreign import block, one_line
from commonplace.sessions import inbox

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

DEFAULT = "list"


def add_list(parser: ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


def list_candidates(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        found = inbox.candidates(*memory.homes)
    if args.json:
        print_json([_fields(one) for one in found])
        return 0
    rows = [
        (
            one_line(one.id),
            (f"{number_of(one.attempts, 'attempt')}, " if one.worked else "")
            + f"seen {number_of(one.seen, 'time')}",
            one_line(one.context),
            one_line(one.worked),
        )
        for one in found
    ]
    if terminal_columns() is None:
        for ident, attempts, context, worked in rows:
            print(f"{ident}  {attempts}  {context}" + (f"\n    worked: {worked}" if worked else ""))
    elif rows:
        from commonplace.cli.render import print_candidates  # noqa: PLC0415 (it imports rich)

        print_candidates(rows)
    if not found:
        note("The inbox is empty")
    return 0


def add_show(parser: ArgumentParser) -> None:
    add_id(parser, "candidate")
    add_home(parser)
    add_json(parser)


def show(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        one = inbox.get(inbox.holder(memory.homes, args.id), args.id)
    if args.json:
        print_json(_fields(one))
        return 0
    sessions = number_of(one.seen, "session")
    attempts = f"{one.attempts}, seen in {sessions}, {one.agent} in {one.repo}"
    pairs = [
        ("error", one.error),
        *(("tried", str(command)) for command in one.tried),
        ("worked", one.worked),
        (one.kind, one.text),
        ("attempts", one_line(attempts)),
    ]
    print(one_line(one.id))
    print_pairs([(name, block(text)) for name, text in pairs if text])
    return 0


def add_accept(parser: ArgumentParser) -> None:
    add_id(parser, "candidate")
    _add_lesson(parser)
    add_home(parser)
    add_json(parser)


def accept(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        if args.lesson is not None:
            home = inbox.holder(memory.homes, args.id)
            inbox.edit(home, args.id, lesson=args.lesson)
        record = inbox.accept(memory, args.id)
    if args.json:
        print_json(record.fields)
    else:
        print(record.id)
    return 0


def add_edit(parser: ArgumentParser) -> None:
    add_id(parser, "candidate")
    _add_lesson(parser)
    parser.add_argument("--error", metavar="TEXT", help="What went wrong (default: as it is)")
    parser.add_argument(
        "--worked", metavar="COMMAND", help="The command that worked (default: as it is)"
    )
    add_home(parser)
    add_json(parser)


def edit(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        home, lesson = inbox.holder(memory.homes, args.id), args.lesson
        if lesson is None and args.error is None and args.worked is None:
            lesson = open_editor(
                inbox.get(home, args.id).text, "give `--lesson`, `--error` or `--worked`"
            )
        one = inbox.edit(home, args.id, lesson=lesson, error=args.error, worked=args.worked)
    if args.json:
        print_json(_fields(one))
    else:
        print(f"{one_line(one.id)}  {one_line(one.text)}")
    return 0


def add_drop(parser: ArgumentParser) -> None:
    add_id(parser, "candidate")
    add_home(parser)
    add_json(parser)


def drop(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        one = inbox.drop(inbox.holder(memory.homes, args.id), args.id)
    if args.json:
        print_json({"id": one.id, "dropped": True})
    else:
        print(f"Dropped: {one_line(one.id)}")
    return 0


def _add_lesson(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--lesson", metavar="TEXT", help="What was learned, in your words (default: as it is)"
    )


def _fields(one: inbox.Candidate) -> dict[str, Any]:
    return {**one._asdict(), "lesson": one.text, "context": one.context, "rank": one.rank}


COMMANDS = {
    "list": Command(
        "List the candidates, the most promising first",
        add_list,
        list_candidates,
        ("commonplace inbox", "commonplace inbox list --json"),
    ),
    "show": Command(
        "Show a candidate: the error, what was tried, what worked",
        add_show,
        show,
        ("commonplace inbox show npm-install",),
    ),
    "accept": Command(
        "Make a candidate a lesson and print the id of the lesson",
        add_accept,
        accept,
        ("commonplace inbox accept npm-install --lesson 'own the folder before npm ci'",),
    ),
    "edit": Command(
        "Change the words of a candidate; without a flag, the lesson opens in $EDITOR",
        add_edit,
        edit,
        (
            "commonplace inbox edit npm-install",
            "commonplace inbox edit npm-install --worked npm-ci",
        ),
    ),
    "drop": Command(
        "Remove a candidate from the inbox",
        add_drop,
        drop,
        ("commonplace inbox drop npm-install",),
    ),
}
