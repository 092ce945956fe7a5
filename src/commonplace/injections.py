"""What was given to agents: when, by which way, how many tokens, and which memories.

So that one can ask later what the memory cost and what came of it. Kept in the usage database of
this machine. Ids of memories and tasks may contain their words, so only hashes of them are kept.
"""

from __future__ import annotations

import json
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.records.ids import blake2b

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from commonplace.usage import Usage

# Who gave them to the agent: the hook at a start or a prompt, a brief, a context, or a recall.
SOURCES = ("start", "prompt", "brief", "context", "recall")
KEPT_MAX = 20_000
_ADD = (
    "INSERT INTO injection"
    " (at, source, tokens, ids, agent, repo, task, frames, covered, drift, nodes, resonance)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SINCE = (
    "SELECT at, source, tokens, ids, agent, repo, task, frames, covered, drift, nodes, resonance"
    " FROM injection WHERE at >= ? ORDER BY key"
)
_TRIM = "DELETE FROM injection WHERE key <= (SELECT max(key) FROM injection) - ?"


class Injection(NamedTuple):
    """One text with memories that an agent was given."""

    at: str
    source: str
    tokens: int
    ids: frozenset[int]
    agent: str = ""
    repo: str = ""
    # Of the task and of the session, if there are both, with a space between them.
    task: str = ""
    # Of a context: the tokens of each frame; whether one of its nodes is of the task's domain; how
    # far the best ones are from the question; how many nodes the working set has, and their mean.
    frames: Mapping[str, int] = {}
    covered: bool | None = None
    drift: float | None = None
    nodes: int = 0
    resonance: float = 0.0


def hashes(ids: Iterable[str]) -> frozenset[int]:
    """Return the numbers that stand for the *ids* of memories."""
    return frozenset(int.from_bytes(_digest(ident), "big", signed=True) for ident in ids)


def hash_of_task(task: str) -> str:
    """Return the word that stands for the id of a task, in either of its forms, or of a session."""
    return _digest(task.removeprefix("task.")).hex() if task else ""


def make(
    at: str,
    source: str,
    tokens: int,
    ids: Iterable[str],
    task: str = "",
    session: str = "",
    **more: Any,  # noqa: ANN401
) -> Injection:
    """Return an injection of the memories *ids* for a task and a session; it keeps no ids."""
    names = dict.fromkeys(hash_of_task(name) for name in (task, session) if name)
    return Injection(at, source, tokens, hashes(ids), task=" ".join(names), **more)


def add(usage: Usage, injection: Injection) -> None:
    """Have *injection* written down with the next counts."""
    row = injection._replace(
        ids=array("q", sorted(injection.ids)).tobytes(),  # type: ignore[arg-type]
        frames=json.dumps(dict(injection.frames), separators=(",", ":")),  # type: ignore[arg-type]
    )
    usage.write_later(_ADD, row)


def since(usage: Usage, at: str) -> list[Injection]:
    """Return the injections from *at* on, the oldest first."""
    return [_injection(row) for row in usage.read(_SINCE, (at,))]


def trim(usage: Usage) -> None:
    """Remove all but the latest."""
    usage.write_later(_TRIM, (KEPT_MAX,))


def _injection(row: tuple[Any, ...]) -> Injection:
    kept = Injection(*row)
    ids = array("q", bytes(row[3]))
    covered = None if kept.covered is None else bool(kept.covered)
    return kept._replace(ids=frozenset(ids), frames=json.loads(row[7]), covered=covered)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
