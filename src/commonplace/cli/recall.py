"""`commonplace recall`: ask a question, list the latest memories, or count them.

The home's server answers if one runs; if not, this process opens the memory. What is printed is
made from the JSON form of the answer, which is the same either way.
"""

from __future__ import annotations

from commonplace.cli.arguments import (
    add_home,
    add_json,
    comma_list,
    suggest,
    whole_number,
)
from commonplace.cli.asking import ask
from commonplace.cli.output import note, print_json, style, terminal_columns
from commonplace.errors import UsageError
from commonplace.foreign import one_line
from commonplace.vocabulary import EVENT_TYPES, KIND_NAMES, LIMIT_MAX, TOKENS_MIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from commonplace.recall.query import Narrowing

EXAMPLES = (
    "commonplace recall npm install fails with EACCES",
    'commonplace recall "how do we deploy" --all-repos --limit 3 --since 30d',
    "commonplace recall --recent 10",
)


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("query", metavar="QUERY", nargs="*", help="What you want to know, in your own words")
    add("--repo", metavar="NAME", help="Search only this repository (default: the one here)")
    add("--all-repos", action="store_true", help="Search every log, and prefer this repository's")
    for flag, metavar, values, text in (
        ("--type", "TYPE", EVENT_TYPES, f"Only lessons of this type: {', '.join(EVENT_TYPES)}"),
        ("--kind", "KIND", (*KIND_NAMES, "note", "skill"), "Only records of this kind"),
        ("--tag", "TAG", (), "Only records with this tag"),
        ("--files", "PATH", None, "Files you work on: prefer memories that name them"),
    ):
        action = add(
            flag,
            metavar=metavar,
            action="extend",
            type=comma_list,
            help=f"{text}; repeat it or use commas for several",
        )
        if values is not None:
            suggest(action, values)
    add("--agent", metavar="NAME", help="Only what this agent wrote")
    add(
        "--limit",
        metavar="N",
        type=whole_number(1, LIMIT_MAX),
        default=5,
        help="Maximum number of memories (default: %(default)s)",
    )
    add(
        "--tokens",
        metavar="N",
        type=whole_number(TOKENS_MIN),
        default=500,
        help="Maximum number of tokens in the answer (default: %(default)s)",
    )
    add("--since", metavar="WHEN", help="Nothing older: a date, or an age such as 30d or 12h")
    add("--until", metavar="WHEN", help="Nothing newer: a date, or an age such as 30d or 12h")
    add("--as-of", metavar="DATE", help="Answer as the memory was at the end of this day")
    add("--recent", metavar="N", type=whole_number(1), help="List the latest N memories instead")
    add("--stats", action="store_true", help="Count the memories instead")
    add("--all", action="store_true", help="Search or count the archive too")
    add("--superseded", action="store_true", help="Show what newer memories supersede, too")
    add("--quarantined", action="store_true", help="Search the packs in quarantine instead")
    add("--explain", action="store_true", help="Show every factor of every score on stderr")
    add("--no-cutoff", action="store_true", help="Keep weak matches too, up to the limit")
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    # Words need no quotes: they are joined as they were typed.
    args.query = " ".join(args.query) if args.query else None
    request = request_of(args)
    found = _ask_quarantine(args.home, request) if args.quarantined else ask(args.home, request)
    if args.stats:
        from commonplace.cli.stats import print_counts  # noqa: PLC0415 (another command's)

        print_counts(found, as_json=args.json, with_archive=args.all)
        return 0
    if args.json:
        print_json(found)
    elif args.recent is not None:
        print_recent(found)
    else:
        print_answer(found, explain=args.explain)
    if not args.json and args.recent is not None and not found:
        _suggest_all_repos(args)
    if args.recent is None:
        for text in found["notes"]:
            note(f"note: {text}")
    return 0


def _ask_quarantine(home: str | None, request: dict[str, Any]) -> Any:  # noqa: ANN401 (its JSON)
    """Return the answer from the packs in quarantine. No server has opened them."""
    from commonplace.cli.open_memory import open_memory  # noqa: PLC0415 (see `cli/asking.py`)
    from commonplace.packs import quarantine  # noqa: PLC0415

    with open_memory(home) as memory:
        return quarantine.ask(memory, request)


def request_of(args: Namespace) -> dict[str, Any]:
    """Return the arguments as the request that `ask.answer` takes."""
    if args.repo is not None and args.all_repos:
        raise UsageError("`--repo` and `--all-repos` exclude each other", "give one of them")
    if args.query is not None and args.recent is not None:
        raise UsageError("`--recent` takes no question", "leave one of them out")
    if args.query is not None and args.stats:
        raise UsageError("`--stats` takes no question", "leave one of them out")
    if args.query is None and args.recent is None and not args.stats:
        raise UsageError(
            "a question is needed", 'e.g. `commonplace recall "npm install fails with EACCES"`'
        )
    want = "counts" if args.stats else "answer" if args.recent is None else "recent"
    narrowing: Narrowing = {
        "kinds": args.kind,
        "types": args.type,
        "tags": args.tag,
        "agent": args.agent,
        "files": args.files,
        "since": args.since,
        "until": args.until,
        "as_of": args.as_of,
        "archived": args.all,
        "superseded": args.superseded,
        "limit": args.limit,
        "tokens_max": args.tokens,
        "cutoff": not args.no_cutoff,
    }
    return {
        "want": want,
        "text": args.query,
        "count": args.recent,
        "repo": args.repo,
        "all_repos": args.all_repos,
        "narrowing": narrowing,
    }


def print_answer(fields: dict[str, Any], *, explain: bool) -> None:
    """Print an answer in its JSON form as text; with *explain*, its reasons on stderr."""
    if fields["hits"] and terminal_columns() is not None:
        from commonplace.cli.render import print_hits  # noqa: PLC0415 (it imports rich)

        print_hits(fields["hits"])
    else:
        print(fields["text"])
    if not explain:
        return
    for hit in fields["hits"]:
        reasons = "  ".join(f"{name} {value:g}" for name, value in hit["why"].items())
        note(f"{hit['score']:.4f}  {one_line(hit['id'])}\n        {reasons}")
    note(f"{fields['considered']} candidates, {fields['tokens']} tokens")


def print_recent(rows: list[dict[str, Any]]) -> None:
    """Print the latest memories, one a line."""
    for row in rows:
        writer = row["record"].get("agent_id") or row["kind"]
        date, writer, ident = map(one_line, (row["timestamp"][:10], writer, row["id"]))
        print(f"[{date}] {row['text']}  ({writer}) {style(ident, 'dim')}")
    if not rows:
        print("No memories match.")


def _suggest_all_repos(args: Namespace) -> None:
    if not args.all_repos and args.repo is None:
        note("hint: only this repository's log was searched; `--all-repos` searches every log")
