"""Whether two checkouts answer the same questions with the same memories, in the same order.

    python bench/compare.py OTHER [--questions 300] [--data FOLDER]

OTHER is another checkout of this project (`git worktree add ../before COMMIT`). The logs in FOLDER
(default: `../shared/data/agent-logs`) are imported into a fresh home by each checkout's own code,
every memory gets its vectors, and the same questions, drawn from the retrieval set beside the logs,
are asked of both. Compared are the ids delivered and the text, and the first 20 ids of the plain
ranking. Every difference is printed; the exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "agent-logs"
# Runs in either checkout, so it uses only what both have.
ASK = """
import json, sys
from commonplace import Memory
from commonplace.recall.query import Narrowing
every = {"all_repos": True} if "all_repos" in Narrowing.__annotations__ else {}
questions, home = json.load(sys.stdin), sys.argv[1]
with Memory.open(home) as memory:
    memory.ready() if hasattr(memory, "ready") else memory.asking().embed_all()
    for question in questions:
        answer = memory.recall(question, **every)
        ranking = memory.recall(question, limit=20, cutoff=False, **every)
        print(json.dumps({
            "question": question,
            "delivered": [hit.id for hit in answer.hits],
            "text": answer.text,
            "ranking": [hit.id for hit in ranking.hits],
        }), flush=True)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("other", type=Path)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    questions = choose(options.data / "retrieval" / "queries.jsonl", options.questions)
    answers = [ask(checkout, options.data, questions) for checkout in (options.other, ROOT)]
    return show(list(zip(*answers, strict=True)))


def choose(path: Path, count: int) -> list[str]:
    """*count* questions, evenly spread over the set."""
    every = [json.loads(line)["text"] for line in path.open(encoding="utf-8")]
    step = max(1, len(every) / count)
    return [every[int(number * step)] for number in range(min(count, len(every)))]


def ask(checkout: Path, data: Path, questions: list[str]) -> list[dict[str, Any]]:
    """What the code in *checkout* answers."""
    with tempfile.TemporaryDirectory() as folder:
        home, work = Path(folder) / "home", Path(folder) / "work"
        work.mkdir()  # Ids of imported records carry the name of the folder they came to.
        environment = {
            **os.environ,
            "PYTHONPATH": str(checkout / "src"),
            "COMMONPLACE_HOME": str(home),
        }

        def run(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
            return subprocess.run(
                [sys.executable, "-P", *arguments],
                input=given,
                env=environment,
                cwd=work,
                check=False,
                capture_output=True,
            )

        for part in sorted(path for path in data.iterdir() if path.is_dir()):
            if part.name != "retrieval":
                run("-m", "commonplace", "import", str(part), "--home", str(home))
        done = run("-c", ASK, str(home), given=json.dumps(questions).encode())
        if done.returncode:
            sys.exit(f"{checkout}: {done.stderr.decode()}")
        return [json.loads(line) for line in done.stdout.splitlines()]


def show(pairs: list[tuple[dict[str, Any], dict[str, Any]]]) -> int:
    differing = 0
    for before, after in pairs:
        parts = [name for name in ("delivered", "text", "ranking") if before[name] != after[name]]
        if not parts:
            continue
        differing += 1
        print(f"differs in {', '.join(parts)}: {before['question'][:90]}")
        for name in parts:
            print(f"  {name} before: {before[name]}\n  {name} after:  {after[name]}")
    print(f"{len(pairs)} questions, {differing} answered differently")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
