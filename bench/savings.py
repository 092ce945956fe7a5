"""How many tokens recall delivers, against the ten best records unshortened and against the whole logs.

    python bench/savings.py [--memories 1000] [--questions 200]

Memories and questions are made by bench/texts.py. Each question is asked once over all logs, with the limits that
`commonplace recall` has by default: five memories, 500 tokens. *Delivered*: the tokens of the answers (UTF-8 bytes / 4).
*The ten best*: the ten best records of the same ranking as they are stored, what a plain search would put into a prompt.
*The whole logs*: the logs as they are, what an agent without recall would have to read. The figures are those of
`commonplace stats --savings`. The bar: half of the ten best is saved.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import texts

from commonplace.memory import Memory

SHARE_MIN = 0.5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--memories", type=int, default=1000)
    parser.add_argument("--questions", type=int, default=200)
    args = parser.parse_args()
    randomness = random.Random(12)
    rows = [texts.memory(randomness, number) for number in range(args.memories)]
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(Path(folder) / "home", background=False) as memory,
    ):
        memory.append(rows)
        memory.ready()
        for row in randomness.sample(rows, min(args.questions, len(rows))):
            memory.recall(texts.question(randomness, row))
        found = memory.savings()
    count = found["recalls"]
    print(f"{args.memories:,} memories, {count:,} recalls, {found['empty']} found nothing")
    for label, name, share in (
        ("delivered", "tokens_delivered", None),
        ("the ten best", "tokens_best", found["share_saved_of_best"]),
        ("the whole logs", "tokens_logs", found["share_saved"]),
    ):
        saved = "" if share is None else f"   saved {share:.1%}"
        print(f"{label:16} {found[name] / count:10,.0f} tokens a recall{saved}")
    held = found["share_saved_of_best"] >= SHARE_MIN
    print(
        f"saved of the ten best: {found['share_saved_of_best']:.1%}   >= {SHARE_MIN:.0%}   {'ok' if held else 'MISSED'}"
    )
    return 0 if held else 1


if __name__ == "__main__":
    raise SystemExit(main())
