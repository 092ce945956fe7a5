"""What is known of each session while it lasts: its draft of an episode, what failed, what was already shown.

One small file a session in `.state/sessions/`, this machine's own. Whoever reads one to write it holds the drain's
lock. It can be deleted at any time: an episode that was not written yet would be lost, nothing else.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from commonplace.records import slug

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.sessions.events import Event

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
        if isinstance(before, list) and (event.key.startswith("=") or abs(event.at - before[0]) <= SAME_S_MAX):
            return True
        seen[event.key] = [event.at, event.agent]
        while len(seen) > SEEN_MAX:
            seen.pop(next(iter(seen)))
        return False

    def answered_elsewhere(self, event: Event) -> bool:
        """Whether another hook of the same host has had this very event: its answer is enough."""
        before = self._map("seen").get(event.key)
        return isinstance(before, list) and before[1] != event.agent and abs(event.at - before[0]) <= SAME_S_MAX

    def shown(self) -> frozenset[str]:
        """The ids of the memories this session has been given."""
        return frozenset(self._list("shown"))

    def show(self, ids: list[str]) -> None:
        shown = [*self._list("shown"), *(ident for ident in ids if ident not in self.shown())]
        self.fields["shown"] = shown[-SHOWN_MAX:]

    def save(self) -> None:
        """Keep it, whole or not at all. What cannot be written is not kept: no answer fails over it."""
        raw = json.dumps(self.fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        with suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
                stream.write(raw)
            temporary.replace(self.path)

    def _map(self, name: str) -> dict[str, Any]:
        value = self.fields.get(name)
        if not isinstance(value, dict):
            value = self.fields[name] = {}
        return value

    def _list(self, name: str) -> list[Any]:
        value = self.fields.get(name)
        return value if isinstance(value, list) else []


def load(home: Path, session: str) -> State:
    """The state of *session*; a new one if there is none, or none that can be read."""
    name = f"{slug(session, 40) or 'session'}-{blake2b(session.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"
    path = home / ".state" / "sessions" / f"{name}.json"
    return State(path, _read(path) or {"session": session})


def others(home: Path) -> list[State]:
    """Every session there is, the latest first."""
    folder = home / ".state" / "sessions"
    found = [(path.stat().st_mtime, path) for path in folder.glob("*.json") if path.is_file()]
    return [State(path, fields) for _time, path in sorted(found, reverse=True) if (fields := _read(path))]


def prune(home: Path, now: float) -> None:
    """Drop sessions that are long over, and the oldest when there are too many."""
    folder = home / ".state" / "sessions"
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
    return value if isinstance(value, dict) else None
