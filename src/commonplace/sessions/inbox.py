"""The inbox: candidates for lessons, one file each in `.state/inbox/`.

A candidate becomes a lesson only when somebody accepts it.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.characters import remove_hidden
from commonplace.errors import CandidateNotFound, IdAmbiguous
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.files.plain import read_small
from commonplace.records import slug
from commonplace.redaction.text import redact_text
from commonplace.sessions.lesson_prefixes import tags_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from commonplace.memory import Memory
    from commonplace.records import Record
    from commonplace.sessions.events import Event
    from commonplace.sessions.failures import SolvedFailure
    from commonplace.where.home import Home

CANDIDATES_MAX = 200
CANDIDATE_BYTES_MAX = 1 << 20
# An error code, an errno or the name of an exception: something that can be searched for.
_SPECIFIC_ERROR = r"\bE[A-Z]{4,}\b|\b[A-Z]{1,4}\d{3,5}\b|\b\w+(Error|Exception)\b"


class Candidate(NamedTuple):
    """A candidate for a lesson: an error, what was tried and what worked; or for a pattern."""

    id: str
    intent: str
    error: str
    tried: list[str]
    worked: str
    attempts: int
    seen: int
    at: float
    agent: str
    repo: str
    session: str
    edits: list[str]
    lesson: str = ""
    kind: str = "lesson"

    @property
    def rank(self) -> float:
        """How likely it is worth keeping: by attempts, by sessions, and by a specific error."""
        if self.kind == "pattern":
            return 3.0 * self.seen  # Somebody took it for one and said so.
        specific = 2.0 if re.search(_SPECIFIC_ERROR, self.error) else 0.0
        return (
            2.0 * (self.attempts - 1) + 3.0 * (self.seen - 1) + specific - min(len(self.edits), 2)
        )

    @property
    def text(self) -> str:
        """The lesson: as edited, else composed from what failed and what worked."""
        tried = ", then ".join(f"`{command}`" for command in self.tried)
        return self.lesson or f"{tried} failed; `{self.worked}` worked"

    @property
    def context(self) -> str:
        if self.kind == "pattern":
            return f"pattern: {self.text}"
        first = self.error.partition("\n")[0]
        return f"{self.intent}: {first}" if first else self.intent


def add(home: Home, solved: SolvedFailure) -> None:
    """Add *solved* to the inbox; `seen` counts its sessions. When full, drop the lowest ranks."""
    content = f"{solved.repo}\x1f{solved.intent}\x1f{solved.error}\x1f{solved.worked}"
    digest = blake2b(content.encode("utf-8", "replace"), digest_size=5).hexdigest()
    ident = f"cand-{slug(solved.intent, 24) or 'command'}-{digest}"
    _add(home, Candidate(id=ident, seen=1, **solved._asdict()))


def add_pattern(home: Home, text: str, event: Event) -> None:
    """Add a pattern that was stated (`PATTERN: …`) to the inbox."""
    digest = blake2b(f"{event.repo}\x1f{text}".encode("utf-8", "replace"), digest_size=5)
    candidate = Candidate(
        id=f"cand-pattern-{slug(text, 24)}-{digest.hexdigest()}",
        intent="",
        error="",
        tried=[],
        worked="",
        attempts=1,
        seen=1,
        at=event.at,
        agent=event.name,
        repo=event.repo,
        session=event.session,
        edits=[],
        lesson=text,
        kind="pattern",
    )
    _add(home, candidate)


def _add(home: Home, candidate: Candidate) -> None:
    before = _read(home.inbox_folder / f"{candidate.id}.json")
    if before is not None:
        seen = before.seen + (before.session != candidate.session)
        candidate = candidate._replace(seen=seen, lesson=before.lesson)
    _write(home, candidate)
    for surplus in candidates(home)[CANDIDATES_MAX:]:
        _remove(home, surplus)


def candidates(*homes: Home) -> list[Candidate]:
    """Return all candidates in the inboxes of *homes*, the highest rank first."""
    read = (_read(path) for home in homes for path in home.inbox_folder.glob("cand-*.json"))
    return sorted((one for one in read if one), key=lambda one: (-one.rank, -one.at, one.id))


def holder(homes: Sequence[Home], prefix: str) -> Home:
    """Return the first of *homes* that has a candidate whose id starts with *prefix*.

    A repository that got a home of its own leaves its older candidates in the user's.
    """
    for home in homes:
        with suppress(CandidateNotFound, IdAmbiguous):
            get(home, prefix)
            return home
    return homes[0]


def get(home: Home, prefix: str) -> Candidate:
    """Return the one candidate whose id starts with *prefix*; `cand-` may be left out."""
    matches = [
        one
        for one in candidates(home)
        if one.id.startswith(prefix) or one.id.startswith(f"cand-{prefix}")
    ]
    exact = [one for one in matches if one.id == prefix]
    if not prefix or not matches:
        raise CandidateNotFound(prefix)
    if len(matches) > 1 and not exact:
        raise IdAmbiguous(prefix, [one.id for one in matches])
    return (exact or matches)[0]


def accept(memory: Memory, prefix: str) -> Record:
    """Log the candidate as a lesson or a pattern, and remove it from the inbox."""
    home = holder(memory.homes, prefix)
    one = get(home, prefix)
    record = memory.log(
        **(_pattern_fields(one) if one.kind == "pattern" else _lesson_fields(one)),
        repo=one.repo,
        agent_id=one.agent,
        meta={"source": "inbox", "origin": "hooks", "session": one.session},
    )
    _remove(home, one)
    return record


def _lesson_fields(one: Candidate) -> dict[str, Any]:
    return {
        "kind": "lesson",
        "event_type": "error",
        "context": one.context,
        "command": one.worked,
        "lesson": one.text,
        "success_rate": f"1/{one.attempts}",
        "tags": tags_for(f"{one.intent} {one.error}", "SOLVED:")[1:],
    }


def _pattern_fields(one: Candidate) -> dict[str, Any]:
    return {"kind": "pattern", "pattern": one.text, "tags": tags_for(one.text, "PATTERN:")[1:]}


def edit(
    home: Home,
    prefix: str,
    *,
    lesson: str | None = None,
    error: str | None = None,
    worked: str | None = None,
) -> Candidate:
    """Change the wording of a candidate and return it."""
    given = {"lesson": lesson, "error": error, "worked": worked}
    changes = {
        name: redact_text(remove_hidden(text))[0]
        for name, text in given.items()
        if text is not None
    }
    # A process that ingests events counts in the same files.
    with hold(home.spool_lock):
        one = Candidate(**{**get(home, prefix)._asdict(), **changes})
        _write(home, one)
    return one


def drop(home: Home, prefix: str) -> Candidate:
    """Remove a candidate and return it."""
    one = get(home, prefix)
    _remove(home, one)
    return one


def _read(path: Path) -> Candidate | None:
    try:
        fields = json.loads(read_small(path, CANDIDATE_BYTES_MAX))
        one = Candidate(**{name: fields[name] for name in Candidate._fields if name in fields})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    numbers = all(isinstance(number, int | float) for number in (one.attempts, one.seen, one.at))
    lists = isinstance(one.tried, list) and isinstance(one.edits, list)
    texts = all(
        isinstance(text, str)
        for text in (one.id, one.intent, one.error, one.worked, one.repo, one.lesson, one.kind)
    )
    return one if numbers and lists and texts else None


def _write(home: Home, one: Candidate) -> None:
    path = home.inbox_folder / f"{one.id}.json"
    raw = json.dumps(one._asdict(), ensure_ascii=False, indent=1).encode("utf-8", "replace")
    atomic.replace(path, [raw])


def _remove(home: Home, one: Candidate) -> None:
    with suppress(OSError):
        (home.inbox_folder / f"{one.id}.json").unlink()
