"""Who may do what: which settings a repository may make, tokens, the presence file, the scope of routes."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest
from starlette.applications import Starlette

from commonplace.errors import AccessTokenNotFound, SettingsInvalid, UsageError
from commonplace.server import access_tokens, api, presence
from commonplace.server.access_tokens import SCOPES, Tokens
from commonplace.server.presence import Presence
from commonplace.settings import SETTINGS, Settings
from commonplace.where.home import Home

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import Message

# What could send data elsewhere, or let somebody in, is the user's alone to set.
USERS_OWN = {
    "embedder.kind", "embedder.url", "embedder.model", "embedder.key_variable",
    "server.host", "server.hosts", "server.rate_max", "server.concurrency_max",
    "trust.repositories",
    "packs.folders", "packs.passphrase_file", "packs.recipients", "packs.identity_file",
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_a_repository_may_make_no_setting_that_is_the_users_own(tmp_path: Path, name: str) -> None:
    default = SETTINGS[name].default
    written = {bool: "true", list: '["x"]'}.get(type(default), repr(default))
    path = tmp_path / "config.toml"
    path.write_text(f"{name} = {written}\n")
    settings = Settings()

    settings.read(path, of_user=True)
    if name in USERS_OWN:
        with pytest.raises(SettingsInvalid, match="user's home only"):
            settings.read(path, of_user=False)
    else:
        settings.read(path, of_user=False)
    assert settings.unknown == []


# --- Tokens -------------------------------------------------------------------------------------------


@pytest.fixture
def tokens(own_home: Path) -> Tokens:
    own_home.mkdir()
    return Tokens(Home(own_home))


def set_ids(home: Path, *idents: str) -> None:
    """Give the tokens these ids, as chance might have."""
    path = Home(home).access_tokens_file
    text = path.read_text()
    for token, ident in zip(Tokens(Home(home)).all(), idents, strict=True):
        text = text.replace(token.id, ident)
    path.write_text(text)


@pytest.mark.parametrize(
    ("given", "revoked"),
    [
        ("t-aa11", "t-aa11"),
        ("t-bb", "t-bb33"),
        ("t-aa", None),
        ("t-", None),
        ("", None),
        ("t-zz", None),
        ("aa11", None),
    ],
)
def test_a_token_is_revoked_by_a_beginning_of_its_id_that_is_no_others(
    tokens: Tokens, own_home: Path, given: str, revoked: str | None
) -> None:
    for _ in range(3):
        tokens.add("ana", ["read"], "2026-01-01")
    set_ids(own_home, "t-aa11", "t-aa22", "t-bb33")

    if revoked is None:
        with pytest.raises(AccessTokenNotFound):
            tokens.revoke(given)
    else:
        assert tokens.revoke(given).id == revoked
    left = [token.id for token in Tokens(Home(own_home)).all()]
    assert left == [one for one in ("t-aa11", "t-aa22", "t-bb33") if one != revoked]


@pytest.mark.parametrize("keep", ["size", "size and time", "size and inode"])
def test_a_change_of_the_tokens_is_seen_at_once(tokens: Tokens, own_home: Path, keep: str) -> None:
    """Whatever of the file's stat stays the same, as long as something does not."""
    token, text = tokens.add("ana", ["read"], "2026-01-01")
    path = Home(own_home).access_tokens_file
    assert tokens.find(text) == token
    before = path.stat()
    raw = path.read_bytes().replace(token.sha256.encode(), b"0" * 64)
    if keep != "size and inode":
        path.rename(path.with_name("old"))  # Its inode stays taken.
    path.write_bytes(raw)
    later = before.st_mtime_ns + (0 if keep == "size and time" else 10**9)
    os.utime(path, ns=(later, later))

    assert tokens.find(text) is None


