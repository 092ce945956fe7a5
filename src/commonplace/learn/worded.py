"""A pattern in an agent's own words: through the same gate, beside the one that we made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import ProposalHeldBack, UsageError
from commonplace.learn import batches, candidates, gate
from commonplace.learn.clusters import Cluster, sessions
from commonplace.learn.confidence import CONFIDENCE_MIN, confidence
from commonplace.learn.observations import KINDS, WORKED, Observation, observe
from commonplace.records import Pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.recaller import Recaller
    from commonplace.records import Record

STEP = "wording"
SOURCES_SHOWN_MAX = 12


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
    """Return what these episodes and lessons say about problems that were solved."""
    found: list[Observation] = []
    for ident in dict.fromkeys(sources):
        record = memory.get(ident)
        if record.kind not in KINDS:
            raise UsageError(f"`{ident}` is no episode or lesson", "name what the pattern rests on")
        found += observe(record, 0, record.repo)
    return [one for one in found if one.fix]


def propose(memory: Recaller, fields: dict[str, Any], sources: Sequence[str]) -> Record:
    """Write the pattern *fields*, in an agent's words, if the gate lets it through.

    It elaborates the pattern that consolidation made of the same sources; both are kept. Raises
    `ProposalHeldBack` with the reason.
    """
    members = observations_of(memory, sources)
    count = sessions(one for one in members if one.outcome == WORKED)
    if count < candidates.SESSIONS_MIN:
        raise ProposalHeldBack(f"its sources show one fix in {count} sessions, and two are needed")
    now_micros = max(one.micros for one in members)
    sure = confidence(Cluster(tuple(members), ()), now_micros)
    if sure < CONFIDENCE_MIN:
        raise ProposalHeldBack(f"its confidence is {sure}, under {CONFIDENCE_MIN}")
    user = next((n for n, home in enumerate(memory.homes) if home.of_user), 0)
    place = candidates.place_of(members, user)
    episodes = [one.source for one in members if one.kind == "episode"]
    lessons = [one.source for one in members if one.kind == "lesson"]
    links = [{"to": source, "rel": "derived_from"} for source in dict.fromkeys(lessons)]
    links += [{"to": ident, "rel": "elaborates"} for ident in _made_of(memory, sources)]
    whole = {
        **{name: value for name, value in fields.items() if value},
        "kind": "pattern",
        "confidence": sure,
        "source_episodes": list(dict.fromkeys(episodes)),
        "usage_count": 0,
        "repo": place.repo,
        "links": links,
    }
    entry = memory.prepare(batches.mark(whole, batches.new_name(memory.now()), STEP))
    questions = {entry.record.id: candidates.questions_of(members)}
    held_back = gate.judge(memory, [entry], questions).held_back
    if held_back:
        raise ProposalHeldBack(held_back[entry.record.id])
    memory.store([entry], place.home)
    return entry.record


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
