"""An import keeps each project of its source a repository of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.exchange.importer import import_files
from commonplace.memory import Memory
from conftest import git

if TYPE_CHECKING:
    import pytest


def project(path: Path) -> Path:
    path.mkdir(parents=True)
    git("init", "-q", cwd=path)
    (path / ".serena" / "memories").mkdir(parents=True)
    (path / ".serena" / "memories" / "build.md").write_text(
        f"# Build\n\nRun make in {path.name}.\n"
    )
    return path


def logs(memory: Memory) -> dict[str, int]:
    return {row["repo"]: row["records"] for row in memory.repos()}


def repo_of(folder: Path) -> str:
    with Memory.open(cwd=folder) as memory:
        return memory.repository.name


def claude_memory(home: Path, folder: str) -> Path:
    """Write a memory of Claude Code about the project at the path *folder*."""
    written = re.sub(r"[^A-Za-z0-9]", "-", folder)
    topic = home / ".claude" / "projects" / written / "memory" / "testing.md"
    topic.parent.mkdir(parents=True)
    front = "---\nname: testing\ndescription: how to test\ntype: project\n---\n"
    topic.write_text(f"{front}\nThe tests of {folder} need a display.\n")
    return topic


def test_files_in_several_repositories_go_to_the_logs_of_those(tmp_path: Path) -> None:
    work = tmp_path / "work"
    shop, api, here = (project(work / name) for name in ("shop", "api", "here"))

    with Memory.open(cwd=here) as memory:
        import_files(memory, work)

        assert logs(memory) == {repo_of(shop): 1, repo_of(api): 1, repo_of(here): 1}
        assert import_files(memory, work).records == 0, "again adds nothing"
        assert memory.recall("build make", repo="shop").hits[0].repo == repo_of(shop)


def test_the_projects_of_claude_code_are_found_by_their_folders(tmp_path: Path) -> None:
    shop = project(tmp_path / "my.projects" / "web-shop")
    (tmp_path / "my").mkdir()
    claude_memory(tmp_path, str(shop))
    claude_memory(tmp_path, "/nowhere/old-app")

    with Memory.open() as memory:
        import_files(memory, tmp_path / ".claude" / "projects")

        assert logs(memory) == {repo_of(shop): 1, "nowhere-old-app": 1}


def test_a_repository_that_was_moved_gets_what_is_imported_into_its_log(tmp_path: Path) -> None:
    shop = project(tmp_path / "shop")
    with Memory.open(cwd=shop) as memory:
        log = memory.log(event_type="error", lesson="x").repo
    moved = shop.rename(tmp_path / "moved")

    with Memory.open() as memory:
        import_files(memory, moved)

        assert logs(memory) == {log: 2}


def test_files_in_no_project_and_named_repositories_are_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = project(tmp_path / "shop")
    loose = tmp_path / "loose" / ".serena" / "memories"
    loose.mkdir(parents=True)
    (loose / "a.md").write_text("# A\n\nLoose advice.\n")

    with Memory.open() as memory:
        import_files(memory, shop, repo="all")
        import_files(memory, tmp_path / "loose")
        assert logs(memory) == {"all": 1, memory.repository.name: 1}

        # Somebody's own folder in git is no project.
        monkeypatch.setenv("HOME", str(shop))
        import_files(memory, shop)
        assert logs(memory) == {"all": 1, memory.repository.name: 2}
