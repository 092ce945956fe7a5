"""Homes: which one counts, and that making one twice is harmless."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commonplace.errors import HomeUnusable, SettingsInvalid
from commonplace.memory import Memory
from commonplace.records import LINE_READ_BYTES_MAX
from commonplace.settings import SETTINGS
from commonplace.where import homes, repository
from commonplace.where.home import Home
from conftest import git

if TYPE_CHECKING:
    from collections.abc import Callable


def found(cwd: Path, **environment: str) -> list[Path]:
    return [home.path for home in homes.find(None, cwd, repository.find(cwd), environment)]


def test_the_home_of_a_repository_is_nearer_than_the_users(tmp_path: Path) -> None:
    root = tmp_path / "app"
    (root / "src").mkdir(parents=True)
    git("init", "-q", cwd=root)
    user = tmp_path / "me" / ".commonplace"

    assert found(root / "src", HOME=str(tmp_path / "me")) == [user]
    (root / ".commonplace").mkdir()
    assert found(root / "src", HOME=str(tmp_path / "me")) == [root / ".commonplace", user]


def test_a_worktree_uses_the_home_of_the_main_one_unless_it_has_its_own(tmp_path: Path) -> None:
    root = tmp_path / "app"
    root.mkdir()
    git("init", "-q", "-b", "main", cwd=root)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=root)
    git("worktree", "add", "-q", str(tmp_path / "tree"), cwd=root)
    (root / ".commonplace").mkdir()

    assert found(tmp_path / "tree", HOME=str(tmp_path))[0] == root / ".commonplace"


def test_an_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    assert found(tmp_path, HOME=str(tmp_path), COMMONPLACE_HOME="") == [tmp_path / ".commonplace"]
    assert found(tmp_path, HOME=str(tmp_path), COMMONPLACE_HOME=str(tmp_path / "x")) == [
        tmp_path / "x"
    ]


def test_outside_git_a_folder_above_counts_only_within_the_users_own(tmp_path: Path) -> None:
    mine, shared = tmp_path / "me" / "notes" / "deep", tmp_path / "shared" / "deep"
    for folder in (mine, shared):
        folder.mkdir(parents=True)
        (folder.parent / ".commonplace").mkdir()

    assert found(mine, HOME=str(tmp_path / "me"))[0] == mine.parent / ".commonplace"
    assert found(shared, HOME=str(tmp_path / "me")) == [tmp_path / "me" / ".commonplace"]


def test_a_named_home_is_the_only_one(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "named") as memory:
        assert [home.path for home in memory.homes] == [tmp_path / "named"]


def test_making_a_home_twice_is_harmless(tmp_path: Path) -> None:
    assert len(homes.make(Home(tmp_path / "h"))) == 4
    (tmp_path / "h" / ".gitignore").write_text("mine\n")

    assert homes.make(Home(tmp_path / "h")) == []
    assert (tmp_path / "h" / ".gitignore").read_text() == "mine\n"


def test_a_first_write_of_several_at_once_makes_one_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = type(tmp_path).is_dir

    def looked(path: Path) -> bool:
        """Another process makes the folder just after this one has looked."""
        found = real(path)
        os.makedirs(path, exist_ok=True)  # noqa: PTH103 (a Path would look again)
        return found

    monkeypatch.setattr(type(tmp_path), "is_dir", looked)

    homes.make(Home(tmp_path / "h"))

    assert (tmp_path / "h" / ".gitignore").read_text() == homes.GITIGNORE


@pytest.mark.skipif(os.name != "posix", reason="links are POSIX's")
def test_the_users_home_by_another_name_is_no_second_one(tmp_path: Path) -> None:
    (tmp_path / "me" / "notes").mkdir(parents=True)
    (tmp_path / "me" / ".commonplace").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "me")

    for cwd in (tmp_path / "me", tmp_path / "me" / "notes", tmp_path / "link" / "notes"):
        for home in (tmp_path / "me", tmp_path / "link"):
            assert found(cwd, HOME=str(home)) == [tmp_path / "me" / ".commonplace"]


def test_a_home_that_is_a_file_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "h").write_text("")

    with pytest.raises(HomeUnusable, match="file"):
        homes.make(Home(tmp_path / "h"))
    with pytest.raises(HomeUnusable), Memory.open(tmp_path / "h") as memory:
        memory.log(event_type="error", lesson="x")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_home_that_may_not_be_written_is_told_so(tmp_path: Path) -> None:
    home = tmp_path / "h"
    home.mkdir(mode=0o500)

    with pytest.raises(HomeUnusable), Memory.open(home) as memory:
        memory.log(event_type="error", lesson="x")


def test_a_home_that_may_not_be_read_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("commonplace.where.homes.os.scandir", refuse)

    with pytest.raises(HomeUnusable, match="Permission denied"):
        Memory.open(tmp_path)


def test_reading_a_home_that_does_not_exist_makes_none(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "none") as memory:
        assert list(memory.records()) == []
        assert memory.repos() == []
        assert memory.check() == []

    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("fsync = 'sometimes'", "fsync"),
        ("line_bytes_max = '1M'", "whole number"),
        ("line_bytes_max = 3", "under 1024"),
        ("line_bytes_max = 200_000_000", "over 16777216"),
        ("[rotation]\nmove = true", "whole number"),
        ("[server]\nidle_minutes = nan", "idle_minutes"),
        ("[recall]\ndense = 1.5", "over 1"),
        ("[recall]\nrelevance_min = 1.01", "over 1"),
        ("[hooks]\nrelevance_min = 2", "over 1"),
        ("fsync =", "TOML"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_with_its_name(
    tmp_path: Path, text: str, reason: str
) -> None:
    (tmp_path / "config.toml").write_text(text)

    with pytest.raises(SettingsInvalid, match=reason):
        Memory.open(tmp_path)


def test_no_setting_lets_a_line_be_written_that_is_too_long_to_read() -> None:
    limit = SETTINGS["line_bytes_max"].maximum

    assert limit is not None
    assert limit < LINE_READ_BYTES_MAX


def test_settings_nobody_knows_are_listed_not_fatal(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[future]\nflux = 1\n")

    assert [name for _path, name in Memory.open(tmp_path).settings.unknown] == ["future.flux"]


def make_repository_home(root: Path, environment: dict[str, str]) -> None:
    root.mkdir()
    git("init", "-q", cwd=root)
    homes.make(homes.at(root / ".commonplace", environment))


def test_the_nearest_homes_settings_win_over_the_users(tmp_path: Path) -> None:
    root, user = tmp_path / "app", tmp_path / "me"
    environment = {"COMMONPLACE_HOME": str(user), "HOME": str(tmp_path)}
    make_repository_home(root, environment)
    user.mkdir(exist_ok=True)
    (user / "config.toml").write_text("fsync = 'always'\nline_bytes_max = 2048\n")
    (root / ".commonplace" / "config.toml").write_text("fsync = 'never'\n")

    memory = Memory.open(cwd=root, environment=environment)

    assert (memory.settings["fsync"], memory.settings["line_bytes_max"]) == ("never", 2048)


def test_a_repository_cannot_open_a_door_the_user_closed(tmp_path: Path) -> None:
    root, user = tmp_path / "app", tmp_path / "me"
    environment = {"COMMONPLACE_HOME": str(user), "HOME": str(tmp_path)}
    make_repository_home(root, environment)
    user.mkdir(exist_ok=True)
    (user / "config.toml").write_text("[server]\nhost = '127.0.0.1'\n")
    (root / ".commonplace" / "config.toml").write_text("[server]\nhost = '0.0.0.0'\n")

    with pytest.raises(SettingsInvalid, match="user's home only"):
        Memory.open(cwd=root, environment=environment)


def test_an_empty_home_variable_names_no_folder(tmp_path: Path) -> None:
    pwd = pytest.importorskip("pwd")
    own = Path(pwd.getpwuid(os.getuid()).pw_dir)

    assert homes.user_folder({"HOME": ""}) == own
    assert homes.user_folder({}) == own
    assert homes.user_folder({"HOME": str(tmp_path)}) == tmp_path


def test_a_script_that_logs_is_put_into_the_home(
    tmp_path: Path, own_home: Path, commonplace: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = commonplace("init", "--user", "--script", cwd=tmp_path)

    script = own_home / "scripts" / "log_memory.sh"
    assert "scripts/log_memory.sh" in done.stdout.replace("\\", "/")
    assert os.name == "nt" or script.stat().st_mode & 0o777 == 0o700
    again = commonplace("init", "--user", "--script", cwd=tmp_path)
    assert "nothing changed" in again.stdout
    assert "All is well" in commonplace("doctor").stdout
    if shutil.which("sh"):
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        logged = subprocess.run(
            ["sh", str(script), "--repo", "app", "--type", "error", "--lesson", "check ownership"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PATH": path},
        )
        assert logged.stdout.startswith("les-check-ownership-")
