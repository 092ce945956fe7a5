"""Ledgers: each agent's checkpoint in a repository, so that it can go on where it stopped.

An agent has one ledger in a repository; a checkpoint is its next version.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from commonplace.errors import RecordInvalid, RecordNotFound
from commonplace.foreign import flat, one_line
from commonplace.learn import handoffs
from commonplace.learn.worktree import of_repository
from commonplace.records import Episode, Ledger, to_utc
from commonplace.records.sentences import sentence_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from commonplace.learn.worktree import WorkTree
    from commonplace.recaller import Recaller
    from commonplace.records import Record

LEDGERS_MAX = 1000
EPISODES_MAX = 2000
LEARNED_MAX = 500
PATTERNS_MAX = 50
SHOWN_MAX = 8
FIELDS = ("agent_id", "last_checkpoint", "tasks_completed", "current_task", "state", "context")
LEARNED_KINDS = ("pattern", "anti_pattern", "lesson")


class Resume(NamedTuple):
    """What an agent needs to go on: its ledger, the files that differ now, what waits for it."""

    agent: str
    ledger: Record | None
    now: WorkTree | None
    patterns: list[dict[str, str]]
    handoffs: list[dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON shows it."""
        return {
            "agent_id": self.agent,
            "ledger": None if self.ledger is None else as_dict(self.ledger),
            "uncommitted_now": None if self.now is None else self.now.changed,
            "git_commit_now": None if self.now is None else self.now.commit,
            "patterns": self.patterns,
            "handoffs": self.handoffs,
        }

    @property
    def text(self) -> str:
        """The same as lines to read."""
        return "\n".join(_lines(self))


def checkpoint(
    memory: Recaller,
    agent: str,
    *,
    task: str | None = None,
    goal: str | None = None,
    done: bool = False,
    tech_stack: Sequence[str] = (),
    patterns: Sequence[str] = (),
) -> Record:
    """Write down what *agent* is doing, with the state of the repository, and return its ledger.

    What is not given stays as it was. With *done*, the task of the ledger, or *task*, is completed.
    *patterns* are ids of records; those that rest on the agent's episodes are added by themselves.
    """
    if not agent.strip():
        raise RecordInvalid("agent", "is empty")
    given = [memory.get(ident).id for ident in patterns]
    work = of_repository(memory)
    episodes = _episodes(memory, agent)
    learned = [*given, *_learned(memory, {one.id for one in episodes})]
    now = memory._clock()  # noqa: SLF001 (the clock of our own class)

    def fields_after(before: Record | None) -> dict[str, Any]:
        old: Mapping[str, Any] = before.fields if before is not None else {}
        kept = old.get("context")
        context = dict(kept) if isinstance(kept, dict) else {}
        context["tech_stack"] = _union(context.get("tech_stack"), tech_stack)
        context["patterns_learned"] = _union(context.get("patterns_learned"), learned)
        if goal is not None or done:
            context["current_goal"] = goal or ""  # The goal of a task ends with it.
        context.setdefault("current_goal", "")
        current = task if task is not None else str(old.get("current_task") or "")
        count = old.get("tasks_completed")
        # Of an agent that names its tasks, a session is no task of its own.
        is_named = done or bool(current)
        own = [one for one in episodes if not (is_named and one.meta.get("origin") == "hooks")]
        finished = _finished(own, str(old.get("last_checkpoint") or ""))
        if done:
            finished.add(current)
        return {
            "timestamp": to_utc(now),
            "last_checkpoint": to_utc(now),
            "tasks_completed": (count if isinstance(count, int) else 0) + len(finished),
            "current_task": "" if done else current,
            "state": _state(work, old.get("state")),
            "context": context,
        }

    found = current_ledger(memory, agent)
    if found is not None:
        return memory.edit(found.id, fields_after)
    entry = memory.prepare({"kind": "ledger", "agent_id": agent, **fields_after(None)})
    memory.store([entry], memory.trusted_home())
    return entry.record


def current_ledger(memory: Recaller, agent: str) -> Record | None:
    """Return the ledger of *agent* in this repository."""
    return next(iter(listed(memory, agent)), None)


def listed(memory: Recaller, agent: str | None = None, *, all_repos: bool = False) -> list[Record]:
    """Return the ledgers of trusted homes, the newest first; of one agent, or of all."""
    hits = memory.recent(
        LEDGERS_MAX,
        kinds=["ledger"],
        agent=agent,
        archived=True,
        automatic=True,
        all_repos=all_repos,
    )
    return [hit.record for hit in hits if isinstance(hit.record, Ledger)]


def show(memory: Recaller, agent: str) -> Record:
    """Return the ledger of *agent* in this repository. Raises `RecordNotFound`."""
    found = current_ledger(memory, agent)
    if found is None:
        raise RecordNotFound(
            agent,
            f"`{agent}` has no ledger here",
            f"`commonplace ledger checkpoint --agent {agent}` makes one;"
            " `commonplace ledger list --all-repos` shows all",
        )
    return found


