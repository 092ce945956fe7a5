"""`commonplace serve` and `commonplace token`: start, find and end the server, and say who may speak to it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from commonplace.cli import plain
from commonplace.errors import ServerTrouble, UsageError
from commonplace.memory import Memory
from commonplace.records import to_utc
from commonplace.server import control, presence
from commonplace.server.access_tokens import Tokens
from commonplace.writing import now_utc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from commonplace.server.presence import Presence
    from commonplace.where.home import Home


def serve(options: Mapping[str, Any], wanted: Sequence[str], *, as_json: bool) -> None:
    """Do the one thing that is *wanted*; with none, serve here until stopped."""
    if len(wanted) > 1:
        raise UsageError(f"--{wanted[0]} and --{wanted[1]} exclude one another")
    with Memory.open(options["--home"], agent_id=options["--agent"]) as memory:
        home = memory.home
        if wanted == ["ensure"]:
            # Absolute, since the server leaves this folder.
            given = {**options, "--home": home.path if options["--home"] else None}
            flags = [
                text
                for name, value in given.items()
                if value is not None
                for text in (name, str(value))
            ]
            there, started = control.ensure(home, flags)
            _tell({**_told(there), "started": started}, there.address, as_json=as_json)
        elif wanted == ["status"]:
            _status(home, as_json=as_json)
        elif wanted == ["stop"]:
            was = control.stop(home)
            _tell(
                {"stopped": was is not None},
                f"stopped {was.address}" if was else "not running",
                as_json=as_json,
            )
        else:
            _serve_here(memory, options, as_json=as_json)


def _serve_here(memory: Memory, options: Mapping[str, Any], *, as_json: bool) -> None:
    from commonplace.server.http import serve as serve_http  # noqa: PLC0415 (loads the protocol's SDK)

    def said(address: str) -> None:
        _tell(
            {"address": address, "pid": os.getpid()},
            f"{address} (MCP at {address}/mcp)",
            as_json=as_json,
        )

    serve_http(memory, options["--host"], options["--port"], options["--toolsets"], said)


def _status(home: Home, *, as_json: bool) -> None:
    there = control.running(home)
    if there is None:
        left = presence.read(home)
        if left is not None and not presence.alive(home):
            presence.remove(home, left.key)  # Left by one that was killed.
        if presence.alive(home):
            _tell({"running": False}, "not answering", as_json=as_json)
            raise ServerTrouble(
                "the server of this home does not answer", "it may be starting or ending: ask again"
            )
        _tell({"running": False}, "not running", as_json=as_json)
        raise ServerTrouble(
            "no server is running for this home", "`commonplace serve --ensure` starts one"
        )
    _tell(
        {"running": True, **_told(there)}, f"{there.address}, process {there.pid}", as_json=as_json
    )


def add_token(
    agent: str | None, scopes: Sequence[str], home: Path | None, *, as_json: bool
) -> None:
    if not agent:
        raise UsageError(
            "an agent is needed", "e.g. `commonplace token add reviewer --scopes read`"
        )
    with Memory.open(home) as memory:
        token, text = Tokens(memory.home).add(agent, scopes, to_utc(now_utc()))
    shown = {"id": token.id, "agent": token.agent, "scopes": list(token.scopes), "token": text}
    _tell(shown, text, as_json=as_json)


def list_tokens(home: Path | None, *, as_json: bool) -> None:
    with Memory.open(home) as memory:
        tokens = Tokens(memory.home).all()
    if as_json:
        rows = [
            {"id": t.id, "agent": t.agent, "scopes": list(t.scopes), "created": t.created}
            for t in tokens
        ]
        print(json.dumps(rows))
        return
    for token in tokens:
        print(f"{token.id}  {token.created[:10]}  {plain(token.agent)}  {','.join(token.scopes)}")
    if not tokens:
        print("no tokens: requests from this machine are taken without one")


def revoke_token(ident: str, home: Path | None, *, as_json: bool) -> None:
    with Memory.open(home) as memory:
        token = Tokens(memory.home).revoke(ident)
    _tell(
        {"id": token.id, "revoked": True},
        f"revoked {token.id} ({plain(token.agent)})",
        as_json=as_json,
    )


def _told(there: Presence) -> dict[str, Any]:
    return {
        "address": there.address,
        "mcp": f"{there.address}/mcp",
        "pid": there.pid,
        "version": there.version,
    }


def _tell(as_data: Mapping[str, Any], as_text: str, *, as_json: bool) -> None:
    print(json.dumps(as_data) if as_json else as_text, flush=True)
