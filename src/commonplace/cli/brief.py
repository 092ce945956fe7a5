"""`commonplace brief`: what is known before a task.

The home's server answers if one runs; if not, this process opens the memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.cli.arguments import add_home, add_json, comma_list, suggest, whole_number
from commonplace.cli.asking import ask
from commonplace.cli.output import note, print_json
from commonplace.errors import UsageError
from commonplace.vocabulary import TOKENS_MIN

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

TOKENS_MAX = 20_000
EXAMPLES = (
    'commonplace brief --goal "Implement PUT /api/orders in Express"',
    'commonplace brief --goal "set up the app" --action "npm install" --tokens 500',
)


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--goal", metavar="TEXT", help="What the task is, in your own words")
    add("--task-id", metavar="ID", help="Its id: what was done for this task comes first")
    action = add(
        "--action",
        metavar="TYPE",
        help="The next action, e.g. write_file or `npm install`: mistakes about it come first",
    )
    suggest(action, ("read_file", "write_file", "edit_file", "run_test"))
    add(
        "--files",
        metavar="PATH",
        action="extend",
        type=comma_list,
        help="Files of the task: find memories that name them, too; repeat it or use commas",
    )
    add(
        "--tokens",
        metavar="N",
        type=whole_number(TOKENS_MIN, TOKENS_MAX),
        default=1500,
        help="Maximum number of tokens in the text (default: %(default)s)",
    )
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    if not (args.goal or "").strip():
        said = "a goal is needed" if args.goal is None else "the goal is empty"
        raise UsageError(said, 'say what the task is: `--goal "fix the login"`')
    request: dict[str, Any] = {
        "want": "brief",
        "goal": args.goal,
        "task_id": args.task_id,
        "action": args.action,
        "files": args.files,
        "tokens": args.tokens,
    }
    found = ask(args.home, request)
    if args.json:
        print_json(found)
    else:
        print(found["text"])
    for text in found["notes"]:
        note(f"note: {text}")
    return 0
