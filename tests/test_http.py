"""`commonplace serve`: real processes, real sockets, the official client in both eras."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from commonplace.errors import ServerTrouble
from commonplace.memory import Memory
from commonplace.server import control, presence
from commonplace.server.access_tokens import Tokens
from commonplace.where.home import Home
from conftest import ROOT
from serving import Served, alive, command, served

if TYPE_CHECKING:
    from collections.abc import Iterator

ERAS = ["auto", "legacy"]
POSIX_ONLY = pytest.mark.skipif(os.name != "posix", reason="signals")
LESSON = {"lesson": "run the migrations before the seed script", "type": "error", "repo": "shop"}


HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def server(own_home: Path) -> Iterator[Served]:
    with served(own_home) as found:
        yield found


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all tests that leave it and its home as they were."""
    folder = tmp_path_factory.mktemp("shared")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("COMMONPLACE_")]:
            patch.delenv(name)
        patch.setenv("HOME", str(folder))
        patch.setenv("PYTHONPATH", str(ROOT / "src"))
        patch.chdir(folder)
        with served(folder / "home") as found:
            yield found


# --- Who may ask ----------------------------------------------------------------------------------------------------


def test_host_and_origin_are_checked_on_every_route(shared_server: Served) -> None:
    routes = [("GET", "/health"), ("GET", "/metrics"), ("POST", "/mcp"), ("GET", "/mcp"), ("POST", "/api/v1/recall"),
              ("POST", "/api/v1/stop"), ("GET", "/api/v1/stats"), ("GET", "/api/v1/openapi.json"), ("GET", "/nowhere")]  # fmt: skip
    for method, path in routes:
        assert shared_server.ask(method, path, Host="evil.example").status == 421, path
        assert (
            shared_server.ask(method, path, Host=f"evil.example:{shared_server.port}").status == 421
        ), path
        for origin in (
            "http://evil.example",
            "null",
            f"http://localhost.evil.example:{shared_server.port}",
        ):
            assert shared_server.ask(method, path, Origin=origin).status == 403, (path, origin)
        assert (
            shared_server.ask(
                method, path, Host=f"127.0.0.1:{shared_server.port}", Origin="http://127.0.0.1:1"
            ).status
            == 403
        )
    own = shared_server.ask("GET", "/health", token="", Origin=shared_server.address)
    assert own.status == 200
    assert set(own.json) == {"status", "version"}, "a stranger learns no more than that"


def test_two_hosts_or_two_tokens_are_no_request(shared_server: Served) -> None:
    raw = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{shared_server.port}\r\nHost: evil.example\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", shared_server.port), timeout=10) as plug:
        plug.sendall(raw)
        assert plug.recv(100).startswith(b"HTTP/1.1 400")


def test_a_token_that_could_be_none_is_refused_like_any_other(shared_server: Served) -> None:
    for text in ("\xe9\xff", "x" * 10_000, "cpb_", "="):
        assert shared_server.ask("GET", "/api/v1/stats", token=text).status == 401


def test_a_token_opens_the_door_for_its_agent_and_its_scopes(server: Served) -> None:
    tokens = {
        scope: command(
            "token", "add", f"{scope}er", "--scopes", scope, home=server.home
        ).stdout.strip()
        for scope in ("read", "write", "admin")
    }

    assert server.call("recall", "", text="anything").status == 401
    assert server.call("recall", "cpb_wrong", text="anything").status == 401
    assert server.call("recall", tokens["read"], text="anything").status == 200
    assert server.call("remember", tokens["read"], **LESSON).status == 403
    stored = server.call("remember", tokens["write"], **LESSON)
    assert stored.status == 200
    with Memory.open(server.home) as memory:
        assert memory.get(stored.json["id"]).agent_id == "writeer"
    assert server.ask("POST", "/api/v1/stop", {}, tokens["write"]).status == 403
    assert server.ask("GET", "/health", token="").status == 200
    assert tokens["read"] not in (server.home / ".state" / "tokens.json").read_text("utf-8")

    listed = json.loads(command("token", "list", "--json", home=server.home).stdout)
    reader = next(row["id"] for row in listed if row["agent"] == "reader")
    assert command("token", "revoke", reader, home=server.home).returncode == 0
    assert server.call("recall", tokens["read"], text="anything").status == 401
    assert server.call("recall", tokens["admin"], text="anything").status == 200


