"""Handoffs: what one agent leaves for another, open until that one accepts it.

Acceptance is a later version of the record with `status`, `accepted_by` and `accepted_at`. It is
written while the log is held, so of two agents that accept at once one wins.
"""

from __future__ import annotations

from typing import Any

from commonplace.errors import HandoffClosed, RecordInvalid, RecordNotFound, UsageError
from commonplace.records import Handoff, to_utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from commonplace.recaller import Recaller
    from commonplace.records import Record

OPEN, ACCEPTED, CLOSED = "open", "accepted", "closed"
ANYBODY = ("any", "*")
LISTED_MAX = 1000
_CLOSED_WORDS = frozenset(["closed", "done", "completed", "accepted", "taken"])


def status_of(record: Handoff, *, is_rated: bool = False) -> str:
    """Return whether a handoff is open, accepted, or closed in another way.

    Feedback closes one too: earlier versions, and other programs, have no acceptance.
    """
    status = str(record.fields.get("status") or record.context.get("status") or "").lower()
    if status == ACCEPTED:
        return ACCEPTED
    return CLOSED if is_rated or status in _CLOSED_WORDS else OPEN


def is_for(record: Handoff, names: Collection[str]) -> bool:
    """Whether the handoff is for the agent that is called one of *names*, or for anybody."""
    to = record.to_agent.lower()
    return to in ANYBODY or to in {name.lower() for name in names}


def create(  # noqa: PLR0913 (the fields of a handoff)
    memory: Recaller,
    *,
    from_agent: str,
    to_agent: str,
    done: str,
    artifacts: Sequence[str] = (),
    git_state: str | None = None,
    needs_testing: Sequence[str] = (),
    known_issues: Sequence[str] = (),
    patterns: Sequence[str] = (),
) -> Record:
    """Write a handoff; without *git_state*, git says what it is. *patterns* are ids of records."""
    for name, value in (("from_agent", from_agent), ("to_agent", to_agent), ("done", done)):
        if not value.strip():
            raise RecordInvalid(name, "is empty")
    context = {
        "what_was_done": done,
        "artifacts": list(artifacts),
        "git_state": describe_git(memory) if git_state is None else git_state,
        "needs_testing": list(needs_testing),
        "known_issues": list(known_issues),
        "relevant_patterns": [memory.get(ident).id for ident in patterns],
    }
    given = {
        "kind": "handoff",
        "agent_id": from_agent,
        "from_agent": from_agent,
        "to_agent": to_agent,
        "context": context,
    }
    entry = memory.prepare(given)
    memory.store([entry], memory.trusted_home())
    return entry.record


def describe_git(memory: Recaller) -> str:
    """Return the commit and how many files differ from it; "" without a repository."""
    from commonplace.learn.worktree import of_repository  # noqa: PLC0415 (it starts processes)

    found = of_repository(memory)
    if found is None:
        return ""
    commit = f"commit {found.commit[:12]}" if found.commit else "no commit yet"
    changed = len(found.changed)
    return (
        f"{commit}, {changed} uncommitted file{'' if changed == 1 else 's'}" if changed else commit
    )


def listed(
    memory: Recaller, to: str = "", *, closed: bool = False, all_repos: bool = False
) -> list[dict[str, Any]]:
    """Return the handoffs of trusted homes, newest first, each with its `status`.

    *to* keeps those for that agent or for anybody; *closed* adds those that are not open.
    """
    hits = memory.recent(
        LISTED_MAX, kinds=["handoff"], archived=True, automatic=True, all_repos=all_repos
    )
    found: list[dict[str, Any]] = []
    for hit in hits:
        record = hit.record
        if not isinstance(record, Handoff) or (to and not is_for(record, [to])):
            continue
        status = status_of(record)
        if status == OPEN and any(memory.describe(record.id)["feedback"].values()):
            status = CLOSED
        if closed or status == OPEN:
            found.append(as_dict(record, status))
    return found


def as_dict(record: Handoff, status: str) -> dict[str, Any]:
    """Return the fields of a handoff that a reader needs, and its *status*."""
    names = ("id", "from_agent", "to_agent", "timestamp", "context", "accepted_by", "accepted_at")
    fields = {name: record.fields[name] for name in names if name in record.fields}
    return {**fields, "status": status, "repo": record.repo}


def accept(memory: Recaller, ident: str, agent: str) -> Record:
    """Close the handoff: *agent* takes it over. Raises `HandoffClosed` if somebody did already."""
    described = memory.describe(ident)
    if described.get("kind") != "handoff":
        raise RecordNotFound(ident, f"`{described['id']}` is a {described.get('kind')}, no handoff")
    if described.get("trusted") is False:
        raise UsageError(
            f"`{described['id']}` is in a home that is not trusted",
            "`commonplace trust` trusts that home, after you have looked into it",
        )
    is_rated = any(described["feedback"].values())

    def change(record: Record) -> Mapping[str, Any]:
        assert isinstance(record, Handoff)
        _check_open(record, agent, is_rated=is_rated)
        now = to_utc(memory._clock())  # noqa: SLF001 (the clock of our own class)
        return {"status": ACCEPTED, "accepted_by": agent, "accepted_at": now}

    return memory.edit(described["id"], change)


def _check_open(record: Handoff, agent: str, *, is_rated: bool) -> None:
    if not agent.strip():
        raise RecordInvalid("agent", "is empty")
    status = status_of(record, is_rated=is_rated)
    if status == ACCEPTED:
        who, when = record.accepted_by or "somebody", record.accepted_at[:16].replace("T", " ")
        raise HandoffClosed(record.id, f"was accepted by `{who}`{f' on {when}' if when else ''}")
    if status == CLOSED:
        raise HandoffClosed(record.id, "is closed already")
    if not is_for(record, [agent]):
        raise UsageError(
            f"`{record.id}` is for `{record.to_agent}`, not for `{agent}`",
            "leave it to that agent, or accept it in that name:"
            f" `commonplace handoff accept {record.id} --agent {record.to_agent}`",
        )
