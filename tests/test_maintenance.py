"""Maintenance: one table of steps, one runner, and the occasions on which it runs by itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from commonplace import Memory
from commonplace.cli import main
from commonplace.errors import DiskFull, UsageError
from commonplace.files.lock import hold
from commonplace.maintenance import due, runner
from commonplace.maintenance.due import start_if_due
from commonplace.maintenance.steps import STEPS, Step
from commonplace.server import idle
from commonplace.server.idle import IdleMaintenance
from serving import WORDS_ONLY, served
from test_hooks import event, hook

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROTATION = "[rotation]\nlines_max = 20\nmove = 10\n"
SECONDS_MAX = 60


def fill(home: Path, settings: str = WORDS_ONLY + ROTATION) -> Path:
    """A home with a log that is longer than it may be; returns that log."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text(settings, "utf-8")
    with Memory.open(home) as memory:
        memory.append(
            {"event_type": "error", "lesson": f"lesson {number}", "repo": "app"}
            for number in range(25)
        )
    return home / "log" / "app.jsonl"


def length(log: Path) -> int:
    return len(log.read_bytes().splitlines())


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not is_true() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert is_true()


# --- The runner -----------------------------------------------------------------------------------


def test_every_step_runs_in_the_order_of_the_table_and_again_finds_nothing(own_home: Path) -> None:
    log = fill(own_home)
    with Memory.open(own_home) as memory:
        first, second = runner.run(memory), runner.run(memory)

    assert list(first.steps) == list(second.steps) == list(STEPS)
    assert first.steps["rotation"]["rotated"]
    assert not any("error" in done for done in (*first.steps.values(), *second.steps.values()))
    assert second.steps["rotation"] == {"rotated": []}
    assert length(log) == 15


def test_a_dry_run_says_the_same_and_changes_nothing(own_home: Path) -> None:
    log = fill(own_home)
    with Memory.open(own_home) as memory:
        told = runner.run(memory, dry_run=True)
        assert length(log) == 25
        assert not memory.home.maintenance_mark.exists()
        assert runner.run(memory).steps["rotation"] == told.steps["rotation"]


def test_a_step_that_fails_is_reported_and_the_next_ones_run(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_memory: Memory, _turn: object) -> dict[str, object]:
        raise DiskFull(own_home)

    fill(own_home)
    monkeypatch.setitem(STEPS, "spool", Step("spool", "", fail))
    with Memory.open(own_home) as memory:
        report = runner.run(memory)

    assert "full" in report.steps["spool"]["error"]
    assert report.steps["rotation"]["rotated"]


def test_the_command_says_that_a_step_failed_with_its_exit_code(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_memory: Memory, _turn: object) -> dict[str, object]:
        raise DiskFull(own_home)

    fill(own_home)
    assert main(["maintain", "--home", str(own_home)]) == 0
    monkeypatch.setitem(STEPS, "spool", Step("spool", "", fail))
    capsys.readouterr()

    assert main(["maintain", "--home", str(own_home)]) == 9
    shown = capsys.readouterr()
    assert "spool      failed: the disk is full" in shown.out
    assert "error: 1 step failed: spool\n" in shown.err
    assert main(["maintain", "--home", str(own_home), "--json"]) == 9
    assert "full" in json.loads(capsys.readouterr().out)["steps"]["spool"]["error"]


