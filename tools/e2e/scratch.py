"""A scratch HOME with a git repository, an installation of ours and a clean environment.

The installation has our two programs, and its `commonplace-hook` also keeps what an agent sends and
is answered, so that `commonplace setup` and the agents need to know nothing of the recording.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

MAKEFILE = """\
build:
\t@test -f config.mk || { echo "build: error: config.mk is missing" >&2; exit 2; }
\t@echo built
config:
\t@echo ready=yes > config.mk
"""
MAIN = """\
#!{python}
import sys
from commonplace.__main__ import main
sys.exit(main())
"""
RECORDER = """\
#!{python}
import json, os, subprocess, sys, time
raw = sys.stdin.buffer.read()
start = time.time_ns()
done = subprocess.run(
    [sys.executable, "-c", "import sys; from commonplace.hooks import main; sys.exit(main())"]
    + sys.argv[1:], input=raw, stdout=subprocess.PIPE)
path = os.path.join({folder!r}, "%d-%d.json" % (start, os.getpid()))
text = raw.decode("utf-8", "replace")
reply = done.stdout.decode("utf-8", "replace")
with open(path + ".part", "w") as file:
    json.dump({{"arguments": sys.argv[1:], "payload": text, "reply": reply}}, file)
os.replace(path + ".part", path)
sys.stdout.buffer.write(done.stdout)
sys.stdout.flush()
sys.exit(done.returncode)
"""
NOT_SETTINGS = ("project", ".commonplace")
AGENT_S_MAX = 180
STOP_S_MAX = 10


class Event(NamedTuple):
    """A call of our hook: its arguments, the payload on stdin, the reply on stdout."""

    arguments: list[str]
    payload: dict[str, Any]
    reply: str


class Done(NamedTuple):
    """How a command ended."""

    code: int
    output: str


class Scratch:
    """The folders of one run."""

    def __init__(self, folder: Path, tools: Path, variables: dict[str, str]) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.repository = self.home / "project"
        self.records = folder / "records"
        self.bin = folder / "install" / "bin"
        for one in (self.home, self.repository, self.records, folder / "tmp"):
            one.mkdir(parents=True)
        self._install()
        self.environment = {
            "HOME": str(self.home),
            "PATH": f"{self.bin}:{tools}:/usr/local/bin:/usr/bin:/bin",
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            # A program that asks for something on the internet is refused at once.
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "HTTP_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1,localhost",
            "DO_NOT_TRACK": "1",
            **variables,
        }
        self._make_repository()

    def _install(self) -> None:
        venv.create(self.bin.parent, symlinks=True)
        purelib = sysconfig.get_path("purelib")
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        packages = self.bin.parent / "lib" / version / "site-packages"
        # `addsitedir` also follows the .pth file of an editable installation.
        line = f"import site; site.addsitedir({purelib!r})\n"
        (packages / "commonplace-e2e.pth").write_text(line, "utf-8")
        python = str(self.bin / "python")
        self._program("commonplace", MAIN.format(python=python))
        folder = str(self.records)
        self._program("commonplace-hook", RECORDER.format(python=python, folder=folder))

    def _program(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(text, "utf-8")
        path.chmod(0o755)

    def _make_repository(self) -> None:
        (self.repository / "Makefile").write_text(MAKEFILE, "utf-8")
        for command in (
            ["init", "-q", "-b", "main"],
            # In the repository: Gemini CLI starts commands without the user's git settings.
            ["config", "user.name", "E2E"],
            ["config", "user.email", "e2e@example.com"],
            ["add", "."],
            ["commit", "-qm", "start"],
        ):
            self.run("git", *command)

    def run(self, *command: str, seconds: float = AGENT_S_MAX) -> Done:
        """Run *command* in the repository; one that takes too long is ended with its children."""
        process = subprocess.Popen(
            command,
            cwd=self.repository,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return Done(124, output.decode("utf-8", "replace"))
        return Done(process.returncode, output.decode("utf-8", "replace"))

    def events(self) -> list[Event]:
        """Return the hook calls so far, in the order in which they began."""
        found = []
        for path in sorted(self.records.glob("*.json")):
            fields = json.loads(path.read_text("utf-8"))
            payload = json.loads(fields["payload"] or "{}")
            found.append(Event(fields["arguments"], payload, fields["reply"]))
        return found

    def settings(self) -> dict[str, bytes]:
        """Return every file in HOME outside the repository and our own home, with its bytes."""
        return {
            str(path.relative_to(self.home)): path.read_bytes()
            for path in sorted(self.home.rglob("*"))
            if path.is_file() and path.relative_to(self.home).parts[0] not in NOT_SETTINGS
        }

    def processes(self) -> dict[int, str]:
        """Return the processes of this run that are left, each with its command line."""
        mark = str(self.folder).encode()
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                line = (entry / "cmdline").read_bytes()
                if mark in line or mark in (entry / "environ").read_bytes():
                    found[int(entry.name)] = line.replace(b"\0", b" ").decode("utf-8", "replace")
        found.pop(os.getpid(), None)
        return found

    def wait_for_processes(self, seconds: float = STOP_S_MAX) -> dict[int, str]:
        """Wait until no process of this run is left; return those that are."""
        end = time.monotonic() + seconds
        while (left := self.processes()) and time.monotonic() < end:
            time.sleep(0.2)
        return left

    def kill_processes(self) -> None:
        for number in self.processes():
            with suppress(OSError):
                os.kill(number, signal.SIGKILL)
