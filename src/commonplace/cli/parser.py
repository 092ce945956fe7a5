"""The parser of all commands: argparse, with our own errors and one set of rules for values."""

from __future__ import annotations

import argparse
import sys
from collections import deque
from typing import TYPE_CHECKING, NoReturn

from commonplace.cli.output import terminal_columns
from commonplace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from _typeshed import SupportsWrite

    from commonplace.cli.commands import Command

HELP_COLUMNS_MAX = 100
_HELP_POSITION = 28


class HelpPrinted(Exception):
    """`--help` or `--version` was printed, and nothing is left to do."""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal; argparse would import shutil to find that out."""

    def __init__(self, prog: str) -> None:
        columns = min(terminal_columns() or 80, HELP_COLUMNS_MAX)
        super().__init__(prog, max_help_position=_HELP_POSITION, width=columns - 2)

    def _split_lines(self, text: str, width: int) -> list[str]:
        from textwrap import wrap  # noqa: PLC0415 (only help needs it)

        # Names such as `agent-knowledge` stay whole.
        return wrap(" ".join(text.split()), width, break_on_hyphens=False)


class Parser(argparse.ArgumentParser):
    """Reads the arguments of one command. A mistake raises `UsageError` and prints nothing."""

    def __init__(
        self, prog: str, description: str, *, usage: str | None = None, epilog: str | None = None
    ) -> None:
        super().__init__(
            prog=prog,
            usage=usage,
            description=description,
            epilog=epilog,
            formatter_class=Formatter,
            add_help=False,
            allow_abbrev=False,
            exit_on_error=False,
        )
        self.add_argument("-h", "--help", action="help", help="Show this help")
        # Whether a value may start with one dash, as in `commonplace tag ID -npm`.
        self.dashed_values = False

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Return the values in *arguments*. `--help` prints the help and raises `HelpPrinted`."""
        flags, values = self._split(arguments)
        try:
            found, rest = self.parse_known_args([*flags, *(["--", *values] if values else [])])
        except argparse.ArgumentError as error:
            name = f"`{error.argument_name}` " if error.argument_name else ""
            raise UsageError(f"{name}{error.message}", self._help_hint) from None
        for extra in rest:
            if extra != "--":
                quotes = "put a text with spaces in quotes; " if self._has_positionals else ""
                raise UsageError(
                    f"`{self.prog}` does not expect `{extra}`", f"{quotes}{self._help_hint}"
                )
        return found

    def flag_of(self, name: str, found: argparse.Namespace) -> str:
        """Return the flag that gave *found* its value *name*; "" if none did."""
        flags = (action for action in self._actions if action.dest == name)
        flag = next((action.option_strings[-1] for action in flags if action.option_strings), "")
        return flag if getattr(found, name, None) is not None else ""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self._help_hint)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:  # noqa: ARG002
        raise HelpPrinted

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        # argparse would ignore that help cannot be written, e.g. to a full disk.
        (file or sys.stderr).write(message)

    @property
    def _has_positionals(self) -> bool:
        return any(not action.option_strings for action in self._actions)

    @property
    def _help_hint(self) -> str:
        return f"`{self.prog} --help` explains its arguments"

    def _split(self, arguments: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return the flags in *arguments*, each with its value, and the other values.

        A flag takes the next argument, even one that starts with a dash, and flags may stand
        anywhere. argparse would refuse such a value, and in Python 3.11 also an optional
        positional argument after a flag. It gets the flags first, so it never has to decide.
        """
        flags: list[str] = []
        values: list[str] = []
        rest = deque(arguments)
        while rest:
            argument = rest.popleft()
            name, equals, value = argument.partition("=")
            action = self._option_string_actions.get(name)
            if argument == "--":
                values += rest
                break
            if action is None:
                if self._is_value(argument):
                    values.append(argument)
                    continue
                raise UsageError(f"`{self.prog}` has no flag `{name}`", self._flag_hint(name))
            if action.nargs == 0:
                if equals:
                    raise UsageError(f"`{name}` takes no value", self._help_hint)
                flags.append(name)
            elif isinstance(action.nargs, int):
                rest.extendleft([value] if equals else [])
                flags += [name, *self._take(name, rest, action.nargs)]
            elif not equals and action.nargs == "?" and (not rest or rest[0].startswith("-")):
                flags.append(name)
            else:
                value = value if equals else self._take(name, rest, 1)[0]
                _refuse_dashes(name, [value])
                flags.append(f"{name}={value}")
        _refuse_dashes(self.prog, values)
        return flags, values

    def _is_value(self, argument: str) -> bool:
        """Whether *argument*, which is no flag of this command, is meant as a value."""
        if not argument.startswith("-") or argument == "-" or len(argument.split()) > 1:
            return True
        return self.dashed_values and not argument.startswith("--")

    def _take(self, flag: str, rest: deque[str], count: int) -> list[str]:
        """Remove the value of *flag*, *count* arguments, from the *rest*."""
        values = [rest.popleft() for _ in range(min(count, len(rest)))]
        for value in values:
            if value in self._option_string_actions:
                raise UsageError(
                    f"`{flag}` needs a value, and `{value}` is a flag",
                    f"write `{flag}={value}` if that is the value",
                )
        if len(values) < count:
            what = "a value" if count == 1 else f"{count} values"
            raise UsageError(f"`{flag}` needs {what}", self._help_hint)
        return values

    def _flag_hint(self, flag: str) -> str:
        nearest = nearest_name(flag, self._option_string_actions)
        if nearest:
            return f"did you mean `{nearest}`?"
        dashes = (
            "put `--` before a value that starts with a dash; " if self._has_positionals else ""
        )
        return f"{dashes}{self._help_hint}"


def _refuse_dashes(name: str, values: Iterable[str]) -> None:
    # argparse drops such a value in some versions of Python.
    if "--" in values:
        raise UsageError(f"`--` cannot be a value of `{name}`")


def nearest_name(name: str, names: Iterable[str]) -> str:
    """Return the one of *names* that *name* is probably meant to be, else ""."""
    from difflib import get_close_matches  # noqa: PLC0415 (only a typo needs it)

    return next(iter(get_close_matches(name, names, 1)), "")


def command_parser(prog: str, command: Command) -> Parser:
    """Return the parser of *command*, called as *prog*."""
    examples = "\n".join(["examples:", *(f"  {example}" for example in command.examples)])
    parser = Parser(prog, command.help, epilog=examples if command.examples else None)
    parser.dashed_values = command.dashed_values
    command.add_arguments(parser)
    return parser


def list_parser(prog: str, description: str, sections: Mapping[str, Mapping[str, str]]) -> Parser:
    """Return a parser whose help lists commands by sections, each with one line of help."""
    width = max(len(name) for section in sections.values() for name in section)
    lines = [description]
    for title, section in sections.items():
        lines += ["", f"{title}:", *(f"  {name:{width}}  {section[name]}" for name in section)]
    return Parser(
        prog,
        "\n".join(lines),
        usage=f"{prog} COMMAND …",
        epilog=f"`{prog} COMMAND --help` explains one command",
    )
