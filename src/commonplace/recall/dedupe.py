"""What says the same: near-duplicates collapse to the best proven, and of a rule that changed the newest leads."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from commonplace.recall.priors import UNTRIED, wilson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.recall.hits import Hit


class Likeness(NamedTuple):
    """A share of common terms and a cosine, either of which is enough."""

    terms: float
    cosine: float


TWINS = 0.9
# A rule is short; two that are somewhat alike are about one subject, while long texts have some of it in common.
RULE_TERMS_MAX = 40
SAME_RULE = Likeness(0.25, 0.45)
SAME_NOTE = Likeness(0.5, 0.7)
# To lead, the newer one may fit the question's words so much worse than the older one: it may say it in others.
RULE_SHARE_MIN = 0.3
NOTE_SHARE_MIN = 0.55
# To say of the older one that it no longer holds takes more, or a newer one that speaks of a change.
REPLACED = Likeness(0.42, 0.65)
REPLACED_OPENLY_COSINE = 0.5
_CHANGE = re.compile(
    r"\b(now|instead|no longer|any ?more|replace[ds]?|moved|switched|migrated|deprecated|removed|dropped|took over|"
    r"as of|used to|formerly|gone|retired)\b",
    re.IGNORECASE,
)
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
    """Whether the newer one goes before the older one."""
    are_rules = _are_rules(newer, older)
    return (
        _is_later(newer, older)
        and _are_alike(newer, older, SAME_RULE if are_rules else SAME_NOTE)
        and newer.score >= (RULE_SHARE_MIN if are_rules else NOTE_SHARE_MIN) * older.score
        # One that was tried and mostly failed does not replace a proven one; one nobody tried yet does.
        and (newer.rate is None or not newer.rate.tried or _proven(newer) >= _proven(older) - 0.3)
    )


def _supersedes(newer: Hit, older: Hit) -> bool:
    """Whether the older one should be told to hold no longer."""
    if not _is_later(newer, older):
        return False
    if not _are_rules(newer, older):
        return _are_alike(newer, older, SAME_NOTE)
    return _are_alike(newer, older, REPLACED) or (
        _cosine(newer, older) >= REPLACED_OPENLY_COSINE
        and _CHANGE.search(newer.said.text) is not None
    )


def _is_later(newer: Hit, older: Hit) -> bool:
    """Newer, of the same kind and place."""
    return (
        newer.timestamp[:16] > older.timestamp[:16]
        and newer.kind == older.kind
        and newer.repo == older.repo
    )


def _are_rules(one: Hit, other: Hit) -> bool:
    return max(len(one.terms), len(other.terms)) <= RULE_TERMS_MAX


def _are_alike(one: Hit, other: Hit, bar: Likeness) -> bool:
    return _overlap(one.terms, other.terms) >= bar.terms or _cosine(one, other) >= bar.cosine


def _cosine(one: Hit, other: Hit) -> float:
    return (
        float(one.vector @ other.vector)
        if one.vector is not None and other.vector is not None
        else 0.0
    )


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
