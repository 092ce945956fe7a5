"""Which repository a folder is: worktrees and clones share a log, namesakes do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commonplace.records import check_repo_name
from commonplace.where import repository
from conftest import git, make_repository

if TYPE_CHECKING:
    from pathlib import Path


def name(path: Path) -> str:
    return repository.find(path).name


def test_a_subfolder_and_a_worktree_share_the_log(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "api")
    (main / "src").mkdir()
    git("worktree", "add", "-q", str(tmp_path / "elsewhere"), cwd=main)

    assert name(main) == name(main / "src") == name(tmp_path / "elsewhere")
    assert repository.find(tmp_path / "elsewhere").main_root == main


def test_the_same_folder_name_with_another_remote_is_another_log(tmp_path: Path) -> None:
    acme = make_repository(tmp_path / "acme" / "api", "https://example.org/acme/api.git")
    zeta = make_repository(tmp_path / "zeta" / "api", "https://example.org/zeta/api.git")
    plain = make_repository(tmp_path / "plain" / "api")

    assert len({name(acme), name(zeta), name(plain)}) == 3
    assert repository.find(acme).short == "api"


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/acme/api.git",
        "https://example.org/acme/api",
        "https://user:token@example.org/acme/api.git/",
        "git@example.org:acme/api.git",
        "ssh://git@example.org:22/acme/api.git",
        "https://EXAMPLE.org/acme/api",
    ],
)
def test_every_way_to_write_an_address_is_the_same_repository(tmp_path: Path, url: str) -> None:
    usual = make_repository(tmp_path / "usual", "https://example.org/acme/api.git")

    assert name(make_repository(tmp_path / "other", url)) == name(usual)


def test_a_clone_of_a_folder_shares_the_log_of_that_folder(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin")
    git("clone", "-q", str(origin), str(tmp_path / "a"), cwd=tmp_path)
    git("clone", "-q", str(tmp_path / "a"), str(tmp_path / "b"), cwd=tmp_path)

    assert name(tmp_path / "a") == name(tmp_path / "b") == name(origin)


def test_two_clones_that_name_each_other_end(tmp_path: Path) -> None:
    a = make_repository(tmp_path / "a", str(tmp_path / "b"))
    b = make_repository(tmp_path / "b", str(tmp_path / "a"))

    assert name(a)
    assert name(b)


def test_a_scope_in_the_path_of_an_address_is_no_user(tmp_path: Path) -> None:
    gitlab = make_repository(tmp_path / "a", "https://gitlab.com/@scope/x.git")
    other = make_repository(tmp_path / "b", "https://example.org/@scope/x.git")

    assert name(gitlab) != name(other)
    assert name(gitlab) == name(
        make_repository(tmp_path / "c", "https://me:token@gitlab.com/@scope/x")
    )


def test_a_bare_repository_shares_the_log_of_its_worktrees(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "api")
    git("clone", "-q", "--bare", str(main), str(tmp_path / "bare.git"), cwd=tmp_path)
    git("worktree", "add", "-q", str(tmp_path / "tree"), "main", cwd=tmp_path / "bare.git")

    assert name(tmp_path / "bare.git") == name(tmp_path / "tree")
    assert name(main / ".git" / "hooks") == name(main)


def test_outside_git_the_folder_gives_the_name(tmp_path: Path) -> None:
    folder = tmp_path / "my notes (new)"
    folder.mkdir()

    assert name(folder) == "my-notes--new-"
    assert name(type(tmp_path)("/")) == "general"


@pytest.mark.parametrize("given", ["all-repositories", "All-Repositories", "all repositories"])
def test_no_folder_has_the_log_of_all_repositories(tmp_path: Path, given: str) -> None:
    (tmp_path / given).mkdir()

    assert name(tmp_path / given) == f"repo-{given.replace(' ', '-')}"


def test_a_long_name_in_any_script_still_names_a_log(tmp_path: Path) -> None:
    assert check_repo_name(name(make_repository(tmp_path / ("語" * 80))))


def test_a_broken_pointer_is_not_a_repository(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / ".git").write_bytes(b"\xff\xfe")

    assert repository.find(tmp_path / "x").root is None
