"""`commonplace-hook`: a guest in somebody's agent. It reads one event on stdin, prints what that agent reads, exits 0.

With a server running, the event goes there as it is and the answer comes back, within 250 ms for all of it. For that
nothing is imported but what the interpreter has loaded anyway and the bare socket module: a hook may take three starts
of Python (docs/decisions/0007-hooks.md). Without an answer, `alone.py` does the work from the files.
"""

import os
import sys
import time

EVENT_BYTES_MAX = 64 << 20
# What is larger is cut to size first, which takes reading it; a server need not hold twenty megabytes for that.
FORWARD_BYTES_MAX = 1 << 20
REPLY_BYTES_MAX = 64 << 10
DEADLINE_S = 0.25
HEAD_BYTES = 4096
_PARENTS_MAX = 64


def main() -> int:
    """Take what the event on stdin has to offer. Nothing that goes wrong here may disturb the agent."""
    try:
        arguments = sys.argv[1:]
        agent = next((word for word in arguments if not word.startswith("-")), "")
        if agent and sys.stdin is not None and not sys.stdin.isatty():
            raw = sys.stdin.buffer.read(EVENT_BYTES_MAX)
            _say(_answer(agent, raw, arguments))
    except Exception:  # noqa: BLE001, S110 (the outer edge of a surface: an agent must never see a traceback of ours)
        pass
    except KeyboardInterrupt:
        pass
    return 0


def _answer(agent: str, raw: bytes, arguments: list[str]) -> bytes:
    cwd = folder_of(raw) or _current_folder()
    host = host_of(os.environ)
    named = os.environ.get("COMMONPLACE_AGENT")
    dialect = f"{agent}:{named}" if named else agent
    if "check-completion" in arguments:
        from commonplace.hooks import completion  # noqa: PLC0415

        return completion.checked(dialect, raw, cwd, host).encode()
    home = nearest_home(cwd, os.environ)
    _mark(home, agent)
    if len(raw) <= FORWARD_BYTES_MAX:
        answer = asked(home, dialect, raw, cwd, host)
        if answer is not None:
            return answer
    if "--ensure" in arguments:
        from commonplace.hooks import ensure  # noqa: PLC0415

        ensure.start_server(home, cwd)
    from commonplace.hooks import offline  # noqa: PLC0415 (only without a server)

    return offline.answered(dialect, raw, cwd, host).encode("utf-8", "replace")


def _say(answer: bytes) -> None:
    while answer:
        answer = answer[os.write(1, answer) :]


def asked(home: str, agent: str, raw: bytes, cwd: str, host: str) -> bytes | None:
    """The server's answer, or `None` if there is no server or it does not answer in time."""
    try:
        with open(f"{home}/.state/server.json", encoding="utf-8") as stream:
            there = stream.read(HEAD_BYTES)
    except (OSError, ValueError):
        return None
    host_name, port, key = (_field(there, name) for name in ("host", "port", "key"))
    # A repository's home may come from a stranger: whatever its file says, nothing leaves this machine.
    if host_name not in ("127.0.0.1", "::1") or not port.isdecimal() or not key:
        return None
    if not _is_held(f"{home}/.state/server.lock"):
        return None  # A killed server left the file; by now its port may be anybody's.
    import _socket  # noqa: PLC0415 (`socket` takes as long to load as the rest of the hook)

    until = time.monotonic() + DEADLINE_S
    link = _socket.socket(
        _socket.AF_INET6 if ":" in host_name else _socket.AF_INET, _socket.SOCK_STREAM
    )
    try:
        request = (
            f"POST /api/v1/hook?agent={_quoted(agent)}&cwd={_quoted(cwd)}&host={_quoted(host)} HTTP/1.1\r\n"
            f"Host: {f'[{host_name}]' if ':' in host_name else host_name}:{port}\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(raw)}\r\nConnection: close\r\n\r\n"
        )
        link.settimeout(DEADLINE_S)
        link.connect((host_name, int(port)))
        link.settimeout(max(until - time.monotonic(), 0.001))
        link.sendall(request.encode("ascii") + raw)
        reply = b""
        while len(reply) <= REPLY_BYTES_MAX:
            link.settimeout(max(until - time.monotonic(), 0.001))
            some = link.recv(65536)
            if not some:
                break
            reply += some
            if time.monotonic() > until:
                return None
    except (OSError, ValueError):
        return None
    finally:
        link.close()
    return _body(reply)


def _is_held(path: str) -> bool:
    """Whether the server lives: it holds this file until it is gone (see `server/presence.py`)."""
    try:
        import fcntl  # noqa: PLC0415
    except ImportError:
        return True  # Windows: a held file cannot be probed so cheaply, and the key still decides.
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _body(reply: bytes) -> bytes | None:
    """What a whole reply brings; `None` for anything that is not one."""
    head, found, body = reply.partition(b"\r\n\r\n")
    words = head.split(None, 2)
    if not found or len(words) < 2 or not words[0].startswith(b"HTTP/1."):  # noqa: PLR2004
        return None
    if words[1] == b"204":
        return b""
    length = head.lower().partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0].strip()
    return body if words[1] == b"200" and length.isdigit() and int(length) == len(body) else None


