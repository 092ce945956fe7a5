"""`commonplace skill`: procedures in `skills/<name>/SKILL.md` of a home."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace import skills
from commonplace.cli.arguments import add_home, add_json, suggest
from commonplace.cli.commands import Command
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, number_of, print_json
from commonplace.errors import FindingsLeft, SkillRefused, UsageError
from commonplace.files.plain import read_named
from commonplace.foreign import UNTRUSTED, one_line, render

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.skills import Skill

TEXT_BYTES_MAX = 1 << 20
PLACES = (".claude/skills", ".agents/skills")


def add_list(parser: ArgumentParser) -> None:
    parser.add_argument(
        "words", metavar="WORD", nargs="*", help="Only skills about these words, best first"
    )
    add_home(parser)
    add_json(parser)


def list_skills(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        found = memory.skills(" ".join(args.words), untrusted=True)
    if args.json:
        print_json([_fields(skill) for skill in found])
        return 0
    for skill in found:
        mark = "" if skill.trusted else f"  ({UNTRUSTED})"
        print(f"{one_line(skill.name)}  {one_line(skill.description)}{mark}")
    if not found:
        note("No skills about that" if args.words else "No skills yet")
    return 0


def _fields(skill: Skill) -> dict[str, Any]:
    return {
        "name": skill.name,
        "description": skill.description,
        "path": str(skill.path),
        "trusted": skill.trusted,
        "valid": not any(one.is_error for one in skills.check(skill.name, skill.text)),
    }


def add_show(parser: ArgumentParser) -> None:
    _add_name(parser)
    add_home(parser)
    add_json(parser)


def show(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        skill = memory.skill(args.name)
    if args.json:
        print_json({**_fields(skill), "text": skill.text})
        return 0
    if not skill.trusted:
        note(f"{args.name} {UNTRUSTED}")
    sys.stdout.write(render(skill.text.rstrip("\n") + "\n"))
    return 0


def add_new(parser: ArgumentParser) -> None:
    _add_name(parser, "Name: a-z, 0-9 and single hyphens")
    parser.add_argument(
        "--description", metavar="TEXT", help="What it does, and when to use it (needed)"
    )
    parser.add_argument(
        "--from", dest="source", metavar="FILE", help="Take the text of this file; `-` is stdin"
    )
    parser.add_argument("--force", action="store_true", help="Replace the skill if there is one")
    add_home(parser)
    add_json(parser)


def new(args: Namespace) -> int:
    if reason := skills.why_no_name(args.name):
        raise SkillRefused(args.name, f"has a name that {reason}")
    if len(args.description or "") > skills.DESCRIPTION_CHARS_MAX:
        raise UsageError(
            f"has {len(args.description):,} characters, over {skills.DESCRIPTION_CHARS_MAX:,}",
            "say it shorter; the rest belongs into the text",
            "--description",
        )
    text = _text(args)
    if errors := [one.text for one in skills.check(args.name, text) if one.is_error]:
        raise SkillRefused(args.name, errors[0])
    with open_memory(args.home, to_write=True) as memory:
        path = memory.create_skill(args.name, text, overwrite=args.force)
    if args.json:
        print_json({"name": args.name, "path": str(path)})
    else:
        print(f"Wrote {one_line(str(path))}")
        if not args.source:
            note("Fill in its sections, then run `commonplace skill check`")
    return 0


def _text(args: Namespace) -> str:
    """Return the template, or the given text as a valid skill."""
    if not args.source:
        if not (args.description or "").strip():
            raise UsageError(
                "is needed: agents choose a skill by it",
                "say what it does, and when",
                "--description",
            )
        return skills.template(args.name, args.description)
    return skills.with_description(args.name, _read_source(args.source), args.description or "")


def _read_source(source: str) -> str:
    try:
        if source == "-":
            raw = sys.stdin.buffer.read(TEXT_BYTES_MAX + 1)
        else:
            raw = read_named(Path(source).expanduser(), TEXT_BYTES_MAX)
        if len(raw) > TEXT_BYTES_MAX:
            raise UsageError(f"is over {TEXT_BYTES_MAX:,} bytes", "split the skill", "--from")
        return raw.decode("utf-8-sig")
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"`{source}` cannot be read: {reason}", "name a text file") from None
    except UnicodeDecodeError:
        raise UsageError(f"`{source}` is not UTF-8 text", "name a text file") from None


def add_check(parser: ArgumentParser) -> None:
    _add_names(parser, "check")
    add_home(parser)
    add_json(parser)


def check(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        chosen = [memory.skill(name) for name in args.names] or memory.skills(untrusted=True)
    found = {skill.name: skills.check(skill.name, skill.text) for skill in chosen}
    if args.json:
        print_json(
            [
                {
                    "name": name,
                    "valid": not any(one.is_error for one in findings),
                    "findings": [one._asdict() for one in findings],
                }
                for name, findings in found.items()
            ]
        )
    else:
        for name, findings in found.items():
            print(f"{one_line(name)}  {'ok' if not findings else ''}".rstrip())
            for one in findings:
                print(f"  {'error' if one.is_error else 'advice'}: it {one_line(one.text)}")
    wrong = [name for name, findings in found.items() if any(one.is_error for one in findings)]
    if wrong:
        raise FindingsLeft(
            f"{number_of(len(wrong), 'skill')} of {len(found)} not valid: {', '.join(wrong)}",
            "edit the files; `commonplace skill export` writes valid copies in any case",
        )
    if not found:
        note("No skills yet")
    return 0


def add_export(parser: ArgumentParser) -> None:
    _add_names(parser, "export")
    to = parser.add_argument(
        "--to",
        metavar="DIR",
        help=f"Folder for the skills, e.g. `{'` or `'.join(PLACES)}` (needed)",
    )
    suggest(to, PLACES)
    parser.add_argument(
        "--force", action="store_true", help="Replace skills that somebody changed there"
    )
    add_home(parser)
    add_json(parser)


def export(args: Namespace) -> int:
    if not args.to:
        raise UsageError("is needed", f"e.g. `--to {PLACES[0]}`", "--to")
    with open_memory(args.home) as memory:
        done = memory.export_skills(Path(args.to), args.names, force=args.force)
        hidden = 0 if args.names else sum(not s.trusted for s in memory.skills(untrusted=True))
    if args.json:
        print_json([{**one._asdict(), "path": str(one.path)} for one in done])
    else:
        for one in done:
            reason = f": {one.reason}" if one.reason else ""
            print(f"{one.result:<9}  {one_line(f'{one.path}{reason}')}")
    for one in done:
        if one.left_out and one.result == "written":
            note(f"{one.name}: left out {', '.join(one.left_out)}, which are no fields of a skill")
        if one.unfilled and one.result != "left":
            note(f"{one.name}: left out the lines of the template; fill in its sections")
    if hidden:
        note(f"{number_of(hidden, 'skill')} of a home that is not trusted: not exported")
    if not done:
        note("No skills to export")
    if left := [one.name for one in done if one.result == "left"]:
        raise FindingsLeft(f"not exported: {', '.join(left)}", "`--force` replaces them")
    return 0


def _add_name(parser: ArgumentParser, text: str = "Name of the skill") -> None:
    suggest(parser.add_argument("name", metavar="NAME", help=text), ())


def _add_names(parser: ArgumentParser, verb: str) -> None:
    names = parser.add_argument(
        "names", metavar="NAME", nargs="*", help=f"The skills to {verb} (default: all)"
    )
    suggest(names, ())


COMMANDS = {
    "list": Command(
        "List the skills",
        add_list,
        list_skills,
        ("commonplace skill list", "commonplace skill list flaky tests"),
    ),
    "show": Command("Print a skill", add_show, show, ("commonplace skill show write-tests",)),
    "new": Command(
        "Make a skill from a template or a text",
        add_new,
        new,
        (
            "commonplace skill new write-tests --description 'How to write tests here'",
            "commonplace skill new write-tests --from notes/tests.md",
        ),
    ),
    "check": Command(
        "Check skills against the Agent Skills format",
        add_check,
        check,
        ("commonplace skill check", "commonplace skill check write-tests"),
    ),
    "export": Command(
        "Write skills where agents look for them",
        add_export,
        export,
        (
            "commonplace skill export --to .claude/skills",
            "commonplace skill export write-tests --to .agents/skills",
        ),
    ),
}
