"""`commonplace edit`: change some fields of a record and keep the others."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from commonplace.cli.arguments import add_home, add_id, add_json, suggest
from commonplace.cli.editor import keep_on_error, open_editor
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, print_json
from commonplace.editing import change_tags, editable_fields
from commonplace.errors import RecordInvalid, UsageError
from commonplace.foreign import one_line
from commonplace.vocabulary import EVENT_TYPES

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping

    from commonplace.memory import Memory
    from commonplace.records import Record

EXAMPLES = (
    "commonplace edit les-always-ver --lesson 'verify ownership, then run npm ci'",
    "commonplace edit les-always-ver --tags +ci,-npm",
    "commonplace edit pat-retry --set confidence=0.9",
    "commonplace edit les-always-ver --editor",
)
# The flags for fields of a lesson; `--set` changes any field of any kind.
_LESSON = ("lesson", "context", "command", "event_type", "success_rate")
# Fields that only programs write. `--set` changes them, the editor does not show them.
_OF_PROGRAMS = ("links", "meta", "agent_id", "timestamp")


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add_id(parser)
    add("--lesson", metavar="TEXT", help="What was learned")
    add("--context", metavar="TEXT", help="What was attempted")
    add("--command", metavar="TEXT", help="The exact command")
    event_type = add("--type", dest="event_type", metavar="TYPE", help="Type of the lesson")
    suggest(event_type, EVENT_TYPES)
    add("--success-rate", metavar="X/Y", help="How often it worked: X times out of Y")
    add("--tags", metavar="+A,-B", help="Tags to add and remove; without signs, all its tags")
    add(
        "--set",
        metavar="FIELD=VALUE",
        action="append",
        help="Any field of its kind; a value that is not text as JSON, an empty one removes it",
    )
    add("--editor", action="store_true", help="Open its fields in $VISUAL or $EDITOR")
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        before = memory.get(args.id)
        changes = _changes(args, before)
        if args.editor and changes:
            raise UsageError("`--editor` takes no other change", "leave it out, or the others")
        if args.editor:
            record = edit_in_editor(memory, before)
        elif changes:
            record = memory.edit(before.id, lambda latest: _changes(args, latest))
        else:
            raise UsageError(
                "a change is needed", "e.g. `--lesson TEXT`, `--tags +a,-b` or `--editor`"
            )
    if args.json:
        print_json(record.fields)
        return 0
    print(one_line(record.id))
    if record.fields == before.fields:
        note("Nothing was changed")
    for redaction in record.redactions:
        note(f"redacted: {redaction.kind} in `{redaction.field}`")
    return 0


def _changes(args: Namespace, record: Record) -> dict[str, Any]:
    changes = {name: getattr(args, name) for name in _LESSON if getattr(args, name) is not None}
    if args.tags is not None:
        changes["tags"] = change_tags(record.tags, args.tags.split(","))
    for pair in args.set or ():
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"`--set` is `{pair}`, without `=`", "e.g. `--set confidence=0.9`")
        changes[name] = parse_value(record, name, value)
    return changes


def _rebase(changes: dict[str, Any], before: Record, latest: Record) -> dict[str, Any]:
    """Return *changes*; where others changed the tags while the editor was open, both changes."""
    if "tags" not in changes or latest.tags == before.tags:
        return changes
    tags = changes["tags"] or []
    added = [f"+{tag}" for tag in tags if tag not in before.tags]
    removed = [f"-{tag}" for tag in before.tags if tag not in tags]
    return {**changes, "tags": change_tags(latest.tags, [*added, *removed])}


def parse_value(record: Record, name: str, text: str) -> Any:  # noqa: ANN401 (any JSON)
    """Return the value of the field *name* that *text* stands for; `None` if it is empty."""
    if not text.strip():
        return None
    default = record.known[name].default if name in record.known else None
    if isinstance(default, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        if default == ():  # A list of words, such as tags.
            return [part.strip() for part in text.split(",") if part.strip()]
        if default is None:
            return text
        raise RecordInvalid(name, f"is `{text}`, not JSON", "e.g. `--set confidence=0.9`") from None


def edit_in_editor(memory: Memory, record: Record) -> Record:
    """Let the user edit the fields of *record*, and store those that differ afterwards."""
    names = [name for name in editable_fields(record) if name not in _OF_PROGRAMS]
    texts = {name: _text_of(record, name) for name in names}
    # Longer than any line of the record's own texts begins with.
    mark = "%%"
    while any(line.startswith(mark) for text in texts.values() for line in text.splitlines()):
        mark += "%"
    form = "\n".join(f"{mark} {name}\n{text}\n" for name, text in texts.items())
    written = open_editor(form.rstrip(), "give the changes as flags")
    with keep_on_error(written):
        changes = {
            name: parse_value(record, name, text)
            for name, text in _read_form(written, mark, texts).items()
            if text != texts[name].strip("\n")
        }
        return memory.edit(record.id, lambda latest: _rebase(changes, record, latest))


def _text_of(record: Record, name: str) -> str:
    value = record.fields.get(name)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
    if is_list and not any("," in item for item in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False, indent=2)


def _read_form(form: str, mark: str, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the text below each heading of *form*."""
    parts = re.split(rf"^{re.escape(mark)}[ \t]+(\S+)[ \t]*$", form, flags=re.MULTILINE)
    before, names, bodies = parts[0], parts[1::2], parts[2::2]
    for name in names:
        if name not in texts or names.count(name) > 1:
            raise UsageError(
                f"the heading `{mark} {name}` is not one of those that were there, once",
                "leave the headings as they are; nothing was changed",
            )
    if before.strip():
        raise UsageError(
            "there is text above the first heading", f"put it below a line `{mark} FIELD`"
        )
    return {name: body.strip("\n") for name, body in zip(names, bodies, strict=True)}
