"""`commonplace recall`: ask a question, list the latest memories, or count them.

What is printed is made from the JSON form of an answer, whoever produced that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.cli.arguments import (
    add_home,
    add_json,
    comma_list,
    suggest,
    whole_number,
)
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, plain, print_json
from commonplace.cli.search_scope import logs_to_search
from commonplace.errors import UsageError
from commonplace.records import EVENT_TYPES, KINDS

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.memory import Memory
    from commonplace.recall.query import Narrowing
    from commonplace.where.repository import Repository

EXAMPLES = (
    'commonplace recall "npm install fails with EACCES"',
    'commonplace recall "how do we deploy" --all-repos --limit 3 --since 30d',
    "commonplace recall --recent 10",
)


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("query", metavar="QUERY", nargs="?", help="What you want to know, in your own words")
    add("--repo", metavar="NAME", help="Search only this log (default: this repository's)")
    add("--all-repos", action="store_true", help="Search every log, and prefer this repository's")
    for flag, metavar, values, text in (
        ("--type", "TYPE", EVENT_TYPES, f"Only lessons of this type: {', '.join(EVENT_TYPES)}"),
        ("--kind", "KIND", (*KINDS, "note", "skill"), "Only records of this kind"),
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
        type=whole_number(),
        default=5,
        help="Maximum number of memories (default: %(default)s)",
    )
    add(
        "--tokens",
        metavar="N",
        type=whole_number(),
        default=500,
        help="Maximum number of tokens in the answer (default: %(default)s)",
    )
    add("--since", metavar="WHEN", help="Nothing older: a date, or an age such as 30d or 12h")
    add("--as-of", metavar="DATE", help="Answer as the memory was at the end of this day")
    add("--recent", metavar="N", type=whole_number(), help="List the latest N memories instead")
    add("--stats", action="store_true", help="Count the memories instead")
    add("--all", action="store_true", help="Search the archive too")
    add("--superseded", action="store_true", help="Show what newer memories supersede, too")
    add("--explain", action="store_true", help="Show every factor of every score on stderr")
    add("--no-cutoff", action="store_true", help="Keep weak matches too, up to the limit")
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        memory.engine(for_one_query=True)
        if args.stats:
            from commonplace.cli.stats import print_counts  # noqa: PLC0415 (another command's)

            logs = logs_to_search(memory.repository, args.repo, all_repos=args.all_repos)
            print_counts(memory.stats(logs), as_json=args.json)
        elif args.recent is not None:
            list_recent(memory, args)
        else:
            answer(memory, args)
    return 0


def narrowing_of(args: Namespace, here: Repository) -> Narrowing:
    """What the flags narrow the question by, asked in the repository *here*."""
    return {
        "repo": logs_to_search(here, args.repo, all_repos=args.all_repos),
        "kinds": args.kind,
        "types": args.type,
        "tags": args.tag,
        "agent": args.agent,
        "files": args.files,
        "since": args.since,
        "as_of": args.as_of,
        "archived": args.all,
        "superseded": args.superseded,
        "limit": args.limit,
        "tokens_max": args.tokens,
        "cutoff": not args.no_cutoff,
    }


def answer(memory: Memory, args: Namespace) -> None:
    """Answer the question and print the answer."""
    if args.query is None:
        raise UsageError(
            "a question is needed", 'e.g. `commonplace recall "npm install fails with EACCES"`'
        )
    fields = memory.recall(args.query, **narrowing_of(args, memory.repository)).as_dict()
    if args.json:
        print_json(fields)
    else:
        print_answer(fields, explain=args.explain)
        if not fields["hits"]:
            _suggest_all_repos(args, memory.repository)
    for text in fields["notes"]:
        note(f"note: {text}")


def print_answer(fields: dict[str, Any], *, explain: bool) -> None:
    """Print an answer in its JSON form as text; with *explain*, its reasons on stderr."""
    print(plain(fields["text"]))
    if not explain:
        return
    for hit in fields["hits"]:
        reasons = "  ".join(f"{name} {value:g}" for name, value in hit["why"].items())
        note(f"{hit['score']:.4f}  {hit['id']}\n        {reasons}")
    note(f"{fields['considered']} candidates, {fields['tokens']} tokens")


def list_recent(memory: Memory, args: Namespace) -> None:
    """Print the latest memories, one a line."""
    if args.query is not None:
        raise UsageError("`--recent` takes no question", "leave one of them out")
    hits = memory.recent(args.recent, **narrowing_of(args, memory.repository))
    rows = [hit.as_dict() for hit in hits]
    if args.json:
        print_json(rows)
        return
    for row in rows:
        writer = row["record"].get("agent_id") or row["kind"]
        print(plain(f"[{row['timestamp'][:10]}] {row['text']}  ({writer}) {row['id']}"))
    if not rows:
        print("No memories match.")
        _suggest_all_repos(args, memory.repository)


def _suggest_all_repos(args: Namespace, here: Repository) -> None:
    if not args.all_repos and args.repo is None:
        note(f"hint: only `{here.name}` was searched; `--all-repos` searches every log")
