"""Walking a folder: everything below it once, no link followed, and an end to all things."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import HomeUnusable
from commonplace.files.walk import walk
from commonplace.memory import Memory
from commonplace.notes import DEPTH_MAX, Notes
from commonplace.where.home import Home
from conftest import SLOW_LAW

DEEP = "d/" * 60
paths = st.lists(st.sampled_from("abc"), min_size=1, max_size=5).map(lambda parts: Path(*parts))


@SLOW_LAW
@given(st.sets(paths, max_size=8))
def test_it_yields_what_rglob_yields(
    tmp_path_factory: pytest.TempPathFactory, folders: set[Path]
) -> None:
    top = tmp_path_factory.mktemp("top")
    for folder in folders:
        (top / folder).mkdir(parents=True, exist_ok=True)
        (top / folder / "file").touch()

    found = list(walk(top))

    assert sorted(found) == sorted(top.rglob("*"))
    assert len(found) == len(set(found))


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "up").symlink_to(tmp_path)

    assert sorted(walk(tmp_path)) == [tmp_path / "a", tmp_path / "a" / "up"]


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert list(walk(tmp_path / "missing")) == []


def test_a_tree_that_is_too_deep_or_too_large_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)

    assert len(list(walk(tmp_path, depth_max=4, entries_max=3))) == 3
    with pytest.raises(HomeUnusable, match=r"b`.*more than 2 folders deep"):
        list(walk(tmp_path, depth_max=2))
    with pytest.raises(HomeUnusable, match="more than 2 files and folders"):
        list(walk(tmp_path, entries_max=2))
    deepest = {path.name for path in walk(tmp_path, depth_max=2, skip_deeper=True)}
    assert deepest == {"a", "b"}


def test_a_home_with_folders_without_end_costs_one_sentence(memory: Memory, own_home: Path) -> None:
    memory.log(event_type="learned", lesson="ours")
    (own_home / DEEP).mkdir(parents=True)

    for work in (memory.check, memory.mend, memory.scan):
        with pytest.raises(HomeUnusable, match="folders deep"):
            work()


def test_notes_are_listed_beside_folders_without_end(own_home: Path) -> None:
    notes = Notes(Home(own_home), "ana")
    notes.write("plan.md", "x")
    (notes.folder / DEEP).mkdir(parents=True)

    assert [note.path for note in notes.list()] == ["plan.md"]
    assert len(notes.entries(depth=100)) == 1 + DEPTH_MAX
    notes.write("other.md", "y")
