"""Clusters: observations of one problem, and among them those with one fix.

A cluster has a leader, and a text joins the leader it is most like: so a chain of small
differences never becomes one cluster. Equal texts are compared once, which makes a hundred thousand
observations of a few hundred problems quick. The result does not depend on the order given.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.terms import term_set
from commonplace.learn.comparison import are_different_rules
from commonplace.learn.observations import CODE, WORKED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from commonplace.learn.meaning import Meaning
    from commonplace.learn.observations import Observation


class Bar(NamedTuple):
    """How alike two texts must be: by their words, where rarer ones count more, or by cosine."""

    words: float
    cosine: float


# Chosen with `bench/learning.py --half tune`.
PROBLEM = Bar(0.55, 0.80)
# Problems that had one fix may be worded more differently.
PROBLEM_WITH_ONE_FIX = Bar(0.20, 0.50)
FIX = Bar(0.35, 0.60)
# A lesson is a text of its own, often long, and about one project: two must say nearly the same.
LESSON = Bar(0.60, 0.85)
# A command is often a part of the sentence that tells of it: then this share of its words is there.
PART_MIN = 0.8
PART_TERMS_MIN = 2
# Two commands are one fix only if they are nearly the same: a flag more may be all that matters.
COMMAND_WORDS_MIN = 0.75
_COMMAND = re.compile(
    r"(?:sudo |[A-Z_]+=\S+ )*[a-z][\w./-]*(?: [\w./:@=-]+)? ?(?:$|.*(?: --?\w|&&|\|\||[|=$]))"
)
# A text is compared with the leaders that share one of its rarest words.
RARE_WORDS_MAX = 8
LEADERS_COMPARED_MAX = 60
# Of two fixes of one problem: how many of one side's tasks must have a word, and how few of the
# other's, for it to tell when to use which.
SHARE_HERE_MIN = 0.8
SHARE_THERE_MAX = 0.2


class Cluster(NamedTuple):
    """The observations of one problem: those with the fix of most, and the others."""

    members: tuple[Observation, ...]
    # Observations of the same problem that were fixed otherwise, or whose fix failed.
    others: tuple[Observation, ...]
    # Of the others, those whose fix was seen in one session only.
    once: tuple[Observation, ...] = ()
    # Observations of the same problem without a fix.
    open: tuple[Observation, ...] = ()


def clusters(observations: Iterable[Observation], meaning: Meaning) -> list[Cluster]:
    """Return the clusters of *observations*, in an order that depends on their content alone."""
    found: list[Cluster] = []
    for problem in _group(observations, _of_problem, meaning):
        fixed = [one for one in problem if one.fix]
        unfixed = tuple(one for one in problem if not one.fix)
        by_fix = _group(fixed, _of_fix, meaning)
        if not by_fix:
            found.append(Cluster((), (), (), unfixed))
        elif len(by_fix) > 1 and _are_told_apart(by_fix):
            # Where a fix is known to work, one that only failed is nothing to learn.
            working = [members for members in by_fix if _worked(members)]
            found += [Cluster(tuple(members), ()) for members in working or by_fix]
        else:
            # A fix that worked once says more than one that failed often.
            first, *rest = sorted(by_fix, key=lambda group: not _worked(group))
            others = tuple(one for group in rest for one in group)
            once = tuple(one for group in rest if sessions(group) == 1 for one in group)
            found.append(Cluster(tuple(first), others, once, unfixed))
    return found


def sessions(observations: Iterable[Observation]) -> int:
    """Return in how many sessions they were made: one session is one experience."""
    return len({one.session for one in observations})


class _Key(NamedTuple):
    """What of an observation is compared; those with equal keys are one."""

    text: str
    terms: frozenset[str]
    codes: frozenset[str]
    # The fix that came with a problem.
    fix: str = ""
    is_lesson: bool = False


def _of_problem(one: Observation) -> _Key:
    return _Key(one.problem, one.signature, one.codes, one.fix, one.kind == "lesson")


def _of_fix(one: Observation) -> _Key:
    return _Key(one.fix, term_set(one.fix), frozenset(CODE.findall(one.fix)))


def _group(
    observations: Iterable[Observation], key_of: Callable[[Observation], _Key], meaning: Meaning
) -> list[list[Observation]]:
    """Return groups of observations that are alike, the largest first."""
    equal: dict[tuple[object, ...], list[Observation]] = defaultdict(list)
    first: dict[tuple[object, ...], _Key] = {}
    for one in observations:
        key = key_of(one)
        same: tuple[object, ...] = key[
            1:
        ]  # Texts that differ in numbers and paths only have the same terms.
        equal[same].append(one)
        first[same] = min(first.get(same, key), key, key=lambda known: known.text)
    order = sorted(equal, key=lambda same: (-len(equal[same]), first[same].text, first[same].fix))
    leaders = _Leaders([first[same] for same in order], meaning)
    groups: dict[int, list[Observation]] = defaultdict(list)
    found_for = [leaders.leader_of(number) for number in range(len(order))]
    joined = leaders.joined(found_for)
    for leader, same in zip(found_for, order, strict=True):
        groups[joined.get(leader, leader)] += equal[same]
    found = [sorted(group, key=_by_time) for group in groups.values()]
    return sorted(found, key=lambda group: (-sessions(group), -_worked(group), _by_time(group[0])))


def _by_time(one: Observation) -> tuple[int, str, str, str]:
    return one.micros, one.source, one.what, one.why


def _worked(group: Sequence[Observation]) -> int:
    return sum(one.outcome == WORKED for one in group)


class _Texts:
    """Numbered texts, which can be compared."""

    def __init__(
        self, texts: Sequence[str], terms: Sequence[frozenset[str]], meaning: Meaning
    ) -> None:
        self.terms = terms
        distinct = list(dict.fromkeys(texts))
        places = {text: place for place, text in enumerate(distinct)}
        self._places = [places[text] for text in texts]
        self._vectors = meaning.vectors(distinct)
        counts = Counter(term for some in terms for term in some)
        total = len(terms) + 1
        self.idf = {term: math.log(1 + total / count) for term, count in counts.items()}
        self._weights = [sum(self.idf[term] for term in some) for some in terms]

    def words(self, one: int, other: int) -> float:
        """Return the share of common words."""
        common = sum(self.idf[term] for term in self.terms[one] & self.terms[other])
        whole = self._weights[one] + self._weights[other] - common
        return common / whole if whole else 0.0

    def cosine(self, one: int, other: int) -> float:
        return self._vectors.cosine(self._places[one], self._places[other])

    def nearest(self, one: int, among: Sequence[int]) -> list[int]:
        """Return those of *among* that are nearest by meaning."""
        if not self._vectors.are_known:
            return []
        by_place: dict[int, list[int]] = defaultdict(list)
        for number in among:
            by_place[self._places[number]].append(number)
        near = self._vectors.nearest(self._places[one], list(by_place))
        return [number for place in near for number in by_place[place]]

    def have_part(self, one: int, other: int) -> bool:
        """Whether nearly all words of the shorter text are in the longer one."""
        terms, others = self.terms[one], self.terms[other]
        size = min(len(terms), len(others))
        return size >= PART_TERMS_MIN and len(terms & others) >= PART_MIN * size


class _Leaders:
    """Assigns each text, given the most frequent first, to the leader it is most like."""

    def __init__(self, keys: Sequence[_Key], meaning: Meaning) -> None:
        self._keys = keys
        self._are_problems = any(key.fix for key in keys)
        self._texts = _Texts([key.text for key in keys], [key.terms for key in keys], meaning)
        fixes = [key.fix for key in keys]
        self._fixes = _Texts(fixes, [term_set(fix) for fix in fixes], meaning)
        self._leaders: list[int] = []
        self._by_term: dict[str, list[int]] = defaultdict(list)

    def leader_of(self, number: int) -> int:
        """Return the number of the leader of that text, which may be itself."""
        best, best_score = number, 0.0
        for leader in self._near(number):
            score = self._score(number, leader)
            if score > best_score:
                best, best_score = leader, score
        if best == number:
            self._leaders.append(number)
            for term in self._rare(number):
                self._by_term[term].append(number)
        return best

    def joined(self, found_for: Sequence[int]) -> dict[int, int]:
        """Return the leaders that a text shows to be one, each with the first of them.

        Such a text is like its own leader and like another; a problem came with the fix of both.
        """
        first: dict[int, int] = {}
        for number, own in enumerate(found_for):
            for other in self._near(number) if number != own else ():
                pair = sorted((first.get(own, own), first.get(other, other)))
                if pair[0] == pair[1]:
                    continue
                if self._are_problems and not self._have_one_fix(number, other):
                    continue
                if self._score(number, other) and not self._differ(own, other):
                    for leader in self._leaders:
                        if first.get(leader, leader) == pair[1]:
                            first[leader] = pair[0]
        return first

    def _differ(self, one: int, other: int) -> bool:
        """Whether two leaders cannot be one: by their codes, or by a value."""
        codes, others = self._keys[one].codes, self._keys[other].codes
        if codes and others and codes.isdisjoint(others):
            return True
        return are_different_rules(self._keys[one].text, self._keys[other].text)

    def _rare(self, number: int) -> list[str]:
        idf = self._texts.idf
        return sorted(self._texts.terms[number], key=lambda t: (-idf[t], t))[:RARE_WORDS_MAX]

    def _near(self, number: int) -> list[int]:
        shared = Counter(
            leader for term in self._rare(number) for leader in self._by_term.get(term, ())
        )
        by_words = [leader for leader, _count in shared.most_common(LEADERS_COMPARED_MAX)]
        return sorted({*by_words, *self._texts.nearest(number, self._leaders)})

    def _score(self, number: int, leader: int) -> float:
        """Return how alike the two are, over 0 if they are one."""
        words, cosine = self._texts.words(number, leader), self._texts.cosine(number, leader)
        if not self._are_one(number, leader, words, cosine):
            return 0.0
        # Problems that one fix solves may be of two names: `no image for mail`, `… for payment`.
        has_one_fix = self._are_problems and self._keys[number].fix == self._keys[leader].fix
        if not (has_one_fix and self._keys[number].fix) and self._differ(number, leader):
            return 0.0
        return words / PROBLEM.words + cosine / PROBLEM.cosine

    def _are_one(self, number: int, leader: int, words: float, cosine: float) -> bool:
        if not self._are_problems:
            return self._are_one_fix(number, leader, words, cosine)
        if self._keys[number].is_lesson or self._keys[leader].is_lesson:
            return _passes(LESSON, words, cosine)
        if _passes(PROBLEM, words, cosine):
            return True
        return _passes(PROBLEM_WITH_ONE_FIX, words, cosine) and self._have_one_fix(number, leader)

    def _have_one_fix(self, number: int, leader: int) -> bool:
        if not self._keys[number].fix or not self._keys[leader].fix:
            return False
        fixes, texts = self._fixes, (self._keys[number].fix, self._keys[leader].fix)
        if all(map(is_command, texts)):
            return fixes.words(number, leader) >= COMMAND_WORDS_MIN
        likeness = fixes.words(number, leader), fixes.cosine(number, leader)
        return _passes(FIX, *likeness) or fixes.have_part(number, leader)

    def _are_one_fix(self, number: int, leader: int, words: float, cosine: float) -> bool:
        if is_command(self._keys[number].text) and is_command(self._keys[leader].text):
            return words >= COMMAND_WORDS_MIN
        return _passes(FIX, words, cosine) or self._texts.have_part(number, leader)


def is_command(text: str) -> bool:
    """Whether *text* looks like a command rather than a sentence about one."""
    is_sentence = text.endswith((".", "!")) and not text.endswith(" .")
    return _COMMAND.match(text) is not None and not is_sentence


def _passes(bar: Bar, words: float, cosine: float) -> bool:
    return words >= bar.words or cosine >= bar.cosine


def _are_told_apart(groups: Sequence[Sequence[Observation]]) -> bool:
    """Whether the tasks say which fix is for which: each has words that the others' have not."""
    several = [group for group in groups if sessions(group) > 1]
    if len(several) < 2 or len(several) < len(groups):  # noqa: PLR2004 (two fixes or more)
        return False
    shares = [_shares(group) for group in several]
    return all(
        any(
            share >= SHARE_HERE_MIN
            and all(other.get(term, 0.0) <= SHARE_THERE_MAX for other in shares if other is not own)
            for term, share in own.items()
        )
        for own in shares
    )


def _shares(group: Sequence[Observation]) -> dict[str, float]:
    """Return for each word of the tasks the share of observations that have it."""
    found: Counter[str] = Counter()
    for one in group:
        found.update(term_set(" ".join([one.goal, one.what, one.repo, *one.files])))
    return {term: count / len(group) for term, count in found.items()}
