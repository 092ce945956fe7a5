"""How well recall finds and delivers, beside SQLite FTS5, bm25s and our words alone over the same texts in the same run.

    python bench/quality.py [--retrieval FOLDER] [--devmembench FOLDER] [--sets errors,notes,…] [--home FOLDER] [--no-ablations]

Sets: errors (messages as an agent pastes them → notes with the fix, among as many near misses about the same tools and as
many other memories), notes (questions → long notes with several fixes, among those and others) and dialogue (questions → the
turn that answers, in two long conversations) are in bench/sets/ and were written for this measurement, questions in other
words than the texts; weights were not fitted to them, but formulas were chosen with them in view. The other two are shared sets of real logs, skipped with a message where they are
not there; delivery and formulas were tuned on them.

Metrics, over all queries of a set:

- R@k: share of queries whose relevant document is among the first k. MRR and nDCG@10: of the relevant document, first ten.
- evidence@T: share of gold passages of which at least half the 5-word shingles are in the text an agent reads, at most T
  tokens (UTF-8 bytes / 4). Gold passages of a solution note: its paragraphs under a heading that says what to do
  (solution, fix, guidance, resolution, prevention). Of a session: the message that shares most words with the answer.
  The baselines deliver their best documents from the start until the tokens are spent.
- tokens@none: tokens delivered, on average, for questions that nothing answers (with the cut-off on).
- against words alone: the difference of R@1 and nDCG@10 to plain BM25 (our terms, no priors), paired by question, with the
  95 % interval of 2,000 bootstrap samples. The bar: below words alone nowhere, by an interval that lies below zero.

Rankings are taken with the cut-off off and room for all, so that all systems return ten; evidence and tokens@none as an agent gets them.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import texts

from commonplace import Memory

if TYPE_CHECKING:
    from collections.abc import Callable

BUDGETS = (300, 600, 1000)
# An answer of so many tokens has room for ten memories.
RANKED_TOKENS = 100_000
# Other memories beside those of our own sets, made by bench/texts.py.
OTHERS = {"errors": 160, "notes": 400, "dialogue": 0}
SAMPLES = 2000
_DO = re.compile(
    r"^#{1,6} .*\b(solution|fix|guidance|resolution|prevention|what to do)\b", re.IGNORECASE
)
FOLDER = Path(__file__).resolve().parent
SHARED = FOLDER.parent.parent / "shared" / "data"


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


def rows_of(name: str) -> list[dict[str, Any]]:
    lines = (FOLDER / "sets" / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def others(count: int) -> dict[str, str]:
    """Memories about something else, the same in every run."""
    randomness = random.Random(7)
    return {
        f"gen-{number:05}": texts.text(texts.memory(randomness, number)) for number in range(count)
    }


def written_set(name: str, found: dict[str, str], questions: list[Question]) -> Set:
    documents = {
        key: {"text": text, "repo": "app", "timestamp": "2026-01-01T00:00:00Z"}
        for key, text in (found | others(OTHERS[name])).items()
    }
    return Set(name, documents, questions)


def errors_set() -> Set:
    rows = rows_of("errors")
    questions = [
        Question(row["question"], frozenset([row["id"]]), (row["text"],), "error")
        for row in rows
        if "question" in row
    ]
    return written_set("errors", {row["id"]: row["text"] for row in rows}, questions)


def notes_set() -> Set:
    rows = rows_of("notes")
    questions = [
        Question(
            one["text"],
            frozenset([row["id"]]),
            (section_of(row["text"], one["section"]),),
            "question",
        )
        for row in rows
        for one in row["questions"]
    ]
    found = {row["id"]: row["text"] for row in [*rows, *rows_of("errors")]}
    return written_set("notes", found, questions)


def dialogue_set() -> Set:
    rows = rows_of("dialogue")
    questions = [
        Question(row["question"], frozenset([row["id"]]), (row["text"],), "turn")
        for row in rows
        if "question" in row
    ]
    return written_set("dialogue", {row["id"]: row["text"] for row in rows}, questions)


def section_of(text: str, heading: str) -> str:
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


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
                for hit in self.memory.recall(
                    question, all_repos=True, limit=10, cutoff=False, tokens_max=RANKED_TOKENS
                ).hits
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


def places_of(system: Any, questions: list[Question]) -> list[int]:
    """The place of the first relevant document of each answerable question, 99 if it is not found."""
    places: list[int] = []
    for question in questions:
        if question.relevant:
            ranked = system.rank(question.text)
            places.append(
                next((place for place, key in enumerate(ranked) if key in question.relevant), 99)
            )
    return places


def gain(place: int) -> float:
    return 1 / math.log2(place + 2) if place < 10 else 0.0


def found_at(places: list[int]) -> dict[str, float]:
    count = len(places)
    return {
        "R@1": sum(place < 1 for place in places) / count,
        "R@5": sum(place < 5 for place in places) / count,
        "MRR": sum(1 / (place + 1) for place in places if place < 10) / count,
        "nDCG@10": sum(map(gain, places)) / count,
    }


def interval(differences: list[float]) -> tuple[float, float, float]:
    """The mean and the bounds of its 95 % interval, by drawing the questions anew."""
    randomness, count = random.Random(1), len(differences)
    means = sorted(sum(randomness.choices(differences, k=count)) / count for _ in range(SAMPLES))
    return sum(differences) / count, means[SAMPLES // 40], means[-SAMPLES // 40]


def compare(name: str, places: list[int], base: list[int]) -> bool:
    """Show what *places* gain over *base*; whether they are nowhere significantly below."""
    first = [float(one < 1) - float(two < 1) for one, two in zip(places, base, strict=True)]
    gains = [gain(one) - gain(two) for one, two in zip(places, base, strict=True)]
    cells, holds = [], True
    for what, differences in (("R@1", first), ("nDCG@10", gains)):
        mean, low, high = interval(differences)
        holds &= high >= 0
        below = "" if high >= 0 else " BELOW"
        cells.append(f"{what} {mean:+.3f} [{low:+.3f}, {high:+.3f}]{below}")
    print(f"  {name:40}{'   '.join(cells)}")
    return holds


def delivered(system: Any, questions: list[Question]) -> dict[str, float]:
    answerable = [question for question in questions if question.relevant]
    figures: dict[str, float] = {}
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
        figures["tokens@none"] = sum(math.ceil(len(one.encode()) / 4) for one in said) / len(said)
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


WORDS = {"recall.dense": 0.0, "recall.priors": False}
ABLATIONS: dict[str, dict[str, Any]] = {
    "  without vectors": {"recall.dense": 0.0},
    "  without word pieces": {"recall.pieces": 0.0},
    "  without priors": {"recall.priors": False},
    "  without passages": {"recall.passages": False},
    "  without folding what is the same": {"recall.same": False},
    "  without the cut-off": {"recall.relevance_min": 0.0},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--retrieval", type=Path, default=SHARED / "agent-logs" / "retrieval")
    parser.add_argument("--devmembench", type=Path, default=SHARED / "devmembench")
    parser.add_argument("--sets", default="errors,notes,dialogue,retrieval,devmembench")
    parser.add_argument(
        "--home",
        type=Path,
        help="keep the ingested homes here, to run again without embedding anew",
    )
    parser.add_argument("--no-ablations", action="store_true")
    arguments = parser.parse_args()
    loaders: dict[str, Callable[[], Set]] = {
        "errors": errors_set,
        "notes": notes_set,
        "dialogue": dialogue_set,
        "retrieval": lambda: retrieval_set(arguments.retrieval),
        "devmembench": lambda: devmembench_set(arguments.devmembench),
    }
    holds = True
    with tempfile.TemporaryDirectory() as scratch:
        root = arguments.home or Path(scratch)
        for name in arguments.sets.split(","):
            folder = getattr(arguments, name, None)
            if folder is not None and not folder.exists():
                print(f"skipped: there is no `{folder}`")
                continue
            holds &= report(loaders[name](), root, ablations=not arguments.no_ablations)
    return 0 if holds else 1


def report(found: Set, root: Path, *, ablations: bool) -> bool:
    """Measure one set; whether recall is below words alone nowhere, and below no baseline elsewhere."""
    print(
        f"\n## {found.name}: {len(found.documents):,} documents, {len(found.questions):,} questions"
    )
    with ingest(root / found.name.replace("/", "-"), found.documents) as memory:
        systems: list[Any] = [Fts5(found.documents), Bm25s(found.documents)]
        systems += [Ours(memory, "words alone (BM25)", **WORDS), Ours(memory)]
        if ablations:
            systems += [Ours(memory, name, **changed) for name, changed in ABLATIONS.items()]
        places = {system.name: places_of(system, found.questions) for system in systems}
        rows = [
            (system.name, found_at(places[system.name]) | delivered(system, found.questions))
            for system in systems
        ]
        show(rows)
    names = [system.name for system in systems]
    base, ours = places[names[2]], places[names[3]]
    print("against words alone (mean, 95 % interval):")
    holds = compare("Commonplace", ours, base)
    for name in (*names[:2], *names[4:5]):
        compare(name.strip(), places[name], base)
    kinds = [question.kind for question in found.questions if question.relevant]
    for kind in dict.fromkeys(kinds) if len(set(kinds)) > 1 else ():
        chosen = [place for place, one in enumerate(kinds) if one == kind]
        some = {name: [places[name][place] for place in chosen] for name in names[:4]}
        print(f"  {kind} ({len(chosen)})")
        show([(f"    {name}", found_at(one)) for name, one in some.items()])
        holds &= compare("  Commonplace", some[names[3]], some[names[2]])
    for name, value in rows[3][1].items():
        others = [figures[name] for _system, figures in rows[:2]]
        if name.startswith("evidence") and value < max(others):
            holds = False
            print(f"BELOW: {name} {value:.3f} against {max(others):.3f}")
    return holds


if __name__ == "__main__":
    sys.exit(main())
