"""All pairs of one source, and of all sources, a process a core."""

from __future__ import annotations

import random
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from tools.train_retriever.archives import read_files
from tools.train_retriever.code import code_pairs
from tools.train_retriever.diagnostics import diagnostic_pairs
from tools.train_retriever.documents import document_pairs
from tools.train_retriever.manpages import manual_pairs
from tools.train_retriever.pair import Pair, write_pairs
from tools.train_retriever.talk import talk_pairs

if TYPE_CHECKING:
    from pathlib import Path

    from tools.train_retriever.sources import Source

# Of one kind of one source, so that no package outweighs the others.
PAIRS_MAX = 6_000


def pairs_of(source: Source, folder: Path) -> list[Pair]:
    files = read_files(folder / source.file)
    chance = random.Random(source.name)
    topic = source.package.rpartition("/")[2].removesuffix("-doc")
    functions: dict[str, str] = {}
    found = [
        *code_pairs(files, source.name, topic, chance, functions),
        *diagnostic_pairs(files, source.name, chance),
        *document_pairs(files, source.name, topic, chance, functions),
        *manual_pairs(files, source.name, chance),
        *talk_pairs(files, source.name, topic, chance),
    ]
    by_kind: dict[str, list[Pair]] = defaultdict(list)
    for one in dict.fromkeys(found):
        by_kind[one.kind].append(one)
    kept = []
    for of_kind in by_kind.values():
        chance.shuffle(of_kind)
        kept += of_kind[:PAIRS_MAX]
    return kept


def extract(sources: list[Source], folder: Path, into: Path, processes: int = 2) -> int:
    """Write the pairs of each source to a file of its own below *into*; what is there already stays."""
    into.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(processes) as pool:
        return sum(pool.map(partial(_extract_one, folder=folder, into=into), sources))


def _extract_one(source: Source, *, folder: Path, into: Path) -> int:
    path = into / f"{source.registry}+{source.package.replace('/', '+')}.jsonl"
    if path.exists():
        return 0
    try:
        found = pairs_of(source, folder)
    except Exception as error:  # noqa: BLE001  (one odd file must not end the other thousand sources)
        print(f"{source.name}: {error!r:.300}", flush=True)
        found = []
    return write_pairs(found, path)
