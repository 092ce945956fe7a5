"""A pattern in an agent's own words: through the same gate, beside the one that we made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import ProposalHeldBack, UsageError
from commonplace.index.terms import term_set
from commonplace.learn import batches, candidates, gate
from commonplace.learn.clusters import Cluster, sessions
from commonplace.learn.confidence import CONFIDENCE_MIN, confidence
from commonplace.learn.consolidation import hold_learning
from commonplace.learn.observations import KINDS, WORKED, Observation, observe
from commonplace.records import Pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.recaller import Recaller
    from commonplace.records import Record

STEP = "wording"
SOURCES_SHOWN_MAX = 12
# The share of a wording's words that its sources must have.
WORDS_SHARE_MIN = 0.3


class Evidence(NamedTuple):
    """A pattern that waits for better words, and what its sources say."""

    pattern: Record
    observations: list[Observation]


def waiting(memory: Recaller) -> Evidence | None:
    """Return the newest pattern that consolidation made and nobody has worded better."""
    with memory.engine().reading() as readers:
        found: list[Record] = []
        for home, reader in zip(memory.homes, readers, strict=True):
            if memory.trusts(home):
                made = [record for _key, _log, record in reader.records_after(0, ("pattern",))]
                ours = {one.id: one for one in made if one.meta.get("step") == "consolidation"}
                better = {edge.to for edge in reader.edges(ours, "elaborates")}
                found += [one for ident, one in ours.items() if ident not in better]
    if not found:
        return None
    pattern = max(found, key=lambda one: (one.timestamp, one.id))
    return Evidence(pattern, observations_of(memory, pattern.sources[-SOURCES_SHOWN_MAX:]))


def observations_of(memory: Recaller, sources: Sequence[str]) -> list[Observation]:
    """Return what these episodes and lessons say about problems that were solved.

    Raises `UsageError` for other records, and for those of a home that is not trusted.
    """
    observed: list[Observation] = []
    for ident in dict.fromkeys(sources):
        found = memory.find(ident)
        if found.record.kind not in KINDS:
            raise UsageError(f"`{ident}` is no episode or lesson", "name what the pattern rests on")
        if not memory.trusts(memory.homes[found.home_number]):
            raise UsageError(
                f"`{ident}` is in a home that is not trusted", "`commonplace trust` trusts it"
            )
        observed += observe(found.record, found.home_number, found.repo)
    return [one for one in observed if one.fix]


def propose(memory: Recaller, fields: dict[str, Any], sources: Sequence[str]) -> Record:
    """Write the pattern *fields*, in an agent's words, if the gate lets it through.

    It elaborates the pattern that consolidation made of the same sources; both are kept. Raises
    `ProposalHeldBack` with the reason.
    """
    with hold_learning(memory):
        return _propose(memory, fields, sources)


def _propose(memory: Recaller, fields: dict[str, Any], sources: Sequence[str]) -> Record:
    members = observations_of(memory, sources)
    sure = _confidence(members)
    _check_words(fields, members)
    user = next((n for n, home in enumerate(memory.homes) if home.of_user), 0)
    place = candidates.place_of(members, user)
    episodes = [one.source for one in members if one.kind == "episode"]
    lessons = [one.source for one in members if one.kind == "lesson"]
    links = [{"to": source, "rel": "derived_from"} for source in dict.fromkeys(lessons)]
    links += [{"to": ident, "rel": "elaborates"} for ident in _made_of(memory, sources)]
    origin = next((one.origin for one in members if one.origin), "")
    whole = {
        **{name: value for name, value in fields.items() if value},
        "kind": "pattern",
        "confidence": sure,
        "source_episodes": list(dict.fromkeys(episodes)),
        "usage_count": 0,
        "repo": place.repo,
        "links": links,
        **({"meta": {"origin": origin}} if origin else {}),
    }
    entry = memory.prepare(batches.mark(whole, batches.new_name(memory.now()), STEP))
    questions = {entry.record.id: candidates.questions_of(members)}
    held_back = gate.judge(memory, [entry], questions).held_back
    if held_back:
        raise ProposalHeldBack(held_back[entry.record.id])
    memory.store([entry], place.home)
    return entry.record


def _confidence(members: Sequence[Observation]) -> float:
    count = sessions(one for one in members if one.outcome == WORKED)
    if count < candidates.SESSIONS_MIN:
        raise ProposalHeldBack(f"its sources show one fix in {count} sessions, and two are needed")
    sure = confidence(Cluster(tuple(members), ()), max(one.micros for one in members))
    if sure < CONFIDENCE_MIN:
        raise ProposalHeldBack(f"its confidence is {sure}, under {CONFIDENCE_MIN}")
    return sure


def _check_words(fields: dict[str, Any], members: Sequence[Observation]) -> None:
    """Raise `ProposalHeldBack` unless the words have to do with what the sources say."""
    said = term_set(" ".join(f"{one.goal} {one.problem} {one.fix}" for one in members))
    fixes = term_set(" ".join(one.fix for one in members))
    for name, known in (("pattern", said), ("correct_approach", fixes)):
        words = term_set(str(fields.get(name) or ""))
        if len(words & known) < WORDS_SHARE_MIN * len(words) or not words:
            raise ProposalHeldBack(f"`{name}` says little that its sources say")


def _made_of(memory: Recaller, sources: Sequence[str]) -> list[str]:
    """Return the patterns that consolidation made of any of *sources*."""
    with memory.engine().reading() as readers:
        return sorted({
            record.id
            for home, reader in zip(memory.homes, readers, strict=True)
            if memory.trusts(home)
            for _key, _log, record in reader.records_after(0, ("pattern",))
            if isinstance(record, Pattern)
            and record.meta.get("step") == "consolidation"
            and not set(record.sources).isdisjoint(sources)
        })  # fmt: skip
