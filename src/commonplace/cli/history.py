"""`commonplace history`: every version of a record, and the feedback on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_id, add_json
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import print_json, report_damages
from commonplace.foreign import one_line, origin
from commonplace.records.sentences import sentence_of

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.memory import Memory
    from commonplace.records import Record

SUMMARY_CHARS_MAX = 100
# The fields that say what a record is about. The first one that is there is shown.
_SUMMARY_FIELDS = ("lesson", "pattern", "what_fails", "label", "outcome", "reason", "task_id", "to")
EXAMPLES = ("commonplace history les-always-ver",)


def add_arguments(parser: ArgumentParser) -> None:
    add_id(parser)
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        return show_history(memory, args.id, as_json=args.json)


def show_history(memory: Memory, ident: str, *, as_json: bool) -> int:
    """Print every version of the record, oldest first; also if it was forgotten."""
    records = memory.history(ident)
    if as_json:
        print_json([record.fields for record in records])
    else:
        for record in records:
            time, kind, writer = map(one_line, (record.timestamp, record.kind, record.agent_id))
            edited = record.meta.get("edited")
            # The time of a version is when the thing was learned; its words may be younger.
            when = f" (edited {one_line(edited)})" if isinstance(edited, str) else ""
            source = origin(record.meta, short=True)
            said_by = f" ({source})" if source else ""
            print(f"{time}  {kind:8}  {writer}  {summary(record)}{when}{said_by}")
    report_damages(memory)
    return 0


def summary(record: Record) -> str:
    """Return what the record is about, in one line."""
    values = (str(record.fields[name]) for name in _SUMMARY_FIELDS if record.fields.get(name))
    text = one_line(sentence_of(record, short=True) or next(values, record.id))
    return text if len(text) <= SUMMARY_CHARS_MAX else text[: SUMMARY_CHARS_MAX - 1] + "…"
