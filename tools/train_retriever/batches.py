"""Which pairs are in a batch together: neighbours, for they are hard negatives of each other, and texts of similar length."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.train_retriever.packed import Packed

CLUSTER = 4
SORTED_TOGETHER = (
    64  # Batches that are sorted by length among themselves, before they are shuffled again.
)


def clusters(packed: Packed, chance: random.Random) -> list[list[int]]:
    """Every pair once, with up to three of its neighbours that are still free."""
    order = list(range(len(packed)))
    chance.shuffle(order)
    used = [False] * len(packed)
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


def batches(packed: Packed, size: int, seed: int) -> Iterator[list[int]]:
    chance = random.Random(seed)
    groups = clusters(packed, chance)
    window, held = [], 0
    for group in groups:
        window.append(group)
        held += len(group)
        if held >= size * SORTED_TOGETHER:
            yield from _cut(window, size, packed, chance)
            window, held = [], 0
    if window:
        yield from _cut(window, size, packed, chance)


def _cut(
    window: list[list[int]], size: int, packed: Packed, chance: random.Random
) -> list[list[int]]:
    window = sorted(window, key=lambda group: max(len(packed.positives[row]) for row in group))
    flat = [row for group in window for row in group]
    cut = [flat[start : start + size] for start in range(0, len(flat), size)]
    cut = [rows for rows in cut if len(rows) > size // 2]
    chance.shuffle(cut)
    return cut
