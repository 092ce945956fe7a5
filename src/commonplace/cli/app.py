"""The commands, for typer: each opens the memory, calls one method of it, and renders what comes back."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

import commonplace
from commonplace import maintenance
from commonplace.cli import exchanged, render
from commonplace.cli.inbox import app as inbox_app
from commonplace.cli.log import log as write_log
from commonplace.cli.open_memory import opened
from commonplace.cli.recall import print_stats, repos_asked
from commonplace.cli.recall import recall as ask
from commonplace.cli.setup import Asked, wiring
from commonplace.cli.setup import ask as agreed
from commonplace.cli.setup import setup as set_up
from commonplace.errors import FindingsLeft, LinesRefused, UsageError
from commonplace.records import EVENT_TYPES, KINDS, OUTCOMES
from commonplace.setup.agents import AGENTS
from commonplace.where import home as where_home
from commonplace.where import homes, repository
from commonplace.where.home import FOLDER

app = typer.Typer(
    name="commonplace",
    help="Memory for coding agents: write down what was learned, get back what matters.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Home = Annotated[
    Path | None,
    typer.Option("--home", help="The home to use, instead of the one that counts here."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Toolsets = Annotated[
    str | None, typer.Option("--toolsets", metavar="A,B", help="Of core, notes [default: all].")
]
Id = Annotated[str, typer.Argument(metavar="ID", help="The id, or any unique prefix of it.")]


def run(arguments: list[str]) -> int:
    """Run typer on *arguments*; its own usage errors exit with 2."""
    try:
        result = app(arguments, standalone_mode=True, prog_name="commonplace")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    return result if isinstance(result, int) else 0


def _version(*, wanted: bool) -> None:
    if wanted:
        print(f"commonplace {commonplace.__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version.",
            callback=lambda value: _version(wanted=value),
            is_eager=True,
        ),
    ] = False,
) -> None:
    """What every command shares."""


@app.command()
def init(
    *,
    user: Annotated[bool, typer.Option("--user", help="Make the user's home.")] = False,
    as_json: Json = False,
) -> None:
    """Make a home at the root of this repository, or the user's. Twice is harmless."""
    here = homes.current_folder()
    root = repository.find(here).root or here
    home = homes.of_user(os.environ) if user else where_home.Home(root / FOLDER)
    render.made(home.path, homes.make(home), as_json=as_json)


