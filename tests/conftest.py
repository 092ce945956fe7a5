"""What every test shares: nothing escapes. A test that does not choose a home gets one of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from commonplace.memory import Memory
from engines import ENGINES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from commonplace.index.ports import Index
    from commonplace.where.home import Home

ROOT = Path(__file__).resolve().parent.parent

# A deadline for one example would fail tests on a busy machine. A fixture is shared by all examples of
# a test; tests whose examples must not meet make a folder for each of them.
_ALWAYS: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
}
settings.register_profile("local", max_examples=60, **_ALWAYS)
# A change lands or not by what it changes, not by the luck of a draw: `ci` tries the same examples
# every time. `search` looks for new ones (`make search`).
settings.register_profile("ci", max_examples=120, derandomize=True, print_blob=True, **_ALWAYS)
settings.register_profile("search", max_examples=1000, print_blob=True, **_ALWAYS)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "local")
)
# For a law whose examples each open a memory, or more.
SLOW_LAW = settings(max_examples=settings().max_examples // 3)


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scratch home and a scratch `HOME`, so that the real ones are never touched."""
    for name in [name for name in os.environ if name.startswith("COMMONPLACE_")]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    monkeypatch.setenv("COMMONPLACE_HOME", str(home))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_COLOR", "1")
    # One path entry more than a user has, so that the tests run from a source tree as well.
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    for setting in ("GIT_DIR", "GIT_WORK_TREE"):
        monkeypatch.delenv(setting, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setattr("commonplace.backlog.start_worker", lambda _homes, _settings: None)
    monkeypatch.setattr("commonplace.maintenance.due.start_if_due", lambda _memory: None)
    monkeypatch.chdir(tmp_path)
    return home


@pytest.fixture
def memory(own_home: Path) -> Iterator[Memory]:
    with Memory.open(own_home) as opened:
        yield opened


@pytest.fixture(params=ENGINES)
def index_engine(request: pytest.FixtureRequest) -> Iterator[Callable[[Home], Index]]:
    """Open the index of a home, with each engine there is."""
    opened: list[Index] = []

    def open_index(home: Home) -> Index:
        opened.append(ENGINES[request.param](home))
        return opened[-1]

    yield open_index
    for index in opened:
        index.close()


@pytest.fixture
def commonplace(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line as a user would: a process of its own."""

    def run(
        *arguments: str, stdin: str | bytes = b"", cwd: Path = tmp_path, **environment: str
    ) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "commonplace", *arguments],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            cwd=cwd,
            env={**os.environ, **environment},
            timeout=120,
            check=False,
        )
        out, err = (stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
        return subprocess.CompletedProcess(arguments, done.returncode, out, err)

    return run


# Audit events before a change to the disk, besides opening a file to write it.
CHANGES = {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "sqlite3.connect"}


def run_until_killed(
    change: int, open_memory: Callable[[], Memory], act: Callable[[Memory], object]
) -> bool:
    """Act in a child that dies before its n-th change to the disk; return whether it died."""
    child = os.fork()
    if child == 0:
        changes = 0

        def die_at(event: str, given: tuple[Any, ...]) -> None:
            nonlocal changes
            is_write = event == "open" and isinstance(given[2], int) and given[2] & os.O_ACCMODE
            if event in CHANGES or is_write:
                changes += 1
                if changes == change:
                    os.kill(os.getpid(), signal.SIGKILL)

        code = 1
        try:
            with open_memory() as memory:
                sys.addaudithook(die_at)
                act(memory)
            code = 0
        finally:
            os._exit(code)
    _pid, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL)
    return os.WIFSIGNALED(status)


def git(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "-c", "user.email=a@example.org", "-c", "user.name=a", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )


def make_repository(path: Path, remote: str = "") -> Path:
    path.mkdir(parents=True)
    git("init", "-q", "-b", "main", cwd=path)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=path)
    if remote:
        git("remote", "add", "origin", remote, cwd=path)
    return path
