"""Atomic writes: whole or not at all, on the disk when they should be, with the old file's mode and owner."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from commonplace.errors import CommonplaceError
from commonplace.files import atomic

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("durable", [True, False])
def test_the_content_is_synced_before_the_name_and_the_folder_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    done: list[str] = []
    path = tmp_path / "file"
    rename = atomic.rename

    def renamed(temporary: Path, target: Path) -> None:
        done.append(f"rename {temporary.read_bytes().decode()}")
        rename(temporary, target)

    monkeypatch.setattr(atomic, "sync", lambda _descriptor: done.append("sync file"))
    monkeypatch.setattr(atomic, "sync_folder", lambda folder: done.append(f"sync {folder.name}"))
    monkeypatch.setattr(atomic, "rename", renamed)

    atomic.write(path, [b"a", b"b"], durable=durable)

    assert done == (
        ["sync file", "rename ab", f"sync {tmp_path.name}"] if durable else ["rename ab"]
    )


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666, 0o640])
def test_a_file_keeps_its_mode_whatever_the_umask(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode)
    before = os.umask(0o077)
    try:
        atomic.write(path, [b"new"], mode=0o600)
    finally:
        os.umask(before)

    assert path.stat().st_mode & 0o777 == mode


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_new_file_has_the_mode_that_is_asked_for(tmp_path: Path) -> None:
    atomic.write(tmp_path / "one", [b"x"])
    atomic.write(tmp_path / "two", [b"x"], mode=0o640)

    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "two").stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.name != "posix", reason="owners are POSIX's")
@pytest.mark.parametrize(
    ("uid", "gid", "given_to"), [(7, 8, [(7, 8)]), (0, 8, [(0, 8)]), (7, 0, [(7, 0)]), (0, 0, [])]
)
@pytest.mark.parametrize("is_allowed", [True, False])
def test_a_file_keeps_its_owner_where_the_system_allows_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    uid: int,
    gid: int,
    given_to: list[tuple[int, int]],
    is_allowed: bool,
) -> None:
    path = tmp_path / "file"
    path.touch()
    found = path.stat()
    monkeypatch.setattr(os, "geteuid", lambda: found.st_uid - uid)
    monkeypatch.setattr(os, "getegid", lambda: found.st_gid - gid)
    calls: list[tuple[int, int]] = []

    def chown(_descriptor: int, owner: int, group: int) -> None:
        calls.append((owner, group))
        if not is_allowed:
            raise PermissionError

    monkeypatch.setattr(os, "fchown", chown)

    atomic.write(path, [b"new"])

    assert calls == [(found.st_uid, found.st_gid)] * len(given_to)
    assert path.read_bytes() == b"new"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic, "sync", full)

    with pytest.raises(CommonplaceError):
        atomic.replace(path, [b"new"])
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "folder").symlink_to(tmp_path)

    for path in (tmp_path / "link", tmp_path / "folder" / "real"):
        with pytest.raises(OSError, match=r"plain|symbolic"):
            atomic.write(path, [b"new"])

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("name", "lives", "is_left"),
    [
        (".file.0a.{ours}.rewriting", True, False),
        (".file.0a.999999999.rewriting", False, True),
        (".file.0a.none.rewriting", False, True),
        ("file", False, False),
        ("file.{ours}", False, False),
    ],
)
def test_a_temporary_file_is_left_over_when_its_process_is_gone(
    tmp_path: Path, name: str, lives: bool, is_left: bool
) -> None:
    path = tmp_path / name.replace("{ours}", str(os.getpid()))
    path.touch()

    assert atomic.in_progress(path) is lives
    assert atomic.is_leftover(path) is is_left
