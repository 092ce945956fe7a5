"""How long the quick commands take, as multiples of a bare interpreter.

    python bench/cli.py [--rounds 41]

Metric: the median wall time of whole processes, from start to exit, divided by the median of
`python3 -c pass`. One process of each is run in turn, so that noise hits all of them alike.
Bytecode is compiled first, as installers do. The home holds 1,000 lessons. Bars: `log` five times
a bare interpreter, the others six times.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import commonplace

BIN = Path(sys.executable).parent
COMMAND = str(BIN / "commonplace")
LESSONS = 1000
BARE = "python3 -c pass"
RATIO_MAX = {"--help": 6.0, "show": 6.0, "where": 6.0, "log": 5.0}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=41)
    rounds = parser.parse_args().rounds
    compileall.compile_dir(str(Path(commonplace.__file__).parent), quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "COMMONPLACE_HOME": f"{folder}/home", "HOME": folder}
        ident = fill(environment, folder)
        commands = {
            BARE: [sys.executable, "-c", "pass"],
            "--help": [COMMAND, "--help"],
            "show": [COMMAND, "show", ident],
            "where": [COMMAND, "where"],
            "log": [COMMAND, "log", "--repo", "r", "--type", "success", "--lesson", "be quick"],
        }
        medians = measure(commands, environment, folder, rounds)
    bare_s = medians.pop(BARE)
    print(f"{BARE:20} {bare_s * 1000:6.1f} ms")
    held = True
    for name, median_s in medians.items():
        ratio, bar = median_s / bare_s, RATIO_MAX[name]
        verdict = "ok" if ratio <= bar else "MISSED"
        held = held and ratio <= bar
        print(
            f"commonplace {name:8} {median_s * 1000:6.1f} ms = {ratio:.1f} x   <= {bar:g} x   {verdict}"
        )
    return 0 if held else 1


def fill(environment: dict[str, str], folder: str) -> str:
    """Write the lessons and return the id of one."""
    rows = (
        {"event_type": "success", "repo": "r", "id": f"les-{number}", "lesson": f"lesson {number}"}
        for number in range(LESSONS)
    )
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    subprocess.run(
        [COMMAND, "log", "--stdin"],
        input=lines.encode(),
        env=environment,
        cwd=folder,
        capture_output=True,
        check=True,
    )
    return f"les-{LESSONS - 1}"


def measure(
    commands: dict[str, list[str]], environment: dict[str, str], folder: str, rounds: int
) -> dict[str, float]:
    """The median time of each command, one of each run in turn."""
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=True)
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


if __name__ == "__main__":
    sys.exit(main())
