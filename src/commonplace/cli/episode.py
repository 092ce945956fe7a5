"""`commonplace episode`: record what happened in a task, whole or step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.cli.arguments import add_agent, add_home, add_id, add_json, suggest, whole_number
from commonplace.cli.commands import Command
from commonplace.cli.filters import add_scope, check_scope
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note as print_note
from commonplace.cli.output import print_json
from commonplace.cli.reading import read_file
from commonplace.errors import UsageError
from commonplace.foreign import one_line
from commonplace.maintenance import due
from commonplace.vocabulary import EPISODE_OUTCOMES, LIMIT_MAX

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.learn.drafts import Draft
    from commonplace.memory import Memory
    from commonplace.records import Record

DEFAULT = "list"


def add_record(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="JSON file with the episode; - is stdin")
    add_agent(parser, "Who worked, if the file does not say")
    add_home(parser)
    add_json(parser)


def record(args: Namespace) -> int:
    from commonplace.learn.episodes import parse  # noqa: PLC0415 (help needs none of it)

    episode = parse(read_file(args.file))
    with _open(args) as memory:
        given = str(episode.get("id") or "")
        before = memory.logs_with(given) if given else set()
        written = memory.record_episode(episode)
        if written.fields.get("outcome", "unknown") != "unknown":
            due.start_if_due(memory)
    if given and written.id != given:
        print_note(f"note: another repository has a record `{one_line(given)}`")
    elif written.repo in before:
        print_note(f"note: `{one_line(given)}` was recorded before; this is its version now")
    return _print_written(written, as_json=args.json)


def add_start(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--goal", metavar="TEXT", default="", help="What the task is for; needed")
    add("--phase", metavar="NAME", default="", help="Where it belongs, such as development")
    add("--task-id", metavar="ID", default="", help="Its task (default: the id of the episode)")
    _add_lists(parser)
    _add_draft(parser, "Id of the new episode, to have several open at once")


def start(args: Namespace) -> int:
    if not args.goal:
        raise UsageError("`--goal` is missing", "say what the task is for: `--goal 'brew tea'`")
    with _open(args) as memory:
        started = memory.start_episode(
            args.goal,
            phase=args.phase,
            task_id=args.task_id,
            constraints=args.constraint or (),
            files=args.file or (),
            ident=args.id,
        )
        if args.phase and _last_phase(memory) not in ("", args.phase):
            due.start_if_due(memory)  # What the last phase has taught is learned now.
    if started.abandoned:
        print_note(
            f"note: `{one_line(started.abandoned)}` was still open; it is over, its outcome unknown"
        )
    return _print_draft(started.draft, as_json=args.json)


def _last_phase(memory: Memory) -> str:
    """Return the phase of the latest episode of this repository; "" if it says none."""
    for hit in memory.recent(1, kinds=["episode"]):
        context = hit.record.fields.get("context")
        return str(context.get("phase") or "") if isinstance(context, dict) else ""
    return ""


def add_note(parser: ArgumentParser) -> None:
    add = parser.add_argument
    words = add("words", metavar="TEXT", nargs="*", help="A note in your own words")
    suggest(words, ())
    add("--action", metavar="NAME", default="", help="What was done, such as run_test")
    add("--target", metavar="TEXT", default="", help="The file or command of the action")
    result = add("--result", metavar="TEXT", default="", help="How the action went: pass or fail")
    suggest(result, ("pass", "fail"))
    add("--error", metavar="MESSAGE", default="", help="What went wrong")
    add(
        "--error-type",
        metavar="NAME",
        default="",
        help="What kind of error it is (default: the action)",
    )
    add(
        "--resolution",
        metavar="TEXT",
        default="",
        help="What solved the error, or without --error the last one",
    )
    add("--artifact", metavar="FILE", action="append", help="A file that was made")
    _add_lists(parser)
    _add_draft(parser, "Id of the episode, if several are open")


def note(args: Namespace) -> int:
    from commonplace.learn.drafts import Note  # noqa: PLC0415 (help needs none of it)

    given = Note(
        " ".join(args.words),
        args.action,
        args.target,
        args.result,
        args.error,
        args.error_type,
        args.resolution,
        args.file or (),
        args.artifact or (),
        args.constraint or (),
    )
    with _open(args) as memory:
        return _print_draft(memory.note_episode(given, args.id), as_json=args.json)


def add_end(parser: ArgumentParser) -> None:
    outcome = parser.add_argument(
        "--outcome",
        metavar="OUTCOME",
        default="",
        help=f"How it went, needed: {', '.join(EPISODE_OUTCOMES)}",
    )
    suggest(outcome, EPISODE_OUTCOMES)
    parser.add_argument(
        "--git-commit", metavar="SHA", default="", help="Its commit (default: the one checked out)"
    )
    _add_draft(parser, "Id of the episode, if several are open")


def end(args: Namespace) -> int:
    if not args.outcome:
        raise UsageError("`--outcome` is missing", f"give one of {', '.join(EPISODE_OUTCOMES)}")
    with _open(args) as memory:
        written = memory.end_episode(args.outcome, git_commit=args.git_commit, ident=args.id)
        if args.outcome != "unknown":
            due.start_if_due(memory)
        return _print_written(written, as_json=args.json)


def add_list(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--limit",
        metavar="N",
        type=whole_number(1, LIMIT_MAX),
        default=20,
        help="How many to list (default: %(default)s)",
    )
    add_scope(parser)
    add_home(parser)
    add_json(parser)


def list_episodes(args: Namespace) -> int:
    check_scope(args)
    with open_memory(args.home) as memory:
        drafts = memory.open_episodes()
        written = memory.recent(
            args.limit, kinds=["episode"], repo=args.repo, all_repos=args.all_repos
        )
    if args.json:
        print_json(
            {
                "open": [draft.fields for draft in drafts],
                "episodes": [hit.record.fields for hit in written],
            }
        )
        return 0
    for draft in drafts:
        goal = one_line(str(draft.fields["context"]["goal"]))
        print(f"[open]       {goal}  {one_line(draft.id)}")
    for hit in written:
        print(f"[{one_line(hit.timestamp[:10])}] {hit.text}  {one_line(hit.id)}")
    if not drafts and not written:
        print_note("No episodes yet")
    return 0


def add_show(parser: ArgumentParser) -> None:
    add_id(parser, "episode")
    add_home(parser)
    add_json(parser)


def show_episode(args: Namespace) -> int:
    from commonplace.cli.show import print_record, show  # noqa: PLC0415 (another command)

    with open_memory(args.home) as memory:
        drafts = [one for one in memory.open_episodes() if one.id.startswith(args.id)]
        if len(drafts) != 1:
            return show(memory, args.id, as_json=args.json)
        if args.json:
            print_json(drafts[0].fields)
        else:
            print_record(drafts[0].fields)
    return 0


def _open(args: Namespace) -> Memory:
    memory = open_memory(args.home, to_write=True)
    memory.agent_id = args.agent or memory.agent_id
    return memory


def _add_lists(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--file", metavar="FILE", action="append", help="A file that is involved")
    add("--constraint", metavar="TEXT", action="append", help="What must hold")


def _add_draft(parser: ArgumentParser, about: str) -> None:
    parser.add_argument("--id", default="", help=about)
    add_agent(parser, "Who works")
    add_home(parser)
    add_json(parser)


def _print_draft(draft: Draft, *, as_json: bool) -> int:
    if as_json:
        print_json(draft.fields)
    else:
        print(one_line(draft.id))
    return 0


def _print_written(record: Record, *, as_json: bool) -> int:
    redactions = [redaction._asdict() for redaction in record.redactions]
    if as_json:
        receipt: dict[str, Any] = {"id": record.id, "repo": record.repo, "redactions": redactions}
        print_json(receipt)
    else:
        print(one_line(record.id))
    for redaction in record.redactions:
        print_note(f"redacted: {redaction.kind} in `{redaction.field}`")
    return 0


COMMANDS = {
    "list": Command(
        "List the episodes that are open, and the latest that were written",
        add_list,
        list_episodes,
        ("commonplace episode", "commonplace episode list --limit 5 --json"),
    ),
    "show": Command(
        "Show an episode whole, with its actions",
        add_show,
        show_episode,
        ("commonplace episode show ep-2026-01-06-001",),
    ),
    "record": Command(
        "Write the episode in a JSON file and print its id",
        add_record,
        record,
        ("commonplace episode record task-042.json", "commonplace episode record - < task.json"),
    ),
    "start": Command(
        "Begin an episode and print its id",
        add_start,
        start,
        ("commonplace episode start --goal 'add POST /api/todos' --phase development",),
    ),
    "note": Command(
        "Add an action, an error, a file or a text to the open episode",
        add_note,
        note,
        (
            "commonplace episode note --action run_test --error 'no return type'",
            "commonplace episode note --resolution 'added :void to the handler'",
        ),
    ),
    "end": Command(
        "End the open episode, write it and print its id",
        add_end,
        end,
        ("commonplace episode end --outcome success",),
    ),
}
