"""Skills are proposed in the inbox: steps that succeeded in several episodes, as `SKILL.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace import inbox, skills
from commonplace.index.ports import Filter
from commonplace.learn import marks
from commonplace.records import micros
from commonplace.skills.proposals import STEPS_JOINT, Routine, is_alike, sequences, skill_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from commonplace.recaller import Recaller
    from commonplace.records import Record

# Only the newest episodes are looked at.
EPISODES_MAX = 10_000
KINDS = ("episode",)


def propose(
    memory: Recaller, intents_of: Callable[[str], Sequence[str]], *, dry_run: bool = False
) -> dict[str, Any]:
    """Propose the routines of the nearest home, if it has episodes that were not looked at.

    What is a skill already, or was dropped, is not proposed. Nothing is learned from a home that is
    not trusted.
    """
    if not memory.trusts(memory.home) or not memory.home.path.is_dir():
        return {"proposed": 0}
    episodes, mark = _read(memory)
    known = skills.of_homes(memory)
    # A skill keeps the steps that it was made from, whatever its name and its words are now.
    done = [steps.split(STEPS_JOINT) for skill in known if (steps := skills.steps_of(skill.text))]
    found = [
        one
        for one in sequences(episodes, intents_of)
        if not any(is_alike(one.keys, steps) for steps in done)
    ]
    named = dict(_names(found, {skill.name for skill in known}))
    if dry_run:
        return {"found": list(named)}
    proposals = [_proposal(name, one) for name, one in named.items()]
    proposed = sum(inbox.propose(memory.home, one).seen > 0 for one in proposals)
    # The mark comes last: a run that is killed before is done again, with the same result.
    if mark:
        marks.write(memory.home.skills_mark, mark)
    return {"proposed": proposed}


def _names(found: Sequence[Routine], taken: set[str]) -> Iterator[tuple[str, Routine]]:
    """Yield each routine with a name that no other skill has."""
    for one in found:
        name = one.name if one.name not in taken else f"{one.name}-{one.digest}"
        taken.add(name)
        yield name, one


def _read(memory: Recaller) -> tuple[list[Record], marks.Mark | None]:
    """Return the newest episodes, none if all were looked at before, and the mark to write."""
    wanted = Filter(kinds=frozenset(KINDS), archived=True)
    with memory.engine().reading() as readers:
        reader = readers[0]
        mark = marks.read(memory.home.skills_mark, reader.build())
        newest = max((key for key, *_rest in reader.records_after(mark.key, KINDS)), default=0)
        if not newest:
            return [], None
        keys = [card.key for card in reader.select(wanted, newest=EPISODES_MAX)]
        records = reader.records(keys)
    found = [records[key] for key in sorted(keys) if key in records]
    return found, mark._replace(key=newest)


def _proposal(name: str, routine: Routine) -> inbox.Proposal:
    count = len(routine.episodes)
    return inbox.Proposal(
        kind="skill",
        title=routine.title,
        fields={"name": name, "text": skill_text(routine, name), "steps": routine.steps},
        evidence=tuple(one.id for one in routine.episodes),
        reason=f"these steps followed each other in {count} episodes that succeeded",
        # A skill belongs to the home, not to one repository.
        at=max(micros(one.timestamp) for one in routine.episodes) / 1e6,
        rank=float(count),
    )
