"""Sets to steer a run by: memories in passages, and questions with the memories that answer them.

They are the sets of bench/quality.py that are there, and the written groups that are not trained on. The figures in the documents are
taken by the benchmarks, with the whole system; these say only, on the machine that trains, whether a run is on its way.
"""

from __future__ import annotations

import json
import lzma
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tools.train_retriever.measure import bench
from tools.train_retriever.packed import PIECES_MAX, tokenise
from tools.train_retriever.written import Group, is_held_out

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from tools.train_retriever.bert import MiniLM
    from tools.train_retriever.packed import Pieces

QUESTIONS_MAX = 150  # Of a set, evenly spread; a run is measured often.
FILE = "sets.json.xz"


@dataclass
class QuestionSet:
    name: str
    passages: list[Pieces]
    owners: NDArray[np.int64]  # The memory that each passage is of.
    questions: list[Pieces]
    answers: list[list[int]]  # The memories that answer each question.


def write_sets(groups: list[Group], shared: Path | None, vocabulary: Path, folder: Path) -> None:
    from commonplace.index.vector_passages import texts_to_embed  # noqa: PLC0415

    quality = bench()
    sets = [quality.errors_set(), quality.notes_set(), quality.dialogue_set()]
    if shared is not None:
        sets.append(quality.retrieval_set(shared / "agent-logs" / "retrieval"))
        sets.append(quality.devmembench_set(shared / "devmembench"))
    texts = {
        one.name: (
            [(key, text) for key, row in one.documents.items() for text in texts_to_embed("", row["text"])],
            [(question.text, question.relevant) for question in one.questions if question.relevant],
        )
        for one in sets
    }  # fmt: skip
    texts |= _of_groups(groups)
    rows = []
    for name, (passages, all_questions) in texts.items():
        questions = all_questions[:: -(-len(all_questions) // QUESTIONS_MAX)]
        keys = {key: number for number, key in enumerate(dict.fromkeys(key for key, _ in passages))}
        rows.append(
            {
                "name": name,
                "passages": [p.tolist() for p in tokenise([t for _, t in passages], vocabulary, PIECES_MAX)],
                "owners": [keys[key] for key, _ in passages],
                "questions": [p.tolist() for p in tokenise([q for q, _ in questions], vocabulary, PIECES_MAX)],
                "answers": [[keys[key] for key in right] for _, right in questions],
            }
        )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_bytes(lzma.compress(json.dumps(rows).encode()))


def _of_groups(groups: list[Group]) -> dict[str, tuple[list[Any], list[Any]]]:
    """The held-out groups of a kind as one store; of a conversation the turns alone."""
    found: dict[str, tuple[list[Any], list[Any]]] = defaultdict(lambda: ([], []))
    for group in groups:
        if is_held_out(group.name) and (group.kind != "talk" or group.name.endswith(" 0")):
            passages, questions = found[f"written {group.kind}"]
            texts = list(dict.fromkeys([*(text for _, text in group.pairs), *group.others]))
            passages += [((group.name, text), text) for text in texts]
            questions += [(query, [(group.name, text)]) for query, text in group.pairs]
    return dict(found)


def read_sets(folder: Path) -> list[QuestionSet]:
    return [
        QuestionSet(
            row["name"],
            [np.array(one, np.uint16) for one in row["passages"]],
            np.array(row["owners"]),
            [np.array(one, np.uint16) for one in row["questions"]],
            row["answers"],
        )
        for row in json.loads(lzma.decompress((folder / FILE).read_bytes()))
    ]


def measure_sets(model: MiniLM, sets: list[QuestionSet], device: str) -> dict[str, float]:
    """nDCG@10 of each set, by vectors alone."""
    return {one.name: _measure(model, one, device) for one in sets}


def _measure(model: MiniLM, one: QuestionSet, device: str) -> float:
    from tools.train_retriever import bert  # noqa: PLC0415

    likeness = (
        bert.encode(model, one.questions, device) @ bert.encode(model, one.passages, device).T
    )
    gains = []
    for row, right in zip(likeness, one.answers, strict=True):
        # The memories by their best passage.
        order = one.owners[np.argsort(-row, kind="stable")]
        _, first = np.unique(order, return_index=True)
        gains.append(_ndcg(order[np.sort(first)][:10].tolist(), right))
    return round(float(np.mean(gains)), 4)


def _ndcg(ranking: list[int], right: list[int]) -> float:
    found = sum(1 / np.log2(place + 2) for place, owner in enumerate(ranking) if owner in right)
    ideal = sum(1 / np.log2(place + 2) for place in range(min(10, len(right))))
    return float(found / ideal)
