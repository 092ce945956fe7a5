"""How fast recall is as the store grows, beside an FTS5 `OR` query over the same texts in the same run.

    python bench/latency.py [--sizes 1000,10000,100000,1000000] [--vectors-max 10000] [--json FILE]

Memories and questions are made by bench/texts.py; the first table shows their shape beside that of real logs. Metrics:
warm p50 and p95 of `Memory.recall` in one process, in three rounds of 200 questions that were not asked before, after
20 others: those of the quickest round, and the p50 of the slowest, since a machine shared with others slows down by half
for minutes at a time; the same by words alone; the same where a small model may read the best again (`recall.reading`, on by default, which is off for
the lines before; `reading` is the share of questions that took it); p50 of FTS5 (porter, `OR` of the words, bm25, ten rows); a cold `commonplace recall` as a multiple of `python -c pass`
(medians of whole processes), with the embedder and without; memories per second into the index, and that get their
vectors; bytes of `.index/` and `log/`. Memory is measured by bench/memory.py: this process holds the texts too. Above --vectors-max, vectors are drawn at random
instead of embedded (a model would need hours for a million, and the search takes the same time), and the query is embedded by
the real model.

The bar of 250 vectors a second is about real lengths, 110 pieces a memory on average: `vectors_per_s`. The first line
is for comparison with older figures: texts cut to 60 pieces.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import texts

from commonplace import Memory
from commonplace.index.embedded.index import EmbeddedIndex

if TYPE_CHECKING:
    from collections.abc import Iterator

WARM_UP, ASKED, ROUNDS = 20, 200, 3
WARM_MS_MAX = {10_000: 4.0, 100_000: 5.0, 1_000_000: 10.0}
WORDS_MS_MAX = {10_000: 2.0}
AS_OF_MAX = 10
# A time at which about two thirds of the memories had been written.
PAST, PAST_ASKED = "2026-08-31", 120
COLD_MAX, COLD_WORDS_MAX = 15, 9
VECTORS_PER_S_MIN, PIECES = 250, 60


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default="1000,10000,100000,1000000")
    parser.add_argument("--vectors-max", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    print("\n".join(texts.compare_shapes()), flush=True)
    per_s = short_texts_per_s()
    print(f"\n{per_s:,.0f} texts of {PIECES} pieces embedded a second", flush=True)
    rows = []
    for size in map(int, arguments.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(Path(folder) / "home", size, arguments.vectors_max))
        show(rows[-1])
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    missed = [said for row in rows for said in short_of(row)]
    print("all bars hold" if not missed else "\n".join(f"MISSED: {said}" for said in missed))
    return 1 if missed else 0


def short_of(row: dict[str, float]) -> Iterator[str]:
    """The bars that *row* misses, in words."""
    size = int(row["size"])
    at = f"at {size:,} memories"
    if row["p50_ms"] > WARM_MS_MAX.get(size, math.inf):
        yield f"warm p50 {row['p50_ms']:.1f} ms {at}, not {WARM_MS_MAX[size]:.0f}"
    if row["words_p50_ms"] > WORDS_MS_MAX.get(size, math.inf):
        yield f"by words p50 {row['words_p50_ms']:.1f} ms {at}, not {WORDS_MS_MAX[size]:.0f}"
    if size == 10_000 and row["as_of_ratio"] > AS_OF_MAX:
        yield f"--as-of takes {row['as_of_ratio']:.1f} x a warm recall {at}, not {AS_OF_MAX}"
    if 0 < row["vectors_per_s"] < VECTORS_PER_S_MIN:
        yield f"{row['vectors_per_s']:.0f} memories embedded a second {at}, not {VECTORS_PER_S_MIN}"
    if size == 10_000 and row["cold_ratio"] > COLD_MAX:
        yield f"cold {row['cold_ratio']:.1f} x {at}, not {COLD_MAX}"
    if size == 10_000 and row["cold_words_ratio"] > COLD_WORDS_MAX:
        yield f"cold without the embedder {row['cold_words_ratio']:.1f} x {at}, not {COLD_WORDS_MAX}"


def measure(home: Path, size: int, vectors_max: int) -> dict[str, float]:
    randomness = random.Random(size)
    lessons = [texts.memory(randomness, number) for number in range(size)]
    count = WARM_UP + ROUNDS * ASKED
    questions = [texts.question(randomness, randomness.choice(lessons)) for _ in range(2 * count)]
    with Memory.open(home, background=False) as memory:
        reads = memory.settings["recall.reading"]
        memory.settings.override({"recall.reading": 0.0})
        memory.append_lines(json.dumps(row).encode() for row in lessons)
        start = time.perf_counter()
        memory.engine().catch_up()
        built = size / (time.perf_counter() - start)
        vectors = embed(memory, size, vectors_max)
        gc.collect()
        gc.freeze()  # As the server does.
        warm = time_questions(memory, questions[:count])
        past = (
            time_questions(memory, questions[:PAST_ASKED], as_of=PAST)
            if size <= 100_000
            else (0.0,) * 3
        )
        memory.settings.override({"recall.reading": reads})
        reading = time_questions(memory, questions[:count])
        share = share_read(memory, questions[:ASKED])
        (status,) = memory.engine().status()
    with Memory.open(home, background=False, settings={"embedder.kind": "none"}) as memory:
        words = time_questions(memory, questions[count:])
    fts = fts5(lessons, questions)
    cold, cold_words = cold_ratios(home, questions[0]) if size <= 100_000 else (0.0, 0.0)
    return {
        "size": size, "build_per_s": built, "vectors_per_s": vectors, "p50_ms": warm[0], "p95_ms": warm[1],
        "p50_slowest_ms": warm[2], "reading_p50_ms": reading[0], "reading_p95_ms": reading[1],
        "reading_share": share, "words_p50_ms": words[0], "words_p95_ms": words[1],
        "as_of_ratio": past[0] / warm[0], "fts5_p50_ms": fts, "cold_ratio": cold,
        "cold_words_ratio": cold_words, "index_mb": status.bytes / 1e6,
        "log_mb": sum(path.stat().st_size for path in (home / "log").rglob("*.jsonl")) / 1e6,
    }  # fmt: skip


def short_texts_per_s() -> float:
    """How many texts of 60 pieces the embedder takes a second, in the batches the worker gives it."""
    from commonplace.backlog import EMBED_BATCH
    from commonplace.embed.minilm import MiniLM

    embedder, randomness = MiniLM.load(), random.Random(60)

    def cut(words: list[str]) -> str:
        while len(embedder._ids([" ".join(words)])[0]) > PIECES:
            words.pop()
        return " ".join(words)

    long = (texts.text(texts.memory(randomness, number)).split() for number in range(3000))
    short = [cut(words) for words in long if len(embedder._ids([" ".join(words)])[0]) >= PIECES][
        :1024
    ]
    embedder.encode(short[:EMBED_BATCH])
    start = time.perf_counter()
    for at in range(0, len(short), EMBED_BATCH):
        embedder.encode(short[at : at + EMBED_BATCH])
    return len(short) / (time.perf_counter() - start)


def embed(memory: Memory, size: int, vectors_max: int) -> float:
    start = time.perf_counter()
    engine = memory.engine()
    if size <= vectors_max:
        return engine.vectors.embed_all() / (time.perf_counter() - start)
    import numpy as np

    from commonplace.index.embedded import piece_codes, sign_blocks

    (index,) = engine.indexes
    assert isinstance(index, EmbeddedIndex)
    index.use_model(engine.embedding.require().name)
    draw = np.random.default_rng(1)
    tables = index._parts().tables
    keys = [key for (key,) in tables.connection.execute("SELECT key FROM unembedded")]
    with tables.writing():
        for at in range(0, len(keys), 50_000):
            some = keys[at : at + 50_000]
            rows = draw.integers(-20, 21, (len(some), 384), np.int8)
            tables.connection.executemany(
                "INSERT INTO vector (key, v) VALUES (?, ?)",
                [(key, row.tobytes()) for key, row in zip(some, rows, strict=True)],
            )
            codes = draw.integers(0, 256, (len(some), PIECES, 24), np.uint8)
            piece_codes.store_codes(
                tables.connection,
                [
                    (key, piece_codes.Codes(code.tobytes()))
                    for key, code in zip(some, codes, strict=True)
                ],
            )
        tables.connection.execute("DELETE FROM unembedded")
        sign_blocks.pack(tables.connection)
    return 0.0


def time_questions(
    memory: Memory, questions: list[str], as_of: str | None = None
) -> tuple[float, float, float]:
    """p50 and p95 of the quickest round, and p50 of the slowest."""
    for one in questions[:WARM_UP]:
        memory.recall(one, all_repos=True, as_of=as_of)
    rounds = []
    for at in range(WARM_UP, len(questions), ASKED):
        taken = []
        for one in questions[at : at + ASKED]:
            start = time.perf_counter()
            memory.recall(one, all_repos=True, as_of=as_of)
            taken.append((time.perf_counter() - start) * 1000)
        rounds.append((statistics.median(taken), sorted(taken)[int(len(taken) * 0.95)]))
    return *min(rounds), max(rounds)[0]


def share_read(memory: Memory, questions: list[str]) -> float:
    """The share of questions whose best memories a model read again."""
    model = memory.engine().embedding.reranker()
    if model is None:
        return 0.0
    with mock.patch.object(model, "scores", wraps=model.scores) as read:
        for one in questions:
            memory.recall(one, all_repos=True)
    return read.call_count / len(questions)


def fts5(lessons: list[dict[str, object]], questions: list[str]) -> float:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE d USING fts5(text, tokenize='porter unicode61')")
    connection.executemany("INSERT INTO d VALUES (?)", ((texts.text(row),) for row in lessons))
    taken = []
    for one in questions[:40]:
        query = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", one)))
        start = time.perf_counter()
        connection.execute(
            "SELECT rowid FROM d WHERE d MATCH ? ORDER BY bm25(d) LIMIT 10", (query,)
        ).fetchall()
        taken.append((time.perf_counter() - start) * 1000)
    return statistics.median(taken)


def cold_ratios(home: Path, one: str) -> tuple[float, float]:
    command = [
        str(Path(sys.executable).parent / "commonplace"),
        "recall",
        one,
        "--all-repos",
        "--home",
        str(home),
    ]
    bare = processes([sys.executable, "-c", "pass"], home)
    with_embedder = processes(command, home) / bare
    (home / "config.toml").write_text('[embedder]\nkind = "none"\n')
    without = processes(command, home) / processes([sys.executable, "-c", "pass"], home)
    (home / "config.toml").unlink()
    return with_embedder, without


def processes(command: list[str], home: Path, rounds: int = 11) -> float:
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run(
            command, capture_output=True, check=True, env={**os.environ, "HOME": str(home.parent)}
        )
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def show(row: dict[str, float]) -> None:
    print(f"\n{int(row['size']):,} memories")
    for name, value in row.items():
        if name != "size":
            print(f"  {name:18} {value:12,.{2 if name == 'reading_share' else 1}f}")
    print(f"  {'times faster than FTS5':18} {row['fts5_p50_ms'] / row['p50_ms']:8.1f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