@app.command()
def log(  # noqa: PLR0913 (seed 000's flags)
    *,
    event_type: Annotated[
        str | None, typer.Option("--type", help=f"One of {', '.join(EVENT_TYPES)}.")
    ] = None,
    lesson: Annotated[str | None, typer.Option("--lesson", help="What was learned.")] = None,
    context: Annotated[
        str | None, typer.Option("--context", help="What was being attempted.")
    ] = None,
    command: Annotated[
        str | None, typer.Option("--command", help="The exact command, if there is one.")
    ] = None,
    success_rate: Annotated[
        str | None, typer.Option("--success-rate", metavar="X/Y", help="How often it worked.")
    ] = None,
    tags: Annotated[
        str | None, typer.Option("--tags", metavar="A,B", help="Keywords, separated by commas.")
    ] = None,
    repo: Annotated[
        str | None, typer.Option("--repo", help="The log to write to [default: this repository's].")
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="Who learned it [default: $COMMONPLACE_AGENT].")
    ] = None,
    timestamp: Annotated[
        str | None, typer.Option("--timestamp", help="When [default: now]; RFC 3339.")
    ] = None,
    ident: Annotated[
        str | None, typer.Option("--id", help="The id [default: made from the content].")
    ] = None,
    stdin: Annotated[
        bool, typer.Option("--stdin", help="Read JSON lines, one record each, instead.")
    ] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Write down a lesson and print its id."""
    if not stdin:
        for flag, value in (("--type", event_type), ("--lesson", lesson)):
            if value is None:
                raise typer.BadParameter(
                    f"it is needed: e.g. {_EXAMPLES[flag]}", param_hint=f"'{flag}'"
                )
    given = {
        "event_type": event_type, "lesson": lesson, "context": context, "command": command, "tags": tags,
        "success_rate": success_rate, "repo": repo, "agent_id": agent, "timestamp": timestamp, "id": ident,
        "home": home,
    }  # fmt: skip
    options: dict[str, str | bool] = {
        name: str(value) for name, value in given.items() if value is not None
    }
    write_log({**options, "stdin": stdin, "json": as_json})


_EXAMPLES = {
    "--type": f"`--type {EVENT_TYPES[0]}`",
    "--lesson": "`--lesson 'verify ownership before npm ci'`",
}


@app.command()
def show(ident: Id, *, home: Home = None, as_json: Json = False) -> None:
    """Show a record, with the feedback it has had."""
    with opened(home) as memory:
        render.record(memory.describe(ident), as_json=as_json)
        render.damages(memory.damages, memory.home.path)


@app.command()
def history(ident: Id, *, home: Home = None, as_json: Json = False) -> None:
    """Show every version of a record and what was said of it, oldest first."""
    with opened(home) as memory:
        render.history(memory.history(ident), as_json=as_json)
        render.damages(memory.damages, memory.home.path)


@app.command()
def recall(  # noqa: PLR0913 (what may narrow a question)
    *,
    query: Annotated[
        str | None, typer.Argument(help="What you want to know, in your own words.")
    ] = None,
    repo: Annotated[
        str | None, typer.Option("--repo", help="Only this log [default: this repository's].")
    ] = None,
    all_repos: Annotated[
        bool, typer.Option("--all-repos", help="Every log, this repository's preferred.")
    ] = False,
    event_type: Annotated[
        list[str] | None, typer.Option("--type", help="Only lessons of this type.")
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", help="Only records of this kind.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="Only records with this tag.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="Only what this agent wrote.")
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option("--files", help="Files in hand: what names them is preferred."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="At most so many memories.")] = 5,
    tokens: Annotated[int, typer.Option("--tokens", help="At most so many tokens.")] = 500,
    since: Annotated[
        str | None, typer.Option("--since", help="Nothing older: a date, or an age such as 30d.")
    ] = None,
    as_of: Annotated[
        str | None, typer.Option("--as-of", help="Answer as the memory stood on this date.")
    ] = None,
    recent: Annotated[
        int | None, typer.Option("--recent", metavar="N", help="Show the latest N instead.")
    ] = None,
    stats: Annotated[bool, typer.Option("--stats", help="Count instead.")] = False,
    archived: Annotated[bool, typer.Option("--all", help="Search the archive too.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show every factor of every score.")
    ] = False,
    no_cutoff: Annotated[
        bool, typer.Option("--no-cutoff", help="The plain ranking, for measuring.")
    ] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Ask what is known: the few memories that help, best first."""
    lists = {"type": event_type, "kind": kind, "tag": tag, "files": files}
    given = {
        "query": query,
        "repo": repo,
        "agent": agent,
        "limit": limit,
        "tokens": tokens,
        "since": since,
    }
    given |= {"as_of": as_of, "recent": recent, "home": str(home) if home else None}
    options: dict[str, str | bool] = {
        name: str(value) for name, value in given.items() if value is not None
    }
    options |= {name: ",".join(values) for name, values in lists.items() if values}
    switches = {
        "all_repos": all_repos,
        "stats": stats,
        "all": archived,
        "explain": explain,
        "no_cutoff": no_cutoff,
    }
    ask({**options, **{name: True for name, on in switches.items() if on}, "json": as_json})


