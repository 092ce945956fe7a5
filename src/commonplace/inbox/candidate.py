"""A candidate: what somebody, or a step of ours, proposes to remember."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

from commonplace.inbox.kinds import KINDS
from commonplace.tagging import tags_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# An error code, an errno or the name of an exception: something that can be searched for.
_SPECIFIC_ERROR = r"\bE[A-Z]{4,}\b|\b[A-Z]{1,4}\d{3,5}\b|\b\w+(Error|Exception)\b"
# What each further session that proposes the same adds to its rank.
_RANK_OF_SESSION = 3.0


class Proposal(NamedTuple):
    """What to add to the inbox.

    *fields* are those of the record that accepting writes; of a link `of`, `rel`, `to` and `w`; of
    a contradiction or supersession `of`, `to`, and both texts as `of_text` and `to_text`; of a
    skill `name` and `text`, and `steps` if it was found in episodes. *evidence* are ids of records;
    *against* those of records that speak against it, which accepting does not name as evidence.
    """

    kind: str
    title: str
    fields: dict[str, Any]
    evidence: tuple[str, ...]
    against: tuple[str, ...] = ()
    reason: str = ""
    repo: str = ""
    agent: str = ""
    session: str = ""
    at: float = 0.0
    rank: float = 0.0
    batch: str = ""  # The batch of the step that proposes it; undoing that withdraws it.


class SolvedFailure(NamedTuple):
    """What failed, what was tried, and what worked."""

    intent: str
    error: str
    tried: list[str]
    worked: str
    attempts: int
    edits: list[str]
    at: float
    agent: str
    repo: str
    session: str


class Candidate(NamedTuple):
    """A proposal in the inbox, or a failure that was solved."""

    id: str
    seen: int  # In how many sessions; 0 if it was dropped before and is not in the inbox.
    at: float
    agent: str
    repo: str
    session: str
    kind: str = "lesson"
    title: str = ""
    fields: dict[str, Any] = {}  # noqa: RUF012 (never changed)
    changed: dict[str, Any] = {}  # noqa: RUF012 (fields as somebody has edited them)
    evidence: list[str] = []  # noqa: RUF012 (never changed)
    against: list[str] = []  # noqa: RUF012 (never changed)
    reason: str = ""
    worth: float = 0.0  # The rank that the proposal gave it.
    batch: str = ""
    # Of a failure that was solved:
    intent: str = ""
    error: str = ""
    tried: list[str] = []  # noqa: RUF012 (never changed)
    worked: str = ""
    attempts: int = 1
    edits: list[str] = []  # noqa: RUF012 (never changed)
    lesson: str = ""  # Its words, if somebody has edited them.

    @property
    def rank(self) -> float:
        """How likely it is worth keeping; of a failure by attempts and by a specific error."""
        again = _RANK_OF_SESSION * (self.seen - 1)
        if not self.worked:
            return self.worth + again
        specific = 2.0 if re.search(_SPECIFIC_ERROR, self.error) else 0.0
        return 2.0 * (self.attempts - 1) + again + specific - min(len(self.edits), 2)

    @property
    def is_edited(self) -> bool:
        """Whether somebody has changed it since it was proposed."""
        return bool(self.changed or self.lesson)

    @property
    def record(self) -> dict[str, Any]:
        """The fields that accepting it writes."""
        if self.worked:
            return {
                "event_type": "error",
                "context": self.context,
                "command": self.worked,
                "lesson": self.text,
                # The fix worked the one time that it was used; what came before was not the fix.
                "success_rate": "1/1",
                "tags": tags_for(f"{self.intent} {self.error}", "SOLVED:")[1:],
                "meta": {"origin": "hooks", "attempts": self.attempts},
            }
        return {**self.fields, **self.changed}

    @property
    def text(self) -> str:
        """Its words: those of the record, or composed from what failed and what worked."""
        if self.worked:
            tried = ", then ".join(f"`{command}`" for command in self.tried)
            return self.lesson or f"{tried} failed; `{self.worked}` worked"
        return str({**self.fields, **self.changed}.get(KINDS[self.kind].text) or self.title)

    @property
    def context(self) -> str:
        """What it is about, in a line."""
        if not self.worked:
            return f"{KINDS[self.kind].noun}: {self.title}"
        first = self.error.partition("\n")[0]
        return f"{self.intent}: {first}" if first else self.intent

    @property
    def effect(self) -> str:
        """What accepting it does, in a sentence."""
        return KINDS[self.kind].effect.format_map(self.record)


def counts(found: Iterable[Candidate]) -> dict[str, int]:
    """Return how many candidates there are of each kind, in the order of the table."""
    counted = Counter(one.kind for one in found)
    return {kind: counted[kind] for kind in KINDS if counted[kind]}


def counts_text(counted: Mapping[str, int]) -> str:
    """Return the *counts* as words: `2 lessons, 1 anti-pattern`."""
    return ", ".join(
        f"{count:,} {KINDS[kind].noun if count == 1 else KINDS[kind].plural}"
        for kind, count in counted.items()
    )
