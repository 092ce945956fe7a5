"""Gathers what a brief is made of, by a few searches in one state of the files.

As in the memory reference of Loki: semantic memory by similarity (the best five), episodes by
similarity (the best three, successful ones preferred), skills by keyword, and the anti-patterns of
the action that is planned. What names the task by its id, or a file of it, is found by that alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index import topics
from commonplace.index.terms import query_terms, term_set
from commonplace.learn.naming import folders_of, names_path, paths_in_repository
from commonplace.records import Handoff
from commonplace.records.episodes import actions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from commonplace.recall.consultation import Consultation
    from commonplace.recall.hits import Hit
    from commonplace.recall.query import Query

# Lessons count as semantic memory beside patterns; anti-patterns are a part of their own.
SEMANTIC = frozenset(["lesson", "pattern", "fact", "concept", "snippet", "tool"])
SEMANTIC_NODES = frozenset(["pattern", "skill"])
PATTERNS_MAX = 5
EPISODES_MAX = 3
SKILLS_MAX = 3
AVOID_MAX = 5
HANDOFFS_MAX = 2
CONTRADICTIONS_MAX = 3
# Of the records of this very task: its episodes, and its ledgers and handoffs.
TASK_EPISODES_MAX = 3
TASK_OTHERS_MAX = 2
# How many places of a part are kept for records that name a file of the task.
BY_FILE_MAX = 2
FILES_MAX = 20
# How many of the records with the words of an id or a path are looked at.
NAMING_LOOKED_AT = 60
# Of the episodes that were found, successful ones are preferred among this many.
EPISODES_LOOKED_AT = 9
HANDOFFS_LOOKED_AT = 20
SKILLS_LOOKED_AT = 12
KEYWORDS_MIN = 2
# How much of an action an anti-pattern must name.
ACTION_SHARE_MIN = 0.6
# The evidence that is followed to anti-patterns, and how much an anti-pattern is worth that was
# found by what it rests on.
SOURCES_MAX = 100
BY_EVIDENCE = 0.5
_CLOSED = frozenset(["closed", "done", "completed", "accepted", "taken"])


class Found(NamedTuple):
    """The parts of a brief, each best first."""

    patterns: list[Hit]
    avoid: list[Hit]
    skills: list[Hit]
    episodes: list[Hit]
    handoffs: list[Hit]
    contradictions: list[tuple[Hit, Hit]]
    # The ids of anti-patterns that are about the action.
    about_action: frozenset[str] = frozenset()
    # The earlier episodes, ledgers and handoffs of this very task, the newest first.
    this_task: list[Hit] = []  # noqa: RUF012 (nobody changes it)


class Task(NamedTuple):
    """What a brief is about, beside the question: the task's id, the action, and how to judge."""

    task_id: str = ""
    action: str = ""
    # Whether a hit is good enough, beyond the relevance that every recall needs. Then skills are
    # compared by meaning too: a long one contains the common words of any goal.
    accept: Callable[[Hit], bool] | None = None
    # The time of the oldest handoff that is shown; `None` for none at all.
    handoffs_since_micros: int | None = None


def gather(consultation: Consultation, query: Query, task: Task) -> Found:
    """Return what is known about the goal in *query*."""
    search = _Searches(consultation, query.with_(extend=False), task)
    this_task = search.this_task()
    its_ids = frozenset(hit.id for hit in this_task)
    patterns = search.find(SEMANTIC, PATTERNS_MAX, elsewhere=query.elsewhere)
    episodes = search.find({"episode"}, EPISODES_MAX, without=its_ids)
    skills = search.skills()
    avoid, about_action = search.avoid(patterns, [*this_task, *episodes])
    handoffs = search.handoffs() if task.handoffs_since_micros is not None else []
    handoffs = [hit for hit in handoffs if hit.id not in its_ids]
    contradictions = search.contradictions([*patterns, *avoid])
    return Found(
        patterns, avoid, skills, episodes, handoffs, contradictions, about_action, this_task
    )


