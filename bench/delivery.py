"""How often an answer holds what must be done: notes, questions, and the words without which the fix cannot be applied.

    python bench/delivery.py [--sets NAME,NAME] [--budgets 120,200,300,500] [--home FOLDER] [--misses BUDGET]

For each limit in tokens (UTF-8 bytes / 4): the share of questions whose answer has all the words that are needed, and the mean length of
an answer; beside it the same of FTS5 chunks (`bench/judged.py`). `first` is the share of questions with the right note in first place.
Who wrote the notes and questions had not seen the code. A program counts words, so it does not say whether an answer is readable;
`bench/judged.py` does. The sets are 140 notes (half of them documents, half written down during work) and 300 questions; they were first measured with and then
looked at, so the figures are in-sample. `--misses` prints the questions whose answer of that length lacks something.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import judged
import quality

SETS = Path(__file__).parent / "sets"
BUDGETS = (120, 200, 300, 500)
NAMES = ("delivery_formal", "delivery_informal", "delivery_formal2", "delivery_informal2")


class Asked(NamedTuple):
    note: str
    question: str
    # Of each, one must be in the answer.
    needs: list[list[str]]


def read_set(folder: Path, name: str) -> tuple[dict[str, dict[str, Any]], list[Asked]]:
    rows = map(json.loads, (folder / f"{name}_questions.jsonl").open(encoding="utf-8"))
    asked = [Asked(row["note"], row["question"], row["needs"]) for row in rows]
    return judged.read_notes(folder / f"{name}_notes.jsonl"), asked


def squeeze(text: str) -> str:
    """The text without what shows it: spaces, list marks and emphasis."""
    return re.sub(r"[\s*_`>…|]+", "", text).lower()


def has_all(text: str, needs: list[list[str]]) -> bool:
    found = squeeze(text)
    return all(any(squeeze(one) in found for one in alternatives) for alternatives in needs)


def report(name: str, folder: Path, home: Path, budgets: list[int], misses: int) -> None:
    documents, asked = read_set(folder, name)
    print(f"\n## {name}: {len(documents)} notes, {len(asked)} questions")
    with quality.ingest(home / name, documents) as memory:
        ours = quality.Ours(memory)
        systems: dict[str, Any] = {judged.OURS: ours, judged.CHUNKS: judged.Fts5Chunks(documents)}
        first = sum(ours.rank(one.question)[:1] == [one.note] for one in asked) / len(asked)
        print(f"first {first:.3f}")
        for budget in budgets:
            for system, answers in systems.items():
                texts = [answers.text(one.question, budget) for one in asked]
                held = [has_all(text, one.needs) for text, one in zip(texts, asked, strict=True)]
                length = sum(math.ceil(len(text.encode()) / 4) for text in texts) / len(texts)
                mean, low, high = quality.interval([float(one) for one in held])
                print(
                    f"{budget:5} tokens  {system:12} {mean:.3f} [{low:.3f}, {high:.3f}]"
                    f"   {length:5.0f} tokens an answer"
                )
                if system == judged.OURS and budget == misses:
                    for one, text, is_held in zip(asked, texts, held, strict=True):
                        if not is_held:
                            print(f"--- {one.note}: {one.question}\nneeds {one.needs}\n{text}\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--folder", type=Path, default=SETS)
    parser.add_argument("--sets", default=",".join(NAMES))
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)))
    parser.add_argument("--home", type=Path, help="keep the ingested homes here")
    parser.add_argument("--misses", type=int, default=0, metavar="BUDGET")
    arguments = parser.parse_args()
    budgets = [int(one) for one in arguments.budgets.split(",")]
    with tempfile.TemporaryDirectory() as scratch:
        for name in arguments.sets.split(","):
            home = arguments.home or Path(scratch)
            report(name, arguments.folder, home, budgets, arguments.misses)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
