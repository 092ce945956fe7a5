"""Nothing phones home: no look-up, no connection to another machine, no file outside the home.

Python reports what it does itself (`sys.addaudithook`). Libraries in C and Rust do not, so strace watches
them where there is one, and everywhere the files that are left are compared.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commonplace.cli.commands import COMMANDS, Group, load
from conftest import ROOT, git

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the guard is written for POSIX")

STRACE = shutil.which("strace")
EVENTS = ROOT / "tests" / "data" / "hooks"
# Python imports this at the start of every process that inherits PYTHONPATH.
GUARD = """
import os, sys
descriptor = os.open(os.environ["GUARD_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
NAMES = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}
PATHS = {"os.mkdir", "os.rename", "os.link", "os.symlink", "os.chmod", "sqlite3.connect"}
def watch(event, arguments):
    if event in NAMES:
        line = f"look-up\\t{arguments[0]!r}"
    elif event in ("socket.connect", "socket.sendto"):
        line = f"connection\\t{arguments[1]!r}"
    elif event == "open" and isinstance(arguments[0], str) and (arguments[2] or 0) & WRITING:
        line = f"file\\t{os.path.abspath(arguments[0])!r}" if os.path.isabs(arguments[0]) else ""
    elif event in PATHS:
        path = arguments[1] if event in ("os.rename", "os.link", "os.symlink") else arguments[0]
        line = f"file\\t{os.fsdecode(path)!r}" if isinstance(path, (str, bytes)) else ""
        line = line if os.path.isabs(os.fsdecode(path) if line else "") else ""
    else:
        return
    if line:
        os.write(descriptor, (line + "\\n").encode("utf-8", "replace"))
sys.addaudithook(watch)
"""
# Runs several commands in one process; a command that fails has done something, too.
DRIVER = """
import json, sys
from commonplace.cli import main
for words in json.load(open(sys.argv[1])):
    sys.stdin = open("/dev/null")
    print(words, main(words), flush=True)
"""
LOOPBACK = re.compile(r"127\.\d+\.\d+\.\d+|::1")
ARGUMENTS: dict[str, list[list[str]]] = {
    "recall": [["npm fails"], ["npm fails", "--all-repos"], ["--recent", "3"], ["--stats"]],
    "log": [["--type", "error", "--lesson", "verify the owner before npm ci", "--id", "les-1"]],
    "why": [["npm", "les-1"]],
    "import": [["{out}", "--dry-run"], ["{out}"]],
    "export": [[], ["--to", "beads", "--out", "{out}/exported"]],
    "notes write": [["CONTEXT.md", "npm needs care"]],
    "skill new": [["npm-owner", "--description", "Check the owner before npm ci"]],
    "skill export": [["--to", "{out}/skills"]],
    "ledger checkpoint": [["--goal", "npm ci works"]],
    "handoff create": [["--to", "any", "--done", "npm ci works"]],
    "context build": [["--query", "npm fails", "--task-id", "t"]],
    "context show": [["t"]],
    "setup": [["claude-code", "--dry-run"]],
    "serve": [["--ensure", "--port", "0"], ["--status"], ["--stop"]],
    "mcp": [],  # It has a test of its own.
    "config set": [["recall.dense", "0.4"]],
    "backup create": [["{out}/memory.tar.gz"]],
    "backup restore": [["{out}/memory.tar.gz", "--home", "{out}/restored"]],
    "snapshot create": [["--name", "first"]],
    "snapshot show": [["first"]],
    "snapshot diff": [["first"]],
    "snapshot restore": [["first"]],
    "feedback": [["les-1", "worked"]],
    "forget": [["les-1"], ["les-1", "--erase", "--yes"]],
}


class Place:
    """A folder for one test, with a short path: that of a socket may have a hundred bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home, self.out, self.work = folder / "home", folder / "out", folder / "work"
        self._guard = folder / "guard"
        for each in (self.out, self.work, self._guard):
            each.mkdir()
        (self._guard / "sitecustomize.py").write_text(GUARD)
        (self.out / "KNOWLEDGE.md").write_text("# npm\n\nverify the owner\n")
        git("init", "-q", cwd=self.work)
        self._log, self._trace = self._guard / "audit", self._guard / "trace"
        self.environment = {
            **os.environ,
            "HOME": str(folder),
            "TMPDIR": str(self._guard),
            "COMMONPLACE_HOME": str(self.home),
            "PYTHONPATH": f"{self._guard}:{ROOT / 'src'}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "GUARD_LOG": str(self._log),
        }
        for name in ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME"):
            self.environment.pop(name, None)

    def run(self, *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run *command* and all that it starts, watched."""
        calls = "trace=connect,sendto,sendmsg,openat,open,creat,mkdir,mkdirat,rename"
        strace = [
            STRACE or "",
            "-f",
            "-qq",
            "--seccomp-bpf",
            "-A",
            "-o",
            str(self._trace),
            "-e",
            calls,
        ]
        return subprocess.run(
            [*(strace if STRACE else []), *command],
            input=stdin,
            env=self.environment,
            cwd=self.work,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def breaches(self) -> set[str]:
        """What was looked up, connected to or written that is none of ours."""
        found = set()
        for line in self._log.read_text().splitlines():
            what, _tab, value = line.partition("\t")
            if not self._is_allowed(what, ast.literal_eval(value)):
                found.add(line)
        for line in self._trace.read_text().splitlines() if STRACE else ():
            if self._is_breach(line):
                found.add(line)
        known = {"home", "out", "work", "guard"}
        return found | {
            f"left\t{one.name}" for one in self.folder.iterdir() if one.name not in known
        }

    def _is_allowed(self, what: str, value: object) -> bool:
        if what == "connection" and isinstance(value, tuple):
            return bool(LOOPBACK.fullmatch(str(value[0])))
        if what == "look-up":
            return value is None or bool(LOOPBACK.fullmatch(str(value)))
        return self._is_ours(os.fsdecode(value) if isinstance(value, (str, bytes)) else "")

    def _is_ours(self, path: str) -> bool:
        # `init` makes a home in the repository. git's own folder gets the words by which the
        # repository, and a clone that is trusted, are known again.
        words = (self.work / ".git" / name for name in ("commonplace-id", "commonplace-trust"))
        made = (self.work / ".commonplace", *words)
        own = map(str, (self.home, self.out, self._guard, *made))
        return path in (":memory:", "/proc/self/autogroup") or path.startswith(("/dev/", *own))

    def _is_breach(self, line: str) -> bool:
        if "sa_family=AF_INET" in line:
            return not re.search(r'inet_addr\("127\.|"::1"', line)
        if "sa_family=AF_UNIX" in line:
            path = re.search(r'sun_path="([^"]*)"', line)
            return path is not None and not self._is_ours(path[1])
        if "O_WRONLY" in line or "O_RDWR" in line or "O_CREAT" in line or "mkdir" in line:
            path = re.search(r'(?:AT_FDCWD, |mkdir\()"(/[^"]*)"', line)
            return path is not None and " = -1 " not in line and not self._is_ours(path[1])
        return False


@pytest.fixture
def place() -> Iterator[Place]:
    folder = Path(tempfile.mkdtemp(prefix="cpg-"))
    yield Place(folder.resolve())
    shutil.rmtree(folder, ignore_errors=True)


def test_no_command_phones_home(place: Place) -> None:
    words: list[list[str]] = []
    for name in sorted(COMMANDS, key=lambda name: (name != "log", name)):
        found = load(name)
        below = [[name, one] for one in found.commands] if isinstance(found, Group) else [[name]]
        for each in below:
            for arguments in ARGUMENTS.get(" ".join(each), [[], ["1"]]):
                filled = [one.replace("{out}", str(place.out)) for one in arguments]
                words.append([*each, *filled])
    # The first removes the record that the others are about.
    words.sort(key=lambda line: (line[0] == "forget", line[0] != "log"))
    (place.out / "words.json").write_text(json.dumps(words))

    done = place.run(sys.executable, "-c", DRIVER, str(place.out / "words.json"))

    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.splitlines()) >= len(words)
    assert "recall', 'npm fails'] 0" in done.stdout
    assert place.breaches() == set()


def test_no_hook_and_no_server_phones_home(place: Place) -> None:
    steps = [f"{sys.executable} -m commonplace log --type error --lesson 'verify the owner of npm'"]
    for folder in sorted(path for path in EVENTS.iterdir() if path.is_dir()):
        for event in sorted(folder.glob("*.json")):
            text = event.read_text().replace("/project", str(place.work))
            copy = place.out / f"{folder.name}-{event.name}"
            copy.write_text(text)
            hook = f"{sys.executable} -c 'from commonplace.hooks import main; main()' {folder.name}"
            steps.append(f"{hook} < {copy}")
    served = [
        f"{sys.executable} -m commonplace serve --ensure --port 0",
        *steps[1:8],
        f"{sys.executable} -m commonplace recall 'owner of npm' --all-repos",
        f"{sys.executable} -m commonplace serve --stop",
    ]
    done = place.run("sh", "-c", "\n".join([*steps, *served]))

    assert done.returncode == 0, done.stderr[-2000:]
    assert "verify the owner" in done.stdout
    assert place.breaches() == set()


def test_the_server_over_stdio_does_not_phone_home(place: Place) -> None:
    place.run(sys.executable, "-m", "commonplace", "log", "--type", "error", "--lesson", "npm rule")
    client = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    calls: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {
            "id": 2,
            "method": "tools/call",
            "params": {"name": "recall", "arguments": {"text": "npm"}},
        },
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **call}) + "\n" for call in calls)

    # The client reads both answers before it hangs up.
    talk = "from subprocess import *; import sys; p = Popen([sys.executable, '-m', 'commonplace', 'mcp'],"
    talk += " stdin=PIPE, stdout=PIPE); p.stdin.write(sys.stdin.buffer.read()); p.stdin.flush()"
    talk += "; print(p.stdout.readline(), p.stdout.readline()); p.stdin.close(); p.wait()"
    done = place.run(sys.executable, "-c", talk, stdin=lines)

    assert "npm rule" in done.stdout, done.stderr[-2000:]
    assert place.breaches() == set()


@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.getaddrinfo('telemetry.example.org', 443)",
        "import socket; socket.socket().connect_ex(('192.0.2.1', 443))",
        "open(__import__('os').path.expanduser('~/deviceid'), 'w')",
        "import ctypes; ctypes.CDLL(None).mkdir(b'/tmp/cpg-outside', 0o700)",
    ],
)
def test_the_guard_notices(place: Place, code: str) -> None:
    if "ctypes" in code and not STRACE:
        pytest.skip("only strace sees what C does")
    place.run(sys.executable, "-c", f"import contextlib\nwith contextlib.suppress(OSError): {code}")
    shutil.rmtree("/tmp/cpg-outside", ignore_errors=True)
    assert place.breaches()


def test_only_one_module_imports_the_models_runtime_and_switches_telemetry_off_first() -> None:
    importing = [
        path
        for folder in ("src", "tools", "bench", "scripts")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"^\s*(import|from) onnxruntime", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert ROOT / "src" / "commonplace" / "embed" / "minilm.py" in importing
    for path in importing:
        text = path.read_text("utf-8")
        assert (
            0
            < text.find('os.environ["ORT_DISABLE_TELEMETRY"] = "1"')
            < text.find("import onnxruntime")
        )
