"""Run git in a repository that anyone may have made, without running anything that it names.

git runs programs that a repository's configuration names: filters on changed files, a file system
monitor, hooks, transports. `git status` would be enough to start one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

# A missing object is not fetched, and nothing is asked at the terminal.
_QUIET = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
}
_OVERRIDES = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.untrackedCache": "false",
    "diff.ignoreSubmodules": "all",
    "status.submoduleSummary": "false",
    "submodule.recurse": "false",
}
# What `filter.<name>.…` is set to, so that no filter runs and none is required.
_FILTER = {"clean": "", "smudge": "", "process": "", "required": "false"}


def output(root: str | Path, *arguments: str, seconds_max: float) -> str:
    """Return what git prints; nothing if it fails or takes longer than *seconds_max*."""
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        overrides = _OVERRIDES | _filters(root, seconds_max)
        if arguments[0] == "status":
            # A submodule has filters of its own, and `.gitmodules` may insist on looking at it.
            arguments = (*arguments, "--ignore-submodules=all")
        return _run(root, arguments, overrides, seconds_max).decode("utf-8", "replace")
    return ""


def run_of_user(root: str | Path, *arguments: str, seconds_max: float) -> tuple[int, str, str]:
    """Run git in a folder whose git configuration is the user's own; return code, stdout, stderr.

    The network and the user's credentials may be used, hooks and monitors are not. New files are
    readable by their owner alone. Raises `OSError` if there is no git, `TimeoutExpired` in the end.
    """
    options: dict[str, Any] = {"umask": 0o077} if os.name == "posix" else {}
    done = subprocess.run(  # noqa: S603 (git, with our own arguments)
        ["git", *arguments],  # noqa: S607
        cwd=root,
        capture_output=True,
        timeout=seconds_max,
        check=False,
        env=_environment(_OVERRIDES, {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}),
        stdin=subprocess.DEVNULL,
        **options,
    )
    return done.returncode, _to_text(done.stdout), _to_text(done.stderr)


def to_bytes(text: str) -> bytes:
    """Return the bytes of what `run_of_user` returned as text."""
    return text.encode(sys.getfilesystemencoding(), "surrogateescape")


def _to_text(raw: bytes) -> str:
    # As `os.fsdecode`, which on Windows fails on bytes that are not UTF-8.
    return raw.decode(sys.getfilesystemencoding(), "surrogateescape")


def _environment(overrides: dict[str, str], more: dict[str, str]) -> dict[str, str]:
    environment = {**os.environ, **more, "GIT_CONFIG_COUNT": str(len(overrides))}
    for number, (key, value) in enumerate(overrides.items()):
        environment[f"GIT_CONFIG_KEY_{number}"] = key
        environment[f"GIT_CONFIG_VALUE_{number}"] = value
    # Those of a repository around the working folder would be used instead of the one there.
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        environment.pop(name, None)
    return environment


def _filters(root: str | Path, seconds_max: float) -> dict[str, str]:
    """Return the settings that switch off every filter there is, by their names."""
    listing = ("config", "--name-only", "-z", "--get-regexp", r"^filter\.")
    names = set[str]()
    with suppress(subprocess.CalledProcessError):  # There is none.
        names = {
            key.rpartition(".")[0]
            # A name need not be UTF-8, and must come back as the same bytes.
            for key in os.fsdecode(_run(root, listing, _OVERRIDES, seconds_max)).split("\0")
            if key
        }
    return {f"{name}.{key}": value for name in names for key, value in _FILTER.items()}


def _run(
    root: str | Path, arguments: tuple[str, ...], overrides: dict[str, str], seconds_max: float
) -> bytes:
    done = subprocess.run(  # noqa: S603 (git, with our own arguments)
        ["git", *arguments],  # noqa: S607
        cwd=root,
        capture_output=True,
        timeout=seconds_max,
        check=True,
        env=_environment(overrides, _QUIET),
        stdin=subprocess.DEVNULL,
    )
    return done.stdout
