"""Events: what an agent's hook tells, in any of their dialects, as one value.

Agents differ in the names of events and fields, in what a tool's answer looks like and in how they say that it failed.
Whatever is not understood is left out; nothing here raises for what an agent sent.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from commonplace.redaction import redact, redact_text, suspicious
from commonplace.sessions import shell
from commonplace.sessions.intents import intents
from commonplace.where import repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

AGENTS = ("claude-code", "codex", "gemini", "cursor", "copilot", "opencode")
ALIASES = {
    "claude": "claude-code",
    "gemini-cli": "gemini",
    "copilot-cli": "copilot",
    "codex-cli": "codex",
}
OUTPUT_CHARS_MAX = 4000
COMMAND_CHARS_MAX = 16_000
PROMPT_CHARS_MAX = 8000
ERROR_CHARS_MAX = 2000
NAME_CHARS_MAX = 200
# The longest secret there is, a private key with its frame.
SECRET_CHARS_MAX = 8000
FILES_MAX = 50
AT_MAX = 1e11  # A time in seconds that still has a date.
TEXT_PARTS_MAX = 50

# An event's name in lower case, whatever the agent calls it, and what it is to us.
KINDS = {
    "sessionstart": "start",
    "session.created": "start",
    "session.compacted": "start",
    "userpromptsubmit": "prompt",
    "userpromptsubmitted": "prompt",
    "beforeagent": "prompt",
    "beforesubmitprompt": "prompt",
    "chat.message": "prompt",
    "posttooluse": "tool",
    "aftertool": "tool",
    "aftershellexecution": "tool",
    "aftermcpexecution": "tool",
    "afterfileedit": "tool",
    "tool.execute.after": "tool",
    "posttoolusefailure": "failure",
    "precompact": "compact",
    "precompress": "compact",
    "session.compacting": "compact",
    "stop": "stop",
    "agentstop": "stop",
    "afteragent": "stop",
    "session.idle": "stop",
    "stopfailure": "stop",
    "subagentstop": "subagent_stop",
    "sessionend": "end",
    "session.deleted": "end",
    "dispose": "end",
}
EDITING = frozenset(
    ["edit", "write", "multiedit", "notebookedit", "apply_patch", "create", "str_replace", "write_file", "replace",
     "edit_file", "search_replace", "delete", "delete_file", "strreplace", "patch", "afterfileedit"],
)  # fmt: skip
READING = frozenset(["read", "view", "read_file", "read_many_files", "notebookread"])
SHELLS = frozenset(
    ["bash", "shell", "run_shell_command", "exec_command", "local_shell", "powershell", "terminal"]
)
DISPATCHING = frozenset(["task", "agent", "subagent", "delegate"])


class Event(NamedTuple):
    """One thing that happened in an agent's session. What it quotes is cut to size and redacted."""

    agent: str  # Whose dialect it came in.
    kind: str  # start, prompt, tool, failure, compact, stop, subagent_stop, end
    session: str
    at: float
    key: str = ""  # The same for the same event delivered twice.
    called: str = ""  # The agent's own name for the event, which its answer must repeat.
    name: str = ""  # Who acts: the host, unless the user named the agent.
    host: str = ""
    cwd: str = ""
    repo: str = ""
    short: str = ""
    root: str = ""
    worktree: bool = False
    source: str = ""
    subagent: str = ""
    tool: str = ""
    command: str = ""
    files: Sequence[str] = ()
    output: str = ""
    error: str = ""
    guessed: bool = False  # That it failed is not told but read out of what it printed.
    interrupted: bool = False
    prompt: str = ""

    @property
    def failed(self) -> bool:
        return self.kind == "failure"

    @property
    def edits(self) -> bool:
        return self.tool in EDITING


