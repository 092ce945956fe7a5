"""The spool: whole files in the order of the events, whatever the clock does and whoever dies."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from commonplace.memory import Memory
from commonplace.sessions import ingest, spool
from commonplace.sessions.events import Event
from commonplace.sessions.state import State
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


def event(session: str, number: int) -> dict[str, Any]:
    return Event(
        kind="prompt", agent="codex", name="a", session=session, repo="app", prompt=f"p {number}",
        at=time.time(), key=f"{session}-{number}",
    )._asdict()  # fmt: skip


@pytest.mark.parametrize("fault", [KeyError, RecursionError, AttributeError, ValueError])
def test_an_event_that_meets_a_fault_is_set_aside_and_the_others_go_on(
    memory: Memory,
    own_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fault: type[Exception],
) -> None:
    home = Home(own_home)
    for number, session in enumerate(["good", "bad", "good", "good"]):
        spool.add(home.spool_folder, event(session, number))
    apply = ingest.apply

    def apply_or_fail(there: Memory, session: State, one: Event) -> None:
        if one.session == "bad":
            raise fault("what the agent read")
        apply(there, session, one)

    monkeypatch.setattr(ingest, "apply", apply_or_fail)

    ingest.drain(memory)

    assert spool.list_names(home.spool_folder) == []
    (aside,) = spool.list_names(home.failed_events_folder)
    kept = spool.read(home.failed_events_folder, aside)
    assert kept is not None
    assert kept["session"] == "bad"
    (message,) = [record.getMessage() for record in caplog.records]
    assert fault.__name__ in message
    assert "what the agent read" not in message
    assert [finding.what for finding in memory.check()] == ["failed events"]


def test_of_failed_events_the_latest_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "FAILED_MAX", 3)
    for number in range(10):
        spool.add(tmp_path / "spool", {"n": number})
    for name in spool.list_names(tmp_path / "spool"):
        assert spool.set_aside(tmp_path / "spool", name, tmp_path / "failed")

    assert everything(tmp_path / "spool") == []
    assert everything(tmp_path / "failed") == [7, 8, 9]


def test_an_event_that_cannot_be_moved_waits(
    memory: Memory, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in the place of the folder: nothing is lost, and the process does not turn forever."""
    home = Home(own_home)
    spool.add(home.spool_folder, event("bad", 1))
    home.failed_events_folder.touch()
    missing: dict[str, None] = {}
    monkeypatch.setattr(ingest, "apply", lambda *_given: missing["key"])

    assert ingest.drain(memory) == 0
    assert len(spool.list_names(home.spool_folder)) == 1