# Arguments with which each tool that is not read-only would do something.
WRITING: dict[str, dict[str, Any]] = {
    "remember": LESSON,
    "feedback": {"id": "x", "outcome": "worked"},
    "forget": {"id": "x", "reason": "y"},
    "memory_write": {"path": "a.md", "content": "x"},
    "memory_replace": {"path": "a.md", "old": "x", "new": "y"},
    "memory_insert": {"path": "a.md", "line": 0, "text": "x"},
}


def test_whatever_is_not_read_only_needs_the_scope_write(server: Served) -> None:
    _token, reader = Tokens(Home(server.home)).add("reader", ["read"], "2026-01-01T00:00:00Z")

    async def talk(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools if not tool.annotations.read_only_hint} == set(WRITING)  # type: ignore[union-attr]
        for name, arguments in WRITING.items():
            refused = await client.call_tool(name, arguments)
            assert refused.is_error
            assert "scope `write`" in refused.content[0].text  # type: ignore[union-attr]

    for mode in ERAS:
        asyncio.run(over_http(server, talk, mode, reader))
    assert [
        server.call(name, reader, **arguments).status for name, arguments in WRITING.items()
    ] == [403] * len(WRITING)


def test_notes_over_http_are_the_tokens_own(server: Served) -> None:
    texts = {
        name: Tokens(Home(server.home)).add(name, ["write"], "2026-01-01T00:00:00Z")[1]
        for name in ("a", "b")
    }

    assert server.call("memory_write", texts["a"], path="CONTEXT.md", content="of a").status == 200
    assert server.call("memory_read", texts["b"], path="CONTEXT.md").status == 404
    assert server.ask("GET", "/api/v1/context", token=texts["a"]).json == {"text": "of a"}
    assert server.ask("GET", "/api/v1/context", token=texts["b"]).json == {"text": ""}


def test_a_session_belongs_to_the_token_that_began_it(server: Served) -> None:
    texts = {
        name: Tokens(Home(server.home)).add(name, ["write"], "2026-01-01T00:00:00Z")[1]
        for name in ("a", "b")
    }
    began = server.ask("POST", "/mcp", HELLO, texts["a"], **ACCEPT)
    session = {name.lower(): value for name, value in began.headers.items()}["mcp-session-id"]
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}

    assert (
        server.ask("POST", "/mcp", listing, texts["b"], **ACCEPT, Mcp_Session_Id=session).status
        == 404
    )
    assert (
        server.ask("POST", "/mcp", listing, texts["a"], **ACCEPT, Mcp_Session_Id=session).status
        == 200
    )


def test_damaged_tokens_let_nobody_in(server: Served) -> None:
    row = {"id": "t-1", "agent": "a", "scopes": ["read"], "created": "", "sha256": "0" * 64}
    for damaged in (
        "[{",
        "{}",
        '""',
        "null",
        json.dumps([row | {"sha256": 7}]),
        json.dumps([row | {"sha256": "é" * 64}]),
    ):
        (server.home / ".state" / "tokens.json").write_text(damaged, "utf-8")
        assert server.call("recall", text="anything").status == 503, damaged
        assert server.call("recall", "cpb_any", text="anything").status == 503, damaged


def test_another_host_is_refused_without_a_token_and_serves_with_one(own_home: Path) -> None:
    refused = command("serve", "--host", "0.0.0.0", "--port", "0", home=own_home)
    assert refused.returncode == 17
    assert "token" in refused.stderr
    text = command("token", "add", "guest", home=own_home).stdout.strip()
    with served(own_home, "", "--host", "0.0.0.0") as server:
        assert server.call("recall", "", text="anything").status == 401
        assert server.call("recall", text, text="anything").status == 200
        assert server.ask("GET", "/health", Host="rebound.example").status == 421


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_one_that_listens_everywhere_is_found_over_its_own_family(own_home: Path) -> None:
    command("token", "add", "guest", home=own_home)
    with served(own_home, "", "--host", "::") as server:
        assert server.address == f"http://[::1]:{server.port}"


# --- Limits ---------------------------------------------------------------------------------------------------------


