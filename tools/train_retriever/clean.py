"""One list out of the pairs of all sources: no copies, nothing that is measured with, whole sources held out, kinds in balance."""

from __future__ import annotations

import json
import random
import re
import zlib
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from tools.train_retriever.pair import KINDS, Pair, read_pairs, squeeze, write_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

GRAM = 8  # So many words in a row in common, and it is a copy.
SAME_POSITIVE_MAX = 2
SAME_QUERY_MAX = 2
# One source in so many is held out. Some kinds come from few sources, so one of each is named.
HELD_OUT_ONE_IN = 12
HELD_OUT = frozenset(
    (
        "deb:tmux",
        "deb:openssh-client",
        "deb:clang-14-doc",
        "npm:eslint-plugin-jsx-a11y",
        "npm:eslint-plugin-import",
        "pypi:celery",
    )
)
HELD_OUT_OF_KIND = 600
_WORD = re.compile(r"\w+")


def is_held_out(source: str) -> bool:
    return source in HELD_OUT or zlib.crc32(source.encode()) % HELD_OUT_ONE_IN == 0


def grams(text: str, size: int = GRAM) -> Iterator[int]:
    words = [word.lower() for word in _WORD.findall(text)]
    for start in range(len(words) - size + 1):
        gram = words[start : start + size]
        if len(set(gram)) > size // 2:
            yield zlib.crc32(" ".join(gram).encode())


def sketch(text: str) -> tuple[int, ...]:
    """The three smallest of the hashes of its five-word sequences: near copies mostly have the same."""
    found = sorted(set(grams(text, 5)))[:3]
    return tuple(found) or (zlib.crc32(squeeze(text).lower().encode()),)


def measured_grams(folder: Path) -> set[int]:
    """The word sequences of all texts below *folder*, which are measured with and must not be trained on."""
    found: set[int] = set()
    for path in folder.rglob("*"):
        if path.suffix in (".md", ".txt"):
            found.update(grams(path.read_text(encoding="utf-8", errors="replace")))
        elif path.suffix in (".json", ".jsonl"):
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                found.update(grams(_strings(line)))
    return found


def _strings(line: str) -> str:
    try:
        return " ".join(_texts(json.loads(line)))
    except ValueError:
        return line


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def unique(pairs: Iterable[Pair], measured: set[int]) -> Iterator[tuple[Pair, tuple[int, ...]]]:
    """The pairs without copies of each other and of what is measured with, each with the sketch of its answer."""
    positives: Counter[tuple[int, ...]] = Counter()
    queries: Counter[str] = Counter()
    for one in pairs:
        query = squeeze(one.query).lower()
        key = sketch(one.positive)
        if positives[key] >= SAME_POSITIVE_MAX or queries[query] >= SAME_QUERY_MAX:
            continue
        if measured and any(
            gram in measured for text in (one.query, one.positive) for gram in grams(text)
        ):
            continue
        positives[key] += 1
        queries[query] += 1
        yield one, key


def merge(folder: Path, measured: Path | None, train: Path, held_out: Path, seed: int = 1) -> str:
    """Write the pairs below *folder* as *train* and *held_out*; return what there is of each kind."""
    pairs = [one for path in sorted(folder.glob("*.jsonl")) for one in read_pairs(path)]
    chance = random.Random(seed)
    chance.shuffle(pairs)
    # Held-out sources come first, so that of two copies theirs is kept, and the other one not trained on.
    pairs.sort(key=lambda one: not is_held_out(one.source))
    training: list[Pair] = []
    testing: dict[str, list[Pair]] = defaultdict(list)
    shown: set[tuple[int, ...]] = set()
    for one, key in unique(pairs, measured_grams(measured) if measured else set()):
        if is_held_out(one.source):
            testing[one.kind].append(one)
            shown.add(key)
        elif key not in shown:
            training.append(one)
    kept = [one for kind in KINDS for one in _even(testing[kind], HELD_OUT_OF_KIND)]
    write_pairs(kept, held_out)
    write_pairs(training, train)
    return _table(training, kept)


def balanced(pairs: list[Pair], of_kind: int) -> list[Pair]:
    """At most *of_kind* pairs of each kind, from as many sources as there are."""
    by_kind: dict[str, list[Pair]] = defaultdict(list)
    for one in pairs:
        by_kind[one.kind].append(one)
    return [one for kind in KINDS for one in _even(by_kind[kind], of_kind)]


def _even(pairs: list[Pair], count: int) -> list[Pair]:
    """The first *count* pairs when the sources take turns."""
    turn: Counter[str] = Counter()
    ranked = []
    for position, one in enumerate(pairs):
        turn[one.source] += 1
        ranked.append((turn[one.source], position))
    return [pairs[position] for _turn, position in sorted(ranked)[:count]]


def _table(training: list[Pair], held_out: list[Pair]) -> str:
    trained, tested = Counter(one.kind for one in training), Counter(one.kind for one in held_out)
    rows = [f"{kind:10} {trained[kind]:9,} {tested[kind]:7,}" for kind in KINDS]
    return "\n".join(
        [
            f"{'kind':10} {'train':>9} {'test':>7}",
            *rows,
            f"{'all':10} {len(training):9,} {len(held_out):7,}",
        ]
    )


DEVELOPMENT_OF_KIND = 60


def development(held_out: list[Pair]) -> list[Pair]:
    """The held-out pairs that a run is steered by; figures are taken on the others."""
    return balanced(held_out, DEVELOPMENT_OF_KIND)


def for_figures(held_out: list[Pair]) -> list[Pair]:
    steered = set(development(held_out))
    return [one for one in held_out if one not in steered]
