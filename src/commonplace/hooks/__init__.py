"""`commonplace-hook`: reads an agent's event on stdin, prints a reply for that agent, exits 0.

With a server running, the event is sent to it unparsed, and its answer is printed; 250 ms are
allowed for all of that. Until then nothing is imported but what the interpreter has loaded anyway
and the `_socket` module: a hook may take three starts of Python (docs/decisions/0007-hooks.md). So
this module knows nothing of agents. Without an answer, `offline.py` answers from the files.
"""

import os
import sys
import time

EVENT_BYTES_MAX = 64 << 20
# A larger event is read and cut to size here: a server need not hold twenty megabytes.
FORWARD_BYTES_MAX = 1 << 20
REPLY_BYTES_MAX = 64 << 10
DEADLINE_S = 0.25
HEAD_BYTES = 4096
# The server accepts 16 KiB for the head of a request.
ENVIRONMENT_CHARS_MAX = 8 << 10
_PARENTS_MAX = 64


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
        from commonplace.hooks import completion  # noqa: PLC0415 (start-up time)

        return completion.check(sender, raw, cwd, variables).encode()
    home = nearest_home(cwd, os.environ)
    _touch_mark(home, agent)
    if len(raw) <= FORWARD_BYTES_MAX:
        answer = ask_server(home, sender, raw, cwd, variables)
        if answer is not None:
            return answer
    if "--ensure" in arguments:
        from commonplace.hooks import ensure  # noqa: PLC0415 (start-up time)

        ensure.start_server(home, cwd)
    from commonplace.hooks import offline  # noqa: PLC0415 (start-up time)

    return offline.answer(sender, raw, cwd, variables).encode("utf-8", "replace")


def _write_stdout(answer: bytes) -> None:
    while answer:
        answer = answer[os.write(1, answer) :]


def ask_server(home: str, agent: str, raw: bytes, cwd: str, variables: list[str]) -> bytes | None:
    """The server's answer; `None` if there is no server or it does not answer in time."""
    try:
        with open(f"{home}/.state/server.json", encoding="utf-8") as stream:
            server = stream.read(HEAD_BYTES)
    except (OSError, ValueError):
        return None
    host_name, port, key = (_field(server, name) for name in ("host", "port", "key"))
    # A repository's home may come from a stranger: nothing is sent to another machine.
    if host_name not in ("127.0.0.1", "::1") or not port.isdecimal() or not key:
        return None
    if not _is_locked(f"{home}/.state/server.lock"):
        return None  # A killed server left the file; another program may have its port by now.
    # `socket` takes as long to load as the rest of the hook.
    import _socket  # noqa: PLC0415

    until = time.monotonic() + DEADLINE_S
    link = _socket.socket(
        _socket.AF_INET6 if ":" in host_name else _socket.AF_INET, _socket.SOCK_STREAM
    )
    try:
        request = (
            f"POST /api/v1/hook?agent={_quote(agent)}&cwd={_quote(cwd)}"
            f"&environment={','.join(variables)} HTTP/1.1\r\n"
            f"Host: {f'[{host_name}]' if ':' in host_name else host_name}:{port}\r\n"
            f"Authorization: Bearer {key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(raw)}\r\nConnection: close\r\n\r\n"
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


def _is_locked(path: str) -> bool:
    """Whether the server runs: it holds this lock until it ends (see `server/presence.py`)."""
    try:
        import fcntl  # noqa: PLC0415 (not on Windows)
    except ImportError:
        return True  # Windows: a lock cannot be tested so cheaply, and the key still decides.
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
    """The body of a complete reply; `None` for anything else."""
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


def _quote(text: str) -> str:
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/:"
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in os.fsencode(text))


def variable_names(environment: "os._Environ[str] | dict[str, str]") -> list[str]:
    """The names of the environment variables that are set, which show the agent that runs the hook.

    Never the values. Of too many names the last are kept: an agent adds its own to those it has.
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
    """The folder that an event names, found in its first bytes without parsing; "" if not found."""
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


def _touch_mark(home: str, agent: str) -> None:
    """Touch the file that shows `commonplace doctor` when this agent's hook last ran."""
    if not agent.replace("-", "").isalnum():
        return
    path = f"{home}/.state/hooks/{agent}"
    try:
        if os.path.islink(path):
            return  # We make no links; it could lead anywhere.
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


# --- The nearest home, by the rules of `homes.find` (a test compares the two) ---------------------


def nearest_home(cwd: str, environment: "os._Environ[str] | dict[str, str]") -> str:
    """The home in use in *cwd*, as `homes.find` would find it, without its imports."""
    own = environment.get("HOME") or environment.get("USERPROFILE") or os.path.expanduser("~")
    named = environment.get("COMMONPLACE_HOME")
    user = os.path.abspath(os.path.expanduser(named)) if named else f"{own}/.commonplace"
    folders = _parents(os.path.realpath(cwd))
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


def _parents(folder: str) -> list[str]:
    found = [folder]
    while len(found) < _PARENTS_MAX and os.path.dirname(found[-1]) != found[-1]:
        found.append(os.path.dirname(found[-1]))
    return found


def _home_in(folder: str, user: str) -> str:
    path = os.path.join(folder, ".commonplace")
    return path if os.path.isdir(path) and os.path.realpath(path) != os.path.realpath(user) else ""


def _git_directory(folder: str) -> str:
    """The git directory shared by all worktrees, if *folder* is the root of one; else ""."""
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
