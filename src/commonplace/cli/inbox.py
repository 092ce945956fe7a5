"""`commonplace inbox`: what was proposed to be remembered, for a person or an agent to decide."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from commonplace import inbox
from commonplace.cli.arguments import add_home, add_id, add_json, suggest
from commonplace.cli.columns import print_pairs
from commonplace.cli.commands import Command
from commonplace.cli.editor import open_editor
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, number_of, print_json, terminal_columns
from commonplace.errors import CandidateNotFound, CommonplaceError, UsageError
from commonplace.foreign import block, one_line
from commonplace.learn.links import title_of
from commonplace.records import encode
from commonplace.records.episodes import summarise

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator, Sequence

    from commonplace.memory import Memory

DEFAULT = "list"
EVIDENCE_SHOWN_MAX = 20
TITLE_CHARS_MAX = 200


def add_list(parser: ArgumentParser) -> None:
    _add_kind(parser, "list")
    add_home(parser)
    add_json(parser)


def list_candidates(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        found = inbox.waiting(memory, args.kind)
    if args.json:
        print_json([_fields(one) for one in found])
        return 0
    rows = [
        (
            one_line(one.id),
            _counts(one),
            one_line(one.context),
            one_line(one.worked),
            one_line(f"accepted: {one.effect}"),
        )
        for one in found
    ]
    if terminal_columns() is None:
        for ident, counts, context, worked, effect in rows:
            print(f"{ident}  {counts}  {context}")
            print(f"    worked: {worked}" if worked else f"    {effect}")
    elif rows:
        from commonplace.cli.render import print_candidates  # noqa: PLC0415 (it imports rich)

        print_candidates(rows)
    if not found:
        note("The inbox is empty" if not args.kind else f"No {args.kind} waits in the inbox")
    return 0


def _counts(one: inbox.Candidate) -> str:
    attempts = number_of(one.attempts, "attempt") if one.worked else ""
    evidence = number_of(len(one.evidence), "source") if one.evidence else ""
    seen = f"seen {number_of(one.seen, 'time')}"
    return ", ".join(part for part in (attempts, evidence, seen) if part)


def add_show(parser: ArgumentParser) -> None:
    add_id(parser, "candidate")
    add_home(parser)
    add_json(parser)


def show(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        _home, one = inbox.find(memory, args.id)
        if args.json:
            print_json(_fields(one))
            return 0
        evidence = list(_evidence(memory, one.evidence))
        against = list(_evidence(memory, one.against))
    who = " in ".join(part for part in (one.agent, one.repo) if part)
    sessions = f"in {number_of(one.seen, 'session')}"
    seen = f"{one.attempts}, seen {sessions}" if one.worked else sessions
    seen = ", ".join(part for part in (seen, who) if part)
    pairs = [
        ("error", one.error),
        *(("tried", str(command)) for command in one.tried),
        ("worked", one.worked),
        *_shown_fields(one),
        *(("evidence", text) for text in evidence),
        *(("against", text) for text in against),
        ("because", one.reason),
        ("accepted", one.effect),
        ("attempts" if one.worked else "seen", one_line(seen)),
    ]
    print(one_line(one.id))
    print_pairs([(one_line(name), block(text)) for name, text in pairs if text])
    print(f"commonplace inbox accept|edit|drop {one_line(one.id)}")
    return 0


def _shown_fields(one: inbox.Candidate) -> Iterator[tuple[str, str]]:
    kind = inbox.KINDS[one.kind]
    yield kind.noun, one.text
    for name, value in one.record.items() if not one.worked else ():
        if name not in (kind.text, "meta", "links", "tags"):
            yield name.replace("_", " "), value if isinstance(value, str) else encode(value)


def _evidence(memory: Memory, ids: Sequence[str]) -> Iterator[str]:
    """Yield the id of each of some records, with its words if it is there."""
    for ident in ids[:EVIDENCE_SHOWN_MAX]:
        title = ""
        with suppress(CommonplaceError):
            record = memory.get(str(ident))
            title = summarise(record) if record.kind == "episode" else title_of(record)
        if len(title) > TITLE_CHARS_MAX:
            title = f"{title[:TITLE_CHARS_MAX]}…"
        yield one_line(f"{ident}  {title}".rstrip())
    if len(ids) > EVIDENCE_SHOWN_MAX:
        yield f"and {len(ids) - EVIDENCE_SHOWN_MAX} more"


def add_accept(parser: ArgumentParser) -> None:
    _add_ids(parser, "accept")
    _add_lesson(parser)
    add_home(parser)
    add_json(parser)


def accept(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        ids = _chosen(memory, args)
        if args.lesson is not None:
            if len(args.ids) != 1:
                raise UsageError("`--lesson` is for one candidate", "give one id")
            inbox.edit(memory, args.ids[0], lesson=args.lesson)
        written = []
        for fields in inbox.accept(memory, ids):
            written.append(fields)
            if not args.json:
                print(one_line(fields["id"]))
    if args.ids and not written:
        raise CandidateNotFound(args.ids[0])
    if taken := len(ids) - len(written):
        note(f"{number_of(taken, 'candidate')} decided by another process meanwhile")
    if args.json:
        print_json(written[0] if len(args.ids) == 1 else written)
    return 0


def add_edit(parser: ArgumentParser) -> None:
    add_id(parser, "candidate")
    _add_lesson(parser)
    parser.add_argument("--error", metavar="TEXT", help="What went wrong (default: as it is)")
    parser.add_argument(
        "--worked", metavar="COMMAND", help="The command that worked (default: as it is)"
    )
    parser.add_argument(
        "--field",
        metavar="NAME=VALUE",
        action="append",
        help="Another field of what it would write; lists and numbers as JSON; may be repeated",
    )
    add_home(parser)
    add_json(parser)


def edit(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        lesson = args.lesson
        _home, one = inbox.find(memory, args.id)
        fields = dict(_field(one, given) for given in args.field or ())
        if lesson is None and args.error is None and args.worked is None and not fields:
            words = inbox.KINDS[one.kind].text
            if not (one.worked or words):
                raise UsageError("a link has no words to edit", "give `--field NAME=VALUE`")
            text = open_editor(one.text, "give `--lesson`, `--error`, `--worked` or `--field`")
            if one.worked:
                lesson = text
            else:
                fields[words] = text
        one = inbox.edit(
            memory, one.id, lesson=lesson, error=args.error, worked=args.worked, fields=fields
        )
    if args.json:
        print_json(_fields(one))
    else:
        # A skill is a whole file: what accepting it does is enough to see that the edit is there.
        text = one.effect if one.kind == "skill" else one.text
        print(f"{one_line(one.id)}  {one_line(text)}")
    return 0


def _field(one: inbox.Candidate, given: str) -> tuple[str, Any]:
    """Return the name and the value of a `NAME=VALUE`; JSON where the field is no text."""
    name, equals, text = given.partition("=")
    if not equals:
        raise UsageError(
            f"is `{given}`, not NAME=VALUE", "`--field why='it was not there'`", "--field"
        )
    if isinstance(one.record.get(name, ""), str) and text[:1] not in ("[", "{"):
        return name, text
    try:
        return name, json.loads(text)
    except ValueError:
        hint = "such as `--field 'conditions=[\"on CI\"]'`"
        raise UsageError(f"{name} is no text, and `{text}` is no JSON", hint, "--field") from None


def add_drop(parser: ArgumentParser) -> None:
    _add_ids(parser, "drop")
    add_home(parser)
    add_json(parser)


def drop(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        dropped = inbox.drop(memory, _chosen(memory, args))
    if args.json:
        rows = [{"id": one.id, "dropped": True} for one in dropped]
        print_json(rows[0] if len(args.ids) == 1 else rows)
    else:
        for one in dropped:
            print(f"Dropped: {one_line(one.id)}")
    return 0


def _add_ids(parser: ArgumentParser, verb: str) -> None:
    ids = parser.add_argument(
        "ids",
        metavar="ID",
        nargs="*",
        help="Ids of candidates, or unique beginnings of them; if one is unknown, nothing is done",
    )
    suggest(ids, ())
    parser.add_argument("--all", action="store_true", help=f"{verb.capitalize()} every candidate")
    _add_kind(parser, verb)


def _add_kind(parser: ArgumentParser, verb: str) -> None:
    parser.add_argument(
        "--kind",
        metavar="KIND",
        choices=list(inbox.KINDS),
        default="",
        help=f"{verb.capitalize()} the candidates of this kind: {', '.join(inbox.KINDS)}",
    )


def _chosen(memory: Memory, args: Namespace) -> list[str]:
    """Return the ids of the candidates that the arguments name."""
    if bool(args.ids) == (args.all or bool(args.kind)):
        raise UsageError(
            "name candidates by their ids, or choose them by `--all` or `--kind`, not both",
            "`commonplace inbox list` shows every candidate",
        )
    if args.ids:
        return list(args.ids)
    return [one.id for one in inbox.waiting(memory, args.kind)]


def _add_lesson(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--lesson", metavar="TEXT", help="What was learned, in your words (default: as it is)"
    )


def _fields(one: inbox.Candidate) -> dict[str, Any]:
    return {
        **one._asdict(),
        "lesson": one.text,
        "context": one.context,
        "rank": one.rank,
        "record": one.record,
        "effect": one.effect,
    }


COMMANDS = {
    "list": Command(
        "List the candidates, the most promising first",
        add_list,
        list_candidates,
        ("commonplace inbox", "commonplace inbox list --kind pattern --json"),
    ),
    "show": Command(
        "Show a candidate: its evidence, and what accepting it does",
        add_show,
        show,
        ("commonplace inbox show npm-install",),
    ),
    "accept": Command(
        "Do what candidates propose, and print the ids of what was written",
        add_accept,
        accept,
        (
            "commonplace inbox accept npm-install --lesson 'own the folder before npm ci'",
            "commonplace inbox accept npm-install docker-compose",
            "commonplace inbox accept --kind pattern",
        ),
    ),
    "edit": Command(
        "Change a candidate; without a flag, its words open in $EDITOR",
        add_edit,
        edit,
        (
            "commonplace inbox edit npm-install",
            "commonplace inbox edit npm-install --worked npm-ci",
        ),
    ),
    "drop": Command(
        "Remove candidates from the inbox; the same is not proposed again",
        add_drop,
        drop,
        ("commonplace inbox drop npm-install", "commonplace inbox drop --kind link"),
    ),
}