def resume(memory: Recaller, agent: str) -> Resume:
    """Return what *agent* was doing here, what is uncommitted now, and what waits for it."""
    ledger = current_ledger(memory, agent)
    context = ledger.fields.get("context") if ledger is not None else None
    ids = context.get("patterns_learned") if isinstance(context, dict) else None
    return Resume(
        agent,
        ledger,
        of_repository(memory),
        [_named(memory, ident) for ident in (ids if isinstance(ids, list) else [])[-SHOWN_MAX:]],
        handoffs.listed(memory, agent),
    )


def as_dict(ledger: Record) -> dict[str, Any]:
    """Return the fields of a ledger, with its id and repository."""
    fields = {name: ledger.fields[name] for name in FIELDS if name in ledger.fields}
    return {**fields, "id": ledger.id, "repo": ledger.repo}


def _episodes(memory: Recaller, agent: str) -> list[Episode]:
    hits = memory.recent(
        EPISODES_MAX, kinds=["episode"], nodes=False, agent=agent, archived=True, automatic=True
    )
    return [hit.record for hit in hits if isinstance(hit.record, Episode)]


def _learned(memory: Recaller, episodes: set[str]) -> list[str]:
    """Return the ids of the records that rest on *episodes*, the oldest first."""
    hits = memory.recent(LEARNED_MAX, kinds=LEARNED_KINDS, automatic=True) if episodes else []
    return [hit.id for hit in reversed(hits) if not episodes.isdisjoint(hit.record.sources)]


def _finished(episodes: Iterable[Episode], since: str) -> set[str]:
    """Return the tasks whose episodes ended well after *since*."""
    last = _time(since)
    finished: set[str] = set()
    for one in episodes:
        start = _time(one.timestamp)
        if one.outcome.lower() != "success" or start is None:
            continue
        if last is None or start + timedelta(seconds=one.duration_seconds) > last:
            finished.add(one.task_id)
    return finished


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(to_utc(text))
    except ValueError:
        return None


def _state(work: WorkTree | None, before: object) -> dict[str, Any]:
    """Return what git says; without an answer, what was known before."""
    if work is None:
        return dict(before) if isinstance(before, dict) else {}
    return {
        "files_modified": work.changed,
        "uncommitted_changes": bool(work.changed),
        "last_git_commit": work.commit,
    }


def _union(before: object, more: Iterable[str]) -> list[str]:
    kept = [str(one) for one in before] if isinstance(before, list) else []
    return list(dict.fromkeys([*kept, *more]))[-PATTERNS_MAX:]


def _named(memory: Recaller, ident: object) -> dict[str, str]:
    try:
        record = memory.get(str(ident))
    except RecordNotFound:
        return {"id": str(ident), "text": "(no longer there)"}
    title = str(record.fields.get(record.title_field) or "")
    return {"id": record.id, "text": sentence_of(record) or title}


def _lines(found: Resume) -> Iterable[str]:
    if found.ledger is None:
        yield one_line(f"{found.agent} has no ledger here")
    else:
        yield from describe(found.ledger)
    if found.now is None:
        yield "Uncommitted now: unknown (no repository here, or git does not answer)"
    else:
        yield one_line(f"Uncommitted now: {_names(found.now.changed) or 'nothing'}")
    for pattern in found.patterns:
        yield one_line(f"Learned: [{pattern['id']}] {pattern['text']}")
    for handoff in found.handoffs[:SHOWN_MAX]:
        done = handoff.get("context", {}).get("what_was_done", "")
        yield one_line(f"Handoff from {handoff['from_agent']}: [{handoff['id']}] {flat(done)}")


def describe(ledger: Record) -> Iterable[str]:
    """Yield what the agent was doing, a line each."""
    fields = ledger.fields
    context, state = (_object(fields.get(name)) for name in ("context", "state"))
    completed = fields.get("tasks_completed", 0)
    tasks = f"{completed} task{'' if completed == 1 else 's'} completed"
    when = str(fields.get("last_checkpoint") or ledger.timestamp)
    yield one_line(f"{ledger.agent_id}, checkpoint of {when[:16].replace('T', ' ')}: {tasks}")
    if fields.get("current_task"):
        yield one_line(f"Task: {fields['current_task']}")
    if context.get("current_goal"):
        yield one_line(f"Goal: {flat(context['current_goal'])}")
    if context.get("tech_stack"):
        yield one_line(f"Uses: {_names(context['tech_stack'])}")
    if state.get("last_git_commit"):
        yield one_line(f"Commit then: {state['last_git_commit']}")
    if state.get("uncommitted_changes"):
        yield one_line(f"Uncommitted then: {_names(state.get('files_modified')) or 'something'}")


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _names(values: object) -> str:
    names = [flat(one) for one in values] if isinstance(values, list) else []
    more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    return ", ".join(names[:SHOWN_MAX]) + more
