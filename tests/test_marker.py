"""A folder that is no home is refused by every surface, and nothing in it changes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.cli import main
from commonplace.cli.commands import COMMANDS, Command, Group, load
from commonplace.cli.parser import command_parser
from commonplace.errors import HomeUnusable
from commonplace.memory import Memory
from commonplace.where import homes
from commonplace.where.home import Home
from commonplace.where.marker import MARKER, foreign_name
from conftest import git

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Commonplace = Callable[..., subprocess.CompletedProcess[str]]

SECRET = "AKIA" + "Q3EGP7OMXV2RS5TU"
UNUSABLE = HomeUnusable.exit_code
# They connect agents or change a repository; without `--home` they are tried with COMMONPLACE_HOME.
WITHOUT_HOME = {"init", "trust", "setup"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder that nobody would want to be changed: with a secret, open to all, and its own log/."""
    folder = tmp_path / "project"
    (folder / "log").mkdir(parents=True)
    (folder / "log" / "training.jsonl").write_text('{"loss": 1}\n')
    (folder / "config.py").write_text(f'KEY = "{SECRET}"\n')
    (folder / "config.py").chmod(0o644)
    return folder


def state_of(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything below *folder*: mode, time of change and content."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mode,
            path.stat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in [folder, *folder.rglob("*")]
    }


def commands() -> Iterator[tuple[list[str], Command]]:
    for name in COMMANDS:
        found = load(name)
        if isinstance(found, Group):
            yield from (([name, one], command) for one, command in found.commands.items())
        else:
            yield [name], found


def flags_and_values(command: Command) -> tuple[set[str], list[str]]:
    """The flags that *command* takes, and a value for each argument that it needs."""
    actions = command_parser("x", command)._actions
    flags = {flag for action in actions for flag in action.option_strings}
    return flags, ["1" for action in actions if not action.option_strings]


