"""`commonplace log`: write one lesson, or any number of records from stdin."""

from __future__ import annotations

import sys
from typing import Any

from commonplace.characters import holds_terminal_codes
from commonplace.cli.arguments import add_home, add_json, suggest
from commonplace.cli.output import note, number_of, print_json
from commonplace.errors import LinesRefused, RecordInvalid, UsageError
from commonplace.vocabulary import EVENT_TYPES
from commonplace.writing import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.records import Record

REFUSALS_SHOWN_MAX = 20
EXAMPLES = (
    "commonplace log 'verify ownership before npm ci'",
    "commonplace log --type error --lesson 'verify ownership before npm ci'",
    "commonplace log --type success --lesson 'use uv sync' --tags uv,ci",
    "commonplace log --stdin < records.jsonl",
)
_FIELDS = (
    "event_type",
    "lesson",
    "context",
    "command",
    "success_rate",
    "tags",
    "repo",
    "agent_id",
    "timestamp",
    "id",
)
# The type of a lesson that is logged without one.
TYPE = "learned"


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    words = add("words", metavar="LESSON", nargs="*", help="What was learned")
    suggest(words, ())
    event_type = add(
        "--type",
        dest="event_type",
        metavar="TYPE",
        help=f"One of {', '.join(EVENT_TYPES)} (default: {TYPE})",
    )
    suggest(event_type, EVENT_TYPES)
    add("--lesson", metavar="TEXT", help="What was learned, if it is not given without a flag")
    add("--context", metavar="TEXT", help="What was attempted")
    add("--command", metavar="TEXT", help="The exact command, if there is one")
    add("--success-rate", metavar="X/Y", help="How often it worked: X times out of Y")
    add("--tags", metavar="A,B", help="Keywords, separated by commas")
    add("--repo", metavar="NAME", help="Log to write to (default: this repository's)")
    add(
        "--agent",
        dest="agent_id",
        metavar="NAME",
        help="Who learned it (default: $COMMONPLACE_AGENT, else `default`)",
    )
    add("--timestamp", metavar="TIME", help="When it was learned, as RFC 3339 (default: now)")
    add("--id", help="Id of the record (default: made from its content)")
    add("--merge", action="store_true", help="With --id: keep the fields that are not given")
    add(
        "--stdin",
        action="store_true",
        help="Read records from stdin instead, one JSON object a line",
    )
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    fields = {name: getattr(args, name) for name in _FIELDS if getattr(args, name) is not None}
    if args.words:
        if "lesson" in fields:
            raise UsageError(
                "the lesson is given twice, with `--lesson` and without",
                "put a text with spaces in quotes",
            )
        fields["lesson"] = " ".join(args.words)
    if args.merge and "id" not in fields:
        raise UsageError("`--merge` needs `--id`", "give the id of the record to change")
    if args.stdin and fields:
        raise UsageError(
            "`--stdin` takes whole records", "put the fields into the JSON lines instead of flags"
        )
    if not args.stdin and not args.merge and "lesson" not in fields:
        raise UsageError(
            "a lesson is needed", "e.g. `commonplace log 'verify ownership before npm ci'`"
        )
    with Writer.open(args.home or None) as writer:
        if not writer.home.trusted:
            from commonplace.cli.open_memory import open_memory  # noqa: PLC0415 (rarely needed)

            open_memory(args.home, to_write=True).close()  # This announces the home, once.
        if args.stdin:
            return log_lines(writer, as_json=args.json)
        return log_lesson(writer, args, fields)


def log_lesson(writer: Writer, args: Namespace, fields: dict[str, str]) -> int:
    """Write the lesson in *fields* and print its id."""
    for name, text in fields.items():
        if holds_terminal_codes(text):
            raise RecordInvalid(
                name, "holds control characters", "leave terminal colours and binary data out"
            )
    record = None
    if "id" in fields:
        from commonplace.cli import log_again  # noqa: PLC0415 (rarely needed)

        if args.merge:
            record = log_again.merge(args.home, fields)
        else:
            log_again.warn_if_replaced(args.home, fields["id"])
    if record is None:
        record = writer.log(**_lesson(fields))
    if args.json:
        print_json(_receipt(writer, record))
    else:
        print(record.id)
        if remark := writer.plain_password_note(record):
            note(f"note: {remark}")
    for redaction in record.redactions:
        note(f"redacted: {redaction.kind} in `{redaction.field}`")
    return 0


def _lesson(fields: dict[str, str]) -> dict[str, Any]:
    """Return the record that *fields* describe, with all fields but an empty rate."""
    tags = [tag.strip() for tag in fields.get("tags", "").split(",")]
    return {
        "kind": "lesson",
        "timestamp": fields.get("timestamp"),
        "agent_id": fields.get("agent_id") or None,
        "repo": fields.get("repo"),
        "event_type": fields.get("event_type", TYPE),
        "context": fields.get("context", ""),
        "command": fields.get("command", ""),
        "lesson": fields.get("lesson"),
        "success_rate": fields.get("success_rate"),
        "tags": list(dict.fromkeys(tag for tag in tags if tag)),
        "id": fields.get("id"),
    }


def _receipt(writer: Writer, record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "repo": record.repo,
        "home": str(writer.home.path),
        "redactions": [redaction._asdict() for redaction in record.redactions],
    }


def log_lines(writer: Writer, *, as_json: bool) -> int:
    """Write the records on stdin and print how many were stored."""
    from commonplace.log.read import lines_of  # noqa: PLC0415 (only this form of the command reads)

    bulk = writer.append_lines(line.raw for line in lines_of(sys.stdin.buffer))
    writer.flush()
    if as_json:
        refused = [refusal._asdict() for refusal in bulk.refused]
        print_json({"taken": bulk.taken, "redacted": bulk.redacted, "refused": refused})
    else:
        print(f"{number_of(bulk.taken, 'record')} stored")
    if bulk.redacted:
        count = number_of(bulk.redacted, "record")
        note(f"redacted: secrets or control characters in {count}")
    for remark in bulk.remarks[:REFUSALS_SHOWN_MAX]:
        note(f"note: {remark}")
    for refusal in bulk.refused[:REFUSALS_SHOWN_MAX]:
        note(f"line {refusal.line}: {refusal.reason}")
    if bulk.refused:
        raise LinesRefused(len(bulk.refused), bulk.taken)
    return 0
