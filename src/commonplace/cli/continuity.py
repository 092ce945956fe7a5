"""`commonplace continuity`: our section of an agent's CONTINUITY.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_json
from commonplace.cli.commands import Command
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import print_json
from commonplace.foreign import one_line, render
from commonplace.sessions import state

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.memory import Memory


def add_update_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--goal",
        metavar="TEXT",
        help="What the task is (default: the noted one, else that of the latest session)",
    )
    _add_path(parser)


def add_show_arguments(parser: ArgumentParser) -> None:
    _add_path(parser)


def _add_path(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--path",
        metavar="FILE",
        help="Another file of this repository (default: CONTINUITY.md in the home)",
    )
    add_home(parser)
    add_json(parser)


def update(args: Namespace) -> int:
    with open_memory(args.home, to_write=True) as memory:
        path = _path(args)
        goal = args.goal or ""
        if not goal.strip() and args.goal is None and not memory.continuity_goal(path):
            goal = _latest_goal(memory)
        done = memory.update_continuity(goal, path)
    if args.json:
        print_json(done.as_dict())
    else:
        print(f"{'Updated' if done.changed else 'Nothing new in'} {one_line(str(done.path))}")
    return 0


def show(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        found = memory.show_continuity(_path(args))
    if args.json:
        print_json(found.as_dict())
    else:
        print(render(found.section))
    return 0


def _path(args: Namespace) -> Path | None:
    return Path.cwd() / args.path if args.path is not None else None


def _latest_goal(memory: Memory) -> str:
    """Return the goal of the latest session in this repository; "" if there is none."""
    goals = (
        one.fields.get("goal", "")
        for one in state.load_all(memory.home)
        if one.fields.get("repo") == memory.repository.name
    )
    return next((goal for goal in goals if goal), "")


COMMANDS = {
    "update": Command(
        "Write what is known about the task into our section of CONTINUITY.md",
        add_update_arguments,
        update,
        (
            'commonplace continuity update --goal "Implement the login"',
            "commonplace continuity update --path .loki/CONTINUITY.md",
        ),
    ),
    "show": Command(
        "Print our section of CONTINUITY.md",
        add_show_arguments,
        show,
        ("commonplace continuity show",),
    ),
}
