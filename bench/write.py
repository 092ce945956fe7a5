"""How fast the write path is: one run, ratios against a bare interpreter, the bars beside the figures.

    python bench/write.py [--quick]

Metrics: the median wall time of whole processes; records per second of one `commonplace log --stdin`, process start
included; `Memory.log` calls per second in one process and summed over eight, fsync policy `never`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BIN = Path(sys.executable).parent
LOG = [
    str(BIN / "commonplace"),
    "log",
    "--repo",
    "r",
    "--type",
    "success",
    "--lesson",
    "quick as can be",
]
APPENDS = """
import sys, time
from commonplace import Memory
who, count = sys.argv[1], int(sys.argv[2])
with Memory.open() as memory:
    lessons = [f"writer {who} learned thing number {number} about topic {number % 977}" for number in range(count)]
    start = time.perf_counter()
    for lesson in lessons:
        memory.log(repo="shared", event_type="success", lesson=lesson)
    print(count / (time.perf_counter() - start))
"""


def main() -> int:
    quick = "--quick" in sys.argv
    rounds, bulk, appends = (5, 20_000, 5_000) if quick else (21, 200_000, 40_000)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        environment = {**os.environ, "COMMONPLACE_HOME": str(home), "HOME": folder}
        bare = seconds([sys.executable, "-c", "pass"], environment, folder, rounds)
        log = seconds(LOG, environment, folder, rounds)
        rate = bulk_rate(bulk, environment, folder)
        (home / "config.toml").write_text('fsync = "never"\n')
        (home / "config.toml").chmod(0o600)
        one = sum(append_rates(1, appends, environment, folder))
        eight = sum(append_rates(8, appends // 8, environment, folder))
        stored = sum(1 for line in (home / "log" / "shared.jsonl").open("rb") if line.strip())
    promised = appends + appends // 8 * 8
    rows = [
        ("python3 -c pass", f"{bare * 1000:.1f} ms", "", True),
        ("commonplace log", f"{log * 1000:.1f} ms = {log / bare:.1f} x", "<= 5 x", log / bare <= 5),
        (f"log --stdin, {bulk:,} records", f"{rate:,.0f} records/s", ">= 50,000", rate >= 50_000),
        ("Memory.log, one process", f"{one:,.0f} records/s", ">= 20,000", one >= 20_000),
        ("Memory.log, eight processes", f"{eight:,.0f} records/s", ">= 20,000", eight >= 20_000),
        (
            "lines stored of those acknowledged",
            f"{stored:,} of {promised:,}",
            "all",
            stored == promised,
        ),
    ]
    for name, figure, bar, holds in rows:
        print(f"{name:36} {figure:28} {bar:12} {'ok' if holds else 'MISSED'}")
    return 0 if all(row[3] for row in rows) else 1


def seconds(command: list[str], environment: dict[str, str], folder: str, rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=True)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def bulk_rate(count: int, environment: dict[str, str], folder: str) -> float:
    row = {
        "kind": "lesson",
        "repo": "bulk",
        "event_type": "success",
        "timestamp": "2026-01-01T00:00:00Z",
    }
    rows = [
        json.dumps({**row, "lesson": f"bulk lesson {n} about topic {n % 977}"})
        for n in range(count)
    ]
    data = ("\n".join(rows) + "\n").encode()
    start = time.perf_counter()
    command = [str(BIN / "commonplace"), "log", "--stdin"]
    subprocess.run(
        command, input=data, env=environment, cwd=folder, capture_output=True, check=True
    )
    return count / (time.perf_counter() - start)


def append_rates(
    processes: int, count: int, environment: dict[str, str], folder: str
) -> list[float]:
    command = [sys.executable, "-c", APPENDS]
    running = [
        subprocess.Popen(
            [*command, f"{processes}-{who}", str(count)],
            env=environment,
            cwd=folder,
            stdout=subprocess.PIPE,
        )
        for who in range(processes)
    ]
    return [float(process.communicate()[0]) for process in running]


if __name__ == "__main__":
    sys.exit(main())
