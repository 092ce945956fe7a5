"""What is known of each session while it lasts: its draft of an episode, what failed, what was already shown.

One small file a session in `.state/sessions/`, this machine's own. Whoever reads one to write it holds the drain's
lock. It can be deleted at any time: an episode that was not written yet would be lost, nothing else.
"""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from commonplace.files import atomic
from commonplace.records import slug

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
# Two deliveries of one event lie this close together; the same words later are said anew.
SAME_S_MAX = 10.0


class State:
    """One session. `fields` is what is kept; the rest of the layer reads and changes it."""

    def __init__(self, path: Path, fields: dict[str, Any]) -> None:
        self.path = path
        self.fields = fields

    def is_repeated(self, event: Event) -> bool:
        """Whether *event* was taken in already; if not, it is from now on."""
        seen = self._map("seen")
        before = seen.get(event.key)
        if isinstance(before, list) and (
            event.key.startswith("=") or abs(event.at - before[0]) <= SAME_S_MAX
        ):
            return True
        seen[event.key] = [event.at, event.agent]
        while len(seen) > SEEN_MAX:
            seen.pop(next(iter(seen)))
        return False

    def answered_elsewhere(self, event: Event) -> bool:
        """Whether another hook of the same host has had this very event: its answer is enough."""
        before = self._map("seen").get(event.key)
        return (
            isinstance(before, list)
            and before[1] != event.agent
            and abs(event.at - before[0]) <= SAME_S_MAX
        )

    def shown(self) -> frozenset[str]:
        """The ids of the memories this session has been given."""
        return frozenset(self._list("shown"))

    def show(self, ids: list[str]) -> None:
        shown = [*self._list("shown"), *(ident for ident in ids if ident not in self.shown())]
        self.fields["shown"] = shown[-SHOWN_MAX:]

    def save(self) -> None:
        """Keep it, whole or not at all. What cannot be written is not kept: no answer fails over it."""
        raw = json.dumps(self.fields, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )
        with suppress(OSError):
            atomic.write(self.path, [raw], durable=False)

    def _map(self, name: str) -> dict[str, Any]:
        value = self.fields.get(name)
        if not isinstance(value, dict):
            value = self.fields[name] = {}
        return value

    def _list(self, name: str) -> list[Any]:
        value = self.fields.get(name)
        return value if isinstance(value, list) else []


def load(home: Home, session: str) -> State:
    """The state of *session*; a new one if there is none, or none that can be read."""
    name = f"{slug(session, 40) or 'session'}-{blake2b(session.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"
    path = home.sessions_folder / f"{name}.json"
    return State(path, _read(path) or {"session": session})


def others(home: Home) -> list[State]:
    """Every session there is, the latest first."""
    folder = home.sessions_folder
    found = [(path.stat().st_mtime, path) for path in folder.glob("*.json") if path.is_file()]
    return [
        State(path, fields)
        for _time, path in sorted(found, reverse=True)
        if (fields := _read(path))
    ]


def prune(home: Home, now: float) -> None:
    """Drop sessions that are long over, and the oldest when there are too many."""
    folder = home.sessions_folder
    with suppress(OSError):
        found = sorted(((path.stat().st_mtime, path) for path in folder.iterdir()), reverse=True)
        for place, (changed, path) in enumerate(found):
            if place >= SESSIONS_MAX or now - changed > SESSION_S_MAX:
                path.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            return None
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and _is_whole(value) else None


def _is_whole(fields: dict[str, Any]) -> bool:
    """Whether *fields* are what we wrote: a draft somebody else has been at is worth less than starting over."""
    shapes: dict[str, Callable[[Any], bool]] = {
        "seen": lambda value: all(
            isinstance(one, list) and len(one) == 2  # noqa: PLR2004 (when, and which agent)
            for one in value.values()
        ),
        "shown": _all_text,
        "files": _all_text,
        "changed": _all_text,
        "actions": lambda value: all(isinstance(one, dict) for one in value),
        "errors": lambda value: all(
            isinstance(one, dict) and isinstance(one.get("type"), str) for one in value
        ),
        "open": lambda value: all(
            isinstance(one, dict) and one.keys() >= _FAILURE and _all_text(one["tried"])
            for one in value
        ),
    }
    kinds: dict[str, type | tuple[type, ...]] = {
        "seen": dict,
        **dict.fromkeys(set(shapes) - {"seen"}, list),
    }
    kinds |= dict.fromkeys(("session", "repo", "name", "root", "goal", "ended", "checked"), str)
    kinds |= dict.fromkeys(("started", "last", "done", "written"), (int, float))
    return all(
        isinstance(fields[name], kind) for name, kind in kinds.items() if name in fields
    ) and all(shape(fields[name]) for name, shape in shapes.items() if name in fields)


def _all_text(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


_FAILURE = {"intent", "tried", "error", "attempts", "edits"}
