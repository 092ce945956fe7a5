"""`commonplace context`: the frames of a prompt, made of what the memory knows about a task."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.cli.arguments import add_home, add_json, comma_list, suggest, whole_number
from commonplace.cli.asking import ask, ask_memory
from commonplace.cli.commands import Command
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, print_json
from commonplace.errors import RecordNotFound, UsageError
from commonplace.foreign import longer_fence, one_line, quote, render_value
from commonplace.vocabulary import LIMIT_MAX

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.graph.contexts import SavedContext

BUDGET = 2000
BUDGET_MIN, BUDGET_MAX = 20, 200_000
HOPS_MAX = 3
PERSONA_VARIABLE = "COMMONPLACE_PERSONA"
SCOPES = ("task", "session", "repo", "agent")


def add_build(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--query", metavar="TEXT", help="What the context is about, in your own words")
    add("--task-id", metavar="ID", help="Its task: what was saved for it takes part")
    add(
        "--tags",
        metavar="A,B",
        action="extend",
        type=comma_list,
        help="Tags of the task: nodes with them, or with them in their path, are preferred",
    )
    add(
        "--persona",
        metavar="ID",
        help=f"The active persona (default: ${PERSONA_VARIABLE}, or the setting `context.persona`)",
    )
    add(
        "--files",
        metavar="PATH",
        action="extend",
        type=comma_list,
        help="Files in hand: their signatures and tests are constraints; repeat it or use commas",
    )
    add("--session", metavar="ID", help="The session that the context belongs to")
    add(
        "--hops",
        metavar="N",
        type=whole_number(1, HOPS_MAX),
        default=2,
        help="How many links away from what was found, 1 to 3 (default: %(default)s)",
    )
    add(
        "--budget",
        metavar="N",
        type=whole_number(BUDGET_MIN, BUDGET_MAX),
        default=BUDGET,
        help="Maximum number of tokens in what is printed (default: %(default)s)",
    )
    add("--markdown", action="store_true", help="Print Markdown (the default)")
    add("--explain", action="store_true", help="Say on stderr which nodes were chosen, and why")
    add(
        "--no-save",
        action="store_true",
        help="Save nothing, and light no nodes: the same command prints the same again",
    )
    add_home(parser)
    add_json(parser)


def build(args: Namespace) -> int:
    if not (args.query or "").strip():
        problem = "a query is needed" if args.query is None else "the query is empty"
        raise UsageError(problem, 'say what it is about: `--query "fix the login"`')
    if args.json and args.markdown:
        raise UsageError("`--json` and `--markdown` exclude each other", "give one of them")
    request: dict[str, Any] = {
        "want": "context",
        "query": args.query,
        "task": {
            "id": args.task_id or "",
            "tags": args.tags or [],
            "persona": args.persona or "",
            "files": [str(Path.cwd() / path) for path in args.files or []],
            "session": args.session or "",
        },
        "budget_tokens": args.budget,
        "hops": args.hops,
        "save": not args.no_save,
    }
    # A server has an environment of its own.
    answer = ask_memory if os.environ.get(PERSONA_VARIABLE) else ask
    found = answer(args.home, request)
    print(found["json"] if args.json else found["markdown"])
    if args.explain:
        for one in found["selected"]:
            signals = " ".join(f"{name}={value}" for name, value in one.items() if name != "id")
            shown = "shown" if one["id"] in found["shown"] else "no room"
            note(one_line(f"{one['id']} {signals} ({shown})"))
    for text in found["notes"]:
        note(one_line(f"note: {text}"))
    return 0


def add_show(parser: ArgumentParser) -> None:
    parser.add_argument("task_id", metavar="TASK", help="The id of the task")
    add_home(parser)
    add_json(parser)


def show(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        found = memory.recall_context("task", args.task_id, 1)
    if not found:
        raise RecordNotFound(
            args.task_id,
            f"no context of the task `{args.task_id}` was saved here",
            "`commonplace context list` shows those of this repository",
        )
    if args.json:
        print_json(found[0].as_dict())
        return 0
    print(_line(found[0]))
    for frame in found[0].frames:
        print(f"\n## {one_line(str(frame.get('kind')))}\n\n{_data(frame.get('data'))}")
    return 0


def _data(data: object) -> str:
    """Return what a saved frame holds: text is quoted, anything else is JSON in a fence."""
    if isinstance(data, str):
        return quote(data)
    import json  # noqa: PLC0415 (rarely needed)

    text = json.dumps(render_value(data), ensure_ascii=False, indent=1)
    fence = longer_fence(text, "```")
    return f"{fence}json\n{text}\n{fence}"


def add_list(parser: ArgumentParser) -> None:
    scope = parser.add_argument(
        "--scope", choices=SCOPES, default="repo", help="Whose contexts (default: %(default)s)"
    )
    suggest(scope, SCOPES)
    parser.add_argument(
        "id", nargs="?", default="", metavar="ID", help="Which one (default: the one in use)"
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=whole_number(1, LIMIT_MAX),
        default=20,
        help="How many, the newest first (default: %(default)s)",
    )
    add_home(parser)
    add_json(parser)


def list_contexts(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        found = memory.recall_context(args.scope, args.id, args.limit)
    if args.json:
        print_json([one.as_dict() for one in found])
        return 0
    for one in found:
        print(_line(one))
    if not found:
        note("No contexts yet")
    return 0


def _line(one: SavedContext) -> str:
    when = one.timestamp[:16].replace("T", " ")
    kinds = ", ".join(str(frame.get("kind")) for frame in one.frames)
    by = "built" if one.is_built else "saved"
    parts = (one.task_id, f"version {one.version}", when, f"{by} by {one.agent_id}", kinds)
    return "  ".join(map(one_line, parts))


COMMANDS = {
    "build": Command(
        "Print the frames of a context for a task, within a budget",
        add_build,
        build,
        (
            'commonplace context build --query "overloads" --tags cpp --budget 1500',
            'commonplace context build --query "fix the login" --task-id task-7 --json',
        ),
    ),
    "show": Command(
        "Show the context of a task that was saved last",
        add_show,
        show,
        ("commonplace context show task-7",),
    ),
    "list": Command(
        "List saved contexts, the newest first",
        add_list,
        list_contexts,
        ("commonplace context list", "commonplace context list --scope task task-7"),
    ),
}