def taken(agent: str, raw: bytes, *, at: float, cwd: str, host: str = "") -> Event | None:
    """The event in *raw*, or nothing if that holds none we know. *agent* may be `dialect:name`.

    *cwd* is where the hook runs; the event's own folder, if there is one, counts more.
    """
    payload = decoded(raw)
    if payload is None:
        return None
    dialect, _colon, named = agent.partition(":")
    dialect = ALIASES.get(dialect, dialect)
    # Others read Claude Code's settings. Any other hook is called by its own agent, whatever it inherited from one that
    # started it: `codex exec` in a shell of Claude Code is still Codex.
    host = host if dialect == "claude-code" else dialect
    called = _called(payload)
    kind = KINDS.get(called.lower().removeprefix("experimental."), "")
    if not kind:
        return None
    folder = _folder(payload, cwd)
    here = repository.find(Path(folder))
    event = Event(
        agent=dialect,
        kind=kind,
        session=_text(
            payload, "session_id", "sessionId", "sessionID", "conversation_id", "conversationId"
        )[:NAME_CHARS_MAX]
        or f"{dialect}@{folder}",
        at=at,
        called=called,
        name=named or (host if host in AGENTS else dialect),
        host=host or dialect,
        cwd=folder,
        repo=here.name,
        short=here.short,
        root=str(here.root or ""),
        worktree=here.root is not None
        and here.main_root is not None
        and here.root.resolve() != here.main_root,
        source="compact"
        if called.lower() == "session.compacted"
        else _text(payload, "source", "trigger", "reason", "status", "stop_reason", "stopReason")[
            :NAME_CHARS_MAX
        ],
        subagent=_text(
            payload, "agent_type", "subagent_type", "agent_name", "agentName", "agentType"
        )[:NAME_CHARS_MAX],
        prompt=cut(
            _text(payload, "prompt", "user_prompt", "initial_prompt", "initialPrompt"),
            PROMPT_CHARS_MAX,
        ),
    )
    if kind in ("tool", "failure"):
        event = _with_tool(event, payload)
    event = redacted(event)
    return event._replace(key=_key(event, payload))


def decoded(raw: bytes) -> dict[str, Any] | None:
    """The object in *raw*, read as leniently as can be; `None` if there is none."""
    try:
        value = json.loads(raw)
    except (UnicodeDecodeError, RecursionError, ValueError):
        try:
            value = json.loads(raw.decode("utf-8", "replace"), strict=False)
        except (RecursionError, ValueError):
            return None
    return value if isinstance(value, dict) else None


def cut(text: str, chars_max: int) -> str:
    """*text*, or its head and tail with how much was left out: errors stand at either end."""
    if len(text) <= chars_max:
        return text
    half = (chars_max - 40) // 2
    # Secrets go first: half of one would not be known for what it is.
    head, tail = (
        redact_text(part)[0]
        for part in (text[: half + SECRET_CHARS_MAX], text[-half - SECRET_CHARS_MAX :])
    )
    return f"{head[:half]}\n… [{len(text) - 2 * half:,} characters] …\n{tail[-half:]}"


def redacted(event: Event) -> Event:
    """*event* without secrets in anything it quotes."""
    quoted = {name: getattr(event, name) for name in ("command", "output", "error", "prompt")}
    quoted["files"] = list(event.files)
    if suspicious(json.dumps(quoted, ensure_ascii=False)):
        quoted, _found = redact(quoted)
    return event._replace(**quoted)


def of(fields: Mapping[str, Any]) -> Event | None:
    """The event that `Event._asdict()` gave *fields*; `None` if they are not one's."""
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
    timely = isinstance(event.at, int | float) and 0 <= event.at <= AT_MAX
    return event if texts and files and timely else None


_NOT_TEXT = frozenset(["at", "files", "worktree", "guessed", "interrupted"])


# --- Names and places ---------------------------------------------------------------------------------------------


def _called(payload: Mapping[str, Any]) -> str:
    """The event's name; Copilot's own format carries none, so there the fields tell."""
    name = _text(payload, "hook_event_name", "hookEventName", "event", "type")
    if name or "sessionId" not in payload:
        return name
    for field, event in (
        ("toolResult", "postToolUse"),
        ("customInstructions", "preCompact"),
        ("trigger", "preCompact"),
        ("agentName", "subagentStop"),
        ("stopReason", "agentStop"),
        ("reason", "sessionEnd"),
        ("source", "sessionStart"),
        ("prompt", "userPromptSubmitted"),
    ):
        if field in payload and not (field == "agentName" and "stopReason" not in payload):
            return event
    return "postToolUseFailure" if "error" in payload and "toolName" in payload else ""


def _folder(payload: Mapping[str, Any], cwd: str) -> str:
    """Where it happened: what the event says, if there is such a folder, else where the hook runs."""
    roots = payload.get("workspace_roots")
    first = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else ""
    for folder in (_text(payload, "cwd", "directory", "workingDirectory"), first):
        if folder and "\0" not in folder and Path(folder).is_absolute() and Path(folder).is_dir():
            return folder
    return cwd


def _key(event: Event, payload: Mapping[str, Any]) -> str:
    """What makes it this event: the agent's id for the call, else what it says."""
    call = _text(
        payload, "tool_use_id", "toolUseId", "tool_call_id", "callID", "call_id", "prompt_id"
    )
    said: tuple[str, ...] = ()
    if event.tool:
        said = (event.tool, event.command, *event.files, event.output[:500], event.error[:500])
    elif event.kind == "prompt":
        said = (event.prompt,)
    elif event.source == "compact":
        said = ("compact",)  # Another start of the same session, and soon after.
    digest = blake2b(digest_size=10)
    for part in (event.session, event.kind, call) if call else (event.session, event.kind, *said):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\x1f")
    return ("=" if call else "~") + digest.hexdigest()


