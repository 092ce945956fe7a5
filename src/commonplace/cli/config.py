"""`commonplace config`: the settings in use here, where each comes from, and changing one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from commonplace import settings_file
from commonplace.cli.arguments import add_home, add_json, suggest
from commonplace.cli.commands import Command
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, print_json
from commonplace.cli.parser import nearest_name
from commonplace.errors import UsageError
from commonplace.foreign import one_line
from commonplace.where import homes

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.memory import Memory

DEFAULT = "list"


def _add_name(parser: ArgumentParser) -> None:
    name = parser.add_argument("name", metavar="NAME", help="The setting, e.g. `recall.dense`")
    suggest(name, settings_file.names())


def _row(memory: Memory, name: str) -> dict[str, Any]:
    rows = {row["name"]: row for row in settings_file.rows(memory.settings)}
    if name not in rows:
        nearest = nearest_name(name, rows)
        meant = f"did you mean `{nearest}`? " if nearest else ""
        raise UsageError(
            f"there is no setting `{name}`", f"{meant}`commonplace config list` lists them all"
        )
    return rows[name]


def _text(value: object) -> str:
    return value if isinstance(value, str) else settings_file.to_toml(value)


def add_list(parser: ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


def list_settings(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        rows = settings_file.rows(memory.settings)
        if args.json:
            print_json(rows)
            return 0
        width = max(len(row["name"]) for row in rows)
        for row in rows:
            is_default = row["origin"] == "default"
            default = settings_file.to_toml(row["default"])
            origin = "default" if is_default else f"{row['origin']}; default {default}"
            value = one_line(settings_file.to_toml(row["value"]))
            print(f"{row['name']:{width}}  {value}  ({one_line(origin)})")
        for path, name in memory.settings.unknown:
            note(f"note: `{one_line(name)}` in `{path}` is not a setting")
        for path, name, item in memory.settings.unknown_items:
            note(f"note: `{one_line(item)}` in `{path}` is no value of `{name}`")
    return 0


def add_get(parser: ArgumentParser) -> None:
    _add_name(parser)
    add_home(parser)
    add_json(parser)


def get(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        row = _row(memory, args.name)
    if args.json:
        print_json(row)
        return 0
    print(one_line(_text(row["value"])))
    default = settings_file.to_toml(row["default"])
    source = "the default" if row["origin"] == "default" else f"from `{row['origin']}`"
    note(f"{source}; default {default}: {row['meaning']}")
    return 0


def add_set(parser: ArgumentParser) -> None:
    _add_name(parser)
    parser.add_argument("value", metavar="VALUE", help="Its value; a list is written A,B")
    parser.add_argument(
        "--user", action="store_true", help="Set it in the user's home (default: the nearest home)"
    )
    add_home(parser)
    add_json(parser)


def set_value(args: Namespace) -> int:
    if args.user and args.home:
        raise UsageError("`--user` and `--home` exclude each other", "give one of them")
    with open_memory(args.home, to_write=True) as memory:
        row = _row(memory, args.name)
        value = settings_file.parse_value(args.name, args.value)
        user = homes.user_home(os.environ)
        home = user if args.user or (row["user_only"] and not args.home) else memory.home
        homes.make(home)
        path = settings_file.change(home, args.name, value)
    with open_memory(args.home) as memory:
        now = _row(memory, args.name)
    if args.json:
        print_json({**now, "path": str(path)})
    else:
        print(f"{args.name} = {one_line(settings_file.to_toml(value))}")
        note(f"in `{path}`")
    if now["value"] != value:
        note(f"note: here `{now['origin']}` applies, with {settings_file.to_toml(now['value'])}")
    return 0


COMMANDS = {
    "list": Command(
        "List every setting with its value, where that comes from, and its default",
        add_list,
        list_settings,
        ("commonplace config list",),
    ),
    "get": Command(
        "Print the value of a setting", add_get, get, ("commonplace config get recall.dense",)
    ),
    "set": Command(
        "Set a setting in `config.toml`, and keep the rest of the file as it is",
        add_set,
        set_value,
        (
            "commonplace config set hooks.prompt false",
            "commonplace config set embedder.kind none --user",
        ),
    ),
}