def test_the_command_says_that_another_process_maintains_the_home(
    own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(own_home)
    with Memory.open(own_home) as memory, hold(memory.home.maintenance_lock):
        assert main(["maintain", "--home", str(own_home)]) == 0

    assert "Another process maintains this home" in capsys.readouterr().err


def test_sessions_are_left_to_a_process_that_drains(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that write the file of one session at once would lose what one of them wrote."""
    fill(own_home)
    monkeypatch.setattr("commonplace.sessions.ingest.tidy", lambda _memory: pytest.fail("tidied"))
    with Memory.open(own_home) as memory, hold(memory.home.spool_lock):
        report = runner.run(memory, ["sessions"])

    assert report.steps["sessions"] == {"sessions": 0}


def test_the_command_says_what_a_step_did_in_words(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results: dict[str, dict[str, object]] = {
        "spool": {"events": 1},
        "sessions": {"sessions": 1200},
        "embedding": {"missing": 3, "reason": "there is no embedder"},
    }

    def step(name: str) -> Step:
        return Step(name, "", lambda _memory, _turn: results[name])

    fill(own_home)
    for name in results:
        monkeypatch.setitem(STEPS, name, step(name))

    main(["maintain", "--home", str(own_home), "--step", "spool,sessions,embedding"])

    assert capsys.readouterr().out.splitlines() == [
        "spool      1 event",
        "sessions   1,200 sessions",
        "embedding  3 missing; there is no embedder",
    ]


def test_two_at_once_do_the_work_once(own_home: Path) -> None:
    log = fill(own_home)
    with Memory.open(own_home) as memory:
        with hold(memory.home.maintenance_lock):
            assert runner.run(memory).as_dict() == {
                "home": str(own_home),
                "dry_run": False,
                "busy": True,
                "steps": {},
            }
        assert length(log) == 25


def test_an_unknown_step_is_a_mistake_and_a_home_that_is_not_there_needs_nothing(
    own_home: Path, tmp_path: Path
) -> None:
    with Memory.open(own_home) as memory:
        with pytest.raises(UsageError, match="no step `polish`"):
            runner.run(memory, ["rotation", "polish"])
        assert runner.run(memory).steps == {}
    assert not own_home.exists()


def test_it_stops_between_steps_when_told_and_is_due_again(own_home: Path) -> None:
    fill(own_home)
    with Memory.open(own_home) as memory:
        assert runner.run(memory, is_over=lambda: True).steps == {}
        assert due.is_due(memory)


# --- When it is due -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds_ago", "background", "is_due"),
    [(None, True, True), (61, True, True), (59, True, False), (None, False, False), (61, False, False)],
)  # fmt: skip
def test_it_is_due_once_a_minute_where_the_setting_allows_it(
    seconds_ago: int | None, background: bool, is_due: bool, own_home: Path
) -> None:
    fill(own_home)
    with Memory.open(own_home, settings={"maintenance.background": background}) as memory:
        if seconds_ago is not None:
            mark = memory.home.maintenance_mark
            mark.parent.mkdir(exist_ok=True)
            mark.touch()
            os.utime(mark, (time.time() - seconds_ago,) * 2)
        assert due.is_due(memory) is is_due


def test_the_command_can_be_told_to_run_only_if_due(
    commonplace: Callable[..., subprocess.CompletedProcess[str]], own_home: Path
) -> None:
    fill(own_home)
    first, second = (
        json.loads(commonplace("maintain", "--if-due", "--json").stdout) for _time in range(2)
    )

    assert first["steps"]["rotation"]["rotated"]
    assert second["steps"] == {}


def test_several_ends_of_tasks_start_one_process_which_waits_for_the_others(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(own_home)
    started: list[list[str]] = []

    def start(_module: str, arguments: list[str], **_options: Any) -> subprocess.Popen[bytes]:
        started.append(arguments)
        return subprocess.Popen([sys.executable, "-c", ""])

    monkeypatch.setattr("commonplace.processes.start", start)
    with Memory.open(own_home) as memory:
        for _time in range(3):
            start_if_due(memory)
        assert [arguments[3] for arguments in started] == ["2"]
        # It has run; the next end of a task is within a minute of that.
        os.utime(memory.home.maintenance_planned, (time.time() - 1,) * 2)
        memory.home.maintenance_mark.touch()
        for _time in range(3):
            start_if_due(memory)
        assert len(started) == 2
        assert 55 < int(started[1][3]) <= 62


# --- By itself ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("background", "lines"), [("true", 15), ("false", 25)])
def test_the_end_of_a_session_without_a_server_maintains_the_home(
    background: str, lines: int, own_home: Path, tmp_path: Path
) -> None:
    log = fill(own_home, f"{WORDS_ONLY}{ROTATION}[maintenance]\nbackground = {background}\n")
    hook(event(tmp_path, "Stop"))
    assert not (own_home / ".state" / "maintenance.lock").exists(), "a turn is no session"

    hook(event(tmp_path, "SessionEnd"))

    if lines < 25:
        wait_until(lambda: length(log) == lines)
        wait_until((own_home / ".state" / "maintenance.done").exists)
    else:
        assert not (own_home / ".state" / "maintenance.lock").exists()


def test_an_idle_server_maintains_the_home(own_home: Path) -> None:
    log = fill(own_home)
    with served(own_home):
        wait_until(lambda: length(log) == 15)


def test_an_idle_stdio_server_maintains_the_home(own_home: Path) -> None:
    log = fill(own_home)
    with subprocess.Popen(
        [sys.executable, "-m", "commonplace", "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as server:
        wait_until(lambda: length(log) == 15)
        assert server.stdin is not None
        server.stdin.close()
        assert server.wait(timeout=SECONDS_MAX) == 0


@pytest.mark.parametrize(
    ("idle_s", "since_s", "is_time"),
    [(2.0, 3.0, True), (1.9, 3.0, False), (90.0, 80.0, False), (90.0, 601.0, True)],
)  # fmt: skip
def test_a_server_runs_it_when_idle_after_some_use_or_after_long(
    idle_s: float,
    since_s: float,
    is_time: bool,
    own_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(idle, "since_last", lambda _home: since_s)
    with Memory.open(own_home) as memory:
        thread = IdleMaintenance(memory, lambda: idle_s)
        try:
            assert thread._is_time() is is_time
            assert thread._must_stop() is (idle_s < 2.0)
        finally:
            thread.close()
    assert thread._must_stop()
