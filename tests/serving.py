"""A real server for the tests: started as a user would, asked over real sockets, and gone afterwards."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.where.home import Home

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WORDS_ONLY = "[embedder]\nkind = 'none'\n"


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Served(NamedTuple):
    """A running server: where it is and what it may be asked."""

    home: Path
    address: str
    pid: int

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def presence(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.home / ".state" / "server.json").read_bytes())
        return found

    @property
    def key(self) -> str:
        """What the server's own programs send over the port."""
        return str(self.presence["key"])

    @property
    def token(self) -> str:
        """The access token of the home itself."""
        return Home(self.home).server_token_file.read_text("ascii").strip()

    def ask(
        self, method: str, path: str, body: Any = None, token: str | None = None, **headers: str
    ) -> Reply:
        """Ask over the port, with *token*: the home's own if none is given, none if it is empty."""
        found = self.token if token is None else token
        if found:
            headers = {"Authorization": f"Bearer {found}", **headers}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        return self._reply(connection, method, path, body, headers)

    def ask_as_owner(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Ask as our own programs do, over the socket."""
        connection = http.client.HTTPConnection("localhost", timeout=30)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(30)
        connection.sock.connect(self.presence["socket"])
        return self._reply(connection, method, path, body, headers)

    def _reply(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Any,
        headers: dict[str, str],
    ) -> Reply:
        given = {
            "Content-Type": "application/json",
            **{name.replace("_", "-"): text for name, text in headers.items()},
        }
        try:
            raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            connection.request(method, path, body=raw, headers=given)
            response = connection.getresponse()
            return Reply(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def call(self, tool: str, token: str | None = None, **arguments: Any) -> Reply:
        return self.ask("POST", f"/api/v1/{tool}", arguments, token)


def command(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "commonplace", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "COMMONPLACE_HOME": str(home)},
        timeout=120,
        check=False,
    )


@contextmanager
def served(home: Path, settings: str = "", *flags: str) -> Iterator[Served]:
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "config.toml").exists():
        (home / "config.toml").write_text(WORDS_ONLY + settings, "utf-8")
    done = command("serve", "--ensure", "--json", "--port", "0", *flags, home=home)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    try:
        yield Served(home, told["address"], told["pid"])
    finally:
        # By name: what the test did may have made a nearer home than this one.
        stopped = command("serve", "--stop", "--home", str(home), home=home)
        assert stopped.returncode == 0, stopped.stderr


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