def test_bodies_rates_and_types_have_limits(own_home: Path) -> None:
    with served(own_home, "[server]\nbody_bytes_max = 2048\nrate_max = 20\n") as server:
        assert server.call("recall", text="x" * 3000).status == 413
        raw = (
            b"POST /api/v1/recall HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        )
        raw += b"Authorization: Bearer " + server.token.encode() + b"\r\n"
        raw += b"Transfer-Encoding: chunked\r\n\r\n" + b"1000\r\n" + b"x" * 4096 + b"\r\n0\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plug:
            plug.sendall(raw)
            assert plug.recv(100).startswith(b"HTTP/1.1 413")
        assert server.ask("POST", "/api/v1/recall", b"{}", Content_Type="text/plain").status == 415
        statuses = [server.ask("GET", "/api/v1/stats").status for _ in range(60)]
        assert 429 in statuses
        assert statuses[0] == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"[]", 400), (b"\xff\xfe", 400), (b"[" * 100_000, 400), (b'{"text": 7}', 422), (b'{"nothing": 1}', 422),
     (b'{"text": ""}', 400), (b'{"text": "x", "limit": 10000}', 422), (b'{"text": "x", "kinds": ["\\ud800"]}', 400),
     (b'{"text": "x", "limit": NaN}', 400), (b'{"text": "x", "limit": ' + b"9" * 9000 + b"}", 400)],
)  # fmt: skip
def test_a_bad_body_is_answered_with_a_sentence(
    shared_server: Served, body: bytes, status: int
) -> None:
    reply = shared_server.ask("POST", "/api/v1/recall", body)

    assert (reply.status, bool(reply.json["error"])) == (status, True)
    assert shared_server.ask("GET", "/health").status == 200


def test_a_repository_is_found_by_its_plain_name_and_an_unknown_one_is_404(server: Served) -> None:
    server.call(
        "remember", lesson="the emulator must run first", type="error", repo="shop-1a2b3c4d"
    )
    server.call("remember", lesson="the emulator is slow", type="error", repo="app")

    found = server.call("recall", text="emulator", repo="shop").json["hits"]
    assert [hit["repo"] for hit in found] == ["shop-1a2b3c4d"]
    assert len(server.call("recall", text="emulator").json["hits"]) == 2, "it knows no folder"
    unknown = server.call("recall", text="emulator", repo="shpo")
    assert (unknown.status, unknown.json["error"]) == (404, "there is no repository `shpo`")
    assert "did you mean `shop`?" in unknown.json["hint"]
    server.call("remember", lesson="the emulator has a bug", type="error", repo="shop-11111111")
    several = server.call("remember", lesson="x", type="error", repo="shop")
    assert several.status == 409


def test_a_home_that_vanishes_is_a_tool_error_and_the_server_lives(server: Served) -> None:
    key = server.key
    assert server.call("remember", **LESSON).status == 200
    server.home.rename(server.home.with_name("away"))
    for tool, given in (
        ("recall", {"text": "migrations"}),
        ("remember", LESSON),
        ("memory_list", {}),
    ):
        reply = server.call(tool, key, **given)
        assert (reply.status, "it was removed or moved" in reply.json["error"]) == (503, True)
    assert not server.home.exists()  # Nothing was made behind the user's back.
    server.home.write_text("a file now")
    reply = server.call("remember", key, **{**LESSON, "lesson": "another"})
    assert reply.status == 503
    assert "cannot be used" in reply.json["error"]
    server.home.unlink()
    server.home.with_name("away").rename(server.home)
    assert server.call("remember", **{**LESSON, "lesson": "one more"}).status == 200
    assert len(server.call("recall", text="migrations seed").json["hits"]) == 1


