"""Priors: how likely a record is to help, whatever the question. Each is a bounded factor."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.where.home import is_pack_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from commonplace.index.ports import Card
    from commonplace.recall.query import Query
    from commonplace.records import Rate
    from commonplace.settings import Settings

# The weights of semantic, episodic and procedural memory; a lesson is semantic.
EPISODIC_KINDS = frozenset(["episode", "handoff", "ledger", "context", "task"])
PROCEDURAL_KINDS = frozenset(["skill"])
_PATH = re.compile(r"(?<![\w/.:$~-])(?:[\w.@-]+/)+[\w.@-]+\.[A-Za-z]\w{0,7}(?![\w/])")
# One standard error: enough that 9/10 beats 1/1, and that a few successes still count.
_Z = 1.0
# The share of successes that is neutral.
UNTRIED = 0.4
DOUBTS_COUNTED_MAX = 3
# As many uses as count: each doubling adds a sixth.
_USES_COUNTED_MAX = 63
_MICROS_A_DAY = 86_400_000_000
# A factor this near to 1 changes nothing.
_SAME = 1e-6


class Weights(NamedTuple):
    """How far each prior may move a score; some are settings of the same names."""

    half_life_days: float = 180.0
    recency: float = 0.15
    success: float = 0.25
    use: float = 0.03
    kind: float = 0.10
    repo: float = 0.08
    agent: float = 0.02
    tags: float = 0.05
    files: float = 0.25
    evidence: float = 0.10
    # A pack brings many records about one matter. What the user wrote about it comes first.
    pack: float = 0.15
    semantic: float = 0.5
    episodic: float = 0.3
    skills: float = 0.2

    @classmethod
    def from_settings(cls, settings: Settings | Mapping[str, Any]) -> Weights:
        """Return the weights that *settings* ask for."""
        if not settings["recall.priors"]:
            return NO_PRIORS
        return cls(
            half_life_days=settings["recall.half_life_days"],
            semantic=settings["recall.semantic"],
            episodic=settings["recall.episodic"],
            skills=settings["recall.skills"],
        )


# Without priors: only doubt still applies.
NO_PRIORS = Weights(
    recency=0.0,
    success=0.0,
    use=0.0,
    kind=0.0,
    repo=0.0,
    agent=0.0,
    tags=0.0,
    files=0.0,
    evidence=0.0,
    pack=0.0,
    semantic=1.0,
    episodic=1.0,
    skills=1.0,
)


class Priors:
    """The priors of one question. Ages count back from the newest line, never from the clock."""

    def __init__(self, query: Query, newest_micros: int, weights: Weights) -> None:
        self._query = query
        self._words = query.text.lower()
        self._newest_micros = newest_micros
        self._weights = weights
        # The factor of each kind of memory that was met.
        self._kinds: dict[str, float] = {}

    def factors(self, card: Card, uses: int, text: Callable[[], str]) -> dict[str, float]:
        """Return every factor that is not 1, by its name; *text* returns the record's text."""
        query, weights = self._query, self._weights
        age_days = max(0.0, (self._newest_micros - card.micros) / _MICROS_A_DAY)
        found = {"recency": recency(age_days, weights)}
        if (rate := card.rate) is not None:
            found["success"] = success(rate, weights)
        if doubts := card.feedback.wrong + card.feedback.stale:
            found["doubt"] = 0.5 ** min(DOUBTS_COUNTED_MAX, doubts)
        if uses:
            found["use"] = 1 + weights.use * _share_of_uses(uses)
        if card.confidence or card.used:
            found["evidence"] = evidence(card.confidence, card.used, weights)
        found["kind"] = self._of_kind(card.kind)
        if is_pack_log(card.log):
            found["pack"] = 1 - weights.pack
        if query.here and card.repo == query.here:
            found["repo"] = 1 + weights.repo
        if query.reader and card.agent == query.reader:
            found["agent"] = 1 + weights.agent
        if card.tags and self._names_a_tag(card.tags):
            found["tags"] = 1 + weights.tags
        if query.files and names_any(text(), query.files):
            found["files"] = 1 + weights.files
        return {name: value for name, value in found.items() if not -_SAME < value - 1 < _SAME}

    def _names_a_tag(self, tags: Iterable[str]) -> bool:
        words = self._words
        return any([tag in words and len(tag) > 1 for tag in tags])  # noqa: C419 (it is quicker)

    def _of_kind(self, name: str) -> float:
        found = self._kinds.get(name)
        if found is None:
            found = self._kinds[name] = kind(name, self._weights)
        return found


def recency(age_days: float, weights: Weights) -> float:
    """Return 1 for the newest, down to 1 - weight, halfway in each half-life."""
    return 1 - weights.recency * (1 - math.pow(0.5, age_days / weights.half_life_days))


def success(rate: Rate | None, weights: Weights) -> float:
    """Return about 1 for untried records, more for proven ones, less for those that failed."""
    if rate is None or rate.tried == 0:
        return 1.0
    return 1 + weights.success * 2 * (wilson(rate) - UNTRIED)


def evidence(confidence: float, used: int, weights: Weights) -> float:
    """Return 1 for a pattern that states neither, up to 1 + weight for a sure, often used one.

    It falls with neither. A record states both itself, so the factor is small.
    """
    return 1 + weights.evidence * (min(max(confidence, 0.0), 1.0) + _share_of_uses(used)) / 2


def _share_of_uses(count: int) -> float:
    return math.log2(1 + min(max(count, 0), _USES_COUNTED_MAX)) / 6


@lru_cache(maxsize=1024)
def wilson(rate: Rate) -> float:
    """Return the lower bound of the success rate (Wilson 1927), so that 9/10 beats 1/1."""
    n, p = rate.tried, rate.worked / rate.tried
    middle = p + _Z * _Z / (2 * n)
    spread = _Z * math.sqrt(p * (1 - p) / n + _Z * _Z / (4 * n * n))
    return max(0.0, (middle - spread) / (1 + _Z * _Z / n))


def kind(name: str, weights: Weights) -> float:
    """Return the weight of its kind of memory, relative to the semantic one."""
    if name in EPISODIC_KINDS:
        share = weights.episodic
    elif name in PROCEDURAL_KINDS:
        share = weights.skills
    else:
        share = weights.semantic
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
    """Return the files that *text* names by a relative path and that are not below *root*."""
    named = set(_PATH.findall(text))
    # Only a path that begins with a folder of this repository is one of its files.
    ours = (found for found in named if (root / found.partition("/")[0]).is_dir())
    return sorted(found for found in ours if not (root / found).exists())
