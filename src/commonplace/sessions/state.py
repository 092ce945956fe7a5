"""The state of each running session: the draft of its episode, open failures, memories shown.

One small file for each session in `.state/sessions/`. A process that changes one holds the drain
lock. A file can be deleted at any time: only an episode that is not written yet is lost.
"""

from __future__ import annotations

import json
import math
from contextlib import suppress
from hashlib import blake2b
from typing import Any, TypedDict, cast

from commonplace.files import atomic
from commonplace.files.plain import read_small
from commonplace.records import slug
from commonplace.sessions.events import is_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from commonplace.sessions.events import Event
    from commonplace.where.home import Home

SESSIONS_MAX = 200
SESSION_S_MAX = 14 * 86_400.0
FILE_BYTES_MAX = 512 << 10
SEEN_MAX = 400
SHOWN_MAX = 400
LOGGED_MAX = 40
COUNT_MAX = 10**9
# Two deliveries of one event are at most this far apart; the same content later is another event.
SAME_EVENT_S_MAX = 10.0


class Failure(TypedDict, total=False):
    """A command that failed and was not solved yet."""

    intent: str
    tried: list[str]
    error: str
    attempts: int
    edits: list[str]
    installs: list[str]  # What was installed since it last failed; absent in older files.


class SessionError(TypedDict, total=False):
    """An error as the episode will list it."""

    type: str
    message: str
    resolution: str


class Action(TypedDict, total=False):
    """A tool call as the episode will list it; `t` is in seconds from the start."""

    t: int
    action: str
    target: str
    result: str
    error: str


class Draft(TypedDict, total=False):
    """The fields in the file of a session."""

    session: str
    repo: str
    name: str
    root: str
    worktree: bool
    started: float
    last: float
    goal: str
    mode: str  # The agent's mode at the latest event that names one.
    role: str  # The kind of agent that the session was started as.
    constraints: list[str]
    logged: list[str]  # Ids of lessons that the agent stated.
    rated: list[str]  # Ids, or their beginnings, of records that the agent rated.
    ended: str  # The reason for the end.
    checked: str  # `success` or `failure` of the latest test or build; "" after an edit.
    done: int  # How many actions there were.
    written: int  # How many of them the latest written episode has.
    actions: list[Action]
    errors: list[SessionError]
    files: list[str]
    changed: list[str]
    open: list[Failure]
    seen: dict[str, list[Any]]  # Keys of events, each with its time and agent.
    shown: list[str]  # Ids of memories that were given to the agent.
    briefed: bool  # Whether a prompt has been answered: the first answer is a brief.


class State:
    """One session: the file that holds it, and its draft."""

    def __init__(self, path: Path, fields: Draft) -> None:
        self.path = path
        self.fields = fields

    def has_seen(self, event: Event) -> bool:
        """Whether *event* was applied before."""
        before = self.fields.get("seen", {}).get(event.key)
        if before is None:
            return False
        return event.key.startswith("=") or abs(event.at - before[0]) <= SAME_EVENT_S_MAX

    def mark_seen(self, event: Event) -> None:
        seen = self.fields.setdefault("seen", {})
        seen[event.key] = [event.at, event.agent]
        while len(seen) > SEEN_MAX:
            seen.pop(next(iter(seen)))

    def is_answered_by_other_hook(self, event: Event) -> bool:
        """Whether another agent's hook got the same event: one answer is enough."""
        before = self.fields.get("seen", {}).get(event.key)
        return (
            before is not None
            and before[1] != event.agent
            and abs(event.at - before[0]) <= SAME_EVENT_S_MAX
        )

    def shown_ids(self) -> frozenset[str]:
        """Return the ids of the memories that this session was given."""
        return frozenset(self.fields.get("shown", []))

    def mark_shown(self, ids: list[str]) -> None:
        before = self.fields.get("shown", [])
        shown = [*before, *(ident for ident in ids if ident not in before)]
        self.fields["shown"] = shown[-SHOWN_MAX:]

    def mark_logged(self, ids: list[str]) -> None:
        logged = dict.fromkeys([*self.fields.get("logged", []), *ids])
        self.fields["logged"] = list(logged)[-LOGGED_MAX:]

    def mark_rated(self, ids: list[str]) -> None:
        if ids:
            rated = dict.fromkeys([*self.fields.get("rated", []), *ids])
            self.fields["rated"] = list(rated)[-LOGGED_MAX:]

    def save(self) -> None:
        """Write the file as a whole. If that fails, the draft is lost, but no answer fails."""
        raw = json.dumps(self.fields, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )
        with suppress(OSError):
            atomic.write(self.path, [raw], durable=False)