# --- Tools --------------------------------------------------------------------------------------------------------


def _with_tool(event: Event, payload: Mapping[str, Any]) -> Event:
    given = _object(_value(payload, "tool_input", "toolArgs", "args", "toolInput", "input"))
    answer = _value(
        payload,
        "tool_response",
        "toolResult",
        "tool_result",
        "tool_output",
        "output",
        "result_json",
    )
    parsed = _object(answer)
    tool = _text(payload, "tool_name", "toolName", "tool") or (
        "shell" if "command" in payload else event.called
    )
    command = _command(given or payload)
    output = clean(_spoken_by(parsed if parsed is not None else answer))
    error = clean(_error(payload, parsed, output))
    interrupted = bool(
        _value(payload, "is_interrupt", "isInterrupt") or (parsed or {}).get("interrupted")
    )
    denied = (
        str((parsed or {}).get("resultType") or (parsed or {}).get("result_type") or "").lower()
        == "denied"
    )
    told = event.kind == "failure" or bool(error) or _told_failed(event.agent, parsed, output)
    unsure = told is None and event.agent in _NO_CODE
    guessed = (unsure or (not told and _hides_failure(command))) and _reads_failed(command, output)
    failed = bool(told) or guessed
    if tool.lower() in DISPATCHING:
        sent = (
            _text(given or {}, name)
            for name in ("subagent_type", "agent_type", "description", "prompt")
        )
        event = event._replace(
            prompt=cut("\n".join(part for part in sent if part), PROMPT_CHARS_MAX)
        )
    return event._replace(
        kind="failure" if failed and not denied else "tool",
        tool=clean(tool).lower()[:NAME_CHARS_MAX],
        command=cut(clean(command), COMMAND_CHARS_MAX),
        files=_files(given if given is not None else payload, command, event),
        output=cut(output, OUTPUT_CHARS_MAX),
        error=cut(error or output, ERROR_CHARS_MAX) if failed else "",
        guessed=guessed,
        interrupted=interrupted or denied,
    )


def _command(given: Mapping[str, Any]) -> str:
    value = _value(given, "command", "cmd", "script", "input")
    if isinstance(value, list):
        words = [word for word in value if isinstance(word, str)]
        shell_line = len(words) > 2 and words[-2] in ("-c", "-lc")  # noqa: PLR2004 (a shell, `-c`, the line)
        return words[-1] if shell_line else " ".join(words)
    return value if isinstance(value, str) else ""


# Patterns are compiled when they are first needed: hooks pay for every millisecond.
_PATCHED = r"(?m)^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$"


def _files(given: Mapping[str, Any], command: str, event: Event) -> list[str]:
    """The files a tool was given, as the repository calls them."""
    named = [
        _text(
            given, "file_path", "filePath", "absolute_path", "notebook_path", "target_file", "path"
        )
    ]
    several = _value(given, "files", "paths")
    if isinstance(several, list):
        named += [item for item in several if isinstance(item, str)]
    named += re.findall(_PATCHED, command) if "*** " in command else []
    base = event.root or event.cwd
    return list(dict.fromkeys(_within(clean(name), base) for name in named if name))[:FILES_MAX]


def _within(name: str, base: str) -> str:
    name, base = name.replace("\\", "/")[:1000], base.replace("\\", "/").rstrip("/")
    return name[len(base) + 1 :] if base and name.startswith(base + "/") else name


