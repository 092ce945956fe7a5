"""The command line. `main` answers the commands agents call all day by itself and hands the rest to typer.

Typer takes longer to import than `commonplace log` may take in all (docs/decisions/0003-quick-commands.md), so a
plain, well-formed `log` or `recall` is read here by hand. Whatever this does not understand (help, a typo, a missing
value) goes to the typer command of the same name, which says what is wrong.
"""

from __future__ import annotations

import io
import os
import sys

from commonplace.errors import CommonplaceError, OutputLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Flag → the field it sets. A test holds this equal to the typer command's own flags.
LOG_FLAGS = {
    "--repo": "repo",
    "--type": "event_type",
    "--context": "context",
    "--command": "command",
    "--lesson": "lesson",
    "--success-rate": "success_rate",
    "--tags": "tags",
    "--agent": "agent_id",
    "--timestamp": "timestamp",
    "--id": "id",
    "--home": "home",
}
LOG_SWITCHES = {"--stdin": "stdin", "--json": "json"}
RECALL_FLAGS = {
    "--repo": "repo",
    "--type": "type",
    "--kind": "kind",
    "--tag": "tag",
    "--agent": "agent",
    "--files": "files",
    "--limit": "limit",
    "--tokens": "tokens",
    "--since": "since",
    "--as-of": "as_of",
    "--recent": "recent",
    "--home": "home",
}
RECALL_SWITCHES = {
    "--all-repos": "all_repos",
    "--all": "all",
    "--stats": "stats",
    "--explain": "explain",
    "--no-cutoff": "no_cutoff",
    "--json": "json",
}
MCP_FLAGS = {"--home": "home", "--agent": "agent", "--toolsets": "toolsets"}
# Flags that may be given more than once; each value may also be a list with commas.
LISTS = ("type", "kind", "tag", "files")
# All control characters but tab and newline.
_CONTROL = dict.fromkeys(
    [*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0)], "\N{REPLACEMENT CHARACTER}"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. A mistake of the user's is a sentence, never a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream, errors in ((sys.stdout, "replace"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                encoding="utf-8", errors=errors, newline="\n"
            )  # The same lines on every system.
    try:
        code = _answer(arguments)
        sys.stdout.flush()
        if argv is None and "onnxruntime" in sys.modules:
            # Tearing down the model's libraries takes as long as the question did.
            sys.stderr.flush()
            os._exit(code)
    except CommonplaceError as error:
        return tell(error)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        if error.filename is not None:
            raise  # Streams have no file name; about files, the layers below say more than the system does.
        # Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return tell(OutputLost(error))
    return code


def _answer(arguments: list[str]) -> int:
    if arguments[:1] == ["log"]:
        options = _quick_options(arguments[1:], LOG_FLAGS, LOG_SWITCHES)
        if options is not None and (
            options.get("stdin") or options.keys() >= {"event_type", "lesson"}
        ):
            from commonplace.cli.log import log  # noqa: PLC0415

            return log(options)
    if arguments[:1] == ["recall"]:
        options = _quick_options(arguments[1:], RECALL_FLAGS, RECALL_SWITCHES, positional="query")
        if options is not None:
            from commonplace.cli.recall import recall  # noqa: PLC0415

            return recall(options)
    if arguments[:1] == ["mcp"]:
        options = _quick_options(arguments[1:], MCP_FLAGS, {})
        if options is not None:
            from commonplace.server.stdio import serve  # noqa: PLC0415

            named = {name: str(value) for name, value in options.items()}
            serve(named.get("home"), named.get("agent"), named.get("toolsets"))
            return 0
    from commonplace.cli.app import run  # noqa: PLC0415

    return run(arguments)


def tell(error: CommonplaceError) -> int:
    """Say on stderr what is wrong and what to do, and return the exit code."""
    print(f"error: {plain(str(error))}", file=sys.stderr)
    if error.hint:
        print(f"hint: {plain(error.hint)}", file=sys.stderr)
    return error.exit_code


def plain(text: str) -> str:
    """*text* with nothing in it that a terminal would obey: what is stored is data."""
    return text.translate(_CONTROL)


def _quick_options(
    arguments: Sequence[str],
    flags: Mapping[str, str],
    switches: Mapping[str, str],
    positional: str = "",
) -> dict[str, str | bool] | None:
    """The options of a plain call, or `None` if there is anything typer should look at."""
    options: dict[str, str | bool] = {}
    rest = iter(arguments)
    literal = False
    for argument in rest:
        flag, equals, value = argument.partition("=")
        if not literal and argument == "--":
            literal = True
        elif not literal and argument in switches:
            options[switches[argument]] = True
        elif not literal and flag in flags:
            given = value if equals else next(rest, None)
            if given is None or (not equals and (given in flags or given in switches)):
                return None
            name = flags[flag]
            options[name] = (
                f"{options[name]},{given}" if name in LISTS and name in options else given
            )
        elif positional and positional not in options and (literal or not argument.startswith("-")):
            options[positional] = argument
        else:
            return None
    return options
