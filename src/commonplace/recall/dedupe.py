"""Fold near-duplicates into the best proven one, and put the newest version of a rule first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from commonplace.recall.priors import EPISODIC_KINDS, UNTRIED, wilson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from commonplace.embed.embedder import Vector
    from commonplace.recall.candidates import Candidate


class Likeness(NamedTuple):
    """The minimum share of common terms, or the minimum cosine; either is enough."""

    terms: float
    cosine: float


TWINS = 0.9
# A rule is short; two that are somewhat alike are about one subject. Long texts are always
# somewhat alike.
RULE_TERMS_MAX = 40
SAME_RULE = Likeness(0.25, 0.45)
SAME_NOTE = Likeness(0.5, 0.7)
# The newer one is put first if it fits the question's words at most this much worse.
RULE_SHARE_MIN = 0.3
NOTE_SHARE_MIN = 0.55
# To mark the older one as superseded takes more, or a newer one that mentions a change.
REPLACED = Likeness(0.42, 0.65)
REPLACED_OPENLY_COSINE = 0.5
# How much lower the success bound of a newer one that was tried may be.
PROVEN_SLACK = 0.3
# A lesson states the fix of an episode if it holds this share of the words of a resolution.
SAME_FIX = 0.6
# The share of common sources from which a pattern and an anti-pattern are about the same.
SAME_SOURCES = 0.8
CHANGE = re.compile(
    r"\b(now|instead|no longer|any ?more|replace[ds]?|moved|switched|migrated|deprecated|removed|"
    r"dropped|took over|as of|used to|formerly|gone|retired)\b",
    re.IGNORECASE,
)
SUPERSEDED = "superseded? a newer one is above"


class Entry(NamedTuple):
    """A candidate as it is compared with others."""

    candidate: Candidate
    score: float
    terms: frozenset[int]
    text: Callable[[], str]
    relevance: float
    vector: Vector | None = None
    marks: tuple[str, ...] = ()
    # The terms of each fix: the resolutions of an episode, what a pattern says to do.
    fixes: tuple[frozenset[int], ...] = ()
    # Of a pattern or an anti-pattern: the ids of the records that it was derived from.
    sources: frozenset[str] = frozenset()
    # Whether a step of learning made it, which says itself what a new pattern supersedes.
    is_learned: bool = False


def fold_twins(entries: Sequence[Entry]) -> list[Entry]:
    """Return *entries* without near-duplicates: of each group the best proven, else the first."""
    kept: list[Entry] = []
    for entry in entries:
        twin = next((n for n, other in enumerate(kept) if _are_twins(entry, other)), None)
        if twin is None:
            kept.append(entry)
        elif _success_bound(entry) > _success_bound(kept[twin]):
            kept[twin] = entry._replace(score=kept[twin].score)
    return kept


def newest_first(entries: Sequence[Entry]) -> list[Entry]:
    """Return *entries* with the newest of each rule before its older versions, which are marked."""
    ordered = list(entries)
    index = 0
    while index < len(ordered):
        older = ordered[index]
        later = next((one for one in ordered[index + 1 :] if _goes_before(one, older)), None)
        if later is None:
            index += 1
            continue
        # A still newer one may go before this one too: it is compared next.
        ordered.remove(later)
        ordered.insert(index, later._replace(score=max(later.score, older.score)))
    return [
        entry._replace(marks=(*entry.marks, SUPERSEDED))
        if any(_supersedes(other, entry) for other in ordered[:place])
        else entry
        for place, entry in enumerate(ordered)
    ]


def lessons_first(entries: Sequence[Entry]) -> list[Entry]:
    """Return *entries* with each lesson before the episodes of which it states a fix.

    The lesson says in one line what an episode says among other things, and others have judged it.
    """
    ordered: list[Entry] = []
    for entry in entries:
        episodes = (one for one in enumerate(ordered) if one[1].candidate.card.kind == "episode")
        told = (n for n, episode in episodes if _states_fix(entry, episode))
        place = next(told, None)
        if place is None:
            ordered.append(entry)
        else:
            ordered.insert(place, entry._replace(score=max(entry.score, ordered[place].score)))
    return ordered


def fold_sources(entries: Sequence[Entry]) -> list[Entry]:
    """Return *entries* without the episodes of which patterns before them state every fix.

    Of a pattern and an anti-pattern of the same sources with the same fix, the first is left.
    """
    kept: list[Entry] = []
    for entry in entries:
        patterns = [other for other in kept if _are_related(other, entry)]
        stated = [fix for pattern in patterns for fix in pattern.fixes]
        is_stated = _is_told_alike if entry.sources else _is_held
        if not entry.fixes or not all(is_stated(fix, stated) for fix in entry.fixes):
            kept.append(entry)
    return kept


def _are_related(pattern: Entry, entry: Entry) -> bool:
    """Whether *entry* is a source of *pattern*, or has the same sources."""
    if entry.sources:
        common = len(pattern.sources & entry.sources)
        return common >= SAME_SOURCES * max(len(pattern.sources), len(entry.sources))
    return entry.candidate.card.id in pattern.sources


def _is_told_alike(fix: frozenset[int], stated: Iterable[frozenset[int]]) -> bool:
    return any(overlap(fix, one) >= TWINS for one in stated)


def _is_held(fix: frozenset[int], stated: Iterable[frozenset[int]]) -> bool:
    """Whether one of those *stated* holds most words of *fix*. One without words is not stated."""
    return bool(fix) and any(len(fix & one) >= SAME_FIX * len(fix) for one in stated)


def _states_fix(lesson: Entry, episode: Entry) -> bool:
    """Whether *lesson* is knowledge that holds most words of one of the resolutions."""
    return lesson.candidate.card.kind not in EPISODIC_KINDS and any(
        _is_held(fix, [lesson.terms]) for fix in episode.fixes
    )


def _goes_before(newer: Entry, older: Entry) -> bool:
    """Whether the newer one is put before the older one."""
    if not _is_later(newer, older):
        return False
    are_rules = _are_rules(newer, older)
    share_min = RULE_SHARE_MIN if are_rules else NOTE_SHARE_MIN
    if newer.score < share_min * older.score:
        return False
    if not _are_alike(newer, older, SAME_RULE if are_rules else SAME_NOTE):
        return False
    # One that was tried and mostly failed stays after a proven one; an untried one does not.
    rate = newer.candidate.card.rate
    return (
        rate is None
        or not rate.tried
        or _success_bound(newer) >= _success_bound(older) - PROVEN_SLACK
    )


def _supersedes(newer: Entry, older: Entry) -> bool:
    """Whether to mark the older one as possibly no longer true."""
    if not _is_later(newer, older):
        return False
    if not _are_rules(newer, older):
        return _are_alike(newer, older, SAME_NOTE)
    if _are_alike(newer, older, REPLACED):
        return True
    is_close = _cosine(newer, older) >= REPLACED_OPENLY_COSINE
    return is_close and CHANGE.search(newer.text()) is not None


def _is_later(newer: Entry, older: Entry) -> bool:
    """Whether it is newer by a minute or more, of the same kind and repository.

    No episode makes another one untrue: each tells what happened. Nor does a pattern that rests on
    less, or one beside a pattern that was learned: there likeness is no sign of a change.
    """
    if older.is_learned or len(older.sources) > len(newer.sources):
        return False
    one, other = newer.candidate.card, older.candidate.card
    return (
        one.kind != "episode"
        and one.timestamp[:16] > other.timestamp[:16]
        and one.kind == other.kind
        and one.repo == other.repo
    )


def _are_rules(one: Entry, other: Entry) -> bool:
    return max(len(one.terms), len(other.terms)) <= RULE_TERMS_MAX


def _are_alike(one: Entry, other: Entry, bar: Likeness) -> bool:
    return overlap(one.terms, other.terms) >= bar.terms or _cosine(one, other) >= bar.cosine


def _cosine(one: Entry, other: Entry) -> float:
    if one.vector is None or other.vector is None:
        return 0.0
    return float(one.vector @ other.vector)


def _are_twins(one: Entry, other: Entry) -> bool:
    # The overlap is at most the ratio of their sizes, which is quick to compute.
    size, other_size = len(one.terms), len(other.terms)
    if size < TWINS * other_size or other_size < TWINS * size:
        return False
    return overlap(one.terms, other.terms) >= TWINS


def overlap(one: frozenset[int], other: frozenset[int]) -> float:
    """Return the share of common terms (Jaccard)."""
    if not one or not other:
        return 0.0
    common = len(one & other)
    return common / (len(one) + len(other) - common)


def _success_bound(entry: Entry) -> float:
    rate = entry.candidate.card.rate
    return wilson(rate) if rate and rate.tried else UNTRIED
