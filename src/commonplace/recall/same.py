"""What says the same: near-duplicates collapse to the best proven, and of a rule that changed the newest leads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from commonplace.recall.priors import UNTRIED, wilson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.recall.hits import Hit

# Shares of common terms, and cosines, above which two records count as alike. Measured in bench/quality.py.
TWINS = 0.9
SAME_SUBJECT = 0.42
SAME_SUBJECT_COSINE = 0.55
# A newer version of a rule may fit the question's words a little worse than the older one and still leads.
RELEVANCE_SHARE_MIN = 0.55
SUPERSEDED = "superseded? a newer one is above"


def collapsed(hits: Sequence[Hit]) -> list[Hit]:
    """Without near-duplicates: of each group the best proven stays, else the best placed."""
    kept: list[Hit] = []
    sets: list[frozenset[str]] = []
    for hit in hits:
        mine = hit.terms
        twin = next((index for index, other in enumerate(sets) if _are_twins(mine, other)), None)
        if twin is None:
            kept.append(hit)
            sets.append(mine)
        elif _proven(hit) > _proven(kept[twin]):
            kept[twin] = replace(hit, score=kept[twin].score)
    return kept


def in_force(hits: Sequence[Hit]) -> list[Hit]:
    """The newest of several that state the same rule first; the older ones behind it, marked."""
    ordered = list(hits)
    marked: dict[tuple[int, int], Hit] = {}
    index = 0
    while index < len(ordered):
        older = ordered[index]
        later = next((hit for hit in ordered[index + 1 :] if _replaces(hit, older)), None)
        if later is not None:
            ordered.remove(later)
            ordered.insert(index, replace(later, score=max(later.score, older.score)))
            continue  # Something newer still may replace this one too.
        index += 1
    for place, hit in enumerate(ordered):
        if any(_supersedes(other, hit) for other in ordered[:place]):
            marked[hit.key] = replace(hit, marks=(*hit.marks, SUPERSEDED))
    return [marked.get(hit.key, hit) for hit in ordered]


def _replaces(newer: Hit, older: Hit) -> bool:
    return (
        _supersedes(newer, older)
        and newer.score >= RELEVANCE_SHARE_MIN * older.score
        # One that was tried and mostly failed does not replace a proven one; one nobody tried yet does.
        and (newer.rate is None or not newer.rate.tried or _proven(newer) >= _proven(older) - 0.3)
    )


def _supersedes(newer: Hit, older: Hit) -> bool:
    """Newer, of the same kind and place, about the same subject."""
    if newer.timestamp[:16] <= older.timestamp[:16] or newer.kind != older.kind or newer.repo != older.repo:
        return False
    if _overlap(newer.terms, older.terms) >= SAME_SUBJECT:
        return True
    if newer.vector is None or older.vector is None:
        return False
    return float(newer.vector @ older.vector) >= SAME_SUBJECT_COSINE


def _are_twins(one: frozenset[str], other: frozenset[str]) -> bool:
    # The share is at most that of their sizes, which is seen at once.
    shorter, longer = sorted((len(one), len(other)))
    return shorter >= TWINS * longer and _overlap(one, other) >= TWINS


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard's share of common terms."""
    if not one or not other:
        return 0.0
    common = len(one & other)
    return common / (len(one) + len(other) - common)


def _proven(hit: Hit) -> float:
    return wilson(hit.rate) if hit.rate and hit.rate.tried else UNTRIED
