"""`commonplace token`: the access tokens that agents send to the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_id, add_json, suggest
from commonplace.cli.commands import Command
from commonplace.cli.output import print_json
from commonplace.errors import UsageError
from commonplace.foreign import one_line
from commonplace.memory import Memory
from commonplace.records import to_utc
from commonplace.server.access_tokens import SCOPES, SCOPES_DEFAULT, Tokens
from commonplace.where import homes
from commonplace.writing import now_utc

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def add_add(parser: ArgumentParser) -> None:
    parser.add_argument(
        "agent", metavar="AGENT", nargs="?", help="The agent that gets the access token"
    )
    parser.add_argument("--agent", dest="agent_flag", metavar="NAME", help="The same as AGENT")
    scopes = parser.add_argument(
        "--scopes",
        "--scope",
        metavar="A,B",
        action="extend",
        type=_scopes,
        help=f"What the agent may do: {', '.join(SCOPES)} (default: {','.join(SCOPES_DEFAULT)})",
    )
    suggest(scopes, SCOPES)
    add_home(parser)
    add_json(parser)


def _scopes(text: str) -> list[str]:
    # An empty scope is kept, and refused later: `--scopes ""` must not stand for the default.
    return [scope.strip() for scope in text.split(",")]


def add(args: Namespace) -> int:
    agent = args.agent or args.agent_flag
    if not agent:
        raise UsageError(
            "an agent is needed", "e.g. `commonplace token add reviewer --scopes read`"
        )
    scopes = SCOPES_DEFAULT if args.scopes is None else args.scopes
    with Memory.open(args.home or None) as memory:
        token, text = Tokens(memory.home).add(agent, scopes, to_utc(now_utc()))
    if args.json:
        scopes = list(token.scopes)
        print_json({"id": token.id, "agent": token.agent, "scopes": scopes, "token": text})
    else:
        print(text)
    return 0


def add_list(parser: ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


def list_tokens(args: Namespace) -> int:
    with Memory.open(args.home or None) as memory:
        homes.check_exists(memory.home)
        tokens = Tokens(memory.home).all()
    if args.json:
        print_json(
            [
                {"id": t.id, "agent": t.agent, "scopes": list(t.scopes), "created": t.created}
                for t in tokens
            ]
        )
        return 0
    for token in tokens:
        print(
            f"{token.id}  {token.created[:10]}  {one_line(token.agent)}  {','.join(token.scopes)}"
        )
    if not tokens:
        print("no access tokens but the home's own (see `commonplace serve --help`)")
    return 0


def add_revoke(parser: ArgumentParser) -> None:
    add_id(parser, "access token")
    add_home(parser)
    add_json(parser)


def revoke(args: Namespace) -> int:
    with Memory.open(args.home or None) as memory:
        homes.check_exists(memory.home)
        token = Tokens(memory.home).revoke(args.id)
    if args.json:
        print_json({"id": token.id, "revoked": True})
    else:
        print(f"revoked {token.id} ({one_line(token.agent)})")
    return 0


COMMANDS = {
    "add": Command(
        "Create an access token for an agent and print it; it cannot be printed again",
        add_add,
        add,
        ("commonplace token add reviewer --scopes read",),
    ),
    "list": Command(
        "List the access tokens by id, agent and scopes",
        add_list,
        list_tokens,
        ("commonplace token list",),
    ),
    "revoke": Command(
        "Revoke an access token; the server refuses it from the next request on",
        add_revoke,
        revoke,
        ("commonplace token revoke t-1f2e3d4c",),
    ),
}
