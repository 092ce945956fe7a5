"""A small HTTP client for the server of the nearest home, for programs that must start quickly.

Hooks and `commonplace recall` use it. It imports only what the interpreter has loaded anyway, and
`_socket`: the `socket` module alone takes as long to load as the rest of a hook.
"""

import os
import time

from commonplace.where.state import FOLDER, SOCKET, STATE, state_of_repository_home, user_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    # The path of the server's socket; on Windows its address, port and key.
    Server = str | tuple[str, int, str]

# Where the server answers what `commonplace recall` asks.
ASK_PATH = "/api/v1/ask"
PRESENCE_BYTES_MAX = 4096
GIT_FILE_CHARS_MAX = 8192
_PARENTS_MAX = 64
# As in the `stat` module.
_TYPE, _FILE, _FOLDER, _SOCKET = 0o170000, 0o100000, 0o040000, 0o140000


def find_server(state: str) -> "Server | None":
    """Return where this user's server listens, or `None`.

    On POSIX only a socket is used, and only one that this user owns: no other user can make one,
    and without a server nobody answers there. A port proves nothing: any user may listen on it.
    """
    if os.name != "posix":
        text = _presence(state)
        host, port, key = (_field(text, name) for name in ("host", "port", "key"))
        # Nothing is sent to another machine.
        is_here = host in ("127.0.0.1", "::1") and port.isdecimal() and key
        return (host, int(port), key) if is_here else None
    path = f"{os.path.realpath(state)}/{SOCKET}"
    if _is_own(path, _SOCKET):
        return path
    # The state folder may be too deep for a socket (see `server/own_socket.py`).
    path = _field(_presence(state), "socket")
    is_ours = path and _is_own(path, _SOCKET) and _is_own(os.path.dirname(path), _FOLDER, 0o077)
    return path if is_ours else None


def send(
    server: "Server", method: str, path: str, body: bytes, seconds: float, reply_bytes_max: int
) -> "bytes | None":
    """Send *body*; return the body of the reply, `None` without status 200 or 204 in time."""
    import _socket  # noqa: PLC0415 (without a server nothing needs it)

    until = time.monotonic() + seconds
    address: str | tuple[str, int]
    if isinstance(server, str):
        family, address, host, secret = _socket.AF_UNIX, server, "localhost", ""
    else:
        name, port, key = server
        family = _socket.AF_INET6 if ":" in name else _socket.AF_INET
        address, host = (name, port), f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
        secret = f"Authorization: Bearer {key}\r\n"
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{secret}"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    link = _socket.socket(family, _socket.SOCK_STREAM)
    try:
        link.settimeout(seconds)
        link.connect(address)
        link.settimeout(max(until - time.monotonic(), 0.001))
        link.sendall(head.encode("ascii") + body)
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


def _presence(state: str) -> str:
    """Return the text of the server's file, if it is a plain file of this user; else ""."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(f"{state}/server.json", flags)
    except (OSError, ValueError):
        return ""
    try:
        if not _is_own(descriptor, _FILE):
            return ""
        return os.read(descriptor, PRESENCE_BYTES_MAX).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def _is_own(path: "str | int", kind: int, open_to_others: int = 0) -> bool:
    """Whether *path* is no link but of this *kind*, this user's, and has no mode in the last."""
    try:
        found = os.lstat(path) if isinstance(path, str) else os.fstat(path)
    except (OSError, ValueError):
        return False
    is_users = os.name != "posix" or found.st_uid == os.geteuid()
    return is_users and found.st_mode & _TYPE == kind and not found.st_mode & open_to_others


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
    own, user = user_folder(environment), _user_home(environment)
    folders = _parents(os.path.realpath(cwd))
    # A folder that only looks like a bare repository may have come with the worktree around it.
    roots = [(folder, _git_directory(folder)) for folder in folders]
    roots += [(folder, folder) for folder in folders if _is_bare(folder)]
    for folder, git in roots:
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


def _user_home(environment: "os._Environ[str] | dict[str, str]") -> str:
    named = environment.get("COMMONPLACE_HOME")
    if named:
        return os.path.abspath(os.path.expanduser(named))
    return f"{user_folder(environment)}/{FOLDER}"


def _parents(folder: str) -> list[str]:
    found = [folder]
    while len(found) < _PARENTS_MAX and os.path.dirname(found[-1]) != found[-1]:
        found.append(os.path.dirname(found[-1]))
    return found


def _home_in(folder: str, user: str) -> str:
    path = os.path.join(folder, FOLDER)
    return path if os.path.isdir(path) and os.path.realpath(path) != os.path.realpath(user) else ""


def _is_bare(folder: str) -> bool:
    is_named = os.path.basename(folder) != ".git"
    has_head = is_named and os.path.isfile(os.path.join(folder, "HEAD"))
    return has_head and os.path.isdir(os.path.join(folder, "objects"))


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as stream:
        return stream.read(GIT_FILE_CHARS_MAX)


def _git_directory(folder: str) -> str:
    """Return the git directory shared by all worktrees, if *folder* is the root of one; else ""."""
    git = os.path.join(folder, ".git")
    try:
        if not os.path.isdir(git):
            if not os.path.isfile(git):
                return ""
            named = _read(git).removeprefix("gitdir:").strip()
            git = os.path.normpath(os.path.join(folder, named))
        pointer = os.path.join(git, "commondir")
        if os.path.isfile(pointer):
            git = os.path.normpath(os.path.join(git, _read(pointer).strip()))
    except (OSError, ValueError):
        return ""
    return os.path.realpath(git) if os.path.isfile(os.path.join(git, "HEAD")) else ""
