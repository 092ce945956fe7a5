"""How much memory a process with the model uses, as the store grows.

    python bench/memory.py [--sizes 1000,1000000]

Memories and questions are made by bench/texts.py. Above 10,000 memories, vectors are drawn at random instead of
embedded, as in bench/latency.py. Three processes, each of its own, and none of them holds what the benchmark made:

- *built*: peak resident memory of a process that indexes and embeds the store. There is no bar for a million.
- *asked*: resident memory of a process that opens the store and has answered 220 questions, and its peak.
- *server*: the same of `commonplace serve` after 220 questions over HTTP, when nobody has asked for six seconds. It has
  no bar: the libraries of its protocol are in it, and the last line says how much a server with one empty tool uses
  on the same SDK.

Pages of mapped files (the model, the text index, libraries) are counted as far as they are resident, although
processes share them and the system can drop them; `anonymous` is without them. Bars: see `MB_MAX`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import latency
import server
import texts

from commonplace import Memory

ASKED = 220
VECTORS_MAX = 10_000
MB_MAX = {1_000: 160.0, 1_000_000: 1_200.0}
REST_S = 6.0
START_S = 6.0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sizes", default="1000,1000000")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    if arguments.part:
        part = {"built": build, "asked": ask}[arguments.part]
        print(json.dumps(part(arguments.home, sizes[0])))
        return 0
    missed = 0
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            missed += measure(Path(folder) / "home", size)
    show("an empty server", "", weigh_empty_server())
    print("all bars hold" if not missed else f"MISSED: {missed}")
    return 1 if missed else 0


def measure(home: Path, size: int) -> int:
    """Print the figures of one size, and return how many miss the bar."""
    bar = MB_MAX.get(size, 0.0)
    at = f"{size:,} memories"
    built = in_a_process("built", home, size)
    asked = in_a_process("asked", home, size)
    served = serve(home, size)
    missed = show("built", at, built, bar if size <= VECTORS_MAX else 0.0, of="peak_mb")
    missed += show("asked", at, asked, bar)
    show("server", at, served)
    return missed


def show(
    name: str, at: str, figures: dict[str, float], bar: float = 0.0, of: str = "resident_mb"
) -> int:
    share = figures[of] / bar if bar else 0.0
    verdict = f"   {share:.2f} of {bar:,.0f} MB{'' if share <= 1 else ': MISSED'}" if bar else ""
    parts = ", ".join(f"{key.removesuffix('_mb')} {value:,.0f}" for key, value in figures.items())
    print(f"{at:20} {name:16} MB: {parts}{verdict}", flush=True)
    return int(share > 1)


def in_a_process(part: str, home: Path, size: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--part", part, "--sizes", str(size), "--home", str(home)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


# --- The processes ------------------------------------------------------------------------------------------------


def build(home: Path, size: int) -> dict[str, float]:
    randomness = random.Random(size)
    chosen = {*random.Random(1).sample(range(size), min(size, ASKED))}
    questions: list[str] = []

    def lines() -> Any:
        for number in range(size):
            row = texts.memory(randomness, number)
            if number in chosen:
                questions.append(texts.question(random.Random(number), row))
            yield json.dumps(row).encode()

    with Memory.open(home, background=False) as memory:
        memory.append_lines(lines())
        memory.engine().catch_up()
        latency.embed(memory, size, VECTORS_MAX)
    (home.parent / "questions.json").write_text(json.dumps(questions))
    return weigh(os.getpid())


def ask(home: Path, _size: int) -> dict[str, float]:
    with Memory.open(home, background=False) as memory:
        for question in json.loads((home.parent / "questions.json").read_text()):
            memory.recall(question, all_repos=True)
        return weigh(os.getpid())


def serve(home: Path, _size: int) -> dict[str, float]:
    environment = {**os.environ, "COMMONPLACE_HOME": str(home), "HOME": str(home.parent)}
    run = [sys.executable, "-m", "commonplace", "serve"]
    ensure = [*run, "--ensure", "--json", "--port", "0"]
    done = subprocess.run(ensure, env=environment, check=True, capture_output=True)
    presence = json.loads(done.stdout)
    try:
        token = Path(presence["token_file"]).read_text("ascii").strip()
        for question in json.loads((home.parent / "questions.json").read_text()):
            request = urllib.request.Request(
                f"{presence['address']}/api/v1/recall",
                json.dumps({"query": question, "all_repos": True}).encode(),
                {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request) as reply:
                reply.read()
        time.sleep(REST_S)
        return weigh(presence["pid"])
    finally:
        subprocess.run([*run, "--stop"], env=environment, check=False, capture_output=True)


def weigh_empty_server() -> dict[str, float]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", server.EMPTY, str(port)])
    try:
        time.sleep(START_S)
        return weigh(process.pid)
    finally:
        process.kill()
        process.wait()


def weigh(pid: int) -> dict[str, float]:
    """The resident memory of a process now, without mapped files, and at its peak."""
    names = {"VmRSS": "resident_mb", "RssAnon": "anonymous_mb", "VmHWM": "peak_mb"}
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except FileNotFoundError:  # Not Linux: only the peak of this process is known.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return dict.fromkeys(names.values(), peak)
    found = dict(line.split(":", 1) for line in lines)
    return {ours: int(found[name].split()[0]) / 1024 for name, ours in names.items()}


if __name__ == "__main__":
    sys.exit(main())
