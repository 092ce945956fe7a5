"""Tool calls: which tool was called with what, what it printed, and whether it failed."""

from __future__ import annotations

import re
from typing import Any

from commonplace.agents.agent import FailureReport
from commonplace.sessions.events import Event, cut
from commonplace.sessions.fields import as_object, clean_text, first_int, first_text, first_value
from commonplace.sessions.intents import intents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

OUTPUT_CHARS_MAX = 4000
COMMAND_CHARS_MAX = 16_000
PROMPT_CHARS_MAX = 8000
ERROR_CHARS_MAX = 2000
NAME_CHARS_MAX = 200
PATH_CHARS_MAX = 1000
FILES_MAX = 50
TEXT_PARTS_MAX = 50
# How far from either end of an output an exit code is looked for.
EXIT_CODE_CHARS = 600

# Patterns are compiled when they are first used: hooks pay for every millisecond.
_PATCHED_FILE = r"(?m)^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$"
# An exit code stands on a line of its own: a text that mentions `exit code 137` reports no failure.
_EXIT_CODE = (
    r"(?im)^[ \t]*<?(?:process exited with code|shellid: \w+ completed with exit code|"
    r"(?:command )?(?:exited|failed) with (?:exit )?code|"
    r"exit(?:ed)?[ _]code:?|exit status)[ \t]*(-?\d+)[ \t>.]*$"
)
# How programs report a failure in their output.
_FAILURE_TEXT = (
    r"(?mi)^(?:[\w./-]+: )?(?:error|fatal|panic|err!)(?:\[\w+\])?\b[:! ](?! ?\(none\))|"
    r"^npm (?:ERR!|error\b)|\bcommand not found\b|^Traceback \(most recent call last\)|"
    r": No such file or directory$|: Permission denied$|"
    r"^(?:=+ .*|Tests: .*|\s*)\b[1-9]\d* (?:failed|failing)\b|^(?:--- )?FAIL(?:ED)?\b|"
    r"^test result: FAILED|^BUILD FAILED|^make: \*\*\* |^E: "
)


def add_tool_call(event: Event, payload: Mapping[str, Any], failure_report: FailureReport) -> Event:
    """Return *event* with the tool call that *payload* describes."""
    given = as_object(first_value(payload, "tool_input", "toolArgs", "args", "toolInput", "input"))
    raw_result = first_value(
        payload,
        "tool_response",
        "toolResult",
        "tool_result",
        "tool_output",
        "output",
        "result_json",
    )
    result = as_object(raw_result)
    tool = clean_text(
        first_text(payload, "tool_name", "toolName", "tool")
        or ("shell" if "command" in payload else event.called)
    ).lower()[:NAME_CHARS_MAX]
    command = _command(given or payload)
    output = clean_text(_output_text(result if result is not None else raw_result))
    error = clean_text(_error_text(payload, result or {}, output))
    denied = _result_type(result or {}) == "denied"
    reported: bool | None = True
    if event.kind != "failure" and not error:
        reported = _reported_failure(result or {}, output, failure_report)
    guessed = _is_uncertain(command, failure_report, reported=reported) and _looks_failed(
        command, output
    )
    failed = bool(reported) or guessed
    event = event._replace(
        kind="failure" if failed and not denied else "tool",
        tool=tool,
        command=cut(clean_text(command), COMMAND_CHARS_MAX),
        files=_files(given if given is not None else payload, command, event.root or event.cwd),
        output=cut(output, OUTPUT_CHARS_MAX),
        error=cut(error or output, ERROR_CHARS_MAX) if failed else "",
        guessed=guessed,
        interrupted=denied
        or bool(
            first_value(payload, "is_interrupt", "isInterrupt") or (result or {}).get("interrupted")
        ),
    )
    return event._replace(prompt=_dispatched_prompt(given or {})) if event.dispatches else event


def _dispatched_prompt(given: Mapping[str, Any]) -> str:
    names = ("subagent_type", "agent_type", "description", "prompt")
    texts = (first_text(given, name) for name in names)
    return cut("\n".join(text for text in texts if text), PROMPT_CHARS_MAX)