@app.command()
def stats(
    *,
    repo: Annotated[
        str | None, typer.Option("--repo", help="Only this log [default: all].")
    ] = None,
    savings: Annotated[
        bool, typer.Option("--savings", help="Tokens saved against reading the logs instead.")
    ] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Count what there is; with --savings, what recalls cost against reading the logs."""
    with opened(home) as memory:
        if not savings:
            print_stats(memory.stats([repo] if repo else None), as_json=as_json)
        elif repo:
            raise UsageError("`--savings` counts over all logs", "leave `--repo` out")
        else:
            render.savings(memory.savings(), as_json=as_json)


@app.command()
def why(
    query: Annotated[str, typer.Argument(help="The question.")],
    ident: Id,
    *,
    repo: Annotated[
        str | None, typer.Option("--repo", help="Only this log [default: all].")
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Say why a memory is, or is not, in the answer to a question."""
    with opened(home) as memory:
        explained = memory.why(query, ident, repo=repo).as_dict()
        here = repos_asked(memory, {}) or []
        explained["searched_here"] = explained.get("repo") in here
        render.why(explained, here, as_json=as_json)


index_app = typer.Typer(help="The index: derived from the files, disposable.", no_args_is_help=True)
app.add_typer(index_app, name="index")


@index_app.command("status")
def index_status(*, home: Home = None, as_json: Json = False) -> None:
    """Say what the index holds, which model made its vectors, and what is still missing."""
    with opened(home) as memory:
        render.index_status(
            memory.engine().status(), str(memory.engine().embedder_state()), as_json=as_json
        )


@index_app.command("rebuild")
def index_rebuild(
    *,
    vectors: Annotated[
        bool, typer.Option("--vectors/--no-vectors", help="Whether to make the vectors too.")
    ] = True,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Throw the index away and make it again from the files."""
    with opened(home) as memory:
        render.rebuild(memory.engine(), vectors=vectors)
        render.index_status(
            memory.engine().status(), str(memory.engine().embedder_state()), as_json=as_json
        )


@index_app.command("embed")
def index_embed(*, home: Home = None, as_json: Json = False) -> None:
    """Give every memory its vectors and end; a recall has this done when many are missing, once a home."""
    if os.name == "posix":
        os.nice(19)  # It takes a while, and other work goes first.
    with opened(home) as memory:
        done = memory.engine().embed_alone()
    render.embedded(done, as_json=as_json)


@app.command()
def feedback(
    ident: Id,
    outcome: Annotated[str, typer.Argument(metavar="|".join(OUTCOMES), help="How using it went.")],
    *,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Say how a memory served: it worked, failed, is wrong, or is stale."""
    with opened(home) as memory:
        said = memory.feedback(ident, outcome)
        render.feedback(memory.describe(str(said.fields["of"])), outcome, as_json=as_json)


@app.command()
def forget(
    ident: Id,
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why; it is kept in the history.")] = "",
    erase: Annotated[
        bool, typer.Option("--erase", help="Remove it and all copies for good, and prove it.")
    ] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Hide a record and what derives from it; with --erase, remove it for good."""
    with opened(home) as memory:
        if not erase:
            render.forgotten(memory.forget(ident, reason), as_json=as_json)
            return
        receipt = memory.erase(ident)
        render.receipt(
            receipt,
            in_git=memory.repository.root is not None and not memory.home.of_user,
            as_json=as_json,
        )
        if receipt.left_in:
            raise FindingsLeft(
                f"its text is still in {len(receipt.left_in)} files of the home",
                "those are notes or records of their own: edit them, or erase them as well",
            )


notes_app = typer.Typer(
    help="An agent's own notes, in agents/<name>/ of a home.", no_args_is_help=True
)
app.add_typer(notes_app, name="notes")
Agent = Annotated[
    str | None,
    typer.Option("--agent", help="Whose notes [default: $COMMONPLACE_AGENT, else `default`]."),
]
NotePath = Annotated[
    str, typer.Argument(metavar="PATH", help="The note, relative to the agent's folder.")
]
Sha = Annotated[
    str | None,
    typer.Option("--if-sha256", help="Only if the note still has this hash; '' = only if new."),
]
Text = Annotated[str, typer.Argument(help="The text; `-` reads it from stdin.")]


@notes_app.command("list")
def notes_list(
    path: Annotated[str, typer.Argument(help="Only this folder.")] = "",
    *,
    agent: Agent = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """List an agent's notes."""
    with opened(home) as memory:
        render.notes(memory.notes(agent).list(path), as_json=as_json)


@notes_app.command("read")
def notes_read(
    path: NotePath,
    *,
    lines: Annotated[
        tuple[int, int] | None,
        typer.Option("--lines", help="Only from the first to the last; -1 = end."),
    ] = None,
    agent: Agent = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Print a note."""
    with opened(home) as memory:
        render.note_text(path, memory.notes(agent).reading(path, lines), as_json=as_json)


@notes_app.command("write")
def notes_write(
    path: NotePath,
    content: Text,
    *,
    if_sha256: Sha = None,
    agent: Agent = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Make or replace a note."""
    with opened(home) as memory:
        render.written(memory.notes(agent).write(path, _given(content), if_sha256), as_json=as_json)


@notes_app.command("replace")
def notes_replace(
    path: NotePath,
    old: Annotated[str, typer.Argument(help="The text to replace; it must occur exactly once.")],
    new: Text,
    *,
    if_sha256: Sha = None,
    agent: Agent = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Replace a text that occurs exactly once in a note."""
    with opened(home) as memory:
        render.written(
            memory.notes(agent).replace(path, old, _given(new), if_sha256), as_json=as_json
        )


@notes_app.command("insert")
def notes_insert(
    path: NotePath,
    line: Annotated[int, typer.Argument(help="Behind this line; 0 is the top.")],
    text: Text,
    *,
    if_sha256: Sha = None,
    agent: Agent = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Insert a text into a note."""
    with opened(home) as memory:
        render.written(
            memory.notes(agent).insert(path, line, _given(text), if_sha256), as_json=as_json
        )


def _given(text: str) -> str:
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape") if text == "-" else text


app.add_typer(inbox_app, name="inbox")


@app.command()
def preamble(*, agent: Agent = None, home: Home = None, as_json: Json = False) -> None:
    """Print what a harness should put into an agent's system prompt."""
    with opened(home) as memory:
        render.preamble(memory.preamble(agent), as_json=as_json)


@app.command()
def setup(
    *,
    agents: Annotated[
        list[str] | None, typer.Argument(metavar="[AGENT]...", help=f"Of {', '.join(AGENTS)}.")
    ] = None,
    project: Annotated[bool, typer.Option("--project", help="In this repository's files.")] = False,
    user: Annotated[
        bool, typer.Option("--user", help="In your own, for every repository. The default.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and stop.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take everything out again.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Wire agents to the memory: hooks, MCP server and a few words, everything else left byte for byte."""
    if project and user:
        raise UsageError(
            "`--project` and `--user` contradict each other", "give one; the default is `--user`"
        )
    set_up(
        Asked(agents or [], project, dry_run, undo),
        lambda told, changes: render.setup(told, changes, as_json=as_json),
        (lambda _: True) if yes else agreed,
    )


@app.command()
def mcp(
    *,
    agent: Agent = None,
    toolsets: Toolsets = None,
    home: Home = None,
) -> None:
    """Serve the memory to an agent over stdio (Model Context Protocol)."""
    from commonplace.server.stdio import serve  # noqa: PLC0415 (loads the protocol's SDK)

    serve(str(home) if home else None, agent, toolsets)


@app.command()
def serve(  # noqa: PLR0913 (one flag each)
    *,
    host: Annotated[
        str | None, typer.Option("--host", help="Where to listen [default: 127.0.0.1].")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="[default: 8377, or any that is free]."),
    ] = None,
    agent: Agent = None,
    toolsets: Toolsets = None,
    ensure: Annotated[
        bool, typer.Option("--ensure", help="Start it detached unless it runs; print where.")
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Say whether and where it runs.")
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="End it.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Serve the memory over HTTP to every agent of this home: MCP at /mcp, a JSON API at /api/v1."""
    from commonplace.cli.serve import serve as serve_here  # noqa: PLC0415 (few commands need it)

    serve_here(
        {"--host": host, "--port": port, "--agent": agent, "--toolsets": toolsets, "--home": home},
        [name for name, given in (("ensure", ensure), ("status", status), ("stop", stop)) if given],
        as_json=as_json,
    )


token_app = typer.Typer(help="Who may speak to the server, as which agent.", no_args_is_help=True)
app.add_typer(token_app, name="token")


@token_app.command("add")
def token_add(
    agent: Annotated[
        str | None, typer.Argument(metavar="AGENT", help="The agent it stands for.")
    ] = None,
    *,
    named: Annotated[str | None, typer.Option("--agent", help="The same.")] = None,
    scopes: Annotated[
        list[str] | None,
        typer.Option(
            "--scopes",
            "--scope",
            metavar="A,B",
            help="Of read, write, admin [default: read,write].",
        ),
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Make a token and print it, this once."""
    from commonplace.cli.serve import add_token  # noqa: PLC0415

    wanted = [scope.strip() for given in scopes or ["read,write"] for scope in given.split(",")]
    add_token(agent or named, wanted, home, as_json=as_json)


@token_app.command("list")
def token_list(*, home: Home = None, as_json: Json = False) -> None:
    """List the tokens: ids, agents and scopes; their texts are not kept."""
    from commonplace.cli.serve import list_tokens  # noqa: PLC0415

    list_tokens(home, as_json=as_json)


@token_app.command("revoke")
def token_revoke(ident: Id, *, home: Home = None, as_json: Json = False) -> None:
    """Take a token back; the server refuses it from its next request on."""
    from commonplace.cli.serve import revoke_token  # noqa: PLC0415

    revoke_token(ident, home, as_json=as_json)


@app.command()
def repos(*, home: Home = None, as_json: Json = False) -> None:
    """List the logs of this home."""
    with opened(home) as memory:
        render.repos(memory.repos(), memory.repository.name, as_json=as_json)
        render.damages(memory.damages, memory.home.path)


@app.command()
def where(*, home: Home = None, as_json: Json = False) -> None:
    """Say which home is used here, and why."""
    with opened(home) as memory:
        render.where(memory.homes, memory.repository, as_json=as_json)


@app.command("import")
def import_(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A file or a folder, of one format or several.")
    ],
    *,
    format_name: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FORMAT", help="What it is [default: each file is recognised]."
        ),
    ] = None,
    repo: Annotated[
        str | None,
        typer.Option(
            "--repo", help="The log for all of it [default: its own, else this repository's]."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be taken; write nothing.")
    ] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Bring what another system remembers. Twice adds nothing."""
    from commonplace.exchange.importer import bring  # noqa: PLC0415 (loads every format)

    with opened(home) as memory:
        report = bring(memory, path, format_name=format_name, repo=repo, dry_run=dry_run)
    exchanged.imported(report, as_json=as_json)
    if report.unread_count and not dry_run:
        raise LinesRefused(report.unread_count, report.records + report.unchanged)


@app.command()
def export(
    *,
    repo: Annotated[str | None, typer.Option("--repo", help="Only this log.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Only records of this kind.")] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            "--layout", help="One of agent-knowledge, loki, beads, harness: files for it."
        ),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FOLDER", help="Where the layout is written.")
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Write into a folder with other things, over what is there."),
    ] = False,
    home: Home = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON list instead of lines.")
    ] = False,
) -> None:
    """Print the current view as JSON lines, or write it in the layout of another system."""
    if kind is not None and kind not in KINDS:
        raise typer.BadParameter(
            f"`{kind}` is not one of {', '.join(KINDS)}", param_hint="'--kind'"
        )
    if (layout is None) != (to is None):
        raise UsageError(
            "`--layout` and `--to` belong together", "e.g. `--layout beads --to ../other-project`"
        )
    with opened(home) as memory:
        if layout is not None and to is not None:
            from commonplace.exchange.exporter import lay_out  # noqa: PLC0415 (loads every format)

            exchanged.laid_out(
                lay_out(memory, layout, to, repo=repo, kind=kind, force=force), as_json=as_json
            )
        else:
            render.export(memory.export_lines(repo, kind), as_json=as_json)
        render.damages(memory.damages, memory.home.path)


@app.command()
def scan(
    *,
    fix: Annotated[bool, typer.Option("--fix", help="Take the secrets out.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Find secrets in this home: kinds and places, never values."""
    with opened(home) as memory:
        secrets = memory.scan(fix=fix)
        render.secrets(secrets, memory.home.path, fixed=fix, as_json=as_json)
    if secrets and not fix:
        raise FindingsLeft(
            f"{len(secrets)} secrets found", "`commonplace scan --fix` takes them out"
        )


@app.command()
def doctor(
    *,
    fix: Annotated[
        bool, typer.Option("--fix", help="Mend what can be; damaged lines move to log/damaged/.")
    ] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Check this home: damages, permissions, leftovers, kinds nobody knows; and say which agents are wired."""
    with opened(home) as memory:
        findings = memory.mend() if fix else memory.check()
        unknown = memory.settings.unknown
        render.findings(
            findings, memory.home.path, unknown, wiring(memory), fixed=fix, as_json=as_json
        )
    fixable = sum(1 for finding in findings if finding.fix)
    if fixable and not fix:
        raise FindingsLeft(
            f"{fixable} findings can be mended",
            "`commonplace doctor --fix` does what is said above",
        )


@app.command()
def maintain(*, home: Home = None, as_json: Json = False) -> None:
    """Do the upkeep: rotate long logs into the archive."""
    with opened(home) as memory:
        render.maintenance(maintenance.run(memory), as_json=as_json)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
