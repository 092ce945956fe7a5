"""What is known already: the pattern that says the same, which gains evidence instead of a twin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.index.ports import Filter
from commonplace.index.terms import query_terms, term_set
from commonplace.learn.candidates import Candidate, text_of
from commonplace.learn.comparison import are_different_rules
from commonplace.learn.confidence import with_more_sessions
from commonplace.learn.observations import CODE
from commonplace.records import to_utc
from commonplace.records.sentences import TASKS_FAILED

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from commonplace.index.ports import Reader
    from commonplace.recaller import Recaller
    from commonplace.records import Record

COMPARED_MAX = 10
# The share of common words from which two records say the same; with a common source, half of it.
SAME_MIN = 0.6


def find(memory: Recaller, readers: list[Reader], candidate: Candidate) -> str:
    """Return the id of the current record that says what *candidate* says; "" if none does."""
    terms = query_terms(candidate.text)
    wanted = term_set(candidate.text)
    filter_ = Filter(kinds=frozenset([candidate.kind]), archived=True)
    best = 0.0, ""
    for home, reader in zip(memory.homes, readers, strict=True):
        if not memory.trusts(home):
            continue
        matched = reader.match(terms, reader.statistics(terms), filter_, COMPARED_MAX)
        cards = reader.cards([key for key, _score in matched])
        shown = {key: card for key, card in cards.items() if filter_.shows(card.standing)}
        for key, record in reader.records(shown).items():
            likeness = _likeness(candidate, wanted, record, shown[key].repo)
            best = max(best, (likeness, record.id if likeness else ""))
    return best[1]


def covers(record: Record, candidate: Candidate) -> bool:
    """Whether *record* says what *candidate* says, and has all its sources."""
    return (
        record.kind == candidate.kind
        and set(candidate.sources) <= set(record.sources)
        and _likeness(candidate, term_set(candidate.text), record, record.repo) > 0
    )


def _likeness(candidate: Candidate, wanted: frozenset[str], record: Record, repo: str) -> float:
    """Return how alike they are; 0 if they do not say the same."""
    if repo != candidate.place.repo:
        return 0.0
    text = text_of(record.fields)
    terms = term_set(text)
    whole = len(wanted | terms)
    share = len(wanted & terms) / whole if whole else 0.0
    has_common_source = not set(record.sources).isdisjoint(candidate.sources)
    if share < SAME_MIN / (2 if has_common_source else 1):
        return 0.0
    codes, others = set(CODE.findall(candidate.text)), set(CODE.findall(text))
    if (codes and others and codes.isdisjoint(others)) or are_different_rules(candidate.text, text):
        return 0.0
    return share


def add_evidence(
    known: Record, given: Sequence[Candidate], now: datetime, taken_back: Collection[str] = ()
) -> dict[str, Any] | None:
    """Return the next version of *known* with the sources of *given*; `None` if it has them.

    What was imported does not change a record that is the user's own. Sources that were *taken
    back* from it do not return.
    """
    if not known.meta.get("origin"):
        given = [one for one in given if not one.fields.get("meta", {}).get("origin")]
    sources = dict.fromkeys(source for one in given for source in one.sources)
    added = [source for source in sources if source not in {*known.sources, *taken_back}]
    if not added:
        return None
    fields = dict(known.fields)
    episodes = {source for one in given for source in one.fields.get("source_episodes", ())}
    if known.kind == "anti_pattern":
        episodes = set()
    linked = [source for source in added if source not in episodes]
    if linked:
        links = [{"to": source, "rel": "derived_from"} for source in linked]
        fields["links"] = [*known.links, *links]
    fields["meta"] = {**known.meta, "edited": to_utc(now)}
    if not all(one.fields.get("meta", {}).get(TASKS_FAILED) for one in given):
        fields["meta"].pop(TASKS_FAILED, None)  # Now a task with this fix has succeeded.
    if known.kind == "pattern":
        before = list(fields.get("source_episodes") or ())
        now_known = [*before, *(source for source in added if source in episodes)]
        gained = [with_more_sessions(one.confidence, one.sessions, len(now_known)) for one in given]
        fields |= {
            "source_episodes": now_known,
            # New evidence that agrees makes nobody less sure.
            "confidence": max(float(fields.get("confidence") or 0.0), *gained),
            "usage_count": int(fields.get("usage_count") or 0) + 1,
        }
    return fields
