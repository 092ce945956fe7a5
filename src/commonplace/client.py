"""A small HTTP client for the server of the nearest home, for programs that must start quickly.

Hooks and `commonplace recall` use it. It imports only what the interpreter has loaded anyway, and
`_socket`: the `socket` module alone takes as long to load as the rest of a hook.
"""

import os
import time

from commonplace.where.state import FOLDER, STATE, state_of_repository_home

# Where the server answers what `commonplace recall` asks.
ASK_PATH = "/api/v1/ask"
PRESENCE_BYTES_MAX = 4096
_PARENTS_MAX = 64


def find_server(state: str) -> "tuple[str, int, str] | None":
    """Return the address, port and key of the running server, or `None`."""
    try:
        with open(f"{state}/server.json", encoding="utf-8") as stream:
            text = stream.read(PRESENCE_BYTES_MAX)
    except (OSError, ValueError):
        return None
    host, port, key = (_field(text, name) for name in ("host", "port", "key"))
    # Nothing is sent to another machine.
    if host not in ("127.0.0.1", "::1") or not port.isdecimal() or not key:
        return None
    if not _is_locked(f"{state}/server.lock"):
        return None  # A killed server left the file; another program may have its port by now.
    return host, int(port), key


def post(
    server: "tuple[str, int, str]", path: str, body: bytes, seconds: float, reply_bytes_max: int
) -> "bytes | None":
    """Send *body*; return the body of the reply, `None` without status 200 or 204 in time."""
    import _socket  # noqa: PLC0415 (without a server nothing needs it)

    host, port, key = server
    until = time.monotonic() + seconds
    request = (
        f"POST {path} HTTP/1.1\r\nHost: {f'[{host}]' if ':' in host else host}:{port}\r\n"
        f"Authorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    link = _socket.socket(_socket.AF_INET6 if ":" in host else _socket.AF_INET, _socket.SOCK_STREAM)
    try:
        link.settimeout(seconds)
        link.connect((host, port))
        link.settimeout(max(until - time.monotonic(), 0.001))
        link.sendall(request.encode("ascii") + body)
        reply = b""
        while len(reply) <= reply_bytes_max:
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
        return True  # Windows has no cheap test; the key is checked anyway.
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


def _body(reply: bytes) -> "bytes | None":
    """Return the body of a complete reply; `None` for anything else."""
    head, found, body = reply.partition(b"\r\n\r\n")
    words = head.split(None, 2)
    if not found or len(words) < 2 or not words[0].startswith(b"HTTP/1."):  # noqa: PLR2004
        return None
    if words[1] == b"204":
        return b""
    length = head.lower().partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0].strip()
    return body if words[1] == b"200" and length.isdigit() and int(length) == len(body) else None


def _field(text: str, name: str) -> str:
    """Return the value of a field in a flat JSON object without escapes."""
    value = text.partition(f'"{name}"')[2].partition(":")[2].lstrip()
    if value.startswith('"'):
        return value[1:].partition('"')[0]
    end = 0
    while end < len(value) and value[end].isalnum():
        end += 1
    return value[:end]


def quote(text: str) -> str:
    """Return *text* quoted for a URL."""
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/:"
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in os.fsencode(text))


# --- The nearest home and its state, by the rules of `homes.find` (a test compares the two) -----


def nearest_home(cwd: str, environment: "os._Environ[str] | dict[str, str]") -> str:
    """Return the home in use in *cwd*, as `homes.find` would, without its imports."""
    own, user = _user_folder(environment), _user_home(environment)
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


def state_folder(home: str, environment: "os._Environ[str] | dict[str, str]") -> str:
    """Return the folder with this machine's state of *home*."""
    elsewhere = state_of_repository_home(home, _user_home(environment))
    return elsewhere or f"{home}/{STATE}"


def _user_folder(environment: "os._Environ[str] | dict[str, str]") -> str:
    return environment.get("HOME") or environment.get("USERPROFILE") or os.path.expanduser("~")


def _user_home(environment: "os._Environ[str] | dict[str, str]") -> str:
    named = environment.get("COMMONPLACE_HOME")
    if named:
        return os.path.abspath(os.path.expanduser(named))
    return f"{_user_folder(environment)}/{FOLDER}"


def _parents(folder: str) -> list[str]:
    found = [folder]
    while len(found) < _PARENTS_MAX and os.path.dirname(found[-1]) != found[-1]:
        found.append(os.path.dirname(found[-1]))
    return found


def _home_in(folder: str, user: str) -> str:
    path = os.path.join(folder, FOLDER)
    return path if os.path.isdir(path) and os.path.realpath(path) != os.path.realpath(user) else ""


def _git_directory(folder: str) -> str:
    """Return the git directory shared by all worktrees, if *folder* is the root of one; else ""."""
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