class _Searches:
    """The searches of one brief."""

    def __init__(self, consultation: Consultation, query: Query, task: Task) -> None:
        self._consultation = consultation
        self._query = query
        self._task = task

    def find(
        self,
        kinds: Collection[str],
        limit: int,
        *,
        without: frozenset[str] = frozenset(),
        elsewhere: bool = False,
    ) -> list[Hit]:
        """Return the relevant records of *kinds*; the last may be some that name a file."""
        is_for_episodes = "episode" in kinds
        asked = self._query.with_(
            kinds=frozenset(kinds),
            node_types=SEMANTIC_NODES if kinds == SEMANTIC else frozenset(),
            limit=EPISODES_LOOKED_AT if is_for_episodes else limit,
            elsewhere=elsewhere,
            without=self._query.without | without,
        )
        found = self._consultation.hits(asked)
        relevant = [hit for hit in found if self._task.accept is None or self._task.accept(hit)]
        if is_for_episodes:
            relevant.sort(key=lambda hit: hit.record.fields.get("outcome") != "success")
        ids = {hit.id for hit in relevant[:limit]} | without
        by_file = [hit for hit in self._naming_file(kinds) if hit.id not in ids][:BY_FILE_MAX]
        return [*relevant[: limit - len(by_file)], *by_file]

    def this_task(self) -> list[Hit]:
        """Return the episodes, ledgers and handoffs of the task that is named, newest first."""
        ident = self._task.task_id.strip()
        if not ident:
            return []
        episodes = self._of_task(ident, {"episode"}, TASK_EPISODES_MAX)
        others = self._of_task(ident, {"ledger", "handoff"}, TASK_OTHERS_MAX)
        return sorted([*episodes, *others], key=lambda hit: hit.timestamp, reverse=True)

    def _of_task(self, ident: str, kinds: Collection[str], count: int) -> list[Hit]:
        asked = self._query.with_(kinds=frozenset(kinds))
        return self._consultation.of_topics(topics.of_task(ident), count, asked)

    def _naming_file(self, kinds: Collection[str]) -> list[Hit]:
        """Return the records of *kinds* that name a file of the task, best first."""
        paths = paths_in_repository(self._query.files, self._query.root)[:FILES_MAX]
        if not paths:
            return []
        folders = dict.fromkeys(folder for path in paths for folder in folders_of(path))
        found = self._naming(" ".join([*paths, *folders]), kinds)
        return [hit for hit in found if names_path(hit, paths)]

    def _naming(self, words: str, kinds: Collection[str]) -> list[Hit]:
        """Return the records of *kinds* with some of *words*, whatever the goal is."""
        asked = self._query.with_(
            kinds=frozenset(kinds),
            text=words,
            limit=NAMING_LOOKED_AT,
            elsewhere=False,
            cutoff=False,
        )
        return self._consultation.hits(asked, by_words=True)

    def skills(self) -> list[Hit]:
        """Return the skills whose name or description has some of the goal's keywords."""
        if self._task.accept is not None:
            return self.find({"skill"}, SKILLS_MAX)
        asked = self._query.with_(
            kinds=frozenset(["skill"]), limit=SKILLS_LOOKED_AT, elsewhere=False, cutoff=False
        )
        found = self._consultation.hits(asked, by_words=True)
        keywords = query_terms(self._query.text).keys()
        return [hit for hit in found if _shares_keywords(hit, keywords)][:SKILLS_MAX]

    def avoid(self, patterns: list[Hit], episodes: list[Hit]) -> tuple[list[Hit], frozenset[str]]:
        """Return the anti-patterns to show, those of the action first, and the ids of these."""
        relevant = self.find({"anti_pattern"}, AVOID_MAX)
        by_evidence = self._resting_on_the_same([*patterns, *episodes])
        known = {hit.id: hit for hit in (*reversed(by_evidence), *reversed(relevant))}
        naming = self._naming_action()
        if not self._task.action.strip().count(" "):
            # The type of an action says little: `run` is in every second text.
            also = query_terms(self._query.text).keys() - self._action_terms()
            rests = {hit.id for hit in by_evidence}
            naming = [
                hit
                for hit in naming
                if hit.id in rests or (hit.id in known and also & term_set(hit.document.text))
            ]
        found = list({hit.id: hit for hit in (*naming, *relevant, *by_evidence)}.values())
        about = {hit.id for hit in naming} | self._seen_in_action(list(known.values()))
        found.sort(key=lambda hit: hit.id not in about)  # Keeps the order among the others.
        return found[:AVOID_MAX], frozenset(about)

    def _naming_action(self) -> list[Hit]:
        """Return the anti-patterns whose own words name the action."""
        words = self._action_words()
        if not words:
            return []
        asked = self._query.with_(
            kinds=frozenset(["anti_pattern"]),
            text=words,
            limit=EPISODES_MAX,
            elsewhere=False,
        )
        terms = self._action_terms()
        return [
            hit
            for hit in self._consultation.hits(asked, by_words=True)
            if len(terms & term_set(hit.document.text)) >= ACTION_SHARE_MIN * len(terms)
        ]

    def _action_words(self) -> str:
        return " ".join(re.findall(r"\w+", self._task.action.replace("_", " ")))

    def _action_terms(self) -> frozenset[str]:
        return frozenset(query_terms(self._action_words()))

    def _resting_on_the_same(self, others: list[Hit]) -> list[Hit]:
        """Return the anti-patterns that were learned in the same episodes as *others*."""
        score_of: dict[str, float] = {}
        for hit in others:
            for source in (hit.id, *hit.record.sources):
                score_of.setdefault(source, hit.score)
        sources = list(score_of)[:SOURCES_MAX]
        best: dict[str, float] = {}
        for edge in self._consultation.edges(sources, "derived_from", self._query):
            if edge.to in score_of:
                best[edge.of] = max(best.get(edge.of, 0.0), score_of[edge.to])
        kinds = self._query.with_(kinds=frozenset(["anti_pattern"]))
        found = self._consultation.named(sorted(best, key=lambda one: (-best[one], one)), kinds)
        return [hit._replace(score=round(best[hit.id] * BY_EVIDENCE, 6)) for hit in found]

    def _seen_in_action(self, found: list[Hit]) -> set[str]:
        """Return the ids of those of *found* that were learned in an episode with that action."""
        action = self._task.action.strip().lower()
        if not action:
            return set()
        sources = {source for hit in found for source in hit.record.sources[:SOURCES_MAX]}
        episodes = self._query.with_(kinds=frozenset(["episode"]), archived=True)
        with_action = {
            hit.id
            for hit in self._consultation.named(sorted(sources), episodes)
            if _has_action(hit, action)
        }
        return {hit.id for hit in found if not with_action.isdisjoint(hit.record.sources)}

    def handoffs(self) -> list[Hit]:
        """Return the open handoffs to this agent, the newest first."""
        asked = self._query.with_(
            kinds=frozenset(["handoff"]), since_micros=self._task.handoffs_since_micros
        )
        found = self._consultation.latest(HANDOFFS_LOOKED_AT, asked)
        return [hit for hit in found if _is_open(hit, self._query)][:HANDOFFS_MAX]

    def contradictions(self, hits: list[Hit]) -> list[tuple[Hit, Hit]]:
        """Return the pairs of current records that contradict each other, one of them in *hits*."""
        ids = [hit.id for hit in hits]
        edges = self._consultation.edges(ids, "contradicts", self._query)
        pairs = list(dict.fromkeys(tuple(sorted((edge.of, edge.to))) for edge in edges))
        everything = self._query.with_(kinds=None, repos=None, without=frozenset())
        sides = {
            hit.id: hit
            for hit in self._consultation.named([one for pair in pairs for one in pair], everything)
        }
        return [
            (sides[first], sides[second])
            for first, second in pairs
            if first in sides and second in sides and first != second
        ][:CONTRADICTIONS_MAX]