def load(home: Home, session: str) -> State:
    """Return the state of *session*; an empty one if its file is missing or damaged."""
    digest = blake2b(session.encode("utf-8", "replace"), digest_size=6).hexdigest()
    path = home.sessions_folder / f"{slug(session, 40) or 'session'}-{digest}.json"
    return State(path, _read(path) or {"session": session})


def load_all(home: Home, unchanged_since: float = math.inf) -> list[State]:
    """Return the state of every session whose file can be read, the latest first.

    Only those whose files did not change after *unchanged_since*.
    """
    folder = home.sessions_folder
    found = [(path.stat().st_mtime, path) for path in folder.glob("*.json") if path.is_file()]
    return [
        State(path, fields)
        for changed, path in sorted(found, reverse=True)
        if changed <= unchanged_since and (fields := _read(path))
    ]


def prune(home: Home, now: float) -> None:
    """Remove the files of sessions that are too old, and the oldest of too many."""
    folder = home.sessions_folder
    with suppress(OSError):
        found = sorted(((path.stat().st_mtime, path) for path in folder.iterdir()), reverse=True)
        for index, (changed, path) in enumerate(found):
            if index >= SESSIONS_MAX or now - changed > SESSION_S_MAX:
                path.unlink(missing_ok=True)


# --- Validation: a damaged draft is dropped as a whole -----


def _read(path: Path) -> Draft | None:
    try:
        value = json.loads(read_small(path, FILE_BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        return None
    return cast("Draft", value) if isinstance(value, dict) and _is_valid(value) else None


def _is_valid(fields: dict[str, Any]) -> bool:
    if not all(check(fields[name]) for name, check in _CHECKS.items() if name in fields):
        return False
    # A draft with actions becomes an episode, which needs these.
    return "done" not in fields or fields.keys() >= {"session", "repo", "name", "started", "last"}


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COUNT_MAX


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_seen(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(one, list) and len(one) == 2 and is_time(one[0]) and isinstance(one[1], str)  # noqa: PLR2004 (time, agent)
        for one in value.values()
    )


def _is_actions(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _is_errors(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, dict) and isinstance(one.get("type"), str) for one in value
    )


def _is_failures(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, dict)
        and isinstance(one.get("intent"), str)
        and isinstance(one.get("error"), str)
        and _is_count(one.get("attempts"))
        and _is_texts(one.get("tried"))
        and _is_texts(one.get("edits"))
        and _is_texts(one.get("installs", []))
        for one in value
    )


_CHECKS: dict[str, Callable[[object], bool]] = {
    **dict.fromkeys(
        ("session", "repo", "name", "root", "goal", "mode", "role", "ended", "checked"), _is_text
    ),
    **dict.fromkeys(("started", "last"), is_time),
    **dict.fromkeys(("done", "written"), _is_count),
    **dict.fromkeys(("files", "changed", "shown", "constraints", "logged", "rated"), _is_texts),
    **dict.fromkeys(("worktree", "briefed"), lambda value: isinstance(value, bool)),
    "seen": _is_seen,
    "actions": _is_actions,
    "errors": _is_errors,
    "open": _is_failures,
}
