"""How well vectors alone find the answers of held-out pairs among all answers, by kind."""

from __future__ import annotations

import importlib
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]


def bench() -> Any:
    """`bench/quality.py`, which is a script: it has the sets, and a home with a set in it."""
    sys.path.insert(0, str(ROOT / "bench"))
    return importlib.import_module("quality")


def ranks(asked: NDArray[np.float32], told: NDArray[np.float32]) -> NDArray[np.int64]:
    """The rank, from 1, of each question's own answer among all answers; an equal answer does not count against it."""
    likeness = asked @ told.T
    own = np.diagonal(likeness)
    found: NDArray[np.int64] = 1 + (likeness > own[:, None] + 1e-6).sum(axis=1)
    return found


def gains(found: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of each rank, the reciprocal within the first ten."""
    return np.where(found <= 10, 1 / found, 0.0)


def by_kind(values: NDArray[np.float64], kinds: list[str]) -> dict[str, float]:
    rows = defaultdict(list)
    for kind, value in zip(kinds, values, strict=True):
        rows[kind].append(value)
    means = {kind: float(np.mean(found)) for kind, found in rows.items()}
    return {
        "all": round(float(np.mean(list(means.values()))), 4),
        **{kind: round(mean, 4) for kind, mean in means.items()},
    }
