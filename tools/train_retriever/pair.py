"""A pair: what an agent may ask, and the text that answers it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

KINDS = (
    "error",
    "heading",
    "question",
    "function",
    "docstring",
    "changelog",
    "option",
    "note",
    "talk",
)
QUERY_MAX, POSITIVE_MAX = 500, 1_600  # About 120 and 400 pieces of code; the model reads 256.
QUERY_MIN, POSITIVE_MIN = 8, 40


class Pair(NamedTuple):
    kind: str
    query: str
    positive: str
    source: str


def pair(kind: str, query: str, positive: str, source: str) -> Pair | None:
    """A pair with its texts trimmed, or `None` if one of them is too short or the query *is* the answer."""
    query, positive = squeeze(query)[:QUERY_MAX], positive.strip()[:POSITIVE_MAX]
    if len(query) < QUERY_MIN or len(positive) < POSITIVE_MIN or squeeze(positive) == query:
        return None
    letters = sum(c.isalpha() and c.isascii() for c in query)
    if letters < len(query) / 2 or not any(c.isalpha() and c.isascii() for c in positive[:200]):
        return None
    return Pair(kind, _whole(query), _whole(positive), source)


def _whole(text: str) -> str:
    """*text* without halves of characters, which an escape in code may be."""
    return text.encode("utf-8", "ignore").decode("utf-8")


def squeeze(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def read_pairs(path: Path) -> Iterator[Pair]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            yield Pair(row["kind"], row["query"], row["positive"], row["source"])


def write_pairs(pairs: Iterable[Pair], path: Path) -> int:
    count = 0
    partial = path.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as file:
        for one in pairs:
            file.write(json.dumps(one._asdict(), ensure_ascii=False) + "\n")
            count += 1
    partial.replace(path)
    return count
