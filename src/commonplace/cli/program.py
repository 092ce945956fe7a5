"""Which command runs: the program itself (`--help`, `--version`), a command, or one of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import commonplace
from commonplace.cli.arguments import suggest
from commonplace.cli.commands import COMMANDS, SECTIONS, Command, Group, load
from commonplace.cli.parser import HelpPrinted, Parser, command_parser, list_parser, nearest_name
from commonplace.errors import RecordInvalid, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

PROGRAM = "commonplace"
# How the program may be called: `cpb` is short for it.
NAMES = (PROGRAM, "cpb")
SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
USAGE = 2


def run(arguments: list[str]) -> int:
    """Run what *arguments* name and return the exit code."""
    try:
        if not arguments or arguments[0].startswith("-"):
            return _run_program(arguments)
        name, *rest = arguments
        if name not in COMMANDS:
            raise _unknown_command(PROGRAM, name, COMMANDS)
        found = load(name)
        if isinstance(found, Group):
            return _run_group(f"{PROGRAM} {name}", found, rest)
        return _run_command(f"{PROGRAM} {name}", found, rest)
    except HelpPrinted:
        return 0


def program_parser() -> Parser:
    """Return the parser of the options that may come before a command."""
    sections = {
        title: {name: entry.help for name, entry in section.items()}
        for title, section in SECTIONS.items()
    }
    parser = list_parser(
        PROGRAM,
        "Memory for coding agents: write down what was learned, get back what matters.",
        sections,
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"{PROGRAM} {commonplace.__version__}",
        help="Print the version",
    )
    for flag, text in (
        ("--install-completion", "Install completion for a shell"),
        ("--show-completion", "Print the completion script of a shell"),
    ):
        shell = parser.add_argument(
            flag,
            nargs="?",
            const="",
            metavar="SHELL",
            help=f"{text}: {', '.join(SHELLS)} (default: the current one)",
        )
        suggest(shell, SHELLS)
    return parser


def group_parser(prog: str, group: Group) -> Parser:
    """Return the parser of a group's name alone: its help lists the commands in it."""
    listed = {name: command.help for name, command in group.commands.items()}
    return list_parser(prog, group.help, {"commands": listed})


def _run_program(arguments: list[str]) -> int:
    parser = program_parser()
    args = parser.parse(arguments)
    if args.install_completion is None and args.show_completion is None:
        parser.print_help()
        return USAGE
    from commonplace.cli import completion  # noqa: PLC0415 (hardly ever called)

    if args.install_completion is not None:
        return completion.install(args.install_completion)
    return completion.show(args.show_completion)


def _run_group(prog: str, group: Group, arguments: list[str]) -> int:
    named = bool(arguments) and not arguments[0].startswith("-")
    if named and arguments[0] not in group.commands:
        raise _unknown_command(prog, arguments[0], group.commands)
    if named:
        name, *rest = arguments
    elif group.default and not {"-h", "--help"} & set(arguments):
        name, rest = group.default, arguments
    else:
        parser = group_parser(prog, group)
        parser.parse(arguments)
        parser.print_help()
        return USAGE
    return _run_command(f"{prog} {name}", group.commands[name], rest)


def _run_command(prog: str, command: Command, arguments: list[str]) -> int:
    parser = command_parser(prog, command)
    args = parser.parse(arguments)
    try:
        return command.run(args)
    except (RecordInvalid, UsageError) as error:
        # The user typed a flag, and does not know the field.
        error.field = parser.flag_of(error.field, args) or error.field
        raise


def _unknown_command(prog: str, name: str, names: Iterable[str]) -> UsageError:
    nearest = nearest_name(name, names)
    meant = f"did you mean `{prog} {nearest}`? " if nearest else ""
    return UsageError(
        f"there is no command `{prog} {name}`", f"{meant}`{prog} --help` lists the commands"
    )
