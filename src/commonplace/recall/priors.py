"""Priors: what speaks for a memory beside the words. Each is a named factor with bounds of its own."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.document import document

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from commonplace.index.store import Row
    from commonplace.recall.hits import Query
    from commonplace.records import Rate

# seed 001's weights of semantic, episodic and procedural memory; a lesson is semantic.
EPISODIC_KINDS = frozenset(["episode", "handoff", "ledger", "context", "task"])
PROCEDURAL_KINDS = frozenset(["skill"])
_PATH = re.compile(r"(?<![\w/.:$~-])(?:[\w.@-]+/)+[\w.@-]+\.[A-Za-z]\w{0,7}(?![\w/])")
# One standard error: enough that 9/10 beats 1/1, not so much that a few successes count for nothing.
_Z = 1.0
# The share of successes that speaks neither for nor against a memory.
UNTRIED = 0.4


class Weights(NamedTuple):
    """How far each prior may move a score; settings of the same names."""

    half_life_days: float = 180.0
    recency: float = 0.15
    success: float = 0.25
    use: float = 0.03
    kind: float = 0.10
    repo: float = 0.08
    agent: float = 0.02
    tags: float = 0.05
    files: float = 0.25
    semantic: float = 0.5
    episodic: float = 0.3
    skills: float = 0.2


def factors(
    row: Row,
    query: Query,
    rate: Rate | None,
    feedback: Mapping[str, int],
    uses: int,
    newest: datetime,
    weights: Weights,
) -> dict[str, float]:
    """Every factor that is not 1, by its name."""
    record = row.record
    words = query.text.lower()
    found = {
        "recency": recency(record.timestamp, newest, weights),
        "success": success(rate, weights),
    }
    if doubts := feedback.get("wrong", 0) + feedback.get("stale", 0):
        found["doubt"] = 0.5 ** min(3, doubts)
    if uses:
        found["use"] = 1 + weights.use * min(1.0, math.log2(1 + uses) / 6)
    found["kind"] = kind(row.kind, weights)
    if query.here and row.repo == query.here:
        found["repo"] = 1 + weights.repo
    if query.asking and record.agent_id == query.asking:
        found["agent"] = 1 + weights.agent
    if any(tag.lower() in words for tag in record.tags if len(tag) > 1):
        found["tags"] = 1 + weights.tags
    if query.files and names_any(document(record).text, query.files):
        found["files"] = 1 + weights.files
    return {name: round(value, 4) for name, value in found.items() if abs(value - 1) > 1e-6}


def recency(timestamp: str, newest: datetime, weights: Weights) -> float:
    """From 1 for the newest down to 1 - weight, half the way every half-life."""
    age_days = max(0.0, (newest - datetime.fromisoformat(timestamp)).total_seconds() / 86_400)
    return 1 - weights.recency * (1 - math.pow(0.5, age_days / weights.half_life_days))


def success(rate: Rate | None, weights: Weights) -> float:
    """Around 1 for what nobody tried, up for what is proven, down for what mostly failed."""
    if rate is None or rate.tried == 0:
        return 1.0
    return 1 + weights.success * 2 * (wilson(rate) - UNTRIED)


def wilson(rate: Rate) -> float:
    """The lower bound of the success rate (Wilson 1927), so that 9/10 beats 1/1."""
    n, p = rate.tried, rate.worked / rate.tried
    middle = p + _Z * _Z / (2 * n)
    spread = _Z * math.sqrt(p * (1 - p) / n + _Z * _Z / (4 * n * n))
    return max(0.0, (middle - spread) / (1 + _Z * _Z / n))


def kind(name: str, weights: Weights) -> float:
    """The share of its kind of memory, relative to the semantic one."""
    share = (
        weights.episodic
        if name in EPISODIC_KINDS
        else weights.skills
        if name in PROCEDURAL_KINDS
        else weights.semantic
    )
    best = max(weights.semantic, weights.episodic, weights.skills) or 1.0
    return 1 - weights.kind * (1 - share / best)


def names_any(text: str, files: tuple[str, ...]) -> bool:
    """Whether *text* names one of *files*, by its path or its last part."""
    names = {
        name
        for path in files
        for name in (path, path.replace("\\", "/").rpartition("/")[2])
        if name
    }
    return any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) for name in names)


def missing_files(text: str, root: Path) -> list[str]:
    """The files *text* names by a relative path that are not in the repository at *root*."""
    named = set(_PATH.findall(text))
    # Only what begins with a folder of this repository is one of its files, not an address or a type of document.
    ours = (found for found in named if (root / found.partition("/")[0]).is_dir())
    return sorted(found for found in ours if not (root / found).exists())