def test_a_client_that_hangs_up_half_way_harms_nobody(server: Served) -> None:
    for part in (
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 500\r\n\r\n{half",
        b"GET /mcp HT",
        b"\x16\x03\x01",
    ):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plug:
            plug.sendall(part)
    assert server.call("recall", text="anything").status == 200
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plug:
        plug.sendall(
            b"POST /api/v1/recall HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        )
        plug.sendall(f"Authorization: Bearer {server.token}\r\n".encode())
        plug.sendall(b"Content-Length: 500\r\n\r\n{half")
    command("serve", "--stop", home=server.home)
    assert "Traceback" not in Home(server.home).server_log.read_text("utf-8")


# --- The protocol ---------------------------------------------------------------------------------------------------


async def over_http(server: Served, talk: Any, mode: str, token: str = "") -> Any:
    import httpx2

    headers = {"Authorization": f"Bearer {token or server.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http_client,
        Client(
            streamable_http_client(f"{server.address}/mcp", http_client=http_client), mode=mode
        ) as client,
    ):
        return await talk(client)


@pytest.mark.parametrize("mode", ERAS)
def test_two_agents_share_a_lesson_over_http(server: Served, mode: str) -> None:
    tokens = [
        Tokens(Home(server.home)).add(name, ["write"], "2026-01-01T00:00:00Z")[1]
        for name in ("a", "b")
    ]
    stored = asyncio.run(
        over_http(server, lambda c: c.call_tool("remember", LESSON), mode, tokens[0])
    )
    found = asyncio.run(
        over_http(server, lambda c: c.call_tool("recall", {"text": "seed script"}), mode, tokens[1])
    )

    assert stored.structured_content["id"] == found.structured_content["hits"][0]["id"]
    assert found.structured_content["tokens"] < 500


@pytest.mark.parametrize("mode", ERAS)
def test_resources_and_prompts_over_http(server: Served, mode: str) -> None:
    async def talk(client: Client) -> tuple[str, str]:
        stats = await client.read_resource("memory://stats")
        prompt = await client.get_prompt("write-lesson", {"what_happened": "the build broke"})
        return stats.contents[0].text, prompt.messages[0].content.text  # type: ignore[union-attr]

    stats, prompt = asyncio.run(over_http(server, talk, mode))
    assert json.loads(stats)["records"] == 0
    assert "the build broke" in prompt


def test_the_api_is_described_by_the_tools_themselves(server: Served) -> None:
    described = server.ask("GET", "/api/v1/openapi.json").json
    tools = asyncio.run(over_http(server, lambda client: client.list_tools(), "auto")).tools

    assert {f"/api/v1/{tool.name}" for tool in tools} <= set(described["paths"])
    assert "/api/v1/stop" in described["paths"]
    schemas = described["components"]["schemas"]
    referred = set(re.findall(r'"\$ref": "([^"]*)"', json.dumps(described)))
    assert referred == {
        "#/components/responses/error",
        *(f"#/components/schemas/{name}" for name in schemas),
    }
    asked = described["paths"]["/api/v1/recall"]["post"]["requestBody"]["content"][
        "application/json"
    ]["schema"]
    assert asked == next(tool.input_schema for tool in tools if tool.name == "recall")
    ident = server.call("remember", **LESSON).json["id"]
    assert server.ask("GET", f"/api/v1/records/{ident}").json["lesson"] == LESSON["lesson"]
    for nothing in (
        "records/nope",
        "records/note:default/" + "a" * 5000,
        "records/skill:" + "a" * 5000,
        "no/where",
    ):
        reply = server.ask("GET", f"/api/v1/{nothing}")
        assert (reply.status, bool(reply.json["error"])) == (404, True), nothing[:20]


def test_metrics_count_requests_by_route_and_no_more(server: Served) -> None:
    for path in ("/api/v1/recall", "/invented/by/anybody", "/api/v1/invented"):
        server.ask("POST", path, {"text": "anything"})

    page = server.ask("GET", "/metrics").body.decode()

    assert (
        'commonplace_requests_total{method="POST",route="/api/v1/recall",status="200"} 1.0' in page
    )
    assert "invented" not in page
    assert 'commonplace_request_seconds_bucket{le="0.0025",route="/api/v1/recall"}' in page


def test_metrics_tell_what_agents_were_given(server: Served) -> None:
    fields = {"lesson": "the proxy needs a restart after a new certificate", "repo": "app"}
    server.ask("POST", "/api/v1/remember", fields)
    server.ask("POST", "/api/v1/recall", {"text": "proxy certificate restart", "repo": "app"})

    given = server.ask("POST", "/api/v1/recall", {"text": "proxy restart", "repo": "app"})
    rating = {"id": given.json["hits"][0]["id"], "outcome": "worked"}
    server.ask("POST", "/api/v1/feedback", rating)
    page = server.ask("GET", "/metrics").body.decode()

    assert 'commonplace_feedback_after{outcome="worked"} 1.0' in page
    assert 'commonplace_checks_after{result="passed"} 0.0' in page
    assert 'commonplace_tasks{memories="with",outcome="succeeded"} 0.0' in page
    assert 'commonplace_injections{source="recall"} 2.0' in page
    assert 'commonplace_injected_tokens{source="recall"}' in page
    assert "commonplace_contexts_built 0.0" in page


# --- One process, and then none -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_twenty_that_ask_at_once_get_one_server(own_home: Path) -> None:
    own_home.mkdir()
    asking = [
        subprocess.Popen(
            [sys.executable, "-m", "commonplace", "serve", "--ensure", "--json", "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(20)
    ]
    told = [(process.communicate(timeout=120), process.returncode) for process in asking]

    assert [code for _out, code in told] == [0] * 20, [out[1] for out, code in told if code]
    answers = [json.loads(out[0]) for out, _code in told]
    assert len({answer["pid"] for answer in answers}) == 1
    assert sum(answer["started"] for answer in answers) == 1
    pid = answers[0]["pid"]
    stopped = command("serve", "--stop", "--json", home=own_home)
    assert json.loads(stopped.stdout) == {"stopped": True}
    assert not presence.is_alive(Home(own_home))
    assert not (own_home / ".state" / "server.json").exists()
    _wait_ended(pid)
    assert json.loads(command("serve", "--stop", "--json", home=own_home).stdout) == {
        "stopped": False
    }
    assert command("serve", "--status", home=own_home).returncode == 17


def test_a_second_server_on_the_same_home_is_refused(server: Served) -> None:
    second = command("serve", "--port", "0", home=server.home)

    assert second.returncode == 17
    assert server.address in second.stderr


@POSIX_ONLY
def test_what_a_killed_server_left_is_recognised(server: Served) -> None:
    os.kill(server.pid, signal.SIGKILL)
    _wait_gone(server.home)
    assert (server.home / ".state" / "server.json").exists()

    assert command("serve", "--status", home=server.home).returncode == 17
    assert not (server.home / ".state" / "server.json").exists()
    again = json.loads(
        command("serve", "--ensure", "--json", "--port", "0", home=server.home).stdout
    )
    assert again["started"]
    assert again["pid"] != server.pid
    assert (
        Served(server.home, again["address"], again["pid"]).call("remember", **LESSON).status == 200
    )


@POSIX_ONLY
def test_it_ends_by_itself_when_idle_and_leaves_nothing(own_home: Path) -> None:
    with served(own_home, "[server]\nidle_minutes = 0.02\n") as server:
        # Looking whether it is there does not keep it there.
        _wait_gone(own_home)
        assert not (own_home / ".state" / "server.json").exists()
        _wait_ended(server.pid)


@POSIX_ONLY
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_ends_it_cleanly(own_home: Path, name: str) -> None:
    if signal.getsignal(getattr(signal, name)) == signal.SIG_IGN:
        pytest.skip(f"whoever runs the tests ignores {name}, and so do its children")
    process, address = in_the_foreground()
    assert (
        Served(own_home, address, process.pid).ask("GET", "/health").status == 200
    )  # It has begun.
    process.send_signal(getattr(signal, name))

    assert process.wait(60) == 0, "what was written is flushed as at any other end"
    assert not (own_home / ".state" / "server.json").exists()


def test_one_that_is_ending_is_waited_for_before_the_next_is_started(server: Served) -> None:
    began = server.ask("POST", "/mcp", HELLO, **ACCEPT)
    session = {name.lower(): value for name, value in began.headers.items()}["mcp-session-id"]
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as stream:
        # While this is open the server takes its time to end.
        head = "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n"
        head += f"Authorization: Bearer {server.token}\r\nMcp-Session-Id: {session}\r\n\r\n"
        stream.sendall(head.encode())
        assert stream.recv(15) == b"HTTP/1.1 200 OK"
        assert server.ask("POST", "/api/v1/stop", token=server.key).status == 200
        # It may answer until it has closed its sockets, so nobody may find it from here on.
        assert presence.read(Home(server.home)) is None
        done = command("serve", "--ensure", "--json", "--port", "0", home=server.home)

    assert done.returncode == 0, done.stderr
    assert (
        Served(server.home, json.loads(done.stdout)["address"], 0)
        .call("recall", text="anything")
        .status
        == 200
    )


def test_a_server_that_holds_the_home_and_is_silent_is_not_doubled(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "SETTLE_S_MAX", 0.0)
    presence.claim(Home(own_home))  # Held by this process from here on, which answers nobody.

    for act in (lambda: control.ensure(Home(own_home), []), lambda: control.stop(Home(own_home))):
        with pytest.raises(ServerTrouble, match="does not answer"):
            act()
    assert not Home(own_home).server_log.exists(), "no second one was tried"
    told = command("serve", "--status", home=own_home)
    assert (told.returncode, told.stdout) == (17, "not answering\n")


def test_a_new_server_believes_nothing_an_old_one_left(own_home: Path) -> None:
    presence.write(Home(own_home), presence.Presence("127.0.0.1", 1, os.getpid(), "key", "0"))

    presence.claim(Home(own_home))

    assert presence.read(Home(own_home)) is None, (
        "or `--stop` might signal whoever has that process number now"
    )


def test_the_log_of_a_server_has_a_limit(own_home: Path) -> None:
    log = Home(own_home).server_log
    log.parent.mkdir(parents=True)
    for length, left in (
        (presence.LOG_BYTES_MAX, presence.LOG_BYTES_MAX),
        (presence.LOG_BYTES_MAX + 1, 0),
    ):
        log.write_bytes(b"x" * length)
        presence.trim_log(Home(own_home))
        assert log.stat().st_size == left


@pytest.mark.slow
def test_sessions_nobody_ended_make_room_for_new_ones(own_home: Path) -> None:
    few = "import commonplace.server.http as http; http.SESSIONS_KEPT, http.SESSIONS_MAX = 2, 4\n"
    process, address = in_the_foreground(few)
    server = Served(own_home, address, process.pid)

    def begun() -> tuple[int, str]:
        reply = server.ask("POST", "/mcp", HELLO, **ACCEPT)
        return reply.status, {name.lower(): value for name, value in reply.headers.items()}.get(
            "mcp-session-id", ""
        )

    first, *others = [begun() for _ in range(5)]
    assert [status for status, _session in (first, *others)] == [200, 200, 200, 200, 503]
    while begun()[0] != 200:
        os.sched_yield()
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    assert server.ask("POST", "/mcp", listing, **ACCEPT, Mcp_Session_Id=first[1]).status == 404
    process.terminate()
    process.wait(60)


def test_a_port_that_is_taken_is_said_or_another_is_found(own_home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = command("serve", "--port", str(port), home=own_home)
        assert refused.returncode == 17
        assert f"port {port}" in refused.stderr
        own_home.mkdir(exist_ok=True)
        (own_home / "config.toml").write_text(
            f"[server]\nport = {port}\n[embedder]\nkind = 'none'\n"
        )
        done = command("serve", "--ensure", "--json", home=own_home)
        assert json.loads(done.stdout)["address"] != f"http://127.0.0.1:{port}"
        command("serve", "--stop", home=own_home)


def test_a_server_that_cannot_start_says_why(own_home: Path) -> None:
    own_home.mkdir()
    done = command("serve", "--ensure", "--host", "192.0.2.1", home=own_home)

    assert done.returncode == 17
    assert "token" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_files_of_a_server_are_its_owners_alone(server: Served) -> None:
    Tokens(Home(server.home)).add("a", ["read"], "2026-01-01T00:00:00Z")
    if os.name == "posix":
        modes = {
            path.name: path.stat().st_mode & 0o777
            for path in (server.home / ".state").iterdir()
            if path.is_file()
        }
        assert set(modes.values()) == {0o600}, modes
    assert server.ask("GET", "/health", token=server.key).json["pid"] == server.pid


def in_the_foreground(before: str = "") -> tuple[subprocess.Popen[str], str]:
    """A server as a child of this process, and where it says it is; *before* is run in it first."""
    code = f"{before}import sys; from commonplace.cli import main; sys.exit(main(['serve', '--port', '0']))"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        return process, process.stdout.readline().partition(" ")[0]


def _wait_gone(home: Path) -> None:
    """Until nobody serves *home*: by taking the lock it holds, which the system gives when it is gone."""
    from commonplace.files.lock import hold

    with hold(Home(home).server_lock):
        return


def _wait_ended(pid: int) -> None:
    """Until the process is gone, or only its entry is left for a parent that does not look; the runner bounds it."""
    while (
        alive(pid)
        and Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    ):
        os.sched_yield()
