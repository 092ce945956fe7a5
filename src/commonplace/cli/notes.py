"""`commonplace notes`: an agent's own notes, in `agents/<name>/` of a home."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_agent, add_home, add_json, whole_number
from commonplace.cli.commands import Command
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, print_json
from commonplace.foreign import UNTRUSTED, one_line, render

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.notes import Written

_LINE = whole_number(minimum=-999_999_999)


def add_list(parser: ArgumentParser) -> None:
    parser.add_argument(
        "path", metavar="PATH", nargs="?", default="", help="Only this folder (default: all notes)"
    )
    _add_shared(parser)


def list_notes(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        found = memory.visible_notes(args.agent).list(args.path)
    if args.json:
        print_json([one._asdict() for one in found])
        return 0
    for one in found:
        mark = "" if one.trusted else f"  ({UNTRUSTED})"
        print(f"{one.bytes:>8,}  {one_line(one.path)}{mark}")
    if not found:
        note("No notes yet")
    return 0


def add_read(parser: ArgumentParser) -> None:
    _add_path(parser)
    parser.add_argument(
        "--lines",
        nargs=2,
        type=_LINE,
        metavar=("FIRST", "LAST"),
        help="Only these lines, counted from 1; -1 is the last line (default: all)",
    )
    _add_shared(parser)


def read(args: Namespace) -> int:
    lines = (args.lines[0], args.lines[1]) if args.lines else None
    with open_memory(args.home) as memory:
        found = memory.visible_notes(args.agent).read_with_hash(args.path, lines)
    if args.json:
        fields = {"path": args.path, "text": found.text, "sha256": found.note.sha256}
        print_json({**fields, "trusted": found.note.trusted})
    else:
        if not found.note.trusted:
            note(f"{args.path} {UNTRUSTED}")
        sys.stdout.write(render(found.text))
    return 0


def add_write(parser: ArgumentParser) -> None:
    _add_path(parser)
    _add_text(parser)
    _add_condition(parser)
    _add_shared(parser)


def write(args: Namespace) -> int:
    with open_memory(args.home, to_write=True) as memory:
        notes = memory.visible_notes(args.agent)
        _report(notes.write(args.path, _text(args), args.if_sha256), as_json=args.json)
    return 0


def add_replace(parser: ArgumentParser) -> None:
    _add_path(parser)
    parser.add_argument(
        "old", metavar="OLD", help="The text to replace; it must occur exactly once"
    )
    _add_text(parser, "NEW")
    _add_condition(parser)
    _add_shared(parser)


def replace(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        notes = memory.visible_notes(args.agent)
        _report(notes.replace(args.path, args.old, _text(args), args.if_sha256), as_json=args.json)
    return 0


def add_insert(parser: ArgumentParser) -> None:
    _add_path(parser)
    parser.add_argument("line", metavar="LINE", type=_LINE, help="After this line; 0 is the top")
    _add_text(parser)
    _add_condition(parser)
    _add_shared(parser)


def insert(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        notes = memory.visible_notes(args.agent)
        _report(notes.insert(args.path, args.line, _text(args), args.if_sha256), as_json=args.json)
    return 0


def _add_shared(parser: ArgumentParser) -> None:
    add_agent(parser, "Whose notes")
    add_home(parser)
    add_json(parser)


def _add_path(parser: ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="The note, relative to the agent's folder")


def _add_text(parser: ArgumentParser, metavar: str = "TEXT") -> None:
    parser.add_argument("text", metavar=metavar, help="The text; `-` reads it from stdin")


def _add_condition(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--if-sha256",
        metavar="HASH",
        help="Write only if the note still has this hash, of which 12 characters are enough;"
        " '' = only if there is no such note (default: write in any case)",
    )


def _text(args: Namespace) -> str:
    if args.text != "-":
        return str(args.text)
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


def _report(written: Written, *, as_json: bool) -> None:
    if as_json:
        print_json({**written.note._asdict(), "redacted": written.redacted})
    else:
        done = written.note
        print(f"Wrote {one_line(done.path)}, {done.bytes:,} bytes  {done.sha256}")
    for kind in written.redacted:
        note(f"redacted: {kind}")


COMMANDS = {
    "list": Command(
        "List an agent's notes",
        add_list,
        list_notes,
        ("commonplace notes list", "commonplace notes list plans --agent reviewer"),
    ),
    "read": Command(
        "Print a note",
        add_read,
        read,
        ("commonplace notes read CONTEXT.md", "commonplace notes read CONTEXT.md --lines 10 -1"),
    ),
    "write": Command(
        "Make or replace a note",
        add_write,
        write,
        ("commonplace notes write todo.md 'run make'", "commonplace notes write todo.md - < todo"),
    ),
    "replace": Command(
        "Replace a text that occurs exactly once in a note",
        add_replace,
        replace,
        ("commonplace notes replace todo.md 'run make' 'run make test'",),
    ),
    "insert": Command(
        "Insert a text into a note, after a line",
        add_insert,
        insert,
        ("commonplace notes insert todo.md 0 '# To do'",),
    ),
}
