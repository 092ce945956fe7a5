"""Episodes that are still going on, for harnesses without hooks: `start`, `note`, `end`.

A draft is one file in `.state/drafts/` with the episode so far, checked and redacted like a record.
Each call replaces it as a whole, so a process that is killed loses at most its own note. The id is
fixed at the start: an episode that is written twice is one record with two versions.

A draft that nobody has changed for a while is written as an episode with the outcome `unknown`, as
sessions are; it can still be ended later. One that nobody has noted anything in leaves no episode.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import (
    CommonplaceError,
    EpisodeNotStarted,
    IdAmbiguous,
    RecordInvalid,
    UsageError,
    unusable,
)
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.files.plain import read_small
from commonplace.learn.episodes import check_episode, record_episode
from commonplace.records import check_id, slug, to_utc
from commonplace.vocabulary import EPISODE_OUTCOMES
from commonplace.where import homes
from commonplace.where.head import git_head

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from commonplace.log.check import Finding
    from commonplace.recaller import Recaller
    from commonplace.records import Record
    from commonplace.where.home import Home

LOCK_S_MAX = 5.0
# As for sessions: without a change for this long, the episode is taken to be over.
IDLE = timedelta(minutes=30)
AGE_MAX = timedelta(days=14)
DRAFTS_MAX = 200
FILE_BYTES_MAX = 8 << 20
# Reserved for what `end` adds, so that an episode that could be noted can be ended.
END_BYTES = 2000


class Draft(NamedTuple):
    """An episode that is going on."""

    path: Path
    # Whether `start` was given the id: an agent has one other draft for each repository.
    named: bool
    # How many notes it has, and how many of them the episode that was written last has.
    notes: int
    written: int
    fields: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.fields["id"])

    @property
    def is_ended(self) -> bool:
        """Whether the process that ended it was interrupted before the episode was written."""
        return "outcome" in self.fields

    @property
    def last(self) -> datetime:
        """When it was last changed."""
        return _started(self.fields) + timedelta(seconds=self.fields["duration_seconds"])


class Note(NamedTuple):
    """What is added to an episode; what is not given is empty."""

    text: str = ""
    action: str = ""
    target: str = ""
    result: str = ""
    error: str = ""
    error_type: str = ""
    resolution: str = ""
    files: Sequence[str] = ()
    artifacts: Sequence[str] = ()
    constraints: Sequence[str] = ()


class Started(NamedTuple):
    """The draft that was started, and the id of the one before it if that was still open."""

    draft: Draft
    abandoned: str


def start(
    memory: Recaller,
    goal: str,
    *,
    phase: str = "",
    task_id: str = "",
    constraints: Sequence[str] = (),
    files: Sequence[str] = (),
    ident: str = "",
) -> Started:
    """Begin an episode. One that this agent left open in this repository is written first."""
    if not goal.strip():
        raise RecordInvalid("goal", "is empty", "say what the task is for")
    with _open(memory) as drafts:
        abandoned = ""
        for draft in drafts:
            if ident and draft.id == ident:
                raise RecordInvalid(
                    "id",
                    f"is `{ident}`, of an episode that is open since {draft.fields['timestamp']}",
                    "end that one first, or give another id",
                )
            if not ident and not draft.named and _is_ours(draft, memory):
                _write_as_unknown(memory, draft)
                abandoned = draft.id
        now = _now(memory)
        whole = ident or f"ep-{now:%Y-%m-%d}-{os.urandom(4).hex()}"
        draft = Draft(
            _path(memory.home, whole),
            bool(ident),
            0,
            0,
            {
                "id": whole,
                "kind": "episode",
                "task_id": task_id or whole,
                "timestamp": to_utc(now),
                "agent_id": memory.agent_id,
                "repo": memory.repository.name,
                "duration_seconds": 0,
                "context": {
                    **({"phase": phase} if phase else {}),
                    "goal": goal,
                    "constraints": list(constraints),
                    "files_involved": list(files),
                },
                "action_log": [],
                "errors_encountered": [],
                "artifacts_produced": [],
            },
        )
        return Started(_save(memory, draft), abandoned)


def note(memory: Recaller, given: Note, ident: str = "") -> Draft:
    """Add what is *given* to the open episode, or to the one with that id."""
    if not any(given):
        raise RecordInvalid("note", "is empty", "give a text, an action, an error or a file")
    with _open(memory) as drafts:
        draft = _find(memory, drafts, ident)
        fields = json.loads(json.dumps(draft.fields))
        seconds = fields["duration_seconds"] = _seconds(memory, fields)
        _add(fields, given, seconds)
        return _save(memory, draft._replace(fields=fields, notes=draft.notes + 1))


def _add(fields: dict[str, Any], given: Note, seconds: int) -> None:
    context = fields["context"]
    if given.text:
        context.setdefault("notes", []).append(given.text)
    if given.action:
        result = given.result or ("fail" if given.error else "")
        parts = {"target": given.target, "result": result, "error": given.error}
        action = {"t": seconds, "action": given.action}
        fields["action_log"].append(action | {name: text for name, text in parts.items() if text})
    elif given.target or given.result:
        raise RecordInvalid("action", "is missing", "`--target` and `--result` are of an action")
    errors = fields["errors_encountered"]
    if given.error:
        errors.append({"type": given.error_type or given.action, "message": given.error})
    elif given.error_type:
        raise RecordInvalid("error", "is missing", "`--error-type` is of an error")
    if given.resolution:
        unsolved = [error for error in errors if not error.get("resolution")]
        if not unsolved:
            raise RecordInvalid(
                "resolution", "is of no error", "give the error too, as `--error MESSAGE`"
            )
        unsolved[-1]["resolution"] = given.resolution
    for names, more in (
        (context["files_involved"], given.files),
        (fields["artifacts_produced"], given.artifacts),
        (context["constraints"], given.constraints),
    ):
        names += [name for name in dict.fromkeys(more) if name not in names]


def end(memory: Recaller, outcome: str, *, git_commit: str = "", ident: str = "") -> Record:
    """End the open episode, or the one with that id, and write it to the log."""
    if outcome not in EPISODE_OUTCOMES:
        raise RecordInvalid("outcome", f"is `{outcome}`, not one of {', '.join(EPISODE_OUTCOMES)}")
    with _open(memory, finish=False) as drafts:
        draft = _find(memory, drafts, ident)
        commit, branch = git_head(str(memory.repository.root or ""))
        fields = {
            **draft.fields,
            "duration_seconds": _seconds(memory, draft.fields),
            "outcome": outcome,
            "git_commit": git_commit or commit,
            **({"meta": {"branch": branch}} if branch else {}),
        }
        # First in the draft: if this process is killed, the next one writes the same episode.
        return _finish(memory, _save(memory, draft._replace(fields=fields), reserve=0))


def open_drafts(memory: Recaller) -> list[Draft]:
    """Return the episodes that are going on, the latest first."""
    drafts = [draft for draft in _read_all(memory.home) if not draft.is_ended]
    return sorted(drafts, key=lambda draft: draft.last, reverse=True)


def tidy(memory: Recaller, *, dry_run: bool = False) -> int:
    """Write the episodes that nobody has ended, and remove old drafts; return how many to write."""
    if not memory.home.drafts_folder.is_dir():
        return 0
    if dry_run:
        return len([draft for draft in _read_all(memory.home) if _is_due(draft, _now(memory))])
    with _open(memory) as drafts:
        now = _now(memory)
        due = [draft for draft in drafts if _is_due(draft, now)]
        for draft in due:
            _write_as_unknown(memory, draft, keep=True)
        latest = sorted(drafts, key=lambda draft: draft.last, reverse=True)
        kept = {one.path for one in latest[:DRAFTS_MAX] if now - one.last <= AGE_MAX}
        for draft in drafts:  # Damaged ones stay: `doctor` names them.
            if draft.path not in kept:
                _remove(draft.path)
    return len(due)


def damaged(home: Home) -> list[Finding]:
    """Return what `doctor` says of the drafts that cannot be read: such an episode is not shown."""
    from commonplace.log.check import Finding  # noqa: PLC0415 (only `doctor` needs it)

    reason = "this draft of an episode cannot be read: mend the file, or delete it"
    return [
        Finding("damaged draft", path, 0, reason, "")
        for path in sorted(home.drafts_folder.glob("*.json"))
        if _read(home, path) is None
    ]


def _is_due(draft: Draft, now: datetime) -> bool:
    return now - draft.last > IDLE and draft.notes > draft.written


# --- Files ------------------------------------------------------------------------------------


@contextmanager
def _open(memory: Recaller, *, finish: bool = True) -> Iterator[list[Draft]]:
    """Hold the lock of the drafts and yield them; with *finish*, write those that were ended."""
    home = memory.home
    if not home.path.is_dir():
        homes.make(home)
    with hold(home.lock_of(home.drafts_folder / "draft"), LOCK_S_MAX):
        drafts = _read_all(home)
        if finish:
            for draft in drafts:
                if draft.is_ended:
                    _finish(memory, draft)
            drafts = [draft for draft in drafts if not draft.is_ended]
        yield drafts


def _find(memory: Recaller, drafts: Sequence[Draft], ident: str) -> Draft:
    """Return the draft whose id starts with *ident*, else the one of this agent and repository."""
    if ident:
        found = [one for one in drafts if one.id == ident] or [
            one for one in drafts if one.id.startswith(ident)
        ]
    else:
        ours = [one for one in drafts if _is_ours(one, memory)]
        found = [one for one in ours if not one.named] or ours
    if not found:
        raise EpisodeNotStarted(memory.agent_id, memory.repository.short, ident)
    if len(found) > 1:
        ids = sorted(one.id for one in found)
        if ident:
            raise IdAmbiguous(ident, ids)
        raise UsageError(f"{len(ids)} episodes are open: {', '.join(ids)}", "name one with `--id`")
    return found[0]


def _is_ours(draft: Draft, memory: Recaller) -> bool:
    return (draft.fields["agent_id"], draft.fields["repo"]) == (
        memory.agent_id,
        memory.repository.name,
    )


def _save(memory: Recaller, draft: Draft, reserve: int = END_BYTES) -> Draft:
    """Write the draft, checked and redacted like the record it becomes."""
    prepared = memory.prepare(draft.fields)
    limit = memory.settings["line_bytes_max"] - reserve
    if len(prepared.line) > limit:
        raise RecordInvalid(
            "episode", f"is longer than {limit:,} bytes", "end it and start another"
        )
    draft = draft._replace(fields=prepared.record.fields)
    value = {"named": draft.named, "notes": draft.notes, "written": draft.written}
    raw = json.dumps({**value, "episode": draft.fields}, ensure_ascii=False)
    atomic.replace(draft.path, [raw.encode("utf-8")])
    return draft


def _finish(memory: Recaller, draft: Draft) -> Record:
    """Write the episode of a draft that was ended, then remove the draft."""
    record = record_episode(memory, draft.fields)
    _remove(draft.path)
    return record


def _write_as_unknown(memory: Recaller, draft: Draft, *, keep: bool = False) -> None:
    """Write the episode of a draft that nobody has ended, if anything was noted in it."""
    if draft.notes > draft.written:
        record_episode(memory, {**draft.fields, "outcome": "unknown"})
    if keep:
        _save(memory, draft._replace(written=draft.notes))
    else:
        _remove(draft.path)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise unusable(path, error) from error


def _path(home: Home, ident: str) -> Path:
    try:
        check_id(ident)
    except ValueError as error:
        raise RecordInvalid("id", str(error)) from None
    digest = blake2b(ident.encode(), digest_size=6).hexdigest()
    return home.drafts_folder / f"{slug(ident, 40) or 'episode'}-{digest}.json"


def _read_all(home: Home) -> list[Draft]:
    return [
        draft for path in sorted(home.drafts_folder.glob("*.json")) if (draft := _read(home, path))
    ]


def _read(home: Home, path: Path) -> Draft | None:
    """Return the draft in a file; `None` if it is damaged, or was written for another id."""
    try:
        value = json.loads(read_small(path, FILE_BYTES_MAX))
        fields = value["episode"]
        named, notes, written = (value[name] for name in ("named", "notes", "written"))
        draft = Draft(path, named is True, int(notes), int(written), fields)
        check_episode(fields)
        is_whole = (
            path == _path(home, draft.id)
            and all(isinstance(fields[name], list) for name in _LISTS)
            and all(isinstance(fields["context"][name], list) for name in _CONTEXT_LISTS)
            and all(isinstance(fields[name], str) for name in ("task_id", "agent_id", "repo"))
        )
        draft.last  # noqa: B018 (it raises if a time is damaged)
    except _DAMAGES:
        return None
    return draft if is_whole else None


_DAMAGES = (
    *(CommonplaceError, OSError, ArithmeticError, LookupError, RecursionError),
    *(AttributeError, TypeError, ValueError),
)
_LISTS = ("action_log", "errors_encountered", "artifacts_produced")
_CONTEXT_LISTS = ("constraints", "files_involved")


def _now(memory: Recaller) -> datetime:
    return memory._clock()  # noqa: SLF001 (the clock of the memory is the only one)


def _started(fields: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(to_utc(fields["timestamp"])).astimezone(UTC)


def _seconds(memory: Recaller, fields: Mapping[str, Any]) -> int:
    """Return how long the episode has lasted; a clock that was put back counts as no time."""
    return max(round((_now(memory) - _started(fields)).total_seconds()), 0)