def _shares_keywords(hit: Hit, keywords: Collection[str]) -> bool:
    """Whether what the skill says it is for has at least a third of *keywords*, and two."""
    said = f"{hit.id.partition(':')[2]} {hit.document.title} {purpose(hit)}"
    shared = query_terms(said.replace("-", " ")).keys() & set(keywords)
    return len(shared) >= min(KEYWORDS_MIN, len(keywords)) and 3 * len(shared) >= len(keywords)


def purpose(hit: Hit) -> str:
    """Return the description of a skill: its first paragraph."""
    return hit.document.shown.partition("\n\n")[0]


def _has_action(hit: Hit, action: str) -> bool:
    """Whether an action of the episode has that type, or is that command."""
    for step in actions_of(hit.record):
        kind, target = (str(step.get(name, "")).lower() for name in ("action", "target"))
        if action == kind or f"{target} ".startswith(f"{action} "):
            return True
    return False


def _is_open(hit: Hit, query: Query) -> bool:
    """Whether it is a recent handoff to the agent that asks, which nobody has closed."""
    record = hit.record
    if not isinstance(record, Handoff) or record.from_agent == query.reader:
        return False
    status = str(record.fields.get("status") or record.context.get("status") or "").lower()
    is_rated = hit.is_doubted or bool(hit.rate and hit.rate.tried)
    return (
        record.to_agent.lower() in (query.reader.lower(), "any", "*")
        and status not in _CLOSED
        and not is_rated
    )
