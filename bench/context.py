"""Does the graph pay? Contexts with and without links, and with and without the working set.

    python bench/context.py [--budgets 500,1000,2000] [--turns 1000] [--data FOLDER]

Metrics. *Evidence* is the share of questions whose needed text is in the composed context, which has at most so many
tokens. The generated set (seeded) has 2,000 nodes with invented names, and three kinds of questions: `direct` names the node
that holds the answer, `one link` and `two links` name a node from which one or two links lead to it; the answer shares no word
with the question. `follow-up` is the second turn of a task: it names nothing, and the answer is linked to what the first
turn was about. The shared set has the issues of two projects that depend on each other, their titles as questions,
and the issue itself as the needed text. *hops 0* follows no links, *no working set* forgets what lit up before each turn.
Without a sentence model. Bars: with links more is found than without, and the working set never has more than 800 nodes.
The time that a context takes is measured by bench/build_context.py.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from commonplace import Memory
from commonplace.files.database import files_of
from commonplace.graph import building

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "agent-logs" / "beads"
SET_MAX = 800
# So many nodes of the working set are looked at again, where that is measured.
HOT = 64
# Processor time of each context, in seconds, by hops and whether the working set is used.
TAKEN: dict[tuple[int, bool], list[float]] = {}
QUESTIONS = 60
SIZE = 2000
SYLLABLES = [
    "ba",
    "be",
    "bi",
    "bo",
    "bu",
    "da",
    "de",
    "di",
    "do",
    "du",
    "ka",
    "ke",
    "ki",
    "ko",
    "ku",
    "la",
    "le",
    "li",
    "lo",
    "lu",
    "ma",
    "me",
    "mi",
    "mo",
    "mu",
    "ra",
    "re",
    "ri",
    "ro",
    "ru",
    "ta",
    "te",
    "ti",
    "to",
    "tu",
]
TOPICS = [
    "login",
    "invoice",
    "search",
    "upload",
    "export",
    "mail",
    "cache",
    "report",
    "payment",
    "session",
    "import",
    "backup",
]
# The context is measured without links too, which nobody may ask for.
building.HOPS_MIN = 0  # type: ignore[attr-defined]


class Question(NamedTuple):
    kind: str
    text: str
    needed: str
    first: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--budgets", default="500,1000,2000")
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--data", type=Path, default=DATA)
    arguments = parser.parse_args()
    budgets = [int(one) for one in arguments.budgets.split(",")]
    pays = True
    nodes, questions = generate(random.Random(14), SIZE)
    print(f"generated: {len(nodes):,} nodes, {len(questions)} questions")
    pays &= compare(nodes, questions, budgets)
    if arguments.data.is_dir():
        nodes, questions = issues(arguments.data)
        print(
            f"\nissues that depend on each other: {len(nodes):,} nodes, {len(questions)} questions"
        )
        compare(nodes, questions, budgets)
    size = turns(arguments.turns)
    print(
        f"\nworking set over {arguments.turns:,} turns: at most {size:,} nodes   <= {SET_MAX}   {verdict(size <= SET_MAX)}"
    )
    return 0 if pays and size <= SET_MAX else 1


def verdict(holds: bool) -> str:
    return "ok" if holds else "MISSED"


# --- Sets -----------------------------------------------------------------------------------------


def generate(chance: random.Random, size: int) -> tuple[list[dict[str, Any]], list[Question]]:
    names = iter(invented(chance, 3 * size))
    nodes: list[dict[str, Any]] = []
    questions: list[Question] = []
    while len(nodes) < size:
        topic, service, step, flag = chance.choice(TOPICS), next(names), next(names), next(names)
        number = len(nodes)
        answer = f"{flag}={chance.randrange(1000, 9999)}"
        far = f"fact.{number}.{flag}"
        middle = f"concept.{number}.{step}"
        near = f"concept.{number}.{service}"
        noise = [
            {
                "to": str(chance.choice(nodes)["id"]),
                "rel": "related_to",
                "w": round(chance.uniform(0.1, 0.5), 2),
            }
            for _ in range(chance.randrange(4))
            if nodes
        ]
        kind = ("direct", "one link", "two links", "follow-up")[number // 3 % 4]
        target = middle if kind == "two links" else far
        nodes += [
            {
                "id": near,
                "type": "concept",
                "label": f"The {service} part of {topic}",
                "payload": {"definition": f"{service} handles the {topic} of customers."},
                "links": [{"to": target, "rel": "uses", "w": 0.8}, *noise],
            },
            {
                "id": middle,
                "type": "concept",
                "label": f"{step} step",
                "payload": {"definition": f"{step} runs before anything else."},
                "links": [{"to": far, "rel": "uses", "w": 0.8}],
            },
            {
                "id": far,
                "type": "fact",
                "label": f"{flag} setting",
                "payload": {"text": f"Set {answer} and restart."},
            },
        ]
        if len([one for one in questions if one.kind == kind]) >= QUESTIONS:
            continue
        if kind == "direct":
            questions.append(Question(kind, f"what does {flag} have to be set to", answer))
        elif kind == "follow-up":
            first = f"how is {topic} done by {service}"
            questions.append(
                Question(kind, "what must be set there before the restart", answer, first)
            )
        else:
            questions.append(Question(kind, f"{topic} in {service} does not work", answer))
    return nodes, questions


def invented(chance: random.Random, count: int) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(chance.choice(SYLLABLES) for _ in range(4))] = None
    return list(found)


def issues(folder: Path) -> tuple[list[dict[str, Any]], list[Question]]:
    """The issues of each project that have a description, with what they depend on."""
    nodes, questions = [], []
    rows = [
        json.loads(line)
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.open(encoding="utf-8")
    ]
    known = {row["id"] for row in rows if row.get("description")}
    for row in rows:
        if row["id"] not in known:
            continue
        links = [
            {"to": one["depends_on_id"], "rel": "uses", "w": 0.8}
            for one in row.get("dependencies") or []
            if one.get("depends_on_id") in known - {row["id"]}
        ]
        # The title is the question, so it is no part of what is searched.
        nodes.append(
            {
                "id": row["id"],
                "type": "fact",
                "label": row["id"],
                "payload": {"text": row["description"][:4000]},
                "links": links,
            }
        )
        if links:
            questions.append(Question("title", row["title"], row["id"]))
    return nodes, questions[: 4 * QUESTIONS]


# --- Measuring ------------------------------------------------------------------------------------


def compare(nodes: list[dict[str, Any]], questions: list[Question], budgets: list[int]) -> bool:
    """Print the evidence of each way; whether links find more behind links, and lose nothing."""
    kinds = list(dict.fromkeys(one.kind for one in questions))
    print(
        f"{'evidence':28}"
        + "".join(f"{kind} @{budget}".rjust(18) for kind in kinds for budget in budgets)
    )
    found: dict[tuple[int, bool], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        open_memory(home, nodes).close()
        for hops in (0, 1, 2):
            for keeps in (False, True):
                figures = [
                    evidence(
                        home,
                        [one for one in questions if one.kind == kind],
                        budget,
                        hops,
                        keeps=keeps,
                    )
                    for kind in kinds
                    for budget in budgets
                ]
                found[hops, keeps] = figures
                name = f"hops {hops}, {'working set' if keeps else 'no working set'}"
                took = f"{statistics.median(TAKEN.pop((hops, keeps))) * 1000:.1f} ms"
                print(
                    f"{name:28}"
                    + "".join(f"{one:.3f}".rjust(18) for one in figures)
                    + took.rjust(12)
                )
    return sum(found[2, True]) > sum(found[0, False])


def evidence(
    home: Path, questions: list[Question], budget: int, hops: int, *, keeps: bool
) -> float:
    right = 0
    hot = {"context.hot_nodes_max": HOT if keeps else 0}
    for number, one in enumerate(questions):
        # What was lit and used for other questions must not help or hinder this one.
        shutil.rmtree(home / ".state", ignore_errors=True)
        with Memory.open(home) as memory:
            memory.settings.override(hot)
            task = f"task-{number}-{budget}-{hops}-{keeps}" if one.first else ""
            if one.first:
                memory.build_context(one.first, task, budget, hops)
            if not keeps:
                forget(memory)
            start = time.thread_time()
            built = memory.build_context(one.text, task, budget, hops)
            TAKEN.setdefault((hops, keeps), []).append(time.thread_time() - start)
        right += one.needed in built.frames.as_json()
    return right / len(questions)


def forget(memory: Memory) -> None:
    for path in files_of(memory.home.resonance_file):
        path.unlink(missing_ok=True)


def turns(count: int) -> int:
    """The most nodes that the working set had after any of *count* turns."""
    chance = random.Random(count)
    nodes, _questions = generate(chance, SIZE)
    with tempfile.TemporaryDirectory() as folder:
        memory = open_memory(Path(folder) / "home", nodes)
        for _ in range(count):
            words = " ".join(str(chance.choice(nodes)["label"]) for _ in range(3))
            memory.build_context(words, None, 1000)
        largest = memory.worth()["context"]["nodes_most"]
        memory.close()
    return int(largest)


def open_memory(home: Path, nodes: list[dict[str, Any]]) -> Memory:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('[embedder]\nkind = "none"\n')
    (home / "config.toml").chmod(0o600)
    memory = Memory.open(home)
    for start in range(0, len(nodes), 1000):
        memory.upsert_nodes(nodes[start : start + 1000])
    memory.engine().catch_up()
    return memory


if __name__ == "__main__":
    sys.exit(main())