def _spoken_by(answer: object) -> str:
    """The text of a tool's answer."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, list):
        return "\n".join(text for part in answer[:TEXT_PARTS_MAX] if (text := _spoken_by(part)))
    if not isinstance(answer, dict):
        return ""
    streams = [
        answer[name]
        for name in ("stdout", "stderr")
        if isinstance(answer.get(name), str) and answer[name]
    ]
    if streams:
        return "\n".join(streams)
    names = (
        "output",
        "llmContent",
        "textResultForLlm",
        "text_result_for_llm",
        "text",
        "content",
        "returnDisplay",
    )
    return next((text for name in names if (text := _spoken_by(answer.get(name)))), "")


# A code counts on a line of its own: a message that speaks of `exit code 137` is no failure.
_CODE = (
    r"(?im)^[ \t]*<?(?:process exited with code|(?:command )?(?:exited|failed) with (?:exit )?code|"
    r"exit(?:ed)?[ _]code:?|exit status)[ \t]*(-?\d+)[ \t>.]*$"
)
_CODE_WITHIN = 600
# Claude Code and OpenCode tell of a failure by an event of its own; what a tool printed tells nothing more.
_OWN_EVENT = frozenset(["claude-code", "opencode"])
# How programs say that they failed, for agents that tell no exit code.
_FAILS = (
    r"(?mi)^(?:[\w./-]+: )?(?:error|fatal|panic|err!)(?:\[\w+\])?\b[:! ](?! ?\(none\))|^npm (?:ERR!|error\b)|"
    r"\bcommand not found\b|^Traceback \(most recent call last\)|: No such file or directory$|: Permission denied$|"
    r"^(?:=+ .*|Tests: .*|\s*)\b[1-9]\d* (?:failed|failing)\b|^(?:--- )?FAIL(?:ED)?\b|^test result: FAILED|"
    r"^BUILD FAILED|^make: \*\*\* |^E: "
)
_NO_CODE = frozenset(["codex", "cursor"])


def _told_failed(agent: str, parsed: Mapping[str, Any] | None, output: str) -> bool | None:
    """Whether the tool failed, if its answer tells: a flag or an exit code."""
    told = parsed or {}
    if told.get("is_error") is True or told.get("isError") is True or told.get("success") is False:
        return True
    kind = str(told.get("resultType") or told.get("result_type") or "").lower()
    if kind in ("failure", "error"):
        return True
    inner = told.get("metadata")
    code = _number(told, "exit_code", "exitCode", "exit", "returncode", "code")
    if code is None and isinstance(inner, dict):
        code = _number(inner, "exit_code", "exitCode", "exit")
    if code is None and agent not in _OWN_EVENT:
        said = re.search(_CODE, output[:_CODE_WITHIN]) or re.search(_CODE, output[-_CODE_WITHIN:])
        code = int(said.group(1)[:9]) if said else None
    if code is not None:
        return code != 0
    return False if kind else None


def _hides_failure(command: str) -> bool:
    """Whether the exit code may be that of another program: `pytest | tail` succeeds whatever the tests did."""
    return "|" in command or ";" in command


def _reads_failed(command: str, output: str) -> bool:
    """Whether what a program printed reads like a failure; one that only looks around prints other's errors."""
    return bool(re.search(_FAILS, output[-2 * _CODE_WITHIN :])) and bool(intents(command))


def _error(payload: Mapping[str, Any], parsed: Mapping[str, Any] | None, output: str) -> str:
    """What the event itself calls an error."""
    for holder in (payload, parsed or {}):
        error = _value(holder, "error", "error_message", "errorMessage")
        if isinstance(error, dict):
            error = error.get("message") or output
        if (
            isinstance(error, str)
            and error.strip()
            and error.strip().lower() not in ("(none)", "none", "null")
        ):
            return error
    return ""


# --- Reading loosely ----------------------------------------------------------------------------------------------


def clean(text: str) -> str:
    """*text* as it may be written: no NUL, no lone surrogate."""
    if "\0" in text:
        text = text.replace("\0", "")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _value(fields: Mapping[str, Any], *names: str) -> Any:  # noqa: ANN401
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _text(fields: Mapping[str, Any], *names: str) -> str:
    return next(
        (
            clean(fields[name])
            for name in names
            if isinstance(fields.get(name), str) and fields[name]
        ),
        "",
    )


def _number(fields: Mapping[str, Any], *names: str) -> int | None:
    value = _value(fields, *names)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _object(value: object) -> dict[str, Any] | None:
    """*value* if it is an object, or a text that holds one."""
    if isinstance(value, str) and value.lstrip().startswith("{") and len(value) < _OBJECT_CHARS_MAX:
        try:
            value = json.loads(value)
        except (RecursionError, ValueError):
            return None
    return value if isinstance(value, dict) else None


_OBJECT_CHARS_MAX = 32 << 20

# --- Whose work it is ---------------------------------------------------------------------------------------------

_OURS = frozenset(["commonplace", "cpb", "commonplace-hook"])
_SETTING_OUT = frozenset(["cd", "export", "source", "set", "pwd"])


def is_ours(event: Event) -> bool:
    """Whether it is our own tool or command at work: what it says is in the memory already, or a question to it."""
    if "commonplace" in event.tool:
        return True
    if not event.command or not any(name in event.command for name in _OURS):
        return False
    try:
        programs = [_program(simple.words) for simple in shell.commands(event.command)]
    except shell.Unfinished:
        return False
    programs = [program for program in programs if program and program not in _SETTING_OUT]
    return bool(programs) and all(program in _OURS for program in programs)


def _program(words: list[str]) -> str:
    real = shell.plain(words)
    if not real:
        return ""
    if real[0].startswith("python") and real[1:2] == ["-m"]:
        real = real[2:]
    return real[0].replace("\\", "/").rpartition("/")[2].removesuffix(".exe") if real else ""
