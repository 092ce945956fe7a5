"""How sure a pattern is: by agreement, by how often it was seen, and by how lately."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.learn.clusters import sessions
from commonplace.learn.observations import WORKED

if TYPE_CHECKING:
    from commonplace.learn.clusters import Cluster

# A pattern is written from this confidence on (seed and DESIGN); below it is a candidate.
CONFIDENCE_MIN = 0.8
# Two sessions that agree give 0.85, three 0.9, ten 0.97.
COUNT_LACK = 0.3
# What was last seen this long before the newest record has lost all that age takes.
OLD_DAYS = 365
AGE_LOSS_MAX = 0.05
OTHER_SHARE = 0.5
ONCE_SHARE = 0.15
_MICROS_A_DAY = 86_400_000_000


def confidence(cluster: Cluster, now_micros: int) -> float:
    """Return the confidence in what the members of *cluster* say, from 0 to 1.

    Agreement is the share of sessions in which the fix of most worked. A session in which it failed
    counts against it whole; one in which another worked counts less, since it may be the same fix
    in other words, and least if that one was never seen again. That another fix failed says nothing
    against this one.
    """
    worked = [one for one in cluster.members if one.outcome == WORKED]
    count = sessions(worked)
    if not count:
        return 0.0
    known = {one.session for one in worked}
    once = {one.session for one in cluster.once if one.outcome == WORKED} - known
    others = {one.session for one in cluster.others if one.outcome == WORKED} - known - once
    failed = {one.session for one in cluster.members} - known
    doubts = len(failed) + OTHER_SHARE * len(others) + ONCE_SHARE * len(once)
    agreement = count / (count + doubts)
    age_days = max(0, now_micros - max(one.micros for one in worked)) / _MICROS_A_DAY
    recency = 1 - AGE_LOSS_MAX * min(1.0, age_days / OLD_DAYS)
    return round(agreement * (1 - COUNT_LACK / count) * recency, 3)


def with_more_sessions(sure: float, counted: int, sessions_in_all: int) -> float:
    """Return the confidence *sure*, which *counted* sessions gave, for that many in all."""
    if sessions_in_all <= counted:
        return sure
    return round(sure / (1 - COUNT_LACK / counted) * (1 - COUNT_LACK / sessions_in_all), 3)
