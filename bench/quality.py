"""How well recall finds and delivers, beside SQLite FTS5 and bm25s over the same texts in the same run.

    python bench/quality.py [--retrieval FOLDER] [--devmembench FOLDER] [--home FOLDER] [--no-ablations]

A set that is not there is skipped with a message. Metrics, over all queries of a set:

- R@k: share of queries whose relevant document is among the first k. MRR and nDCG@10: of the relevant document, first ten.
- evidence@T: share of gold passages of which at least half the 5-word shingles are in the text an agent reads, at most T
  tokens (UTF-8 bytes / 4). Gold passages of a solution note: its paragraphs under a heading that says what to do
  (solution, fix, guidance, resolution, prevention). Of a session: the message that shares most words with the answer.
  The baselines deliver their best documents from the start until the tokens are spent.
- tokens@none: tokens delivered, on average, for questions that nothing answers (with the cut-off on).

Rankings are taken with the cut-off off, so that all systems return ten; evidence and tokens@none as an agent gets them.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from commonplace import Memory

BUDGETS = (300, 600, 1000)
_DO = re.compile(
    r"^#{1,6} .*\b(solution|fix|guidance|resolution|prevention|what to do)\b", re.IGNORECASE
)
SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


class Question(NamedTuple):
    text: str
    relevant: frozenset[str]
    gold: tuple[str, ...]
    kind: str


class Set(NamedTuple):
    name: str
    documents: dict[str, dict[str, Any]]
    questions: list[Question]


# --- The sets -----------------------------------------------------------------------------------------------------


def retrieval_set(folder: Path) -> Set:
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").open()]
    documents = {
        row["_id"]: {
            "text": row["text"],
            "repo": row["project"],
            "timestamp": "2026-01-01T00:00:00Z",
        }
        for row in rows
    }
    relevant = dict(
        line.split("\t")[:2] for line in (folder / "qrels.tsv").read_text().splitlines()[1:] if line
    )
    questions = []
    for line in (folder / "queries.jsonl").open():
        row = json.loads(line)
        target = relevant[row["_id"]]
        gold = (
            tuple(paragraphs_to_do(documents[target]["text"])) if row["kind"] == "symptom" else ()
        )
        questions.append(Question(row["text"], frozenset([target]), gold, row["kind"]))
    return Set("agent-logs/retrieval", documents, questions)


def paragraphs_to_do(text: str) -> list[str]:
    found, inside, depth = [], False, 0
    for block in re.split(r"\n\s*\n", text):
        for line in block.split("\n"):
            if line.startswith("#"):
                level = len(line) - len(line.lstrip("#"))
                if _DO.match(line):
                    inside, depth = True, level
                elif inside and level <= depth:
                    inside = False
        body = "\n".join(line for line in block.split("\n") if not line.startswith("#"))
        if inside and len(body.split()) >= 8:
            found.append(body)
    return found[:3]


def devmembench_set(folder: Path) -> Set:
    sessions = json.loads((folder / "sessions.json").read_text())
    documents = {
        session["sessionId"]: {
            "text": "\n\n".join(
                f"{message['role']}: {message['content']}" for message in session["messages"]
            ),
            "messages": [message["content"] for message in session["messages"]],
            "repo": session["metadata"]["project"],
            "timestamp": f"{session['metadata']['date']}T00:00:00Z",
        }
        for session in sessions
    }
    questions = []
    for row in json.loads((folder / "questions.json").read_text()):
        wanted = set(words(row["groundTruth"]))
        messages = [
            text for one in row["haystackSessionIds"] for text in documents[one]["messages"]
        ]
        best = max(messages, key=lambda text: len(wanted & set(words(text))), default="")
        gold = (best,) if best else ()
        questions.append(
            Question(
                row["question"], frozenset(row["haystackSessionIds"]), gold, row["questionType"]
            )
        )
    return Set("devmembench", documents, questions)


# --- The systems --------------------------------------------------------------------------------------------------


class Fts5:
    name = "SQLite FTS5 (porter)"

    def __init__(self, documents: dict[str, dict[str, Any]]) -> None:
        self.documents = documents
        self.connection = sqlite3.connect(":memory:")
        self.connection.execute(
            "CREATE VIRTUAL TABLE d USING fts5(id UNINDEXED, text, tokenize='porter unicode61')"
        )
        self.connection.executemany(
            "INSERT INTO d VALUES (?, ?)", [(key, row["text"]) for key, row in documents.items()]
        )

    def rank(self, question: str) -> list[str]:
        query = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", question)))
        rows = (
            self.connection.execute(
                "SELECT id FROM d WHERE d MATCH ? ORDER BY bm25(d) LIMIT 10", (query,)
            )
            if query
            else []
        )
        return [key for (key,) in rows]

    def text(self, question: str, budget: int) -> str:
        return "\n\n".join(self.documents[key]["text"] for key in self.rank(question)[:5])[
            : 4 * budget
        ]


class Bm25s:
    name = "bm25s (its defaults, English stemmer)"

    def __init__(self, documents: dict[str, dict[str, Any]]) -> None:
        import bm25s
        import Stemmer

        self.documents, self.bm25s, self.stemmer = documents, bm25s, Stemmer.Stemmer("english")
        self.ids = list(documents)
        self.index = bm25s.BM25()
        corpus = [documents[key]["text"] for key in self.ids]
        tokens = bm25s.tokenize(corpus, stopwords="en", stemmer=self.stemmer, show_progress=False)
        self.index.index(tokens, show_progress=False)

    def rank(self, question: str) -> list[str]:
        tokens = self.bm25s.tokenize(
            [question], stopwords="en", stemmer=self.stemmer, show_progress=False
        )
        found, scores = self.index.retrieve(tokens, k=min(10, len(self.ids)), show_progress=False)
        return [
            self.ids[number] for number, score in zip(found[0], scores[0], strict=True) if score > 0
        ]

    def text(self, question: str, budget: int) -> str:
        return "\n\n".join(self.documents[key]["text"] for key in self.rank(question)[:5])[
            : 4 * budget
        ]


class Ours:
    def __init__(self, memory: Memory, name: str = "Commonplace", **changed: Any) -> None:
        self.name, self.memory = name, memory
        self.changed = changed

    def _with(self, call: Any) -> Any:
        before = {key: self.memory.settings[key] for key in self.changed}
        self.memory.settings.override(self.changed)
        try:
            return call()
        finally:
            self.memory.settings.override(before)

    def rank(self, question: str) -> Any:
        return self._with(
            lambda: [
                hit.id
                for hit in self.memory.recall(question, all_repos=True, limit=10, cutoff=False).hits
            ]
        )

    def text(self, question: str, budget: int) -> Any:
        return self._with(
            lambda: self.memory.recall(question, all_repos=True, tokens_max=budget).text
        )


def ingest(home: Path, documents: dict[str, dict[str, Any]]) -> Memory:
    memory = Memory.open(home, background=False)
    if not home.exists():
        memory.append(
            {"id": key, "kind": "lesson", "event_type": "success", "lesson": row["text"].strip() or "-", "repo": row["repo"],
             "timestamp": row["timestamp"]}
            for key, row in documents.items()
        )  # fmt: skip
        start = time.perf_counter()
        memory.engine().catch_up()
        built = time.perf_counter() - start
        done = memory.engine().vectors.embed_all()
        taken = time.perf_counter() - start - built
        print(
            f"{len(documents):,} documents: index {len(documents) / built:,.0f}/s, vectors {done / taken:,.0f}/s"
        )
    return memory


# --- The metrics --------------------------------------------------------------------------------------------------


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def shingles(text: str) -> set[tuple[str, ...]]:
    found = words(text)
    return {tuple(found[start : start + 5]) for start in range(max(1, len(found) - 4))}


def is_delivered(gold: str, text: str) -> bool:
    wanted = shingles(gold)
    return len(wanted & shingles(text)) >= len(wanted) / 2


def measure(system: Any, questions: list[Question], *, text: bool = True) -> dict[str, float]:
    answerable = [question for question in questions if question.relevant]
    places: list[int] = []
    for question in answerable:
        ranked = system.rank(question.text)
        places.append(
            next((place for place, key in enumerate(ranked) if key in question.relevant), 99)
        )
    count = len(places)
    figures = {
        "R@1": sum(place < 1 for place in places) / count,
        "R@5": sum(place < 5 for place in places) / count,
        "MRR": sum(1 / (place + 1) for place in places if place < 10) / count,
        "nDCG@10": sum(1 / math.log2(place + 2) for place in places if place < 10) / count,
    }
    if text:
        for budget in BUDGETS:
            golds = hits = tokens = asked = 0
            for question in (question for question in answerable if question.gold):
                said = system.text(question.text, budget)
                golds += len(question.gold)
                hits += sum(is_delivered(gold, said) for gold in question.gold)
                tokens += math.ceil(len(said.encode()) / 4)
                asked += 1
            figures[f"evidence@{budget}"] = hits / max(golds, 1)
            figures[f"tokens@{budget}"] = tokens / max(asked, 1)
        nothing = [question for question in questions if not question.relevant]
        if nothing:
            said = [system.text(question.text, 500) for question in nothing]
            figures["tokens@none"] = sum(math.ceil(len(one.encode()) / 4) for one in said) / len(
                said
            )
    return figures


def show(rows: list[tuple[str, dict[str, float]]]) -> None:
    names = list(rows[0][1])
    print(f"{'':40}" + "".join(f"{name:>14}" for name in names))
    for name, figures in rows:
        cells = "".join(
            f"{figures[key]:14.1f}" if "tokens" in key else f"{figures[key]:14.3f}"
            for key in names
            if key in figures
        )
        print(f"{name:40}{cells}")


ABLATIONS: dict[str, dict[str, Any]] = {
    "  without vectors": {"recall.dense": 0.0},
    "  without priors": {"recall.priors": False},
    "  without passages": {"recall.passages": False},
    "  without folding what is the same": {"recall.same": False},
    "  without the cut-off": {"recall.relevance_min": 0.0},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--retrieval", type=Path, default=SHARED / "agent-logs" / "retrieval")
    parser.add_argument("--devmembench", type=Path, default=SHARED / "devmembench")
    parser.add_argument(
        "--home",
        type=Path,
        help="keep the ingested homes here, to run again without embedding anew",
    )
    parser.add_argument("--no-ablations", action="store_true")
    arguments = parser.parse_args()
    below = 0
    with tempfile.TemporaryDirectory() as scratch:
        root = arguments.home or Path(scratch)
        for folder, load in (
            (arguments.retrieval, retrieval_set),
            (arguments.devmembench, devmembench_set),
        ):
            if not folder.exists():
                print(f"skipped: there is no `{folder}`")
                continue
            found = load(folder)
            print(
                f"\n## {found.name}: {len(found.documents):,} documents, {len(found.questions):,} questions"
            )
            with ingest(root / found.name.replace("/", "-"), found.documents) as memory:
                ours = Ours(memory)
                rows = [
                    (system.name, measure(system, found.questions))
                    for system in (Fts5(found.documents), Bm25s(found.documents), ours)
                ]
                if not arguments.no_ablations:
                    rows += [
                        (name, measure(Ours(memory, name, **changed), found.questions))
                        for name, changed in ABLATIONS.items()
                    ]
                show(rows)
                for kind in dict.fromkeys(
                    question.kind for question in found.questions if question.relevant
                ):
                    some = [question for question in found.questions if question.kind == kind]
                    print(f"  {kind} ({len(some)})")
                    show(
                        [
                            (f"    {system.name}", measure(system, some, text=False))
                            for system in (Fts5(found.documents), Bm25s(found.documents), ours)
                        ]
                    )
            for name, value in rows[2][1].items():
                others = [figures[name] for _system, figures in rows[:2]]
                worse = value > min(others) if name.startswith("tokens") else value < max(others)
                if worse and not re.match(r"tokens@\d", name):
                    below += 1
                    print(f"BELOW: {name} {value:.3f} against {others}")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
