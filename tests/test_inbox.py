"""`commonplace inbox`: what waits is listed, worded, accepted or dropped, by a person or a script."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commonplace import inbox
from commonplace.inbox import SolvedFailure
from commonplace.memory import Memory
from commonplace.where.home import Home
from conftest import git

if TYPE_CHECKING:
    from collections.abc import Callable

FOUND: dict[str, Any] = {
    "intent": "npm install", "error": "npm ERR! code EACCES", "tried": ["npm install"], "worked": "sudo chown -R $USER . && npm ci",
    "attempts": 2, "edits": [], "at": 1_790_000_000.0, "agent": "claude-code", "repo": "shop", "session": "s-1",
}  # fmt: skip


@pytest.fixture
def ident(own_home: Path) -> str:
    own_home.mkdir(mode=0o700)
    inbox.add_solved(Home(own_home), SolvedFailure(**FOUND))
    (one,) = inbox.candidates(Home(own_home))
    return one.id


def test_an_empty_inbox_says_so(
    commonplace: Callable[..., subprocess.CompletedProcess[str]], own_home: Path
) -> None:
    own_home.mkdir()
    done = commonplace("inbox")

    assert (done.returncode, done.stdout) == (0, "")
    assert "empty" in done.stderr
    assert json.loads(commonplace("inbox", "list", "--json").stdout) == []


def test_list_and_show_tell_what_waits(
    ident: str, commonplace: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    listed = commonplace("inbox")
    shown = commonplace("inbox", "show", "npm")
    (fields,) = json.loads(commonplace("inbox", "list", "--json").stdout)

    assert listed.stdout.startswith(ident)
    assert "sudo chown" in listed.stdout
    assert "npm ERR! code EACCES" in shown.stdout
    assert ", seen in 1 session, " in shown.stdout
    assert fields["attempts"] == 2
    assert fields["lesson"] == "`npm install` failed; `sudo chown -R $USER . && npm ci` worked"


def test_accept_makes_a_lesson(
    ident: str, commonplace: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = commonplace("inbox", "accept", ident, "--lesson", "own the folder before npm ci")
    record = json.loads(commonplace("show", done.stdout.strip(), "--json").stdout)

    assert record["lesson"] == "own the folder before npm ci"
    assert record["repo"] == "shop"
    assert record["success_rate"] == "1/1"
    assert record["meta"]["attempts"] == 2
    assert commonplace("inbox").stdout == ""


def test_edit_takes_flags_or_an_editor(
    ident: str, tmp_path: Path, commonplace: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    commonplace(
        "inbox", "edit", ident, "--worked", "npm ci --prefer-offline", "--error", "EACCES on mkdir"
    )
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import pathlib, sys\npathlib.Path(sys.argv[1]).write_text('in my own words')"
    )
    done = commonplace("inbox", "edit", ident, EDITOR=f"{sys.executable} {editor}", VISUAL="")
    shown = json.loads(commonplace("inbox", "show", ident, "--json").stdout)

    assert "in my own words" in done.stdout
    assert (shown["lesson"], shown["worked"], shown["error"]) == (
        "in my own words",
        "npm ci --prefer-offline",
        "EACCES on mkdir",
    )
    none = commonplace("inbox", "edit", ident, EDITOR="", VISUAL="")
    assert none.returncode == 2
    assert "EDITOR" in none.stderr


def test_drop_takes_it_out_and_a_wrong_id_is_told(
    ident: str, commonplace: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    assert commonplace("inbox", "drop", ident).returncode == 0
    done = commonplace("inbox", "show", ident)

    assert done.returncode == 23
    assert "error: no candidate" in done.stderr
    assert "Traceback" not in done.stderr


def test_two_that_begin_alike_are_told_apart(
    own_home: Path, ident: str, commonplace: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    inbox.add_solved(Home(own_home), SolvedFailure(**{**FOUND, "worked": "npm ci --force"}))

    assert commonplace("inbox", "drop", "npm").returncode == 5
    assert commonplace("inbox", "drop", ident).returncode == 0


def test_damaged_files_are_passed_over_and_doctor_names_them(
    own_home: Path,
    ident: str,
    commonplace: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    folder = own_home / ".state" / "inbox"
    (folder / "cand-a-1.json").write_text("{")
    (folder / "cand-b-1.json").write_text('{"id": "cand-b-1"}')
    (folder / "cand-c-1.json").write_text(json.dumps({**FOUND, "id": "cand-c-1", "seen": "many"}))

    assert [one.id for one in inbox.candidates(Home(own_home))] == [ident]
    findings = json.loads(commonplace("doctor", "--json").stdout)["findings"]
    damaged = [one["path"] for one in findings if one["what"] == "damaged candidate"]
    assert [Path(one).stem for one in damaged] == ["cand-a-1", "cand-b-1", "cand-c-1"]


def test_what_somebody_else_accepts_meanwhile_is_left_out(own_home: Path, ident: str) -> None:
    other = inbox.add_solved(Home(own_home), SolvedFailure(**{**FOUND, "worked": "npm ci"})).id
    with Memory.open(own_home, background=False) as memory:
        slow = inbox.accept(memory, [ident, other])
        next(slow)
        assert len(memory.accept(other)) == 1
        assert not list(slow)
        assert len(list(memory.records(kind="lesson"))) == 2


def test_of_two_who_accept_everything_at_once_each_reports_its_own(own_home: Path) -> None:
    own_home.mkdir(mode=0o700)
    for number in range(20):
        found = {**FOUND, "worked": f"npm ci --cache {number}"}
        inbox.add_solved(Home(own_home), SolvedFailure(**found))
    command = [sys.executable, "-m", "commonplace", "inbox", "accept", "--all"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    reported = [one.communicate()[0].split() for one in both]

    assert not set(reported[0]) & set(reported[1])
    assert len(reported[0] + reported[1]) == 20


def test_a_repository_that_gets_a_home_keeps_its_candidates(
    commonplace: Callable[..., subprocess.CompletedProcess[str]], ident: str, tmp_path: Path
) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    git("init", "-q", cwd=root)
    assert commonplace("init", cwd=root).returncode == 0

    assert ident in commonplace("inbox", cwd=root).stdout
    assert commonplace("inbox", "show", ident, cwd=root).returncode == 0
    assert commonplace("inbox", "edit", ident, "--lesson", "own it", cwd=root).returncode == 0
    assert commonplace("inbox", "accept", ident, cwd=root).returncode == 0
    assert "empty" in commonplace("inbox", cwd=root).stderr
