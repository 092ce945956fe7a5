"""`commonplace index`: the search index, which is made from the files and can be made again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from commonplace.cli.arguments import add_home, add_json
from commonplace.cli.commands import Command
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import number_of, print_json
from commonplace.cli.progress import progress

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.engine import Engine

LOWEST_PRIORITY = 19


def add_status(parser: ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


def status(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        print_status(memory.engine(), as_json=args.json)
    return 0


def print_status(engine: Engine, *, as_json: bool) -> None:
    """Print what the indexes hold, which model made their vectors, and what is missing."""
    indexes, embedder = engine.status(), str(engine.embedder_state())
    if as_json:
        print_json({"embedder": embedder, "indexes": [index._asdict() for index in indexes]})
        return
    for index in indexes:
        print(
            f"{index.home}{' (in memory: the home cannot be written)' if index.in_memory else ''}"
        )
        print(
            f"  records   {index.records:,} ({index.waiting:,} not yet merged into the text index)"
        )
        total = index.vectors + index.vectors_missing
        print(f"  vectors   {index.vectors:,} of {total:,} ({index.model or 'no model yet'})")
        print(f"  schema    {index.schema}, {index.bytes:,} bytes")
    print(f"embedder    {embedder}")


def add_rebuild(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--vectors",
        action="store_true",
        default=True,
        help="Make the vectors too (default: they are made)",
    )
    parser.add_argument(
        "--no-vectors", dest="vectors", action="store_false", help="Do not make the vectors"
    )
    add_home(parser)
    add_json(parser)


def rebuild(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        engine = memory.engine()
        with progress("lines", quiet=args.json) as advance:
            for index in engine.indexes:
                index.rebuild(advance)
        if args.vectors and engine.embedder_state().is_available:
            missing = sum(index.status().vectors_missing for index in engine.indexes)
            with progress("vectors", missing, quiet=args.json) as advance:
                engine.vectors.embed_all(advance)
        print_status(engine, as_json=args.json)
    return 0


def add_embed(parser: ArgumentParser) -> None:
    add_home(parser)
    add_json(parser)


def embed(args: Namespace) -> int:
    if os.name == "posix":
        os.nice(LOWEST_PRIORITY)  # It takes long, and other work goes first.
    with open_memory(args.home) as memory:
        vectors = memory.engine().vectors
        with progress("vectors", vectors.missing(), quiet=args.json) as advance:
            count = vectors.embed_alone(progress=advance)
    if args.json:
        print_json({"embedded": count})
    elif count is None:
        print("Another process is making the vectors already")
    else:
        print(f"Embedded {number_of(count, 'memory', 'memories')}")
    return 0


COMMANDS = {
    "status": Command(
        "Show what the index holds, which model made its vectors, and what is missing",
        add_status,
        status,
        ("commonplace index status",),
    ),
    "rebuild": Command(
        "Delete the index and make it again from the files",
        add_rebuild,
        rebuild,
        ("commonplace index rebuild", "commonplace index rebuild --no-vectors"),
    ),
    "embed": Command(
        "Make the vectors that are missing, one process a home",
        add_embed,
        embed,
        ("commonplace index embed",),
    ),
}
