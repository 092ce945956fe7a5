"""Pictures of the commands at a terminal: writes `docs/images/*.svg`.

Run it after a change to what `recall`, `show`, `list`, `inbox` or `doctor` print:

    .venv/bin/python tools/screenshots.py

Each command runs in a pseudo terminal of 80 and of 120 columns, on a home made for this, so that a
picture is what a user sees. The clock is the real one: the ages in the pictures follow it.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from commonplace.memory import Memory

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "images"
COLUMNS = (80, 120)
ROWS = 50
REPO = "shop"
LESSONS = [
    {
        "age": 19,
        "event_type": "error",
        "context": "npm install fails with EACCES",
        "lesson": "Files in node_modules belong to root after a build in a container. Take them "
        "back before npm ci, and do not run npm with sudo",
        "command": "sudo chown -R $USER node_modules && npm ci",
        "success_rate": "9/10",
        "tags": ["npm", "permissions"],
    },
    {
        "age": 64,
        "event_type": "pattern",
        "context": "Retrying a flaky request",
        "lesson": "Retry only idempotent requests, with a random wait:\n\n"
        "```python\nfor attempt in range(5):\n    if (reply := get(url)).ok:\n"
        "        return reply\n"
        "    sleep(random() * 2**attempt)\n```\n\n"
        "A POST without a key may charge a customer twice.",
        "tags": ["http", "payments"],
    },
    {
        "age": 3,
        "event_type": "success",
        "context": "npm install in CI is slow",
        "lesson": "Cache `~/.npm`, not node_modules: npm ci removes that folder first",
        "success_rate": "4/4",
        "tags": ["npm", "ci"],
    },
    {
        "age": 1,
        "event_type": "learned",
        "lesson": "The checkout tests need the payment emulator: start it with `make emulator`",
        "tags": ["tests", "payments"],
    },
    {
        "age": 230,
        "event_type": "error",
        "context": "Migrations hang in staging",
        "lesson": "Another session holds a lock on the table; end it, then migrate again",
        "command": "psql -c 'select pg_terminate_backend(pid) from pg_locks where not granted'",
        "success_rate": "2/3",
        "tags": ["postgres"],
    },
]
EVENTS = [
    ("npm run build", "Error: Cannot find module 'esbuild'"),
    ("npm run build --force", "Error: Cannot find module 'esbuild'"),
    ("npm install --include=optional && npm run build", ""),
]
# GitHub's dark colours, on which `dim` and every colour can be read.
THEME = TerminalTheme(
    (13, 17, 23),
    (201, 209, 217),
    [
        (72, 79, 88), (255, 123, 114), (63, 185, 80), (210, 153, 34),
        (88, 166, 255), (188, 140, 255), (57, 197, 207), (177, 186, 196),
    ],
    [
        (110, 118, 129), (255, 161, 152), (86, 211, 100), (227, 179, 65),
        (121, 192, 255), (210, 168, 255), (86, 212, 221), (240, 246, 252),
    ],
)  # fmt: skip
# rich's frame, without the fonts that it would load from the network.
SVG = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px Menlo, Consolas, "DejaVu Sans Mono", monospace; \
line-height: {line_height}px; }}
.{unique_id}-title {{ font: bold 16px sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">\
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g></g></svg>
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        environment = make_home(folder)
        first = fill(folder, environment)
        pictures = {
            "recall": ["recall", "npm", "install", "fails"],
            "show": ["show", first[:14]],
            "list": ["list"],
            "inbox": ["inbox"],
            "doctor": ["doctor"],
        }
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name, arguments in pictures.items():
            for columns in COLUMNS:
                printed = run_in_terminal(arguments, columns, folder / REPO, environment)
                printed = printed.replace(scratch, "~")
                title = " ".join(["commonplace", *arguments])
                path = FOLDER / f"{name}-{columns}.svg"
                path.write_text(picture(printed, columns, title), encoding="utf-8")
                print(f"{path.relative_to(ROOT)}  {path.stat().st_size:,} bytes")


def make_home(folder: Path) -> dict[str, str]:
    """Make a repository with an agent that looks installed; return the environment to run in."""
    project = folder / REPO
    project.mkdir()
    (folder / ".claude").mkdir()
    keep = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT") if name in os.environ}
    return {**keep, "HOME": str(folder), "TERM": "xterm-256color", "COLORTERM": "truecolor"}


def fill(folder: Path, environment: dict[str, str]) -> str:
    """Write the lessons and one solved error; return the id of the first lesson."""
    now = datetime.now(UTC).replace(microsecond=0)
    with Memory.open(cwd=folder / REPO, environment=environment, agent_id="claude") as memory:
        records = [
            memory.log(
                **{name: value for name, value in lesson.items() if name != "age"},
                timestamp=(now - timedelta(days=int(str(lesson["age"])))).isoformat(),
            )
            for lesson in LESSONS
        ]
        memory.feedback(records[0].id, "worked")
        memory.ready()
    for number, (command, error) in enumerate(EVENTS):
        event = {
            "session_id": "a",
            "cwd": str(folder / REPO),
            "hook_event_name": "PostToolUseFailure" if error else "PostToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_use_id": f"call-{number}",
            **({"error": error} if error else {"tool_response": {"stdout": "ok"}}),
        }
        send_event(event, folder, environment)
    end = {"session_id": "a", "cwd": str(folder / REPO), "hook_event_name": "SessionEnd"}
    send_event({**end, "reason": "exit"}, folder, environment)
    return records[0].id


def send_event(event: dict[str, object], folder: Path, environment: dict[str, str]) -> None:
    subprocess.run(
        [program("commonplace-hook"), "--agent", "claude-code"],
        input=json.dumps(event).encode(),
        cwd=folder / REPO,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def program(name: str) -> str:
    return shutil.which(name, path=str(Path(sys.executable).parent)) or name


def run_in_terminal(
    arguments: list[str], columns: int, folder: Path, environment: dict[str, str]
) -> str:
    """Return what the command prints at a terminal of that width, with its colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    with subprocess.Popen(
        [program("commonplace"), *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=environment,
    ):
        os.close(theirs)
        found = b""
        try:
            while chunk := os.read(ours, 1 << 16):
                found += chunk
        except OSError:
            pass  # The other end is closed: the command has ended.
    os.close(ours)
    return found.decode("utf-8").replace("\r\n", "\n")


def picture(printed: str, columns: int, title: str) -> str:
    """Return *printed* as an SVG."""
    console = Console(
        record=True,
        width=columns,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
    )
    console.print(Text.from_ansi(printed.rstrip("\n")))
    svg = console.export_svg(title=title, theme=THEME, code_format=SVG, unique_id="t")
    # A clip path for each line only guards against wide letters, and is half of the file.
    svg = re.sub(r'<clipPath id="t-line-\d+">.*?</clipPath>', "", svg, flags=re.DOTALL)
    svg = re.sub(r' clip-path="url\(#t-line-\d+\)"', "", svg)
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"


if __name__ == "__main__":
    main()