def _field(text: str, name: str) -> str:
    """The value of a field in a flat JSON object without escapes."""
    value = text.partition(f'"{name}"')[2].partition(":")[2].lstrip()
    if value.startswith('"'):
        return value[1:].partition('"')[0]
    end = 0
    while end < len(value) and value[end].isalnum():
        end += 1
    return value[:end]


def _quoted(text: str) -> str:
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/:"
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in os.fsencode(text))


def host_of(environment: "os._Environ[str] | dict[str, str]") -> str:
    """Which agent runs the hook, whoever's settings it found it in; "" if nothing tells."""
    if environment.get("CURSOR_VERSION"):
        return "cursor"
    if environment.get("CLAUDECODE") or environment.get("CLAUDE_CODE_ENTRYPOINT"):
        return "claude-code"
    if environment.get("COPILOT_CLI") or environment.get("COPILOT_AGENT_SESSION_ID"):
        return "copilot"
    return ""


def folder_of(raw: bytes) -> str:
    """The folder an event names, read off its beginning without parsing it; "" if that is not plain to see."""
    head = raw[:HEAD_BYTES]
    for name in (b'"cwd"', b'"workspace_roots"'):
        value = head.partition(name)[2].lstrip(b" \t\r\n:[")
        if value.startswith(b'"'):
            end = 1
            while end < len(value) and value[end : end + 1] != b'"':
                end += 2 if value[end : end + 1] == b"\\" else 1
            quoted = value[1:end].replace(b"\\/", b"/")
            if end < len(value):
                # JSON's escapes are Python's here; few senders use any.
                folder = quoted.decode("unicode_escape" if b"\\" in quoted else "utf-8", "replace")
                if os.path.isabs(folder) and os.path.isdir(folder):
                    return folder
    return ""


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return os.path.abspath(os.sep)


def _mark(home: str, agent: str) -> None:
    """Leave a sign that this agent's hook ran; `commonplace doctor` looks at its age."""
    if not agent.replace("-", "").isalnum():
        return
    path = f"{home}/.state/hooks/{agent}"
    try:
        if os.path.islink(path):
            return  # Not ours: it could lead anywhere.
        os.utime(path)
    except OSError:
        try:
            if os.path.isdir(home):
                for folder in (f"{home}/.state", f"{home}/.state/hooks"):
                    if not os.path.isdir(folder):
                        os.mkdir(folder, 0o700)
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError:
            pass


# --- The nearest home, by the rules of `homes.find` (a test holds the two equal) -----------------------------------


def nearest_home(cwd: str, environment: "os._Environ[str] | dict[str, str]") -> str:
    """The home that counts in *cwd*, found without loading what usually finds it."""
    own = environment.get("HOME") or environment.get("USERPROFILE") or os.path.expanduser("~")
    named = environment.get("COMMONPLACE_HOME")
    user = os.path.abspath(os.path.expanduser(named)) if named else f"{own}/.commonplace"
    folders = _upwards(os.path.realpath(cwd))
    for folder in folders:
        git = _git_directory(folder)
        if git:
            main = os.path.dirname(git) if os.path.basename(git) == ".git" else ""
            return next(
                (home for root in (folder, main) if root and (home := _home_in(root, user))), user
            )
    own = os.path.realpath(own)
    for folder in folders:
        home = _home_in(folder, user)
        if home:
            return home
        if folder == own or not folder.startswith(own.rstrip(os.sep) + os.sep):
            break
    return user


def _upwards(folder: str) -> list[str]:
    found = [folder]
    while len(found) < _PARENTS_MAX and os.path.dirname(found[-1]) != found[-1]:
        found.append(os.path.dirname(found[-1]))
    return found


def _home_in(folder: str, user: str) -> str:
    path = os.path.join(folder, ".commonplace")
    return path if os.path.isdir(path) and os.path.realpath(path) != os.path.realpath(user) else ""


def _git_directory(folder: str) -> str:
    """The git directory that *folder*'s worktrees share, if it is a root of one."""
    git = os.path.join(folder, ".git")
    if not os.path.exists(git):
        bare = os.path.basename(folder) != ".git" and os.path.isfile(os.path.join(folder, "HEAD"))
        return folder if bare and os.path.isdir(os.path.join(folder, "objects")) else ""
    try:
        if not os.path.isdir(git):
            with open(git, encoding="utf-8") as stream:
                git = os.path.normpath(
                    os.path.join(folder, stream.read().removeprefix("gitdir:").strip())
                )
        pointer = os.path.join(git, "commondir")
        if os.path.isfile(pointer):
            with open(pointer, encoding="utf-8") as stream:
                git = os.path.normpath(os.path.join(git, stream.read().strip()))
    except (OSError, ValueError):
        return ""
    return os.path.realpath(git) if os.path.isfile(os.path.join(git, "HEAD")) else ""