@pytest.mark.parametrize(
    ("scopes", "reach"),
    [
        (["read"], SCOPES[:1]),
        (["write"], SCOPES[:2]),
        (["admin"], SCOPES),
        (["admin", "read"], SCOPES),
    ],
)
def test_a_scope_holds_those_below_it(
    tokens: Tokens, scopes: list[str], reach: tuple[str, ...]
) -> None:
    token, text = tokens.add("ana", scopes, "2026-01-01")

    assert token.scopes == reach
    assert tokens.find(text) == token
    assert tokens.find(text + "x") is None
    assert text not in Home(tokens._home.path).access_tokens_file.read_text()


@pytest.mark.parametrize(
    ("agent", "scopes"), [("ana", []), ("ana", ["root"]), ("../ana", ["read"]), ("", ["read"])]
)
def test_a_token_for_nobody_or_nothing_is_refused(
    tokens: Tokens, agent: str, scopes: list[str]
) -> None:
    with pytest.raises(UsageError):
        tokens.add(agent, scopes, "2026-01-01")
    assert tokens.all() == []


def test_there_are_at_most_so_many_tokens(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_tokens, "TOKENS_MAX", 2)
    for _ in range(2):
        tokens.add("ana", ["read"], "2026-01-01")

    with pytest.raises(UsageError):
        tokens.add("ana", ["read"], "2026-01-01")


@pytest.mark.parametrize(
    "raw",
    [b"", b"{}", b"[1]", b'[{"id": "t"}]', b"[[]]",
     b'[{"id":"t","agent":"a","scopes":["read"],"created":"x","sha256":"short"}]',
     b'[{"id":7,"agent":"a","scopes":["read"],"created":"x","sha256":"%s"}]' % (b"0" * 64),
     b'[{"id":"t","agent":"a","scopes":[1],"created":"x","sha256":"%s"}]' % (b"0" * 64)],
)  # fmt: skip
def test_damaged_tokens_let_nobody_in(tokens: Tokens, own_home: Path, raw: bytes) -> None:
    path = Home(own_home).access_tokens_file
    path.parent.mkdir()
    path.write_bytes(raw)

    with pytest.raises(UsageError, match="damaged"):
        tokens.find("x")


# --- Presence -----------------------------------------------------------------------------------------


def test_a_server_removes_its_own_presence_only(own_home: Path) -> None:
    home = Home(own_home)
    presence.write(home, Presence("127.0.0.1", 1, 2, "key of the next one", "1"))

    presence.remove(home, "key of the one that ends")
    assert presence.read(home) is not None
    presence.remove(home, "key of the next one")
    assert presence.read(home) is None
    presence.remove(home, "key of the next one")


@pytest.mark.parametrize(
    ("host", "address"), [("127.0.0.1", "http://127.0.0.1:80"), ("::1", "http://[::1]:80")]
)
def test_the_address_of_a_server(host: str, address: str) -> None:
    assert Presence(host, 80, 1, "k", "v").address == address


# --- Routes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("POST", "hook", "admin"),
        ("POST", "stop", "admin"),
        ("POST", "ask", "own"),
        ("GET", "stats", "read"),
        ("GET", "context", "read"),
        ("GET", "records/a", "read"),
    ],
)
def test_a_route_asks_for_its_scope(method: str, path: str, scope: str) -> None:
    asked: list[str] = []
    stopped: list[bool] = []

    def memory(wanted: str = "read") -> Any:
        asked.append(wanted)
        raise UsageError("not in this scope")

    server: Any = None
    app = Starlette(routes=api.routes(server, memory, [], lambda: stopped.append(True)))
    sent: list[Any] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"{}"}

    async def send(message: Any) -> None:
        sent.append(message)

    where = f"{api.BASE}/{path}"
    request = {
        "type": "http",
        "method": method,
        "path": where,
        "raw_path": where.encode(),
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    asyncio.run(app(request, receive, send))

    assert asked == [scope]
    assert sent[0]["status"] >= 400
    assert stopped == []
