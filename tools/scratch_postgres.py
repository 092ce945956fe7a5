"""Start a PostgreSQL server in a temporary folder, and talk to it.

There is no client library in the development environment, and the checks need little: the simple
query protocol over a Unix socket, without a password.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_BOOLEAN = 16  # The number of PostgreSQL's type `boolean`.
_PROTOCOL = 3 << 16


class PostgresError(Exception):
    """The server's message about a statement."""


def programs() -> Path | None:
    """Return the folder of `initdb` and `pg_ctl`, or None if PostgreSQL is not installed."""
    if not hasattr(socket, "AF_UNIX"):
        return None
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: int(one.parts[-2]))
    on_path = shutil.which("initdb")
    candidates = [*([Path(on_path).parent] if on_path else []), *reversed(debian)]
    return next((one for one in candidates if (one / "initdb").exists()), None)


@contextmanager
def server(binaries: Path) -> Iterator[Path]:
    """Run a server and yield the folder of its socket. It ends with the block."""
    # A path in pytest's temporary folder would be too long for a socket.
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        as_user = _user_other_than_root()
        if as_user:
            shutil.chown(folder, user=as_user["user"])
        data = folder / "data"
        settings = f"-k {folder} -c listen_addresses= -c fsync=off -c log_min_messages=fatal"
        make = ["--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"]
        _run([str(binaries / "initdb"), *make, "-D", str(data)], folder, as_user)
        control = [str(binaries / "pg_ctl"), "-D", str(data), "-w"]
        _run([*control, "-o", settings, "-l", str(folder / "log"), "start"], folder, as_user)
        try:
            yield folder
        finally:
            _run([*control, "-m", "immediate", "stop"], folder, as_user)


def _user_other_than_root() -> dict[str, Any]:
    """Return who runs the server: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    import pwd  # noqa: PLC0415 - Windows has no such module.

    known = {one.pw_name for one in pwd.getpwall()}
    return {"user": "postgres" if "postgres" in known else "nobody", "extra_groups": []}


def _run(command: list[str], folder: Path, as_user: dict[str, Any]) -> None:
    # The output goes to a file: the server would keep a pipe open.
    with (folder / "output").open("w+", encoding="utf-8") as output:
        try:
            subprocess.run(command, cwd=folder, stdout=output, stderr=output, check=True, **as_user)
        except subprocess.CalledProcessError as error:
            output.seek(0)
            raise PostgresError(f"{command[0]}: {output.read()}") from error


class Session:
    """A connection. `execute` runs one statement and returns its rows as texts."""

    def __init__(self, folder: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(120)
        self._socket.connect(str(folder / ".s.PGSQL.5432"))
        self._bytes = self._socket.makefile("rb")
        start = b"user\0postgres\0database\0postgres\0\0"
        self._socket.sendall(struct.pack("!ii", len(start) + 8, _PROTOCOL) + start)
        self._answer()

    def execute(self, statement: str) -> list[tuple[str | None, ...]]:
        text = statement.encode() + b"\0"
        self._socket.sendall(b"Q" + struct.pack("!i", len(text) + 4) + text)
        return self._answer()

    def close(self) -> None:
        self._bytes.close()
        self._socket.close()

    def _answer(self) -> list[tuple[str | None, ...]]:
        """Read messages until the server is ready, and return the rows among them."""
        rows: list[tuple[str | None, ...]] = []
        types: list[int] = []
        error = ""
        while True:
            kind, length = struct.unpack("!ci", self._bytes.read(5))
            body = self._bytes.read(length - 4)
            if kind == b"T":
                types = _types(body)
            elif kind == b"D":
                rows.append(_row(body, types))
            elif kind == b"E":
                parts = {part[:1]: part[1:].decode() for part in body.split(b"\0") if part}
                error = f"{parts[b'M']} ({parts[b'C']}) {parts.get(b'D', '')}".rstrip()
            elif kind == b"Z":
                if error:
                    raise PostgresError(error)
                return rows


def _types(body: bytes) -> list[int]:
    """Return the number of the type of each column of a row description."""
    found, at = [], 2
    for _column in range(int.from_bytes(body[:2], "big")):
        at = body.index(b"\0", at) + 1
        found.append(int.from_bytes(body[at + 6 : at + 10], "big"))
        at += 18
    return found


def _row(body: bytes, types: list[int]) -> tuple[str | None, ...]:
    """Return the values of a row. A boolean is 1 or 0, as in SQLite."""
    values: list[str | None] = []
    at = 2
    for kind in types:
        (length,) = struct.unpack_from("!i", body, at)
        at += 4
        if length < 0:
            values.append(None)
            continue
        text = body[at : at + length].decode()
        at += length
        values.append({"t": "1", "f": "0"}[text] if kind == _BOOLEAN else text)
    return tuple(values)
