"""The socket where the server listens to programs of its own user: hooks and commands (POSIX).

Only its owner can open it, so requests that come through it need no token. It is in the state
folder, or, where that is impossible, in a folder of this user among the temporary ones.
"""

from __future__ import annotations

import os
import socket
import stat
import sys
import tempfile
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.errors import ServerTrouble, unusable
from commonplace.files import nofollow

if TYPE_CHECKING:
    from commonplace.where.home import Home

# Linux allows 107 bytes, macOS 103.
PATH_BYTES_MAX = 100


def bind(home: Home) -> socket.socket | None:
    """Return the socket of *home*; `None` on Windows. The caller has claimed *home*.

    It does not listen yet, so that a client that comes too early is refused and need not wait.
    """
    if sys.platform == "win32":
        return None
    if _fits(home.server_socket):
        # Some file systems have no sockets: shared folders of virtual machines, for example.
        with suppress(OSError):
            return _bind(home.server_socket)
    path = _short_path(home)
    try:
        return _bind(path)
    except OSError as error:
        raise unusable(path, error) from error


def remove(path: str) -> None:
    """Remove the file of the socket. Only its own server may: the next one has the same path."""
    with suppress(OSError):
        Path(path).unlink()


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= PATH_BYTES_MAX


def _bind(path: Path) -> socket.socket:
    os.close(nofollow.open_folder(path.parent))  # `bind` would follow a link.
    path.unlink(missing_ok=True)  # A killed server may have left it.
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(os.fspath(path))
        path.chmod(0o600)  # Nobody can connect yet, because it does not listen.
    except OSError:
        bound.close()
        raise
    bound.setblocking(False)  # noqa: FBT003 (its signature)
    return bound


def _short_path(home: Home) -> Path:
    """Return a path for the socket in a folder that only this user can use."""
    user = os.geteuid()
    folder = Path(os.path.realpath(tempfile.gettempdir()), f"commonplace-{user}")
    name = blake2b(os.fsencode(home.state_folder), digest_size=8).hexdigest()
    path = folder / f"{name}.sock"
    # Clients read the path from `server.json` without decoding escapes.
    if not _fits(path) or not str(path).isascii() or any(sign in str(path) for sign in '"\\'):
        raise ServerTrouble(
            f"a socket cannot have the path `{path}`",
            "set TMPDIR to a folder with a short path in plain letters",
        )
    try:
        with suppress(FileExistsError):
            folder.mkdir(0o700)
        found = folder.lstat()
    except OSError as error:
        raise unusable(folder, error) from error
    # Anybody may create a folder there, before us.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != user or found.st_mode & 0o077:
        raise ServerTrouble(
            f"`{folder}` is not a folder that only you can use",
            "remove it, or set TMPDIR to a folder of your own",
        )
    return path
