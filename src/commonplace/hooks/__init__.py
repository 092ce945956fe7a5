"""`commonplace-hook`: read an agent's event on stdin, print a reply for that agent, exit 0.

With a server running, the event is sent to it unparsed, and its answer is printed; this may
take 250 ms. Until then only `served.py` is imported: a hook may take as long as three starts of
Python (docs/decisions/0007-hooks.md). So this module does not depend on the agent. Without an
answer of a server, `offline.py` answers from the files.
"""

import os
import sys

from commonplace.served import find_server, nearest_home, quote, send, state_folder

EVENT_BYTES_MAX = 64 << 20
# A larger event is shortened here, so that a server need not hold twenty megabytes.
FORWARD_BYTES_MAX = 1 << 20
REPLY_BYTES_MAX = 64 << 10
DEADLINE_S = 0.25
HEAD_BYTES = 4096
# The server accepts 16 KiB for the head of a request.
ENVIRONMENT_CHARS_MAX = 8 << 10


def main() -> int:
    """Handle the event on stdin. No error in here may disturb the agent."""
    try:
        arguments = sys.argv[1:]
        agent = next((word for word in arguments if not word.startswith("-")), "")
        if agent and sys.stdin is not None and not sys.stdin.isatty():
            raw = sys.stdin.buffer.read(EVENT_BYTES_MAX)
            _write_stdout(_answer(agent, raw, arguments))
    except Exception:  # noqa: BLE001, S110 (the outer edge of a surface: an agent must never see a traceback of ours)
        pass
    except KeyboardInterrupt:
        pass
    return 0


def _answer(agent: str, raw: bytes, arguments: list[str]) -> bytes:
    cwd = folder_of(raw) or _current_folder()
    variables = variable_names(os.environ)
    name = os.environ.get("COMMONPLACE_AGENT")
    sender = f"{agent}:{name}" if name else agent
    if "check-completion" in arguments:
        from commonplace.hooks import stop_check  # noqa: PLC0415 (start-up time)

        return stop_check.check(sender, raw, cwd, variables).encode()
    home = nearest_home(cwd, os.environ)
    state = state_folder(home, os.environ)
    marked = _touch_mark(state, agent)
    if len(raw) <= FORWARD_BYTES_MAX:
        answer = ask_server(state, sender, raw, cwd, variables)
        if answer is not None:
            return answer
    if "--ensure" in arguments:
        from commonplace.hooks import background  # noqa: PLC0415 (start-up time)

        background.start_server(home, cwd)
    from commonplace.hooks import offline  # noqa: PLC0415 (start-up time)

    answer = offline.answer(sender, raw, cwd, variables).encode("utf-8", "replace")
    if not marked:
        _touch_mark(state, agent)
    return answer


def _write_stdout(answer: bytes) -> None:
    while answer:
        answer = answer[os.write(1, answer) :]


def ask_server(state: str, agent: str, raw: bytes, cwd: str, variables: list[str]) -> bytes | None:
    """Return the server's answer; `None` if there is no server or it does not answer in time."""
    server = find_server(state)
    if server is None:
        return None
    path = f"/api/v1/hook?agent={quote(agent)}&cwd={quote(cwd)}&environment={','.join(variables)}"
    return send(server, "POST", path, raw, DEADLINE_S, REPLY_BYTES_MAX)


def variable_names(environment: "os._Environ[str] | dict[str, str]") -> list[str]:
    """Return the names of the environment variables that are set, never their values.

    They show the agent that runs the hook. If there are too many, the last are kept: an agent adds
    its own after those that it inherits.
    """
    names: list[str] = []
    chars = 0
    for name in reversed(list(environment)):
        if environment.get(name) and name.isascii() and name.isidentifier():
            chars += len(name) + 1
            if chars > ENVIRONMENT_CHARS_MAX:
                break
            names.append(name)
    return names


def folder_of(raw: bytes) -> str:
    """Return the folder named in the first bytes of an event, without parsing; "" if none."""
    head = raw[:HEAD_BYTES]
    for name in (b'"cwd"', b'"workspace_roots"'):
        value = head.partition(name)[2].lstrip(b" \t\r\n:[")
        if value.startswith(b'"'):
            end = 1
            while end < len(value) and value[end : end + 1] != b'"':
                end += 2 if value[end : end + 1] == b"\\" else 1
            quoted = value[1:end].replace(b"\\/", b"/")
            if end < len(value):
                # Python has the same escapes as JSON here; few agents use any.
                folder = quoted.decode("unicode_escape" if b"\\" in quoted else "utf-8", "replace")
                if os.path.isabs(folder) and os.path.isdir(folder):
                    return folder
    return ""


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return os.path.abspath(os.sep)


def _touch_mark(state: str, agent: str) -> bool:
    """Touch the file that shows `commonplace doctor` when this agent's hook last ran.

    Its folder is made by `offline.py` or the server, who check that the home is one.
    """
    if not agent.replace("-", "").isalnum():
        return True
    path = f"{state}/hooks/{agent}"
    try:
        if os.path.islink(path):
            return True  # We create no links; it could point anywhere.
        os.utime(path)
    except OSError:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError:
            return False
    return True
