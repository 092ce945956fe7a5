"""Which texts are in a batch together.

Pairs of packages: neighbours, for they are hard negatives of each other, and texts of similar length. Written pairs: whole groups, whose
texts are about the same things.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from tools.train_retriever.packed import Packed, Pieces

CLUSTER = 4
SORTED_TOGETHER = (
    64  # Batches that are sorted by length among themselves, before they are shuffled again.
)
# Code is half of all pairs: each epoch takes another part of these kinds.
HALVED = ("function", "docstring")
NO_QUESTION = 2  # Pieces of an empty text: its beginning and its end.


@dataclass
class Batch:
    """Questions, each with its answer at the same place; the answers behind these are negatives."""

    queries: list[Pieces]
    answers: list[Pieces]
    # The question of each answer: another answer to the same question is no negative.
    questions_of_answers: list[Pieces]

    def same(self) -> NDArray[np.bool_]:
        """Where another answer is the same text as the right one, or answers the same question."""
        answers, questions = _numbered(self.answers), _numbered(self.questions_of_answers)
        count = len(self.queries)
        found: NDArray[np.bool_] = (answers[:count, None] == answers) | (
            questions[:count, None] == questions
        )
        found[np.arange(count), np.arange(count)] = False
        return found


def _numbered(texts: Sequence[Pieces]) -> NDArray[np.int64]:
    """A number for each different text."""
    numbers: dict[bytes, int] = {}
    # Texts without a question are not the same question.
    return np.array(
        [
            numbers.setdefault(text.tobytes(), len(numbers)) if len(text) > NO_QUESTION else -place
            for place, text in enumerate(texts, 1)
        ]
    )


def of_pairs(
    packed: Packed, rows: list[int], hard: NDArray[np.int32] | None, pieces_max: int
) -> Batch:
    negatives = [int(other) for row in rows if hard is not None for other in hard[row]]
    answers = rows + [other for other in negatives if other >= 0]
    queries = [packed.queries[row] for row in answers]
    return Batch(
        queries[: len(rows)],
        [packed.positives[row][:pieces_max] for row in answers],
        queries,
    )


def of_groups(written: Packed, rows: list[int], pieces_max: int) -> Batch:
    rows = sorted(rows, key=lambda row: len(written.queries[row]) <= NO_QUESTION)
    questions = [written.queries[row] for row in rows]
    return Batch(
        [query for query in questions if len(query) > NO_QUESTION],
        [written.positives[row][:pieces_max] for row in rows],
        questions,
    )


def clusters(
    packed: Packed, chance: random.Random, rows: Sequence[int] | None = None
) -> list[list[int]]:
    """Every pair once, with up to three of its neighbours that are still free."""
    order = list(range(len(packed)) if rows is None else rows)
    chance.shuffle(order)
    used = [True] * len(packed)
    for row in order:
        used[row] = False
    found = []
    for seed in order:
        if used[seed]:
            continue
        used[seed] = True
        together = [seed]
        for other in packed.neighbours[seed]:
            if other >= 0 and not used[other] and len(together) < CLUSTER:
                used[other] = True
                together.append(int(other))
        found.append(together)
    chance.shuffle(found)
    return found


def rows_of_epoch(packed: Packed, epoch: int) -> list[int]:
    """All pairs but a half of those with code: the other one in the next epoch."""
    return [
        row for row, kind in enumerate(packed.kinds) if kind not in HALVED or row % 2 == epoch % 2
    ]


def batches(
    packed: Packed, size: int, seed: int, rows: Sequence[int] | None = None
) -> Iterator[list[int]]:
    chance = random.Random(seed)
    groups = clusters(packed, chance, rows)
    window, held = [], 0
    for group in groups:
        window.append(group)
        held += len(group)
        if held >= size * SORTED_TOGETHER:
            yield from _cut(window, size, packed, chance)
            window, held = [], 0
    if window:
        yield from _cut(window, size, packed, chance)


def group_batches(written: Packed, size: int, seed: int) -> Iterator[list[int]]:
    """Whole groups, about *size* texts at a time, without end; the kinds take turns.

    A batch has texts of several kinds, short and long ones: else nothing would keep short texts from being nearer to every question.
    """
    by_kind: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row, (kind, source) in enumerate(zip(written.kinds, written.sources, strict=True)):
        by_kind[kind][source].append(row)
    chance = random.Random(seed)
    of_kinds = [_without_end(groups, chance) for _kind, groups in sorted(by_kind.items())]
    held: list[int] = []
    while of_kinds:
        for groups in of_kinds:
            held += next(groups)
            if len(held) >= size:
                yield held
                held = []


def _without_end(groups: Mapping[str, list[int]], chance: random.Random) -> Iterator[list[int]]:
    names = sorted(groups)
    while True:
        chance.shuffle(names)
        yield from (groups[name] for name in names)


def _cut(
    window: list[list[int]], size: int, packed: Packed, chance: random.Random
) -> list[list[int]]:
    window = sorted(window, key=lambda group: max(len(packed.positives[row]) for row in group))
    flat = [row for group in window for row in group]
    cut = [flat[start : start + size] for start in range(0, len(flat), size)]
    cut = [rows for rows in cut if len(rows) > size // 2]
    chance.shuffle(cut)
    return cut
