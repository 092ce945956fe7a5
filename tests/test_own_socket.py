"""Who is let in: the user's own programs by the socket, everybody else by a token, nobody without either."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commonplace import served as asking
from commonplace.errors import ServerTrouble
from commonplace.files.lock import hold
from commonplace.server import own_socket
from commonplace.server.home_token import HomeToken
from commonplace.where.home import Home
from serving import Served, command, served

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has no such sockets here")

RECALL = {"text": "anything"}


@pytest.fixture
def server(own_home: Path) -> Iterator[Served]:
    with served(own_home) as found:
        yield found


# --- The socket ---------------------------------------------------------------------------------------


def test_the_socket_is_its_owners_alone_and_ends_with_the_server(server: Served) -> None:
    path = Path(server.presence["socket"])
    found = path.lstat()

    assert stat.S_ISSOCK(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert asking.find_server(str(server.home / ".state")) == str(path)
    assert server.ask_as_owner("GET", "/health").json["pid"] == server.pid
    command("serve", "--stop", home=server.home)
    assert not path.exists()


def test_doctor_finds_nothing_wrong_with_the_socket(server: Served) -> None:
    assert Path(server.presence["socket"]).is_socket()
    command("doctor", "--fix", home=server.home)  # The test's own folder is open to others.
    done = command("doctor", home=server.home)

    assert "server.sock" not in done.stdout
    assert "All is well" in done.stdout + done.stderr
    other = server.home / ".state" / "other.sock"
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(other))
        assert "other.sock" in command("doctor", home=server.home).stdout


def test_requests_over_the_socket_keep_the_rules_of_browsers(server: Served) -> None:
    assert server.ask_as_owner("POST", "/api/v1/recall", RECALL).status == 200
    key = f"Bearer {server.key}"
    for path in ("/api/v1/recall", "/api/v1/hook?agent=claude-code", "/api/v1/stop"):
        for headers, status in (
            ({"Content_Type": "text/plain"}, 415),
            ({"Origin": "http://evil.example"}, 403),
            ({"Host": "evil.example"}, 421),
        ):
            assert server.ask_as_owner("POST", path, b"{}", **headers).status == status
            assert (
                server.ask("POST", path, b"{}", "", Authorization=key, **headers).status == status
            )
    assert server.ask_as_owner("GET", "/health", Authorization="Bearer wrong").status == 401


def test_a_killed_servers_socket_misleads_nobody(server: Served) -> None:
    path = Path(server.presence["socket"])
    os.kill(server.pid, signal.SIGKILL)
    with hold(Home(server.home).server_lock):  # Until the system has ended it.
        assert path.exists()
    where = asking.find_server(str(server.home / ".state"))
    assert where is not None
    assert asking.send(where, "GET", "/health", b"", 5.0, 1000) is None

    assert command("serve", "--ensure", "--port", "0", home=server.home).returncode == 0
    assert server.ask_as_owner("GET", "/health").json["pid"] != server.pid


def test_a_home_too_deep_for_a_socket_has_it_among_temporary_files(tmp_path: Path) -> None:
    home = tmp_path / ("deep" * 20) / "home"
    with served(home) as server:
        path = Path(server.presence["socket"])
        assert path.parent.name == f"commonplace-{os.geteuid()}"
        assert stat.S_IMODE(path.parent.lstat().st_mode) == 0o700
        assert asking.find_server(str(home / ".state")) == str(path)
        assert server.ask_as_owner("GET", "/health").json["pid"] == server.pid
    assert not path.exists()


@pytest.mark.parametrize("made", ["open to others", "a link", "a file"])
def test_a_folder_that_others_made_is_not_used(
    made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = Path(tempfile.mkdtemp(prefix="cp-", dir="/tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    folder = short / f"commonplace-{os.geteuid()}"
    if made == "open to others":
        folder.mkdir()
        folder.chmod(0o711)
    elif made == "a link":
        folder.symlink_to(tmp_path)
    else:
        folder.write_text("")

    with pytest.raises(ServerTrouble, match="only you can use"):
        own_socket.bind(Home(tmp_path / ("deep" * 30)))
    assert list(tmp_path.iterdir()) == []
    folder.rmdir() if made == "open to others" else folder.unlink()
    short.rmdir()


def test_a_temporary_folder_with_a_long_path_is_an_error_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("deep" * 30)))

    with pytest.raises(ServerTrouble, match="cannot have the path") as caught:
        own_socket.bind(Home(tmp_path / ("deep" * 30)))
    assert "TMPDIR" in caught.value.hint


def test_nobody_can_connect_before_the_server_answers(own_home: Path) -> None:
    (own_home / ".state").mkdir(parents=True)
    bound = own_socket.bind(Home(own_home))
    assert bound is not None
    path = bound.getsockname()
    with bound:
        assert asking.send(path, "GET", "/health", b"", 5.0, 1000) is None
    own_socket.remove(path)
    assert not Path(path).exists()


# --- Tokens -------------------------------------------------------------------------------------------


def test_the_port_is_closed_to_whoever_has_no_token(server: Served) -> None:
    for method, path in (
        ("POST", "/api/v1/recall"),
        ("POST", "/api/v1/hook?agent=claude-code"),
        ("POST", "/api/v1/stop"),
        ("POST", "/api/v1/memory_write"),
        ("GET", "/api/v1/stats"),
        ("GET", "/metrics"),
        ("POST", "/mcp"),
        ("GET", "/nowhere"),
    ):
        assert server.ask(method, path, {}, token="").status == 401, path
    assert set(server.ask("GET", "/health", token="").json) == {"status", "version"}


def test_to_revoke_the_last_token_opens_nothing(server: Served) -> None:
    ident = command("token", "add", "ana", "--json", home=server.home).stdout.split('"')[3]
    assert command("token", "revoke", ident, home=server.home).returncode == 0

    assert server.call("recall", "", **RECALL).status == 401


def test_the_homes_own_token_reads_and_writes_and_ends_with_its_file(server: Served) -> None:
    token, path = server.token, Home(server.home).server_token_file
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lesson = {"lesson": "x", "type": "error", "repo": "shop"}

    assert server.call("remember", token, **lesson).status == 200
    for operation in ("stop", "hook", "ask"):
        assert server.call(operation, token).status == 403
    path.unlink()
    assert server.call("recall", token, **RECALL).status == 401
    path.write_text("\n")
    assert server.call("recall", " ", **RECALL).status == 401
    command("serve", "--stop", home=server.home)
    with served(server.home) as again:
        assert again.token != token
        assert again.call("recall", **RECALL).status == 200
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_homes_own_token_stays_the_same(own_home: Path) -> None:
    token = HomeToken(Home(own_home))
    token.create()
    text = Home(own_home).server_token_file.read_text().strip()
    token.create()

    assert token.matches(text)
    for other in ("", "cpb_", text[:-1], text + "x", "\xff"):
        assert not token.matches(other)


def test_serve_says_how_a_client_gets_in(own_home: Path) -> None:
    code = "import sys; from commonplace.cli import main; sys.exit(main(['serve', '--port', '0']))"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        text = process.stdout.readline() + process.stdout.readline()
    process.terminate()
    process.wait(60)

    assert f"Authorization: Bearer $(cat '{Home(own_home).server_token_file}')" in text
    assert Home(own_home).server_token_file.read_text().strip() not in text


# --- Slow clients -------------------------------------------------------------------------------------


def test_slow_bodies_shut_nobody_out(server: Served) -> None:
    def slow(link: socket.socket, secret: str) -> None:
        head = f"POST /api/v1/recall HTTP/1.1\r\nHost: localhost\r\n{secret}Content-Length: 500\r\n"
        link.sendall(f"{head}Content-Type: application/json\r\n\r\n{{".encode())

    other = command("token", "add", "ana", home=server.home).stdout.strip()
    with ExitStack() as links:
        for _ in range(100):
            link = links.enter_context(socket.create_connection(("127.0.0.1", server.port), 30))
            slow(link, f"Authorization: Bearer {server.token}\r\n")
            own = links.enter_context(socket.socket(socket.AF_UNIX))
            own.connect(server.presence["socket"])
            slow(own, "")
        assert server.call("recall", **RECALL).status == 200
        assert server.call("recall", other, **RECALL).status == 200
        assert server.ask_as_owner("POST", "/api/v1/recall", RECALL).status == 200
