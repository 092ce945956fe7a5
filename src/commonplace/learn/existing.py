"""What is known already: the pattern that says the same, which gains evidence instead of a twin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.index.ports import Filter
from commonplace.index.terms import query_terms, term_set
from commonplace.learn.candidates import Candidate, text_of
from commonplace.learn.confidence import with_more_sessions
from commonplace.learn.observations import CODE
from commonplace.learn.values import differ_in_value
from commonplace.records import to_utc

if TYPE_CHECKING:
    from datetime import datetime

    from commonplace.index.ports import Reader
    from commonplace.recaller import Recaller
    from commonplace.records import Record

COMPARED_MAX = 10
# The share of common words from which two records say the same; with a common source, half of it.
SAME_MIN = 0.6


class Known(NamedTuple):
    """A record that is there already, and its place."""

    home: int
    log: str
    record: Record


def find(memory: Recaller, readers: list[Reader], candidate: Candidate) -> Known | None:
    """Return the current record that says what *candidate* says, if there is one."""
    terms = query_terms(candidate.text)
    wanted = term_set(candidate.text)
    filter_ = Filter(kinds=frozenset([candidate.kind]), archived=True)
    best: tuple[float, Known] | None = None
    for number, (home, reader) in enumerate(zip(memory.homes, readers, strict=True)):
        if not memory.trusts(home):
            continue
        matched = reader.match(terms, reader.statistics(terms), filter_, COMPARED_MAX)
        cards = reader.cards([key for key, _score in matched])
        shown = {key: card for key, card in cards.items() if filter_.shows(card.standing)}
        for key, record in reader.records(shown).items():
            likeness = _likeness(candidate, wanted, record, shown[key].repo)
            if likeness and (best is None or likeness > best[0]):
                best = likeness, Known(number, shown[key].log, record)
    return best[1] if best else None


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
    if (codes and others and codes.isdisjoint(others)) or differ_in_value(candidate.text, text):
        return 0.0
    return share


def add_evidence(known: Record, candidate: Candidate, now: datetime) -> dict[str, Any] | None:
    """Return the next version of *known* with the sources of *candidate*; `None` if it has them."""
    added = [source for source in candidate.sources if source not in known.sources]
    if not added:
        return None
    fields = dict(known.fields)
    meta = {**known.meta, "edited": to_utc(now)}
    if candidate.kind == "anti_pattern":
        links = [*known.links, *({"to": source, "rel": "derived_from"} for source in added)]
        return {**fields, "links": links, "meta": meta}
    episodes = set(candidate.fields["source_episodes"])
    of_lessons = [
        {"to": source, "rel": "derived_from"} for source in added if source not in episodes
    ]
    before = list(fields.get("source_episodes") or ())
    sources = [*before, *(source for source in added if source in episodes)]
    fields |= {
        "source_episodes": sources,
        "confidence": with_more_sessions(candidate.confidence, candidate.sessions, len(sources)),
        "usage_count": int(fields.get("usage_count") or 0) + 1,
        "meta": meta,
    }
    if of_lessons:
        fields["links"] = [*known.links, *of_lessons]
    return fields
