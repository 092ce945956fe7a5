"""`commonplace node`: write nodes of the graph, read one, and show them as a tree."""

from __future__ import annotations

from types import UnionType
from typing import TYPE_CHECKING, Any

from commonplace.cli.arguments import add_agent, add_home, add_id, add_json
from commonplace.cli.columns import print_lines
from commonplace.cli.commands import Command
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, print_json
from commonplace.cli.reading import read_file
from commonplace.errors import RecordInvalid
from commonplace.foreign import one_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.graph.tree import Tree

DEFAULT = "tree"
LABEL_CHARS_MAX = 60
# What may be beside a list of nodes.
OPTIONS: dict[str, tuple[type | UnionType, str]] = {
    "merge": (bool, "true or false"),
    "repo": (str | None, "text"),
}


def add_put(parser: ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="JSON: a node, a list, or one in each line; - is stdin"
    )
    parser.add_argument(
        "--merge",
        action="store_true",
        help="Keep what a node has and the file does not give (default: replace the node)",
    )
    add_agent(parser, "Who writes them")
    add_home(parser)
    add_json(parser)


def put(args: Namespace) -> int:
    nodes, options = parse(read_file(args.file))
    with open_memory(args.home, to_write=True) as memory:
        memory.agent_id = args.agent or memory.agent_id
        merge = args.merge or options.get("merge", False)
        result = memory.upsert_nodes(nodes, merge=merge, repo=options.get("repo") or "")
    if args.json:
        print_json(result.as_dict())
    else:
        for name in ("created", "merged", "replaced", "unchanged"):
            for ident in getattr(result, name):
                print(f"{name}  {one_line(ident)}")
    for one in result.redacted:
        note(f"redacted: {one['kind']} in `{one['field']}` of {one_line(one['id'])}")
    return 0


def parse(raw: bytes) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the nodes in a file, and the options beside them.

    One object, a list, one in each line, or what `upsert_memory` takes: `{"nodes": […]}`, with
    `merge` and `repo` if there are any.
    """
    from commonplace.records import decode  # noqa: PLC0415 (help needs none of it)

    text = raw.strip()
    try:
        # A list is no record, but what may be in it is the same.
        found = decode(b'{"nodes":' + text + b"}" if text.startswith(b"[") else text)
    except ValueError as whole:
        rows = [line for line in text.split(b"\n") if line.strip()]
        try:
            return [decode(line) for line in rows] if len(rows) > 1 else [decode(text)], {}
        except ValueError as error:
            reason = error if len(rows) > 1 else whole
            raise RecordInvalid(
                "nodes",
                f"cannot be read: {reason}",
                'give {"id": "skill.cpp.raii", "type": "skill", "label": "RAII"}, or a list',
            ) from None
    if "nodes" not in found or not found.keys() <= {"nodes", *OPTIONS}:
        return [found], {}
    nodes = found.pop("nodes")
    if not isinstance(nodes, list):
        raise RecordInvalid("nodes", "must be a list", "or give one node alone")
    for name, value in found.items():
        kind, words = OPTIONS[name]
        if not isinstance(value, kind):
            raise RecordInvalid(name, f"must be {words}", "or leave it out")
    return nodes, found


def add_get(parser: ArgumentParser) -> None:
    add_id(parser, "node")
    add_home(parser)
    add_json(parser)


def get(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        found = memory.node(args.id)
        node = found.as_dict()
        if not memory.trusts(memory.homes[memory.find(found.id).home_number]):
            node["trusted"] = False  # As `show` has it.
    if args.json:
        print_json(node)
    else:
        from commonplace.cli.show import print_record  # noqa: PLC0415 (another command)

        print_record({name: value for name, value in node.items() if value not in ([], {}, "")})
    return 0


def add_tree(parser: ArgumentParser) -> None:
    parser.add_argument(
        "path", metavar="PATH", nargs="?", default="", help="Where to start, such as skill.cpp"
    )
    add_home(parser)
    add_json(parser)


def tree(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        found = memory.node_tree(args.path)
    if args.json:
        print_json(found.as_dict())
        return 0
    start = [_line(args.path, found)] if args.path else []
    below = found.walk(len(start))
    rows = [*start, *(f"{'  ' * depth}{_line(one.name, one)}" for depth, one in below)]
    print_lines(rows)
    if not rows:
        note("No nodes yet; `commonplace node put FILE` writes some")
    return 0


def _line(name: str, branch: Tree) -> str:
    if branch.node is None:
        return one_line(name)
    label = one_line(branch.node.label)
    if len(label) > LABEL_CHARS_MAX:
        label = f"{label[: LABEL_CHARS_MAX - 1]}…"
    return f"{one_line(name)}  {label} ({branch.node.type})"


COMMANDS = {
    "put": Command(
        "Write the nodes in a JSON file; those that are there are replaced or merged",
        add_put,
        put,
        (
            "commonplace node put nodes.json",
            "commonplace node put - --merge < nodes.jsonl",
        ),
    ),
    "get": Command(
        "Show a node: what it says, its links and its children",
        add_get,
        get,
        ("commonplace node get skill.cpp.raii", "commonplace node get skill.cpp.raii --json"),
    ),
    "tree": Command(
        "Show nodes as a tree by the parts of their ids",
        add_tree,
        tree,
        ("commonplace node tree", "commonplace node tree skill.cpp"),
    ),
}
