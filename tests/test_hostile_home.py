"""A `.commonplace` folder that came with a clone can be anything: every command, hook and route meets it.

Nothing outside the repository may change, nothing may hang, and nobody may see a traceback.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commonplace.where import repository
from conftest import git

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links, pipes and owners are POSIX's")

LINE = {
    "id": "theirs",
    "kind": "lesson",
    "timestamp": "2026-01-01T00:00:00Z",
    "event_type": "learned",
    "lesson": "the kettle boils at noon",
    "repo": "app",
}
SECONDS_MAX = 60
MEMORY_MAX = 4 << 30


# The arguments of a command, or the name of an agent; and what is on its standard input.
Call = tuple[list[str], str]

CALLER = """
import io, json, sys, traceback
from commonplace import hooks
from commonplace.cli import main

for arguments, text in json.load(sys.stdin):
    sys.argv = arguments
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    try:
        if arguments[0] == "commonplace-hook":
            sys.argv = arguments
            hooks.main()
        else:
            main(arguments[1:])
    except BaseException:
        print(arguments, file=sys.stderr)
        traceback.print_exc()
"""


class Victim:
    """A user with files that must not change, and a clone with a home that is not theirs."""

    def __init__(self, folder: Path) -> None:
        self.user = folder / "user"
        self.home = self.user / "app" / ".commonplace"
        self.clone = self.user / "app"
        self.outside = self.user / "outside"
        self.outside.mkdir(parents=True)
        (self.user / ".bashrc").write_text("# mine\n")
        (self.outside / "precious.txt").write_text("precious\n")
        self.clone.mkdir()
        git("init", "-q", cwd=self.clone)
        self.home.mkdir()

    @property
    def log(self) -> Path:
        return self.home / "log" / f"{repository.find(self.clone).name}.jsonl"

    def put(self, name: str, content: str | bytes = "") -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def link(self, name: str, target: Path | str) -> None:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def pipe(self, name: str) -> None:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(path)

    def run(self, calls: Sequence[Call], environment: Mapping[str, str] = {}) -> str:
        """Make *calls* one after the other in a process of its own; return what went wrong."""
        inherited = {name: text for name, text in os.environ.items() if "COMMONPLACE" not in name}
        done = subprocess.run(
            [sys.executable, "-c", CALLER],
            input=json.dumps(calls).encode(),
            capture_output=True,
            cwd=self.clone,
            env={**inherited, "HOME": str(self.user), **environment},
            timeout=SECONDS_MAX,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX)),
        )
        text = done.stderr.decode("utf-8", "replace")
        if done.returncode or "Traceback" in text:
            return f"exit code {done.returncode}: {text[-3000:]}"
        return ""

    def seen_outside(self) -> dict[str, object]:
        """Return what there is outside the clone and the user's own home."""
        found: dict[str, object] = {}
        for path in sorted(self.user.rglob("*")):
            inside = (self.clone, self.user / ".commonplace")
            if not any(path == one or one in path.parents for one in inside):
                status = path.lstat()
                content = path.read_bytes() if path.is_file() else None
                found[str(path)] = (status.st_mode, status.st_mtime_ns, content)
        return found


@pytest.fixture
def victim(tmp_path: Path) -> Victim:
    return Victim(tmp_path)


def _line(**changes: object) -> str:
    return json.dumps(LINE | changes) + "\n"


def _deep(victim: Victim, name: str, depth: int) -> None:
    path = victim.home / name
    for _step in range(depth):
        path /= "d"
    path.mkdir(parents=True)
    (path / "note.md").write_text("deep")


def _socket(victim: Victim, name: str) -> None:
    path = victim.home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    here = Path.cwd()
    os.chdir(path.parent)  # The name of a socket may have about a hundred bytes.
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(here)


def _foreign_owner(victim: Victim, name: str) -> None:
    path = victim.put(name, _line())
    if os.geteuid() == 0:
        os.chown(path, 12345, 12345)