def _command(given: Mapping[str, Any]) -> str:
    value = first_value(given, "command", "cmd", "script", "input")
    if isinstance(value, list):
        words = [word for word in value if isinstance(word, str)]
        is_shell = len(words) > 2 and words[-2] in ("-c", "-lc")  # noqa: PLR2004 (bash, -c, line)
        return words[-1] if is_shell else " ".join(words)
    return value if isinstance(value, str) else ""


def _files(given: Mapping[str, Any], command: str, base: str) -> list[str]:
    """Return the files that the tool was given, relative to *base* where they lie in it."""
    named = [
        first_text(
            given, "file_path", "filePath", "absolute_path", "notebook_path", "target_file", "path"
        )
    ]
    several = first_value(given, "files", "paths")
    if isinstance(several, list):
        named += [item for item in several if isinstance(item, str)]
    named += re.findall(_PATCHED_FILE, command) if "*** " in command else []
    relative = (_relative_path(clean_text(name), base) for name in named if name)
    return list(dict.fromkeys(relative))[:FILES_MAX]


def _relative_path(path: str, base: str) -> str:
    path, base = path.replace("\\", "/")[:PATH_CHARS_MAX], base.replace("\\", "/").rstrip("/")
    return path[len(base) + 1 :] if base and path.startswith(base + "/") else path


def _output_text(result: object) -> str:
    """Return the text of a tool's result."""
    if isinstance(result, str):
        return result
    if isinstance(result, list):
        return "\n".join(text for part in result[:TEXT_PARTS_MAX] if (text := _output_text(part)))
    if not isinstance(result, dict):
        return ""
    streams = (result.get(name) for name in ("stdout", "stderr"))
    texts = [text for text in streams if isinstance(text, str) and text]
    if texts:
        return "\n".join(texts)
    names = (
        "output",
        "llmContent",
        "textResultForLlm",
        "text_result_for_llm",
        "text",
        "content",
        "returnDisplay",
    )
    return next((text for name in names if (text := _output_text(result.get(name)))), "")


def _error_text(payload: Mapping[str, Any], result: Mapping[str, Any], output: str) -> str:
    """Return what the payload or the result states as an error."""
    for holder in (payload, result):
        error = first_value(holder, "error", "error_message", "errorMessage")
        if isinstance(error, dict):
            error = error.get("message") or output
        if (
            isinstance(error, str)
            and error.strip()
            and error.strip().lower() not in ("(none)", "none", "null")
        ):
            return error
    return ""


# --- Whether it failed ----------------------------------------------------------------------------


def _reported_failure(
    result: Mapping[str, Any], output: str, failure_report: FailureReport
) -> bool | None:
    """Whether the tool failed, from a flag or an exit code; `None` if neither is there."""
    flagged = result.get("is_error") is True or result.get("isError") is True
    result_type = _result_type(result)
    if flagged or result.get("success") is False or result_type in ("failure", "error"):
        return True
    code = first_int(result, "exit_code", "exitCode", "exit", "returncode", "code")
    metadata = result.get("metadata")
    if code is None and isinstance(metadata, dict):
        code = first_int(metadata, "exit_code", "exitCode", "exit")
    if code is None and failure_report != "event":
        code = _exit_code_in(output)
    if code is not None:
        return code != 0
    return False if result_type else None


def _result_type(result: Mapping[str, Any]) -> str:
    return str(result.get("resultType") or result.get("result_type") or "").lower()


def _exit_code_in(output: str) -> int | None:
    found = re.search(_EXIT_CODE, output[:EXIT_CODE_CHARS]) or re.search(
        _EXIT_CODE, output[-EXIT_CODE_CHARS:]
    )
    return int(found.group(1)[:9]) if found else None


def _is_uncertain(command: str, failure_report: FailureReport, *, reported: bool | None) -> bool:
    """Whether the tool may have failed although the agent did not report it."""
    if reported is None and failure_report == "output":
        return True
    # The exit code may be another program's: `pytest | tail` succeeds whatever the tests did.
    return not reported and ("|" in command or ";" in command)


def _looks_failed(command: str, output: str) -> bool:
    """Whether the output reads like a failure; commands that only read show others' errors."""
    return bool(re.search(_FAILURE_TEXT, output[-2 * EXIT_CODE_CHARS :])) and bool(intents(command))
