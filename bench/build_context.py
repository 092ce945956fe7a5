"""How fast `Memory.build_context` is at many nodes: warm p50 and p95, whole and by part.

    python bench/build_context.py [--nodes 100000] [--builds 100] [--home FOLDER] [--parts]

Nodes and questions are made by bench/texts.py: facts, concepts, snippets, patterns and skills, each linked to three
others, and one of them to 10,000. Vectors are drawn at random, as in bench/latency.py above 10,000; the question is
embedded by the real model. Every build asks something new for one task with tags, 2,000 tokens, two hops, and is saved.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import pstats
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import texts
from latency import embed

from commonplace import Memory
from commonplace.server.http import GARBAGE_THRESHOLDS

if TYPE_CHECKING:
    from collections.abc import Iterator

P50_MS_MAX = 25.0
WARM_UP, HUB_LINKS = 10, 10_000
TYPES = ("fact", "concept", "snippet", "pattern", "skill")
KINDS = {"pattern": "node", "skill": "node"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--builds", type=int, default=100)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--parts", action="store_true", help="show where the time goes")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = arguments.home or Path(folder) / "home"
        return measure(home, arguments.nodes, arguments.builds, parts=arguments.parts)


def nodes(size: int) -> Iterator[dict[str, object]]:
    randomness = random.Random(size)
    for number in range(size):
        row = texts.memory(randomness, number)
        kind = TYPES[number % len(TYPES)]
        targets = [randomness.randrange(size) for _ in range(3)]
        if number == 0:
            targets = [randomness.randrange(size) for _ in range(min(HUB_LINKS, size))]
        yield {
            "id": f"{kind}.n{number}",
            "kind": KINDS.get(kind, kind),
            "type": kind,
            "label": row["context"],
            "payload": {"text": row["lesson"], "command": row["command"]},
            "tags": row["tags"],
            "repo": "bench",
            "links": [
                {"to": f"{TYPES[to % len(TYPES)]}.n{to}", "rel": "uses", "w": 0.5} for to in targets
            ],
        }


def measure(home: Path, size: int, builds: int, *, parts: bool) -> int:
    randomness = random.Random(size + 1)
    rows = [texts.memory(randomness, number) for number in range(size // 10)]
    questions = [
        texts.question(randomness, randomness.choice(rows)) for _ in range(WARM_UP + builds)
    ]
    with Memory.open(home, background=False) as memory:
        if not home.is_dir():
            memory.append_lines(json.dumps(row).encode() for row in nodes(size))
            memory.engine().catch_up()
            embed(memory, size, 0)
        gc.collect()
        # As the server does.
        gc.freeze()
        gc.set_threshold(*GARBAGE_THRESHOLDS)
        taken: list[float] = []
        worked: list[float] = []
        profile = cProfile.Profile(time.thread_time)
        lit = []
        for number, one in enumerate(questions):
            if parts and number >= WARM_UP:
                profile.enable()
            start, begun = time.perf_counter(), time.thread_time()
            built = memory.build_context(one, {"id": "task-1", "tags": ["docker"]}, 2000, hops=2)
            taken.append((time.perf_counter() - start) * 1000)
            worked.append((time.thread_time() - begun) * 1000)
            profile.disable()
            lit.append(built.lit)
            assert built.frames.tokens() <= 2000
        taken = sorted(taken[WARM_UP:])
        p50, p95 = statistics.median(taken), taken[int(len(taken) * 0.95)]
        start = time.perf_counter()
        for one in questions[:50]:
            memory.recall(one, all_repos=True)
        recall_ms = (time.perf_counter() - start) * 20
    print(
        f"{size:,} nodes: build_context p50 {p50:.1f} ms, p95 {p95:.1f} ms (bar {P50_MS_MAX:.0f}),"
        f" {statistics.median(worked[WARM_UP:]):.1f} ms of its thread's processor time;"
        f" {statistics.median(lit):.0f} nodes lit; a recall takes {recall_ms:.1f} ms"
    )
    if parts:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(45)
    return 0 if p50 <= P50_MS_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
