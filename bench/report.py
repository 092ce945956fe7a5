"""Run every benchmark and write docs/BENCHMARKS.md: what was measured, when, on what, by which definition.

    python bench/report.py [--only write,cli,quality,silence,changes,savings,latency,memory,server,hooks,learning,context,build_context]      (the other sections stay as they are)

The figures in the document come from here and nowhere else.
"""

from __future__ import annotations

import argparse
import ast
import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
REPORT = FOLDER.parent / "docs" / "BENCHMARKS.md"
SCRIPTS = {
    "write": "Writing",
    "cli": "Starting the command line",
    "quality": "Finding and delivering",
    "silence": "Silence when nothing fits",
    "changes": "Rules that changed",
    "savings": "Tokens saved",
    "latency": "Speed of recall as the store grows",
    "memory": "Memory as the store grows",
    "server": "The server",
    "hooks": "Hooks",
    "learning": "Learning",
    "context": "What the graph finds",
    "build_context": "Speed of a context",
}
# This one needs judges: its section is written by hand, and stays as it is.
JUDGED = "Judged blind"
TITLES = [*SCRIPTS.values(), JUDGED]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(SCRIPTS), help="names, with commas between them")
    chosen = parser.parse_args().only.split(",")
    if unknown := [name for name in chosen if name not in SCRIPTS]:
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(SCRIPTS)}")
    sections = sections_of(REPORT.read_text("utf-8")) if REPORT.exists() else {}
    worst = 0
    for name in chosen:
        done = subprocess.run(
            [sys.executable, str(FOLDER / f"{name}.py")],
            capture_output=True,
            text=True,
            check=False,
        )
        print(done.stdout + done.stderr, flush=True)
        worst = max(worst, done.returncode)
        sections[SCRIPTS[name]] = section(name, done.stdout, done.returncode)
    parts = [sections[title].rstrip("\n") + "\n" for title in TITLES if title in sections]
    REPORT.write_text("\n".join([head(), *parts]), encoding="utf-8")
    print(f"wrote {REPORT.relative_to(FOLDER.parent)}")
    return worst


def sections_of(text: str) -> dict[str, str]:
    """The sections by their titles; a benchmark's own output may hold headings too."""
    titles = "|".join(re.escape(title) for title in TITLES)
    parts = re.split(rf"^(?=## (?:{titles})$)", text, flags=re.MULTILINE)
    return {part.partition("\n")[0].removeprefix("## "): part for part in parts[1:]}


def head() -> str:
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, CPython {platform.python_version()}"
    return (
        "# Benchmarks\n\n"
        f"Measured on {datetime.now(UTC):%Y-%m-%d} by `make bench` on {machine}. Ratios are taken side by side in one run;\n"
        "absolute times depend on the machine and on what else it does. A line that misses its bar says so.\n\n"
        'Priors and the choice of passages were tuned on the two shared sets shown under "Finding and delivering", and what counts\n'
        "as a gold passage there is our own definition: read those figures as in-sample. The numbers of fusion and relevance were\n"
        "fitted to other texts (docs/decisions/0039).\n"
    )


def section(name: str, output: str, code: int) -> str:
    definition = ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text("utf-8"))) or ""
    verdict = (
        "All bars hold." if code == 0 else "Not every bar was met in this run; the lines say which."
    )
    body = "\n".join(line.rstrip() for line in output.strip("\n").split("\n"))
    return (
        f"## {SCRIPTS[name]}\n\n```text\n{definition}\n```\n\n{verdict}\n\n```text\n{body}\n```\n"
    )


if __name__ == "__main__":
    sys.exit(main())
