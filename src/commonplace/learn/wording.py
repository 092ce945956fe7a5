"""The words of a pattern: taken from the sentences of its members, never invented."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.terms import STOP_WORDS, term_set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from commonplace.learn.clusters import Cluster
    from commonplace.learn.observations import Observation

# A condition is what this share of the members have in common.
SHARED_MIN = 0.8
CONDITIONS_MAX = 6
PHRASE_WORDS_MIN = 2
PHRASE_WORDS_MAX = 8
MEMBERS_COMPARED_MAX = 40
TAGS_MAX = 5
_WORD = re.compile(r"[\w./:+#@-]*\w")


class Wording(NamedTuple):
    """What a cluster says, in the words of its members."""

    pattern: str
    what_fails: str
    why: str
    correct_approach: str
    incorrect_approach: str
    conditions: tuple[str, ...]
    category: str
    tags: tuple[str, ...]


def word(cluster: Cluster, tags_in_use: Iterable[str]) -> Wording:
    """Return the wording of *cluster*, which has members."""
    members = cluster.members
    episodes = [one for one in members if one.kind == "episode"]
    lessons = [one for one in members if one.kind == "lesson"]
    what = _most_said(one.what for one in members)
    why = _most_said(one.why for one in episodes) or _most_said(one.why for one in members)
    fix = central(_usable([one.fix for one in episodes or lessons]))
    # A lesson says in a sentence what episodes only show.
    stated = central([one.fix for one in lessons])
    problem = ": ".join(dict.fromkeys(part for part in (what, why) if part))
    tags = _tags(members, tags_in_use)
    return Wording(
        pattern=stated or problem,
        what_fails=what or _most_said(one.tried for one in members) or why,
        why=why,
        correct_approach=fix,
        incorrect_approach=_incorrect(cluster, fix),
        conditions=_conditions(members),
        category=tags[0] if tags else _most_said(one.phase for one in members),
        tags=tags,
    )


def central(texts: Sequence[str]) -> str:
    """Return the text that is most like the others; of equal ones the most frequent, then first."""
    given = [text for text in texts if text]
    if not given:
        return ""
    counts = Counter(given)
    compared = sorted(counts, key=lambda text: (-counts[text], given.index(text)))
    compared = compared[:MEMBERS_COMPARED_MAX]
    terms = {text: term_set(text) for text in compared}

    def likeness(text: str) -> float:
        return sum(counts[other] * _overlap(terms[text], terms[other]) for other in compared)

    return max(compared, key=lambda text: (likeness(text), counts[text], -given.index(text)))


def _usable(fixes: Sequence[str]) -> list[str]:
    return [fix for fix in fixes if fix]


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    whole = len(one | other)
    return len(one & other) / whole if whole else 0.0


def _most_said(texts: Iterable[str]) -> str:
    """Return the most frequent text that is not empty; of equally frequent ones the first."""
    counts = Counter(text for text in texts if text)
    return max(counts, key=lambda text: counts[text], default="")


def _incorrect(cluster: Cluster, fix: str) -> str:
    """Return what failed: the fixes of others that did, else the command that was tried."""
    failed = _most_said(one.fix for one in cluster.others if one.outcome == "failed")
    tried = failed or _most_said(one.tried for one in cluster.members)
    return "" if tried == fix else tried


def _conditions(members: Sequence[Observation]) -> tuple[str, ...]:
    """Return what most members have in common: their goals' words, phase, constraints, files."""
    found = [
        *_shared_phrases([one.goal for one in members if one.goal]),
        *_shared(members, lambda one: one.constraints),
        *_shared(members, lambda one: [f"phase: {one.phase}"] if one.phase else []),
        *_shared(members, lambda one: [f"files: {name}" for name in _file_groups(one.files)]),
    ]
    return tuple(dict.fromkeys(found))[:CONDITIONS_MAX]


def _shared(
    members: Sequence[Observation], values: Callable[[Observation], Iterable[str]]
) -> list[str]:
    # Two errors of one episode are one episode's constraints.
    by_source = {one.source: set(values(one)) for one in members}
    counts = Counter(value for some in by_source.values() for value in some)
    needed = max(2, SHARED_MIN * len(by_source))
    return sorted((v for v in counts if counts[v] >= needed), key=lambda v: (-counts[v], v))


def _file_groups(files: Sequence[str]) -> set[str]:
    """Return the files, their folders and their endings: what several tasks may share."""
    paths = [PurePosixPath(name.replace("\\", "/")) for name in files]
    endings = {f"*{path.suffix}" for path in paths if path.suffix}
    folders = {f"{path.parent}/" for path in paths if len(path.parts) > 1 and path.root == ""}
    return endings | folders


def _shared_phrases(goals: Sequence[str]) -> list[str]:
    """Return the longest runs of words that most of the goals have, as one of them writes them."""
    some = goals[-MEMBERS_COMPARED_MAX:]
    needed = max(2, SHARED_MIN * len(some))
    counts: Counter[tuple[str, ...]] = Counter()
    written: dict[tuple[str, ...], str] = {}
    for goal in some:
        words = _WORD.findall(goal)
        runs: set[tuple[str, ...]] = set()
        for size in range(PHRASE_WORDS_MIN, PHRASE_WORDS_MAX + 1):
            for at in range(len(words) - size + 1):
                run = tuple(one.lower() for one in words[at : at + size])
                if _says_something(run):
                    runs.add(run)
                    written.setdefault(run, " ".join(words[at : at + size]))
        counts.update(runs)
    shared = sorted(
        (run for run in counts if counts[run] >= needed), key=lambda run: (-len(run), run)
    )
    kept: list[tuple[str, ...]] = []
    for run in shared:
        if not any(_contains(longer, run) for longer in kept):
            kept.append(run)
    return [written[run] for run in kept[:3]]


def _says_something(run: tuple[str, ...]) -> bool:
    """Whether a run begins and ends with words that mean something by themselves."""
    return run[0] not in STOP_WORDS and run[-1] not in STOP_WORDS and not run[-1].isdigit()


def _contains(longer: tuple[str, ...], run: tuple[str, ...]) -> bool:
    size = len(run)
    return any(longer[at : at + size] == run for at in range(len(longer) - size + 1))


def _tags(members: Sequence[Observation], tags_in_use: Iterable[str]) -> tuple[str, ...]:
    """Return the tags of most members, and tags in use whose word most members say."""
    own = _shared(members, lambda one: one.tags)
    texts = [term_set(f"{one.goal} {one.problem} {one.fix}") for one in members]
    needed = max(2, SHARED_MIN * len(texts))
    said = [
        tag
        for tag in tags_in_use
        if (terms := term_set(tag)) and sum(terms <= text for text in texts) >= needed
    ]
    return tuple(dict.fromkeys([*own, *said]))[:TAGS_MAX]
