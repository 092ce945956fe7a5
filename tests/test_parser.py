"""The parser: help without holes, mistakes as sentences, and one module imported for one command."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from commonplace.cli import main
from commonplace.cli.arguments import add_home, add_json, comma_list, whole_number
from commonplace.cli.commands import COMMANDS, SECTIONS, Command, Group, load
from commonplace.cli.parser import Parser, command_parser
from commonplace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]

GROUPS = {name: found for name in COMMANDS if isinstance(found := load(name), Group)}
LEAVES: dict[str, Command] = {
    name: found for name in COMMANDS if isinstance(found := load(name), Command)
} | {
    f"{group} {name}": command
    for group, found in GROUPS.items()
    for name, command in found.commands.items()
}
PARSERS = {name: command_parser(f"commonplace {name}", leaf) for name, leaf in LEAVES.items()}
SLOW_PACKAGES = {"typer", "rich", "numpy", "tantivy", "mcp", "onnxruntime", "argcomplete"}


def flags_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.option_strings]


def one_line(text: str) -> str:
    return " ".join(text.split())


# --- Help -----------------------------------------------------------------------------------------


def test_the_help_of_the_program_lists_every_command_in_80_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out

    for title, section in SECTIONS.items():
        assert f"\n{title}:\n" in shown
        for name, entry in section.items():
            assert re.search(rf"^  {name} +{re.escape(entry.help)}$", shown, re.MULTILINE)
    assert max(len(line) for line in shown.splitlines()) <= 80


def test_the_program_alone_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    alone = capsys.readouterr().out
    main(["-h"])

    assert alone == capsys.readouterr().out


@pytest.mark.parametrize("name", GROUPS)
def test_the_help_of_a_group_lists_its_commands(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out

    for member, command in GROUPS[name].commands.items():
        assert re.search(rf"^  {member} +{re.escape(command.help)}$", shown, re.MULTILINE)


@pytest.mark.parametrize("name", LEAVES)
def test_every_help_explains_every_argument_and_has_examples(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*name.split(), "--help"]) == 0
    shown = capsys.readouterr().out

    assert shown.startswith(f"usage: commonplace {name} ")
    assert LEAVES[name].help in shown
    assert LEAVES[name].examples
    assert max(len(line) for line in shown.splitlines()) <= 80
    for action in PARSERS[name]._actions:
        explained = str(action.help) % {"default": action.default}
        assert one_line(explained) in one_line(shown)


@pytest.mark.parametrize("name", LEAVES)
def test_every_help_shows_its_defaults_and_has_no_hole(name: str) -> None:
    for action in PARSERS[name]._actions:
        text = str(action.help) % {"default": action.default}
        assert text[0].isupper()
        assert not text.endswith(".")
        # What typer made of `[default: …]`: "The log to write to ."
        assert not re.search(r"\s[.;,)]|\(\s|\(\)|: *\)|%", text), text
        if action.option_strings and action.default not in (None, False, True, "", "==SUPPRESS=="):
            assert f"(default: {action.default})" in text


def test_the_defaults_of_the_server_are_those_of_the_settings() -> None:
    from commonplace.settings import SETTINGS

    shown = PARSERS["serve"].format_help()

    for setting in ("server.host", "server.port"):
        assert str(SETTINGS[setting].default) in shown


@pytest.mark.parametrize("name", sorted(set(LEAVES) - {"mcp"}))  # It speaks a protocol.
def test_every_command_with_data_prints_json(name: str) -> None:
    assert "--json" in PARSERS[name]._option_string_actions


@pytest.mark.parametrize("name", LEAVES)
def test_every_example_is_a_call_that_the_parser_accepts(name: str) -> None:
    for example in LEAVES[name].examples:
        program, first, *rest = shlex.split(re.split(" [<>] ", example)[0])
        if program != "commonplace":
            continue
        if first in GROUPS:
            member = rest.pop(0) if rest else GROUPS[first].default
            first = f"{first} {member}"
        assert LEAVES[first].run == LEAVES[name].run  # `search` shows the examples of `recall`.
        PARSERS[name].parse(rest)


# --- Mistakes -------------------------------------------------------------------------------------


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """The error and the hint of a call that the parser does not accept."""
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    error, hint = printed.err.splitlines()
    assert error.startswith("error: ")
    assert hint.startswith("hint: ")
    return error, hint


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_refuses_an_unknown_flag(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error, _hint = refused(capsys, *name.split(), "--bananas")

    assert error == f"error: `commonplace {name}` has no flag `--bananas`"


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_refuses_a_flag_without_its_value(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for action in flags_of(PARSERS[name]):
        if action.nargs == 0:
            error, _hint = refused(capsys, *name.split(), f"{action.option_strings[-1]}=x")
            assert "takes no value" in error
        else:
            for after in ([], ["--help"]):
                error, _hint = refused(capsys, *name.split(), action.option_strings[0], *after)
                assert f"`{action.option_strings[0]}` needs " in error


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_says_which_arguments_are_missing_or_too_many(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    positionals = [action for action in PARSERS[name]._actions if not action.option_strings]
    required = [str(action.metavar) for action in positionals if action.nargs is None]
    options = [
        action.option_strings[0]
        for action in PARSERS[name]._actions
        if action.option_strings and action.required
    ]
    if required or options:
        error, _hint = refused(capsys, *name.split())
        missing = ", ".join([*required, *options])
        assert error == f"error: the following arguments are required: {missing}"
    if not any(action.nargs == "*" for action in positionals):
        numbers = [str(number) for number in range(len(positionals) + 1)]
        given = [part for option in options for part in (option, "x")]
        error, _hint = refused(capsys, *name.split(), *given, *numbers)
        assert error == f"error: `commonplace {name}` does not expect `{numbers[-1]}`"


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["reacll", "x"], "`commonplace recall`"),
        (["notes", "raed"], "`commonplace notes read`"),
        (["log", "--lessn", "x"], "`--lesson`"),
        (["recall", "x", "--all-repo"], "`--all-repos`"),
        (["--versoin"], "`--version`"),
    ],
)
def test_a_typo_gets_the_nearest_name(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _error, hint = refused(capsys, *arguments)

    assert hint.startswith(f"hint: did you mean {meant}?")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--limit", "x"],
        ["--limit", "-1"],
        ["--limit", "9" * 5000],
        ["--recent", "²"],
        ["--recent", "0"],
    ],
)
def test_a_number_is_a_whole_number_within_bounds(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    error, _hint = refused(capsys, "recall", *arguments)

    assert f"`{arguments[0]}` is" in error


@pytest.mark.parametrize("arguments", [["why", "--", "a", "--"], ["forget", "a", "--reason=--"]])
def test_two_dashes_are_no_value(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "`--` cannot be a value" in capsys.readouterr().err


def test_abbreviations_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    _error, hint = refused(capsys, "log", "--les", "x")

    assert "--lesson" in hint


# --- What is accepted -----------------------------------------------------------------------------


@pytest.fixture
def parser() -> Parser:
    made = Parser("commonplace try", "Try it")
    made.add_argument("query", nargs="?")
    made.add_argument("more", nargs="?")
    made.add_argument("--text")
    made.add_argument("--limit", type=whole_number(0, 9), default=5)
    made.add_argument("--tag", action="extend", type=comma_list)
    made.add_argument("--lines", nargs=2, type=whole_number(-9, 9))
    made.add_argument("--shell", nargs="?", const="")
    add_home(made)
    add_json(made)
    return made


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        (["a", "--json"], {"query": "a", "json": True}),
        (["--json", "a"], {"query": "a", "json": True}),
        (["a", "--limit", "3", "b"], {"query": "a", "more": "b", "limit": 3}),
        (["--limit=3", "a"], {"query": "a", "limit": 3}),
        (["--limit", "1", "--limit", "2"], {"limit": 2}),
        (["--", "-x"], {"query": "-x"}),
        (["--json", "--", "--json", "--tag"], {"query": "--json", "more": "--tag", "json": True}),
        (["-"], {"query": "-"}),
        (["- a list"], {"query": "- a list"}),
        (["a=b"], {"query": "a=b"}),
        (["", "b"], {"query": "", "more": "b"}),
        (["--text", ""], {"text": ""}),
        (["--text="], {"text": ""}),
        (["--text", "-x"], {"text": "-x"}),
        (["--text", "--no-verify"], {"text": "--no-verify"}),
        (["--text", "--limit=9 is too much"], {"text": "--limit=9 is too much"}),
        (["--text=--json"], {"text": "--json"}),
        (["--tag", "a", "--tag", "b, c,"], {"tag": ["a", "b", "c"]}),
        (["--tag="], {"tag": []}),
        (["--lines", "1", "-1", "a"], {"lines": [1, -1], "query": "a"}),
        (["--lines=1", "-1", "a"], {"lines": [1, -1], "query": "a"}),
        (["--shell"], {"shell": ""}),
        (["--shell", "--json"], {"shell": "", "json": True}),
        (["--shell", "zsh"], {"shell": "zsh"}),
    ],
)
def test_flags_and_values_may_come_in_any_order(
    parser: Parser, arguments: list[str], values: dict[str, Any]
) -> None:
    found = vars(parser.parse(arguments))

    assert {name: value for name, value in found.items() if value not in (None, False, 5)} == {
        name: value for name, value in values.items() if value != 5
    }


def test_a_flag_is_not_taken_for_the_value_of_another(parser: Parser) -> None:
    with pytest.raises(UsageError) as raised:
        parser.parse(["--text", "--json"])

    assert raised.value.hint == "write `--text=--json` if that is the value"


def test_the_inbox_alone_is_its_list(commonplace: Run, own_home: Path) -> None:
    own_home.mkdir()
    for arguments in (["inbox"], ["inbox", "list"]):
        assert "empty" in commonplace(*arguments).stderr
    assert commonplace("inbox", "--json").stdout == "[]\n"


def test_an_empty_scope_does_not_stand_for_the_default(commonplace: Run, own_home: Path) -> None:
    own_home.mkdir()
    for scopes in ("", "read,"):
        assert commonplace("token", "add", "me", "--scopes", scopes).returncode == 2
    assert commonplace("token", "list", "--json").stdout == "[]\n"


# --- Imports --------------------------------------------------------------------------------------


def modules_after(*arguments: str) -> set[str]:
    code = (
        "import contextlib, io, json, sys\n"
        "from commonplace.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()): main(sys.argv[1:])\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_imports_its_own_module_and_no_other_commands(name: str) -> None:
    modules = modules_after(name, "--help")

    imported = {
        entry.module for entry in COMMANDS.values() if f"commonplace.cli.{entry.module}" in modules
    }
    assert imported == {COMMANDS[name].module}
    assert not {package.partition(".")[0] for package in modules} & (SLOW_PACKAGES - {"numpy"})


def test_the_quick_commands_import_nothing_slow(commonplace: Run) -> None:
    logged = ["log", "--type", "error", "--lesson", "quick", "--repo", "r", "--id", "les-quick"]
    for arguments in (
        ["--help"], ["--version"], logged, ["show", "les-quick"], ["where"], ["repos"],
    ):  # fmt: skip
        modules = {name.partition(".")[0] for name in modules_after(*arguments)}
        assert not modules & {*SLOW_PACKAGES, "difflib"}, arguments