@pytest.mark.parametrize(("words", "command"), list(commands()), ids=lambda x: str(x)[:20])
def test_no_command_takes_a_project_for_a_home(
    words: list[str],
    command: Command,
    project: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flags, values = flags_and_values(command)
    extra: list[str] = [
        flag for flag in ("--fix", "--yes", "--erase", "--all-repos") if flag in flags
    ]
    if words == ["import"]:
        (tmp_path / "1").mkdir()
    if words == ["log"]:
        extra += ["--type", "learned", "--lesson", "npm"]
        values = []
    before = state_of(project)
    if "--home" in flags:
        code = main([*words, *extra, "--home", str(project), *values])
        assert code in (UNUSABLE, 2)
        assert (code == UNUSABLE) == ("is not a home" in capsys.readouterr().err)
    else:
        assert words[0] in WITHOUT_HOME, "a command with data takes `--home`"
    assert state_of(project) == before
    monkeypatch.setenv("COMMONPLACE_HOME", str(project))
    assert main([*words, *extra, *values]) != 0
    assert state_of(project) == before


def test_most_commands_are_refused_for_that_reason_alone(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (
        ["doctor", "--fix"],
        ["scan", "--fix"],
        ["recall", "npm"],
        ["maintain"],
        ["log", "--type", "learned", "--lesson", "npm"],
        ["notes", "write", "CONTEXT.md", "npm"],
        ["serve", "--port", "0"],
        ["mcp"],
    ):
        assert main([*words, "--home", str(project)]) == UNUSABLE
        said = capsys.readouterr().err
        assert "`config.py`" in said
        assert "Traceback" not in said


def test_init_does_not_turn_a_project_into_a_home(
    project: Path, tmp_path: Path, commonplace: Commonplace
) -> None:
    before = state_of(project)
    (tmp_path / "repository").mkdir()
    git("init", "-q", cwd=tmp_path / "repository")
    for arguments in (["init", "--user"], ["init"]):
        done = commonplace(*arguments, cwd=tmp_path / "repository", COMMONPLACE_HOME=str(project))
        assert done.returncode == UNUSABLE, done
    assert state_of(project) == before


def test_a_hook_writes_nothing_into_a_project(project: Path, tmp_path: Path) -> None:
    before = state_of(project)
    for event in ("SessionStart", "UserPromptSubmit", "PostToolUse", "SessionEnd"):
        done = subprocess.run(
            [sys.executable, "-c", "from commonplace.hooks import main; main()", "claude-code"],
            input=f'{{"session_id": "s", "cwd": "{tmp_path}", "hook_event_name": "{event}",'
            f' "prompt": "npm", "tool_name": "Bash", "tool_input": {{"command": "ls"}}}}',
            env={**os.environ, "COMMONPLACE_HOME": str(project)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert not done.stdout
        assert not done.stderr
    assert state_of(project) == before


def test_the_state_of_a_repositorys_home_is_not_kept_in_a_project(
    project: Path, tmp_path: Path, commonplace: Commonplace
) -> None:
    root = tmp_path / "app"
    (root / ".commonplace").mkdir(parents=True)
    git("init", "-q", cwd=root)
    before = state_of(project)
    for arguments in (["recall", "npm", "--home", ".commonplace"], ["trust"]):
        done = commonplace(*arguments, cwd=root, COMMONPLACE_HOME=str(project))
        assert done.returncode == UNUSABLE, done
    assert state_of(project) == before


def test_a_named_home_that_does_not_exist_is_an_error_for_reading_only(
    tmp_path: Path, commonplace: Commonplace
) -> None:
    nowhere = tmp_path / "nowhere"
    for arguments in (
        ["recall", "npm"],
        ["doctor", "--fix"],
        ["stats"],
        ["export"],
        ["index", "rebuild"],
        ["notes", "list"],
        ["inbox"],
        ["maintain"],
        ["config", "list"],
        ["token", "list"],
        ["serve", "--status"],
        ["sync"],
        ["backup", "create", "memory.tar.gz"],
        ["forget", "les-1", "--erase", "--yes"],
    ):
        for done in (
            commonplace(*arguments, "--home", str(nowhere)),
            commonplace(*arguments, COMMONPLACE_HOME=str(nowhere)),
        ):
            assert done.returncode == UNUSABLE, (arguments, done)
            assert "there is no such folder" in done.stderr
    assert not nowhere.exists()
    written = commonplace("log", "--type", "learned", "--lesson", "npm", "--home", str(nowhere))
    assert written.returncode == 0, written
    assert commonplace("recall", "npm", "--all-repos", "--home", str(nowhere)).returncode == 0


def test_the_users_home_that_nobody_named_may_be_missing(
    tmp_path: Path, commonplace: Commonplace
) -> None:
    done = commonplace("recall", "npm", COMMONPLACE_HOME="", HOME=str(tmp_path))
    assert done.returncode == 0, done
    assert not (tmp_path / ".commonplace").exists()


OWN = ["config.toml", "log", "agents", "skills", ".state", ".index", ".git", ".gitignore"]


@given(
    own=st.sets(st.sampled_from(OWN)),
    foreign=st.sets(st.sampled_from(["src", "package.json", "passwd", ".env", "Log", "x.jsonl"])),
    marker=st.sampled_from(
        ["", MARKER, f"*.png binary\r\n{MARKER.replace(chr(10), chr(13) + chr(10))}"]
    ),
)
def test_a_folder_is_a_home_by_its_marker_or_if_it_holds_nothing_else(
    own: set[str],
    foreign: set[str],
    marker: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("any")
    for name in own | foreign:
        (folder / name).touch()
    if marker:
        (folder / ".gitattributes").write_bytes(marker.encode())
    # A repository that holds nothing but skills or the like is somebody's collection of them.
    if ".git" in own and own.isdisjoint(["config.toml", "log", ".state"]) and not foreign:
        foreign = own & {"agents", "skills"}
    assert foreign_name(folder) == ("" if marker else min(foreign, default=""))


def test_a_new_home_has_the_marker_and_may_then_hold_anything(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "new") as memory:
        memory.log(event_type="learned", lesson="npm")
    (tmp_path / "new" / "README.md").write_text("Our memory.\n")
    homes.check_usable(Home(tmp_path / "new"))


def test_a_home_made_by_hand_needs_no_marker(tmp_path: Path) -> None:
    (tmp_path / "old" / "log").mkdir(parents=True)
    (tmp_path / "old" / "log" / "app.jsonl").write_text("")
    homes.check_usable(Home(tmp_path / "old"))
    assert stat.S_ISDIR((tmp_path / "old").stat().st_mode)


def test_an_attributes_file_of_another_program_is_no_marker(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / ".gitattributes").write_text("*.jsonl text eol=lf merge=union\n")
    with pytest.raises(HomeUnusable):
        homes.check_usable(Home(tmp_path))


@pytest.mark.parametrize("names", [[".git", "skills"], [".git", "agents"], [".git", "scripts"]])
def test_a_collection_of_skills_is_no_home(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).mkdir()

    assert foreign_name(tmp_path) in {"agents", "skills", "scripts"}
    (tmp_path / "log").mkdir()
    assert foreign_name(tmp_path) == ""
