"""Columns and colours: drawn by hand, for the width of a terminal, and plain everywhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from commonplace.cli import columns

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., subprocess.CompletedProcess[str]]

needs_terminal = pytest.mark.skipif(os.name == "nt", reason="a pseudo terminal is POSIX's")
NAME = "a-repository-with-a-rather-long-name-that-goes-on"


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "terminal_columns", lambda: 40)


def test_values_stand_in_a_second_column(capsys: pytest.CaptureFixture[str]) -> None:
    columns.print_pairs([("id", "a"), ("success_rate", "9/10"), ("text", "one\n  two")])

    assert capsys.readouterr().out == (
        "id            a\nsuccess_rate  9/10\ntext          one\n                two\n"
    )


@pytest.mark.usefixtures("narrow")
def test_a_long_value_is_wrapped_within_its_column(capsys: pytest.CaptureFixture[str]) -> None:
    columns.print_pairs([("lesson", "always verify  ownership before npm operations"), ("id", "a")])

    assert capsys.readouterr().out == (
        "lesson  always verify  ownership before\n        npm operations\nid      a\n"
    )


@pytest.mark.usefixtures("narrow")
def test_a_word_longer_than_its_column_is_broken_by_its_width(
    capsys: pytest.CaptureFixture[str],
) -> None:
    columns.print_pairs([("id", "see " + "x" * 50), ("of", "語" * 20)])

    assert capsys.readouterr().out.splitlines() == [
        "id  see",
        "    " + "x" * 36,
        "    " + "x" * 14,
        "of  " + "語" * 18,
        "    語語",
    ]


@pytest.mark.usefixtures("narrow")
def test_a_long_line_goes_on_below_indented(capsys: pytest.CaptureFixture[str]) -> None:
    columns.print_wrapped("short")
    columns.print_wrapped("agent  claude-code  is installed and not set up  [`commonplace setup`]")

    assert capsys.readouterr().out == (
        "short\nagent  claude-code  is installed and not\n    set up  [`commonplace setup`]\n"
    )


def test_a_table_aligns_numbers_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    columns.print_table(("repo", "n"), [("a", "1,000"), ("é日", "2")], right=["n"])

    assert capsys.readouterr().out == " repo      n\n a     1,000\n é日       2\n"


@pytest.mark.usefixtures("narrow")
def test_the_first_column_of_a_table_is_folded(capsys: pytest.CaptureFixture[str]) -> None:
    columns.print_table(("repo", "records"), [(NAME, "7")], right=["records"])

    assert capsys.readouterr().out.splitlines() == [
        " repo                            records",
        f" {NAME[:30]}        7",
        f" {NAME[30:]}",
    ]


def test_nothing_is_wrapped_where_a_column_would_be_tiny(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(columns, "terminal_columns", lambda: 20)

    columns.print_pairs([("success_rate", "nine out of ten times")])

    assert capsys.readouterr().out == "success_rate  nine out of ten times\n"


def at_a_terminal(width: int, *arguments: str, **environment: str) -> str:
    """What a command prints where stdout is a terminal."""
    import pty

    ours, theirs = pty.openpty()
    subprocess.run(
        [sys.executable, "-m", "commonplace", *arguments],
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": str(width), "TERM": "xterm", **environment},
        check=True,
    )
    os.close(theirs)
    found = b""
    try:
        while part := os.read(ours, 65536):
            found += part
    except OSError:  # So Linux ends it.
        pass
    os.close(ours)
    return found.decode().replace("\r\n", "\n")


@needs_terminal
def test_show_and_repos_fit_a_terminal_and_are_whole_elsewhere(commonplace: Run) -> None:
    lesson = "verify ownership before npm ci, always, and on every machine there is"
    commonplace("log", "--type", "error", "--lesson", lesson, "--id", "a", "--repo", NAME)

    assert f"lesson       {lesson}\n" in commonplace("show", "a", COLUMNS="30").stdout
    assert f" {NAME}        1  " in commonplace("repos", COLUMNS="30").stdout
    for arguments in (["show", "a"], ["repos"]):
        shown = at_a_terminal(70, *arguments)
        assert max(len(line) for line in shown.splitlines()) <= 70


@needs_terminal
def test_colours_are_for_terminals_without_no_color(commonplace: Run) -> None:
    arguments = ("setup", "vscode", "--dry-run")

    assert "\x1b[32m+" in at_a_terminal(80, *arguments, NO_COLOR="")
    assert "\x1b" not in at_a_terminal(80, *arguments, NO_COLOR="1")
    assert "\x1b" not in at_a_terminal(80, *arguments, NO_COLOR="", TERM="dumb")
    assert "\x1b" not in commonplace(*arguments, NO_COLOR="").stdout


@needs_terminal
def test_the_index_is_rebuilt_with_a_progress_bar_on_stderr(
    commonplace: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pty

    commonplace("log", "--type", "error", "--lesson", "x", "--repo", "r")
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "commonplace", "index", "rebuild", "--no-vectors"],
        stderr=theirs,
        stdout=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm"},
        check=True,
    )
    os.close(theirs)

    assert b"1" in done.stdout
    assert b"lines" in os.read(ours, 65536)
    os.close(ours)
