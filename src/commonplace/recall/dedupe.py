"""Fold near-duplicates into the best proven one, and put the newest version of a rule first.

A rule is a short record, or the one sentence of a long record that says most about the question.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.terms import term_hash, term_set
from commonplace.recall.priors import EPISODIC_KINDS, UNTRIED, wilson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

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
SAME_RULE = Likeness(0.25, 0.42)
SAME_NOTE = Likeness(0.5, 0.65)
# The newer one is put first if it fits the question's words at most this much worse.
RULE_SHARE_MIN = 0.3
NOTE_SHARE_MIN = 0.55
# To mark the older one as superseded takes more, or a newer one that mentions a change.
REPLACED = Likeness(0.42, 0.6)
REPLACED_OPENLY_COSINE = 0.57
# If only the older one holds what the question names, more than this share of its weight, they are
# two subjects: the newer one neither goes first nor makes the older one untrue.
ONLY_OLDER_MAX = 0.05
# So too if its odds to answer, p / (1 - p), are less than this share of those of the older one;
# sessions are more alike, so there it takes more.
ODDS_SHARE_MIN = 0.2
SESSION_ODDS_SHARE_MIN = 0.4
# More relevant than this is no better.
SURE = 0.98
# A sentence of a long record is compared by its words alone, which takes more of them.
SAME_STATEMENT = 0.25
# Sentences of two long records about one subject are often somewhat alike.
SAME_STATEMENTS = 0.4
# One that says that what the older one answers has ended may say much else.
SAME_IF_ENDED = 0.15
SESSIONS_SAME_IF_ENDED = 0.25
# Of the share of the question that the older sentence covers, what the newer one needs.
STATED_SHARE_MIN = 0.4
REPLACED_STATEMENT = 0.42
# A long record holds a rule only if it has this share of its words.
HELD_SHARE_MIN = 0.4
STATEMENT_SHARE_MIN = 0.1
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
# A clause that says that what it names has ended. "Instead of" does not: it may be mere advice.
ENDED = re.compile(
    r"\b(no longer|any ?more|not used|must not|replaced|took over|now only|only .* now|"
    r"(is|are|was|were|been) (now )?(gone|removed|dropped|deprecated|retired|cancell?ed|"
    r"discontinued|obsolete|frozen|phased out|shut down))\b",
    re.IGNORECASE,
)
# A clause that says what is done instead of what it names; of a new way only with such a word.
INSTEAD = re.compile(
    r"\b(?:instead of|rather than|(?:switched|moved|migrated|changed) (?:over )?from)\s"
    r"([^;:,.!?]{1,60})",
    re.IGNORECASE,
)
NEW_WAY = re.compile(
    r"\b(from now on|as of|starting|henceforth|now|switched|moved|migrated|changed)\b",
    re.IGNORECASE,
)
# What says so adds to what was said before.
ADDS = re.compile(r"\b(also|as well|additionally|in addition|besides|too)\b", re.IGNORECASE)
_CLAUSE = re.compile(r"[;:,.!?]\s")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n\s*(?:\n|[-*+] |\d+[.)] )\s*")
SUPERSEDED = "superseded? a newer one is above"


class Statement(NamedTuple):
    """A sentence of a long record: its text, its terms, and how much of the question it covers."""

    text: str
    terms: frozenset[int]
    share: float


class Entry(NamedTuple):
    """A candidate as it is compared with others."""

    candidate: Candidate
    score: float
    terms: frozenset[int]
    text: Callable[[], str]
    relevance: float
    vector: Vector | None = None
    marks: tuple[str, ...] = ()
    # The highest relevance of what it was folded with or put before: it stands for that too.
    stands_for: float = 0.0
    # The terms of each fix: the resolutions of an episode, what a pattern says to do.
    fixes: tuple[frozenset[int], ...] = ()
    # Of a pattern or an anti-pattern: the ids of the records that it was derived from.
    sources: frozenset[str] = frozenset()
    # Whether a step of learning made it, which says itself what a new pattern supersedes.
    is_learned: bool = False
    # Of a long record: the sentence that says most about the question, and which share.
    statement: Statement | None = None
    # That sentence, if it is a newer version of a rule below: the answer has to show it.
    leads_by: str = ""
    # The share of the question's weight that each of its terms has, by rarity.
    question: Mapping[int, float] = MappingProxyType({})

    @property
    def rule(self) -> frozenset[int]:
        """The terms of the rule that it states, if any."""
        if self.statement is not None:
            return self.statement.terms
        return self.terms if len(self.terms) <= RULE_TERMS_MAX else frozenset()

    def instead_of(self, other: Entry, *, takes_place: bool = True) -> Entry:
        """Return this entry, which stands for the *other* one too.

        With *takes_place* it also gets the score of the other one, if that is higher.
        """
        relevance = max(self.stands_for, other.relevance, other.stands_for)
        score = max(self.score, other.score) if takes_place else self.score
        return self._replace(score=score, stands_for=relevance)


def fold_twins(entries: Sequence[Entry]) -> list[Entry]:
    """Return *entries* without near-duplicates: of each group the best proven, else the first."""
    kept: list[Entry] = []
    for entry in entries:
        twin = next((n for n, other in enumerate(kept) if _are_twins(entry, other)), None)
        if twin is None:
            kept.append(entry)
        elif _success_bound(entry) > _success_bound(kept[twin]):
            kept[twin] = entry.instead_of(kept[twin])
        else:
            kept[twin] = kept[twin].instead_of(entry, takes_place=False)
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
        ordered.insert(index, later.instead_of(older))
    return [
        _with_marks(entry, ordered[:place], ordered[place + 1 :])
        for place, entry in enumerate(ordered)
    ]


def _with_marks(entry: Entry, above: Sequence[Entry], below: Sequence[Entry]) -> Entry:
    """Return *entry* marked if a newer one is above; else with what is newer in it than below."""
    if any(_supersedes(other, entry) for other in above):
        return entry._replace(marks=(*entry.marks, SUPERSEDED))
    if entry.statement and any(_goes_before(entry, other) for other in below):
        return entry._replace(leads_by=entry.statement.text)
    return entry


def without_padding(entries: Sequence[Entry], relevance_min: float) -> list[Entry]:
    """Return the entries that are relevant enough, or stand for one that is."""
    return [one for one in entries if max(one.relevance, one.stands_for) >= relevance_min]


def may_restate(terms: frozenset[int], timestamp: str, entries: Iterable[Entry]) -> bool:
    """Whether a long record of that time may hold a newer version of a rule among *entries*."""
    return len(terms) > RULE_TERMS_MAX and any(
        entry.candidate.card.timestamp[:16] < timestamp[:16]
        and entry.rule
        and len(entry.rule & terms) >= HELD_SHARE_MIN * len(entry.rule)
        for entry in entries
    )


def may_state_versions(entries: Sequence[Entry]) -> list[int]:
    """Return the places of the long *entries* that may state another version of a rule.

    To find the statement takes the text, so it is sought only where another of the same kind and
    repository is older or newer, and is long as well or has many of its words.
    """
    return [
        place
        for place, one in enumerate(entries)
        if len(one.terms) > RULE_TERMS_MAX and any(_may_be_versions(one, two) for two in entries)
    ]


def _may_be_versions(long: Entry, other: Entry) -> bool:
    one, two = long.candidate.card, other.candidate.card
    if one.timestamp[:16] == two.timestamp[:16] or (one.kind, one.repo) != (two.kind, two.repo):
        return False
    return len(other.terms) > RULE_TERMS_MAX or len(
        other.terms & long.terms
    ) >= HELD_SHARE_MIN * len(other.terms)


def with_statement(entry: Entry, weights: Mapping[str, float]) -> Entry:
    """Return a long *entry* with the sentence in it that says most about the question.

    *weights* are those of the question's terms. Terms are stems, so most of them are in a text as
    they are: only the best sentence is taken apart.
    """
    if len(entry.terms) <= RULE_TERMS_MAX:
        return entry
    whole = sum(weights.values()) or 1.0
    text = entry.text()
    whole_text = text.lower()
    known = [(stem, weight) for stem, weight in weights.items() if stem in whole_text]
    best, most = "", 0.0
    for sentence in _SENTENCE.split(text) if known else ():
        lower = sentence.lower()
        held = sum([weight for stem, weight in known if stem in lower])
        if held > most or (held == most and best and len(sentence) < len(best)):
            best, most = sentence, held
    terms = frozenset(map(term_hash, term_set(best)))
    if not terms or len(terms) > RULE_TERMS_MAX:
        return entry
    return entry._replace(statement=Statement(best, terms, most / whole))


def restates(later: Entry, entries: Iterable[Entry]) -> bool:
    """Whether a sentence of *later* is a newer version of a rule among *entries*."""
    return later.statement is not None and any(_goes_before(later, one) for one in entries)


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
            ordered.insert(place, entry.instead_of(ordered[place]))
    return ordered


def fold_sources(entries: Sequence[Entry]) -> list[Entry]:
    """Return *entries* without the episodes of which patterns before them state every fix.

    Of a pattern and an anti-pattern of the same sources with the same fix, the first is left.
    """
    kept: list[Entry] = []
    for entry in entries:
        related = [place for place, other in enumerate(kept) if _are_related(other, entry)]
        stated = [fix for place in related for fix in kept[place].fixes]
        is_stated = _is_told_alike if entry.sources else _is_held
        if not entry.fixes or not all(is_stated(fix, stated) for fix in entry.fixes):
            kept.append(entry)
            continue
        for place in related:
            kept[place] = kept[place].instead_of(entry, takes_place=False)
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
    if _states_rules(newer, older):
        share_min = STATEMENT_SHARE_MIN
        are_long = newer.statement is not None and older.statement is not None
        bar = SAME_STATEMENTS if are_long else SAME_STATEMENT
        are_alike = _states_version(newer, older, bar)
    else:
        are_rules = _are_rules(newer, older)
        share_min = RULE_SHARE_MIN if are_rules else NOTE_SHARE_MIN
        are_alike = _are_alike(newer, older, SAME_RULE if are_rules else SAME_NOTE)
    if newer.score < share_min * older.score or not are_alike:
        return False
    if not _is_one_subject(newer, older):
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
    return _is_later(newer, older) and _contradicts(newer, older) and _is_one_subject(newer, older)


def _contradicts(newer: Entry, older: Entry) -> bool:
    """Whether both are so alike that they can hardly be valid both."""
    if ADDS.search(_rule_text(newer)) and not _replaces_openly(newer, older):
        return False
    if _states_rules(newer, older):
        # Only a short record is all about its one rule.
        bar = SAME_STATEMENT if _tells_change(newer) else REPLACED_STATEMENT
        return older.statement is None and _states_version(newer, older, bar)
    if not _are_rules(newer, older):
        return _are_alike(newer, older, SAME_NOTE)
    if _are_alike(newer, older, REPLACED):
        return True
    is_close = _cosine(newer, older) >= REPLACED_OPENLY_COSINE
    return is_close and _tells_change(newer)


def _tells_change(newer: Entry) -> bool:
    return CHANGE.search(_rule_text(newer)) is not None


def _replaces_openly(newer: Entry, older: Entry) -> bool:
    """Whether the newer rule says that what the older one answers has ended.

    The question does not name that: it asks for it.
    """
    answer = (newer.rule & older.rule) - older.question.keys()
    if not answer:
        return False
    text = _rule_text(newer)
    ended = [clause for clause in _CLAUSE.split(text) if ENDED.search(clause)]
    if NEW_WAY.search(text):
        ended += INSTEAD.findall(text)
    return any(not answer.isdisjoint(map(term_hash, term_set(one))) for one in ended)


def _rule_text(entry: Entry) -> str:
    return entry.statement.text if entry.statement else entry.text()


def _states_rules(newer: Entry, older: Entry) -> bool:
    """Whether both state a rule, at least one of them in a sentence of a long record."""
    if newer.statement is None and older.statement is None:
        return False
    return bool(newer.rule and older.rule)


def _states_version(newer: Entry, older: Entry, bar: float) -> bool:
    """Whether they share *bar* of their terms, or fewer where the newer one ends the older one."""
    likeness = overlap(newer.rule, older.rule)
    low = SAME_IF_ENDED if older.statement is None else SESSIONS_SAME_IF_ENDED
    return likeness >= bar or (likeness >= low and _replaces_openly(newer, older))


def _is_one_subject(newer: Entry, older: Entry) -> bool:
    """Whether the newer one is about what was asked as well, not only about the same tool."""
    one, other = newer.statement, older.statement
    if _states_rules(newer, older) and overlap(newer.rule, older.rule) >= TWINS:
        return False  # It says the same once more.
    if one is not None and other is not None and one.share < STATED_SHARE_MIN * other.share:
        return False
    answers_all = _only_in_older(newer, older) <= ONLY_OLDER_MAX
    return (answers_all and _answers_as_well(newer, older)) or _replaces_openly(newer, older)


def _answers_as_well(newer: Entry, older: Entry) -> bool:
    if newer.statement is not None and older.statement is None:
        return True  # Of a long record, relevance says little about one sentence.
    share_min = ODDS_SHARE_MIN if newer.statement is None else SESSION_ODDS_SHARE_MIN
    return _odds(newer) >= share_min * _odds(older)


def _only_in_older(newer: Entry, older: Entry) -> float:
    """Return which share of the question the older one holds and the newer one does not."""
    missing = (older.rule or older.terms) - (newer.rule or newer.terms)
    return sum(share for term, share in older.question.items() if term in missing)


def _odds(entry: Entry) -> float:
    relevance = min(entry.relevance, SURE)
    return relevance / (1 - relevance)


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
