"""Candidates: the patterns and anti-patterns that clusters give, before the gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.learn.clusters import sessions
from commonplace.learn.confidence import confidence
from commonplace.learn.gate import SOURCES_ASKED_MAX, Asked
from commonplace.learn.observations import WORKED
from commonplace.learn.wording import word
from commonplace.records import Pattern, make_id
from commonplace.records.sentences import TASKS_FAILED
from commonplace.where.repository import ALL_REPOSITORIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from commonplace.learn.clusters import Cluster
    from commonplace.learn.observations import Observation
    from commonplace.learn.wording import Wording

SESSIONS_MIN = 2
# A fix of tasks that all failed must have been used in so many of them.
USED_MIN = 3
# What each such task leaves open, as `COUNT_LACK` for those that succeeded: three give 0.8.
FAILED_LACK = 0.6
NO_FIX = "its tasks failed, and none noted what solves it"
ALL_FAILED = "every task that noted this fix failed, so nobody knows that it works"
SOURCES_MAX = 1000
QUESTION_CHARS_MAX = 300


class Place(NamedTuple):
    """Where a record is written: the number of a home, and the log."""

    home: int
    repo: str


class Candidate(NamedTuple):
    """A record that a cluster gives: its fields, its place, and the questions of the gate."""

    fields: Mapping[str, Any]
    place: Place
    confidence: float
    # In how many sessions the problem was solved like this.
    sessions: int
    questions: tuple[Asked, ...]
    # Whether hooks saw all of it; the inbox has what they saw once as lessons already.
    by_hook: bool = False
    # Whether lessons of one repository say it already, each by itself.
    is_said: bool = False
    # Records in which the same problem was solved in another way.
    others: tuple[str, ...] = ()
    # Why it is not to be written, if the tasks themselves say so.
    doubt: str = ""

    @property
    def kind(self) -> str:
        return str(self.fields["kind"])

    @property
    def sources(self) -> tuple[str, ...]:
        linked = [link["to"] for link in self.fields.get("links", ())]
        return tuple(dict.fromkeys([*self.fields.get("source_episodes", ()), *linked]))

    @property
    def text(self) -> str:
        """What it says, for comparing it with records that say the same."""
        return text_of(self.fields)


def of_fields(fields: Mapping[str, Any], repo: str) -> Candidate:
    """Return a candidate with these fields, for comparing it with records."""
    return Candidate(fields, Place(0, repo), 0.0, 0, ())


def text_of(fields: Mapping[str, Any]) -> str:
    """Return what a pattern or an anti-pattern says, in one line."""
    names = ("pattern", "what_fails", "why", "correct_approach", "prevention")
    parts = dict.fromkeys(str(fields[name]) for name in names if fields.get(name))
    return ": ".join(parts)


def of_cluster(
    cluster: Cluster, tags_in_use: Iterable[str], now_micros: int, user_home: int
) -> list[Candidate]:
    """Return the pattern of *cluster*, and the anti-pattern if episodes show what fails."""
    if not any(one.outcome == WORKED for one in cluster.members):
        return _of_failed_tasks(cluster, tags_in_use, user_home)
    wording = word(cluster, tags_in_use)
    place = place_of(cluster.members, user_home)
    sure = confidence(cluster, now_micros)
    count = sessions(one for one in cluster.members if one.outcome == WORKED)
    episodes = _ids(one for one in cluster.members if one.kind == "episode")
    lessons = _ids(one for one in cluster.members if one.kind == "lesson")
    questions = questions_of(cluster.members, wording.correct_approach)
    others = tuple(one for one in _ids(cluster.others) if one not in {*episodes, *lessons})
    origin = next((one.origin for one in cluster.members if one.origin), "")
    by_hook = all(one.by_hook for one in cluster.members)
    meta = {"origin": origin} if origin else {}
    common = _common(place, wording, meta)
    is_said = not episodes and place.repo != ALL_REPOSITORIES
    found: list[Candidate] = []
    if count >= SESSIONS_MIN:
        fields: dict[str, Any] = {
            "kind": "pattern",
            "pattern": wording.pattern,
            "category": wording.category,
            "conditions": list(wording.conditions),
            "correct_approach": wording.correct_approach,
            "incorrect_approach": wording.incorrect_approach,
            "confidence": sure,
            "source_episodes": episodes,
            "usage_count": 0,
            **common,
            **({"links": _derived(lessons)} if lessons else {}),
        }
        # One problem may have two patterns, if the tasks tell which fix is for which.
        fields["id"] = make_id(Pattern({**fields, "pattern": text_of(fields)}))
        found.append(Candidate(fields, place, sure, count, questions, by_hook, is_said, others))
    if episodes and wording.correct_approach:
        fields = _anti_pattern(wording, episodes, common)
        found.append(Candidate(fields, place, sure, count, questions, by_hook, is_said, others))
    return found


def _of_failed_tasks(
    cluster: Cluster, tags_in_use: Iterable[str], user_home: int
) -> list[Candidate]:
    """Return the anti-pattern of an error whose tasks all failed.

    What they noted as the fix may not be one. So it is written only if several used it, and says
    that the tasks failed.
    """
    noted = [one for one in cluster.members if one.kind == "episode"]
    members = noted or [one for one in cluster.open if one.task_failed]
    if sessions(members) < SESSIONS_MIN:
        return []
    used = sessions(one for one in noted if one.used)
    doubt = NO_FIX if not noted else ALL_FAILED if used < USED_MIN else ""
    wording = word(cluster._replace(members=tuple(members)), tags_in_use)
    place = place_of(members, user_home)
    origin = next((one.origin for one in members if one.origin), "")
    meta = {TASKS_FAILED: True, **({"origin": origin} if origin else {})}
    fields = _anti_pattern(wording, _ids(members), _common(place, wording, meta))
    return [
        Candidate(
            fields,
            place,
            confidence=round(1 - FAILED_LACK / used, 3) if used else 0.0,
            sessions=used,
            questions=questions_of(members, wording.correct_approach),
            by_hook=all(one.by_hook for one in members),
            others=tuple(one for one in _ids(cluster.others) if one not in _ids(members)),
            doubt=doubt,
        )
    ]


def _common(place: Place, wording: Wording, meta: dict[str, Any]) -> dict[str, Any]:
    return {
        "repo": place.repo,
        **({"tags": list(wording.tags)} if wording.tags else {}),
        **({"meta": meta} if meta else {}),
    }


def _anti_pattern(
    wording: Wording, episodes: Sequence[str], common: dict[str, Any]
) -> dict[str, Any]:
    return {
        "kind": "anti_pattern",
        "what_fails": wording.what_fails,
        "why": wording.why if wording.why != wording.what_fails else "",
        "prevention": wording.correct_approach,
        "source": episodes[0],
        **common,
        "links": _derived(episodes),
    }


def place_of(members: Sequence[Observation], user_home: int) -> Place:
    """Return the log of the members; for those of several repositories that of all."""
    places = {Place(one.home, one.repo) for one in members}
    return places.pop() if len(places) == 1 else Place(user_home, ALL_REPOSITORIES)


def _derived(ids: Sequence[str]) -> list[dict[str, str]]:
    return [{"to": ident, "rel": "derived_from"} for ident in ids]


def _ids(observations: Iterable[Observation]) -> list[str]:
    ordered = sorted({(one.micros, one.source) for one in observations})
    return list(dict.fromkeys(source for _micros, source in ordered))[-SOURCES_MAX:]


def questions_of(members: Sequence[Observation], usual_fix: str = "") -> tuple[Asked, ...]:
    """Return the questions of the gate: goals and problems of some members, spread over time."""
    step = max(1, -(-len(members) // SOURCES_ASKED_MAX))
    return tuple(
        dict.fromkeys(
            Asked(text[:QUESTION_CHARS_MAX], one.source, one.fix, one.repo, usual_fix)
            for one in members[::step]
            for text in (one.goal, one.problem)
            if text
        )
    )
