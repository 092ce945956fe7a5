"""`commonplace serve`: start, find and stop the HTTP server of a home."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from commonplace.cli.arguments import add_agent, add_home, add_json, add_toolsets, whole_number
from commonplace.errors import ServerTrouble, UsageError
from commonplace.foreign import one_line
from commonplace.memory import Memory
from commonplace.server import control, presence
from commonplace.where import homes

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping

    from commonplace.server.presence import Presence
    from commonplace.where.home import Home

PORT_MAX = 65535
EXAMPLES = (
    "commonplace serve --ensure",
    "commonplace serve --status",
    "commonplace serve --host 0.0.0.0 --port 9000",
)
# One line for each client; the token itself is not printed, since output is often kept.
_HEADER_TEXT = "HTTP clients send: Authorization: Bearer $(cat '{}')"
_ACTIONS = ("ensure", "status", "stop")


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--host",
        metavar="ADDRESS",
        help="Where to listen (default: the setting `server.host`, 127.0.0.1)",
    )
    add(
        "--port",
        metavar="N",
        type=whole_number(0, PORT_MAX),
        help="Port to listen on; 0 is any free one"
        " (default: the setting `server.port`, 8377, or any free one if that is taken)",
    )
    add_agent(parser, "The agent that hooks, commands and the home's own access token act as")
    add_toolsets(parser)
    add(
        "--ensure",
        action="store_true",
        help="Start the server in the background unless it runs, and print its address",
    )
    add("--status", action="store_true", help="Print whether and where the server runs")
    add("--stop", action="store_true", help="Stop the server and wait until it has ended")
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    actions = [name for name in _ACTIONS if getattr(args, name)]
    if len(actions) > 1:
        raise UsageError(f"`--{actions[0]}` and `--{actions[1]}` exclude each other")
    with Memory.open(args.home or None, agent_id=args.agent) as memory:
        if args.status or args.stop:
            homes.check_exists(memory.home)
        if args.ensure:
            _ensure(memory.home, args)
        elif args.status:
            _status(memory.home, as_json=args.json)
        elif args.stop:
            _stop(memory.home, as_json=args.json)
        else:
            _serve(memory, args)
    return 0


def _ensure(home: Home, args: Namespace) -> None:
    flags = {
        "--host": args.host,
        "--port": args.port,
        "--agent": args.agent,
        "--toolsets": args.toolsets,
        # The path is absolute, since the server leaves this folder.
        "--home": home.path if args.home else None,
    }
    given = [
        text for flag, value in flags.items() if value is not None for text in (flag, str(value))
    ]
    server, started = control.ensure(home, given)
    fields = {**_server_fields(home, server), "started": started}
    _print(fields, server.address, as_json=args.json)


def _status(home: Home, *, as_json: bool) -> None:
    server = control.running_server(home)
    if server is not None:
        fields = {"running": True, **_server_fields(home, server)}
        _print(fields, f"{server.address}, process {server.pid}", as_json=as_json)
        return
    left = presence.read(home)
    if left is not None and not presence.is_alive(home):
        presence.remove(home, left.key)  # It was left by a server that was killed.
    if presence.is_alive(home):
        _print({"running": False}, "not answering", as_json=as_json)
        raise ServerTrouble(
            "the server of this home does not answer",
            "it may be starting or stopping: try again in a moment",
        )
    _print({"running": False}, "not running", as_json=as_json)
    raise ServerTrouble(
        "no server is running for this home", "`commonplace serve --ensure` starts one"
    )


def _stop(home: Home, *, as_json: bool) -> None:
    server = control.stop(home)
    text = f"stopped {server.address}" if server else "not running"
    _print({"stopped": server is not None}, text, as_json=as_json)


def _serve(memory: Memory, args: Namespace) -> None:
    from commonplace.server.http import serve  # noqa: PLC0415 (loads the protocol's SDK)

    def print_address(address: str) -> None:
        token_file = str(memory.home.server_token_file)
        fields = {"address": address, "pid": os.getpid(), "token_file": token_file}
        text = f"{address} (MCP at {address}/mcp)\n{_HEADER_TEXT.format(one_line(token_file))}"
        _print(fields, text, as_json=args.json)

    serve(memory, args.host, args.port, args.toolsets, print_address)


def _server_fields(home: Home, server: Presence) -> dict[str, Any]:
    return {
        "address": server.address,
        "mcp": f"{server.address}/mcp",
        "pid": server.pid,
        "version": server.version,
        "socket": server.socket,
        "token_file": str(home.server_token_file),
    }


def _print(fields: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    # Flushed, since a server goes on for long after it has printed its address. Written in one
    # piece, since who reads the address may close the pipe after the first line.
    sys.stdout.write((json.dumps(fields) if as_json else text) + "\n")
    sys.stdout.flush()
