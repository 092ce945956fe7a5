"""How fast recall is as the store grows, beside an FTS5 `OR` query over the same texts in the same run.

    python bench/latency.py [--sizes 1000,10000,100000,1000000] [--vectors-max 10000] [--json FILE]

Memories are synthetic but realistic: error, command, file and remedy drawn from vocabularies with a long tail, 40 to 60
words each. Metrics: warm p50 and p95 of `Memory.recall` in one process, 200 questions, after one pass over them; the
same for FTS5 (porter, `OR` of the words, bm25, ten rows); a cold `commonplace recall` as a multiple of `python -c pass`
(medians of whole processes), with the embedder and without; memories per second into the index; bytes of `.index/` and
`log/`; peak RSS of the warm process. Above --vectors-max, vectors are drawn at random instead of embedded (a model
would need an hour for a million; the search does not care), and the query is embedded by the real model.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from commonplace import Memory

TOOLS = [
    "npm",
    "pnpm",
    "yarn",
    "cargo",
    "pip",
    "uv",
    "poetry",
    "docker",
    "podman",
    "kubectl",
    "helm",
    "terraform",
    "ansible",
    "git",
    "gh",
    "make",
    "cmake",
    "bazel",
    "gradle",
    "mvn",
    "go",
    "tsc",
    "eslint",
    "ruff",
    "mypy",
    "pytest",
    "jest",
    "vitest",
    "webpack",
    "vite",
    "nginx",
    "redis",
    "postgres",
    "sqlite",
    "kafka",
    "rabbitmq",
    "grpc",
]
VERBS = [
    "install",
    "build",
    "test",
    "deploy",
    "migrate",
    "lint",
    "bundle",
    "publish",
    "restart",
    "upgrade",
    "rollback",
    "sync",
    "fetch",
    "compile",
    "cache",
    "watch",
]
ERRORS = [
    "EACCES",
    "ENOENT",
    "ECONNREFUSED",
    "ETIMEDOUT",
    "E0308",
    "E0502",
    "TS2345",
    "TS2339",
    "SIGSEGV",
    "OOMKilled",
    "CrashLoopBackOff",
    "ImagePullBackOff",
    "502",
    "504",
    "deadlock",
    "timeout",
]
REMEDIES = [
    "clear the cache",
    "pin the version",
    "raise the timeout",
    "fix the permissions",
    "rebase the branch",
    "regenerate the lock file",
    "restart the daemon",
    "split the transaction",
    "warm the pool",
    "escape the path",
    "set the variable",
    "drop the flag",
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default="1000,10000,100000,1000000")
    parser.add_argument("--vectors-max", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    for size in map(int, arguments.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(Path(folder) / "home", size, arguments.vectors_max))
        show(rows[-1])
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    bars = {100_000: 8.0, 1_000_000: 20.0}
    missed = [row for row in rows if row["p50_ms"] > bars.get(int(row["size"]), 1e9)]
    missed += [
        row for row in rows if row["size"] == 10_000 and (row["cold_ratio"] > 25 or row["cold_words_ratio"] > 12)
    ]
    print("all bars hold" if not missed else f"MISSED at {[row['size'] for row in missed]}")
    return 1 if missed else 0


def measure(home: Path, size: int, vectors_max: int) -> dict[str, float]:
    randomness = random.Random(size)
    lessons = [lesson(randomness, number) for number in range(size)]
    with Memory.open(home) as memory:
        memory.settings._values["embedder.background"] = False
        memory.append_lines(json.dumps(row).encode() for row in lessons)
        start = time.perf_counter()
        (index,) = memory.asking().caught_up()
        built = size / (time.perf_counter() - start)
        vectors = embed(memory, size, vectors_max)
        questions = [question(randomness) for _ in range(200)]
        warm, words = timed(memory, questions), None
        memory.settings._values["recall.dense"], kept = 0.0, memory.settings["recall.dense"]
        memory.settings._values["embedder.kind"] = "none"
        words = timed(memory, questions)
        memory.settings._values["recall.dense"] = kept
        status = index.status()
    fts = fts5(lessons, questions)
    cold, cold_words = cold_ratios(home, questions[0]) if size <= 100_000 else (0.0, 0.0)
    return {
        "size": size, "build_per_s": built, "vectors_per_s": vectors, "p50_ms": warm[0], "p95_ms": warm[1],
        "words_p50_ms": words[0], "words_p95_ms": words[1], "fts5_p50_ms": fts, "cold_ratio": cold,
        "cold_words_ratio": cold_words, "index_mb": status.bytes / 1e6,
        "log_mb": sum(path.stat().st_size for path in (home / "log").rglob("*.jsonl")) / 1e6,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


def lesson(randomness: random.Random, number: int) -> dict[str, object]:
    tool, verb, error = randomness.choice(TOOLS), randomness.choice(VERBS), randomness.choice(ERRORS)
    module = f"{randomness.choice(TOOLS)}_{tail(randomness)}"
    words = " ".join(tail_word(randomness) for _ in range(25))
    return {
        "kind": "lesson", "repo": f"repo{number % 50}", "event_type": "error", "timestamp": f"2026-{number % 12 + 1:02}-{number % 28 + 1:02}T00:00:00Z",
        "context": f"{tool} {verb} fails with {error} in src/{module}/{tail_word(randomness)}.py",
        "command": f"{tool} {verb} --{tail_word(randomness)} {tail(randomness)}",
        "lesson": f"{randomness.choice(REMEDIES)} before {tool} {verb}; {words}",
        "success_rate": f"{randomness.randint(0, 9)}/9", "tags": [tool, verb],
    }  # fmt: skip


def tail(randomness: random.Random) -> int:
    return int(20 * randomness.paretovariate(0.8))  # The commonest word is in most texts, the rarest in one.


def tail_word(randomness: random.Random) -> str:
    return f"w{min(tail(randomness), 200_000):x}"


def question(randomness: random.Random) -> str:
    words = [randomness.choice(TOOLS), randomness.choice(VERBS), "fails with", randomness.choice(ERRORS)]
    return " ".join([*words, "in", tail_word(randomness), tail_word(randomness), randomness.choice(REMEDIES)])


def embed(memory: Memory, size: int, vectors_max: int) -> float:
    start = time.perf_counter()
    if size <= vectors_max:
        return memory.asking().embed_all() / (time.perf_counter() - start)
    import numpy as np

    (index,) = memory.asking().indexes
    embedder = memory.asking().embedder()
    assert embedder is not None
    index.vectors.use(embedder.name)
    draw = np.random.default_rng(1)
    keys = [key for (key,) in index.store.connection.execute("SELECT key FROM unembedded")]
    with index.store.writing():
        for at in range(0, len(keys), 50_000):
            some = keys[at : at + 50_000]
            rows = draw.integers(-20, 21, (len(some), 384), np.int8)
            index.store.connection.executemany(
                "INSERT INTO vector (key, v) VALUES (?, ?)",
                [(key, row.tobytes()) for key, row in zip(some, rows, strict=True)],
            )
        index.store.connection.execute("DELETE FROM unembedded")
    return 0.0


def timed(memory: Memory, questions: list[str]) -> tuple[float, float]:
    for one in questions[:20]:
        memory.recall(one)
    taken = []
    for one in questions:
        start = time.perf_counter()
        memory.recall(one)
        taken.append((time.perf_counter() - start) * 1000)
    return statistics.median(taken), sorted(taken)[int(len(taken) * 0.95)]


def fts5(lessons: list[dict[str, object]], questions: list[str]) -> float:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE d USING fts5(text, tokenize='porter unicode61')")
    texts = ((" ".join(str(row[name]) for name in ("context", "command", "lesson")),) for row in lessons)
    connection.executemany("INSERT INTO d VALUES (?)", texts)
    taken = []
    for one in questions[:40]:
        query = " OR ".join(f'"{word}"' for word in dict.fromkeys(one.split()))
        start = time.perf_counter()
        connection.execute("SELECT rowid FROM d WHERE d MATCH ? ORDER BY bm25(d) LIMIT 10", (query,)).fetchall()
        taken.append((time.perf_counter() - start) * 1000)
    return statistics.median(taken)


def cold_ratios(home: Path, one: str) -> tuple[float, float]:
    command = [str(Path(sys.executable).parent / "commonplace"), "recall", one, "--all-repos", "--home", str(home)]
    bare = processes([sys.executable, "-c", "pass"])
    with_embedder = processes(command) / bare
    (home / "config.toml").write_text('[embedder]\nkind = "none"\n')
    without = processes(command) / processes([sys.executable, "-c", "pass"])
    (home / "config.toml").unlink()
    return with_embedder, without


def processes(command: list[str], rounds: int = 11) -> float:
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True, env={**os.environ, "HOME": "/nonexistent"})
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def show(row: dict[str, float]) -> None:
    print(f"\n{int(row['size']):,} memories")
    for name, value in row.items():
        if name != "size":
            print(f"  {name:18} {value:12,.1f}")
    print(f"  {'times faster than FTS5':18} {row['fts5_p50_ms'] / row['p50_ms']:8.1f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
