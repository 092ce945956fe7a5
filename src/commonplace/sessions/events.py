"""Events: what happened in an agent's session, the same for every agent.

`payload.py` makes one from what an agent's hook sends. The spool holds events as JSON, by the names
of these fields.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any, NamedTuple

from commonplace import agents
from commonplace.characters import remove_hidden
from commonplace.redaction.fields import redact
from commonplace.redaction.suspicion import may_hold_secret
from commonplace.redaction.text import redact_text
from commonplace.sessions import shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

AT_MAX = 1e11  # The latest time that is accepted, in seconds since 1970: the year 5138.
# The longest secret there is: a private key with its first and last line.
_SECRET_CHARS_MAX = 8000
_NOT_TEXT = frozenset(["at", "files", "worktree", "guessed", "interrupted"])
# The folder and the repository are not among these: they are names that the disk already has.
_QUOTED = (
    *("session", "called", "name", "source", "subagent", "mode", "tool"),
    *("command", "output", "error", "prompt"),
)
_OWN_PROGRAMS = frozenset(["commonplace", "cpb", "commonplace-hook"])
_PREPARING_PROGRAMS = frozenset(["cd", "export", "source", "set", "pwd"])


class Event(NamedTuple):
    """One thing that happened in a session. Quoted text is cut to size and redacted."""

    agent: str  # The agent whose form it came in: the argument of `commonplace-hook`.
    kind: str  # One of `agents.agent.Kind`.
    session: str
    at: float
    key: str = ""  # The same when one event is delivered twice.
    called: str = ""  # The agent's own name for the event; some replies must repeat it.
    name: str = ""  # Who acts: the host, unless the user gave the agent a name.
    host: str = ""  # The agent that ran the hook.
    cwd: str = ""
    repo: str = ""
    short: str = ""
    root: str = ""
    worktree: bool = False
    source: str = ""
    subagent: str = ""
    mode: str = ""  # The agent's own mode, such as `plan`.
    tool: str = ""
    command: str = ""
    files: Sequence[str] = ()
    output: str = ""
    error: str = ""
    guessed: bool = False  # That it failed was not reported but concluded from its output.
    interrupted: bool = False
    prompt: str = ""

    @property
    def failed(self) -> bool:
        return self.kind == "failure"

    @property
    def action(self) -> str:
        """What the tool does (`agents.agent.ToolAction`); "" if that is not known."""
        return agents.find(self.agent).action_of(self.tool) or ""

    @property
    def edits(self) -> bool:
        """Whether the tool changes files."""
        return self.action in ("edit", "write")

    @property
    def run_command(self) -> str:
        """The command line that was run; "" for an edit, whose `command` may be a patch."""
        return "" if self.edits else self.command

    @property
    def dispatches(self) -> bool:
        """Whether the tool starts a subagent."""
        return self.action == "dispatch"


def from_fields(fields: Mapping[str, Any]) -> Event | None:
    """Return the event whose `_asdict()` is *fields*; `None` if they are not an event's."""
    known = {name: value for name, value in fields.items() if name in Event._fields}
    try:
        event = Event(**known)
    except TypeError:
        return None
    texts = all(
        isinstance(getattr(event, name), str) for name in Event._fields if name not in _NOT_TEXT
    )
    files = isinstance(event.files, list | tuple) and all(
        isinstance(name, str) for name in event.files
    )
    return event if texts and files and is_time(event.at) else None


def is_time(value: object) -> bool:
    """Whether *value* is a time in seconds that has a date."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= AT_MAX


def cut(text: str, chars_max: int) -> str:
    """Return *text*, or its head and tail: errors stand at either end."""
    if len(text) <= chars_max:
        return text
    half = (chars_max - 40) // 2
    # Secrets are removed before the cut: half of one would not be recognised.
    head, tail = (
        redact_text(part)[0]
        for part in (text[: half + _SECRET_CHARS_MAX], text[-half - _SECRET_CHARS_MAX :])
    )
    return f"{head[:half]}\n… [{len(text) - 2 * half:,} characters] …\n{tail[-half:]}"


def redact_event(event: Event) -> Event:
    """Return *event* without secrets and hidden characters in what an agent has sent, names too."""
    quoted: dict[str, Any] = {name: remove_hidden(getattr(event, name)) for name in _QUOTED}
    quoted["files"] = [remove_hidden(name) for name in event.files]
    if may_hold_secret(json.dumps(quoted, ensure_ascii=False)):
        quoted, found = redact(quoted)
        if any(redaction.field == "session" for redaction in found):
            # Sessions with different secrets for their names stay different sessions.
            digest = blake2b(event.session.encode("utf-8", "surrogatepass"), digest_size=8)
            quoted["session"] = f"redacted-{digest.hexdigest()}"
    return event._replace(**quoted)


def is_own_work(event: Event) -> bool:
    """Whether the event is a call of Commonplace itself, which must not be captured again."""
    if "commonplace" in event.tool:
        return True
    if not any(name in event.run_command for name in _OWN_PROGRAMS):
        return False
    try:
        programs = [_program(simple.words) for simple in shell.parse(event.run_command)]
    except shell.UnclosedQuote:
        return False
    programs = [program for program in programs if program and program not in _PREPARING_PROGRAMS]
    return bool(programs) and all(program in _OWN_PROGRAMS for program in programs)


def _program(words: list[str]) -> str:
    rest = shell.without_prefixes(words)
    if rest and rest[0].startswith("python") and rest[1:2] == ["-m"]:
        rest = rest[2:]
    return rest[0].replace("\\", "/").rpartition("/")[2].removesuffix(".exe") if rest else ""
