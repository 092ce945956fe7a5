"""The spool: whole files in the order of the events, whatever the clock does and whoever dies."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

import pytest

from commonplace.sessions import spool
from commonplace.where.home import Home


def everything(folder: Path) -> list[int]:
    read = [spool.read(folder, name) for name in spool.list_names(folder)]
    return [event["n"] for event in read if event]


def test_events_come_back_in_their_order(tmp_path: Path) -> None:
    for number in range(50):
        assert spool.add(tmp_path / "spool", {"n": number})

    assert everything(tmp_path / "spool") == list(range(50))


def test_a_clock_that_goes_backwards_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(
        [2_000_000_000_000_000_000, 1_000_000_000_000_000_000, 5, 2_000_000_000_000_000_000]
    )
    monkeypatch.setattr(time, "time_ns", lambda: next(times))
    for number in range(4):
        spool.add(tmp_path, {"n": number})

    assert everything(tmp_path) == [0, 1, 2, 3]


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    def write(start: int) -> None:
        for number in range(start, start + 25):
            spool.add(tmp_path, {"n": number})

    threads = [threading.Thread(target=write, args=(start,)) for start in range(0, 200, 25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(everything(tmp_path)) == list(range(200))


def test_half_a_file_is_never_an_event_and_goes_once_its_writer_is_gone(tmp_path: Path) -> None:
    spool.add(tmp_path, {"n": 1})
    killed = tmp_path / f".00000000000000000001-1-aa.json.ab.{2**22 + 1}.rewriting"
    written = tmp_path / f".00000000000000000002-1-aa.json.ab.{os.getpid()}.rewriting"
    for path in (killed, written):
        path.write_text('{"n": 2')
    (tmp_path / "00000000000000000002-1-bb.json").write_text('{"n": 3')
    (tmp_path / "readme.json").write_text("{}")

    assert everything(tmp_path) == [1]
    spool.remove_leftovers(tmp_path)
    assert not killed.exists()
    assert written.exists(), "its writer lives"


def test_it_is_bounded_in_number_and_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "FILES_MAX", 3)

    assert [spool.add(tmp_path, {"n": number}) for number in range(5)] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert not spool.add(tmp_path / "other", {"n": "x" * spool.FILE_BYTES_MAX})
    assert everything(tmp_path) == [0, 1, 2]


@pytest.mark.skipif(os.name != "posix", reason="modes")
def test_files_are_their_owner_s_alone(tmp_path: Path) -> None:
    folder = Home(tmp_path).spool_folder
    spool.add(folder, {"n": 1})

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
