"""What every test shares: nothing escapes. A test that does not choose a home gets one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commonplace.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent


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
    monkeypatch.chdir(tmp_path)
    return home


@pytest.fixture
def memory(own_home: Path) -> Iterator[Memory]:
    with Memory.open(own_home) as opened:
        yield opened


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


def git(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "-c", "user.email=a@example.org", "-c", "user.name=a", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