FOLDERS = ("log", "log/archive", "log/damaged", "agents", "agents/default", "skills", ".state")
STATE_FILES = ("server.log", "server.json", "server.lock", "usage.sqlite", "tokens.json")
HOME_FILES = ("config.toml", ".gitignore", ".gitattributes", "agents/default/CONTEXT.md")

SHAPES: dict[str, Callable[[Victim], object]] = {}
for _name in FOLDERS:
    SHAPES[f"{_name} is a link to a folder"] = lambda v, n=_name: v.link(n, v.outside)
    SHAPES[f"{_name} is a file"] = lambda v, n=_name: v.put(n, "x")
for _name in STATE_FILES:
    SHAPES[f"state {_name} is a link"] = lambda v, n=_name: v.link(
        f".state/{n}", v.outside / "precious.txt"
    )
for _name in HOME_FILES:
    SHAPES[f"{_name} is a link"] = lambda v, n=_name: v.link(n, v.outside / "precious.txt")
    SHAPES[f"{_name} is a pipe"] = lambda v, n=_name: v.pipe(n)
    SHAPES[f"{_name} is endless"] = lambda v, n=_name: v.link(n, "/dev/zero")
SHAPES |= {
    "the log is a link": lambda v: v.link(f"log/{v.log.name}", v.user / ".bashrc"),
    "the log is a link to nothing": lambda v: v.link(f"log/{v.log.name}", v.user / "new.txt"),
    "the log is a link to itself": lambda v: v.link(f"log/{v.log.name}", v.log.name),
    "the log is a pipe": lambda v: v.pipe(f"log/{v.log.name}"),
    "the log is a folder": lambda v: (v.home / "log" / v.log.name).mkdir(parents=True),
    "the log is a device": lambda v: v.link(f"log/{v.log.name}", "/dev/zero"),
    "the log is a socket": lambda v: _socket(v, f"log/{v.log.name}"),
    "another log is a link": lambda v: v.link("log/other.jsonl", v.user / ".bashrc"),
    "another log is a pipe": lambda v: v.pipe("log/other.jsonl"),
    "another log is another user's": lambda v: _foreign_owner(v, "log/other.jsonl"),
    "the log is another user's": lambda v: _foreign_owner(v, f"log/{v.log.name}"),
    "the archive is a link": lambda v: v.link(f"log/archive/{v.log.name}", v.user / ".bashrc"),
    "damaged lines are a link": lambda v: (
        (
            v.link(f"log/damaged/{v.log.name}", v.user / ".bashrc"),
            v.put(f"log/{v.log.name}", "no record\n"),
        )
    ),
    "the lock beside the log is a link": lambda v: v.link(
        f"log/.{v.log.name}.lock", v.user / ".bashrc"
    ),
    "the index is a link": lambda v: v.link(".index", v.outside),
    "the index holds a link": lambda v: v.link(".index/tables.sqlite", v.outside / "new.sqlite"),
    "the index is a pipe": lambda v: v.pipe(".index"),
    "the spool is a link": lambda v: v.link(".state/spool", v.outside),
    "the sessions are a link": lambda v: v.link(".state/sessions", v.outside),
    "the inbox is a link": lambda v: v.link(".state/inbox", v.outside),
    "the hooks' marks are a link": lambda v: v.link(".state/hooks", v.outside),
    "a server is announced": lambda v: v.put(
        ".state/server.json",
        '{"host": "127.0.0.1", "port": 9, "pid": 1, "key": "k", "version": "0"}',
    ),
    "a skill is a link": lambda v: v.link("skills/x/SKILL.md", v.user / ".bashrc"),
    "a skill's folder is a link": lambda v: v.link("skills/x", v.outside),
    "an agent's folder is a link": lambda v: v.link("agents/claude-code", v.outside),
    "a note is a folder": lambda v: _deep(v, "agents/default/CONTEXT.md", 2),
    "a note is huge": lambda v: v.put("agents/default/CONTEXT.md", "x" * (20 << 20)),
    "the settings are huge": lambda v: v.put("config.toml", "x = 1\n" * 300_000),
    "the settings are no TOML": lambda v: v.put("config.toml", b"\xff\xfe\0[[["),
    "the settings are deep": lambda v: v.put("config.toml", "a = " + "[" * 50_000),
    "the settings name an embedder": lambda v: v.put(
        "config.toml", '[embedder]\nkind = "http"\nurl = "http://127.0.0.1:9/"\n'
    ),
    "a line is huge": lambda v: v.put(f"log/{v.log.name}", _line(lesson="x" * (70 << 20))),
    "a line is deep": lambda v: v.put(f"log/{v.log.name}", "[" * 100_000 + "\n"),
    "a line without an end": lambda v: v.put(f"log/{v.log.name}", b"\0" * (20 << 20)),
    "the log is no text": lambda v: v.put(f"log/{v.log.name}", os.urandom(1 << 20)),
    "many logs": lambda v: ([v.put(f"log/l{n}.jsonl", _line(id=f"i{n}")) for n in range(1500)]),
    "odd names": lambda v: (
        [
            v.put(f"log/{name}.jsonl", _line())
            for name in (
                "a\nb",
                "-rf",
                "\x1b[31m",
                "\u202egnp",
                " ",
                "con",
                "x" * 200,
                "..x",
                "$(id)",
            )
        ]
    ),
    "deep folders in notes": lambda v: _deep(v, "agents/default", 300),
    "deep folders in the log": lambda v: _deep(v, "log", 300),
    "deep folders in the home": lambda v: _deep(v, "x", 300),
    "a loop of links": lambda v: v.link("agents/default/loop", ".."),
    "hidden temporary files": lambda v: v.link(
        f"log/.{v.log.name}.0011223344556677.1.rewriting", v.user / ".bashrc"
    ),
    "a home in the home": lambda v: v.put(".commonplace/log/x.jsonl", _line()),
    "its own git": lambda v: v.link(".git", v.outside),
    "the home is a link": lambda v: (v.home.rmdir(), v.home.symlink_to(v.outside)),
    "the home is a pipe": lambda v: (v.home.rmdir(), os.mkfifo(v.home)),
    "the home is a file": lambda v: (v.home.rmdir(), v.home.write_text("x")),
}

EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd")
COMMANDS = (
    "log --type error --lesson run",
    "recall the-kettle",
    "where --json",
    "repos",
    "stats",
    "show theirs",
    "history theirs",
    "export",
    "inbox list",
    "preamble",
    "token list",
    "index rebuild",
    "forget theirs --erase",
    "scan --fix",
    "doctor --fix",
    "maintain",
    "init",
)


def _calls(victim: Victim) -> list[Call]:
    events = [(["commonplace-hook", "claude-code"], _event(victim, name)) for name in EVENTS]
    return [*((["commonplace", *text.split()], "") for text in COMMANDS), *events]


def _event(victim: Victim, name: str) -> str:
    fields = {
        "hook_event_name": name,
        "session_id": "s-1",
        "cwd": str(victim.clone),
        "source": "startup",
        "prompt": "how does the kettle boil",
        "reason": "exit",
        "tool_name": "Bash",
        "tool_input": {"command": "make"},
        "tool_response": {"stdout": "", "stderr": "error: no kettle", "interrupted": False},
    }
    return json.dumps(fields)


def test_the_corpus_has_sixty_shapes() -> None:
    assert len(SHAPES) >= 60


@pytest.mark.parametrize("shape", SHAPES)
def test_a_hostile_home_changes_nothing_outside_and_hangs_nobody(
    victim: Victim, shape: str
) -> None:
    SHAPES[shape](victim)
    before = victim.seen_outside()

    assert victim.run(_calls(victim)) == ""
    assert victim.seen_outside() == before
