"""Fit the numbers of ranking and relevance (src/commonplace/recall/scoring.py) to pairs.

    python -m tools.fit_ranking PAIRS.jsonl [--pool 500] [--scratch FOLDER]

Each line of the file is an object with `kind`, `query`, `positive` (the text that answers) and
`source`. Run it again when the embedding model or the terms change; the pairs must not be those
that the model was trained on. It prints the numbers as they stand in the code.

Stores are made of the texts: one of each kind, one of all kinds, one of their first sentences, and
many small ones of 3, 8, 35 and 150 texts, whole and short. The real engine answers the questions
there, and questions about foreign subjects (the `fit` half of bench/sets/foreign.jsonl).
Documentation is asked in its own words; so both are fitted to questions in the words of people as
well: those of the written groups that the model was not trained on (tools/train_retriever/texts/),
a store of each project and one of each kind, and ranking to those of the shipped packs.

Ranking: a grid over four numbers. What counts is the mean gain in nDCG@10 over plain BM25, a store
each, and a loss in a store counts more than a gain: recall is to be worse than words nowhere.
Relevance: a logistic regression over the best hits, of answerable questions, of the same ones
without their answer, and of foreign ones.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sys
import tempfile
import tomllib
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from tools.train_retriever.written import Group, is_held_out, read_groups

from commonplace import Memory
from commonplace.embed.minilm import MiniLM
from commonplace.packs import shipped
from commonplace.recall import scoring
from commonplace.recall.query import Query
from commonplace.recall.search import PIECES_COMPARED, Fusion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from commonplace.embed.embedder import Encoded, Vectors
    from commonplace.recall.search import Search

    Floats = NDArray[np.float64]
    # The power of the trust in words, and the weights of meaning, coverage and pieces.
    Numbers = tuple[float, float, float, float]

ROOT = Path(__file__).resolve().parent.parent
FOREIGN = ROOT / "bench" / "sets" / "foreign.jsonl"
PACKS = ROOT / "packs"
TEXT_CHARS_MAX = 900
# How many texts of one source a store has: near enough to one another to be confused.
OF_A_SOURCE = 45
# Sizes of the small stores, and how many there are of each.
SMALL = {3: 30, 8: 30, 35: 18, 150: 9}
# The kinds of which the first sentence says what the text is about.
SHORT = ("changelog", "heading", "option", "question", "talk")
# How many of the best hits relevance is fitted to, as recall judges them.
CLOSE = 12
# The shares of answerable questions, of those without their answer, and of foreign ones.
ANSWERABLE, REMOVED, STRANGE = 0.6, 0.1, 0.3
LOSS_WEIGHT = 0.25
POWERS = (1.0, 1.5, 2.0)
DENSE = (0.2, 0.3, 0.4, 0.5)
COVERED = (0.0, 0.1, 0.2, 0.3)
PIECES = (0.0, 0.1, 0.2, 0.3, 0.4)


class Asked(NamedTuple):
    """A question and its candidates: what words, meaning, pieces and coverage say of each."""

    words: Floats
    meaning: Floats
    pieces: Floats
    covered: Floats
    matched: Floats
    is_right: NDArray[np.bool_]
    # The share of the question that the best match by words says.
    said: float
    # By how much the best match by words leads, as a share.
    lead: float
    # How many word pieces of the question are compared.
    asked_pieces: int
    given: scoring.Circumstances

    def without_answer(self) -> Asked:
        kept = ~self.is_right
        return self._replace(
            words=self.words[kept],
            meaning=self.meaning[kept],
            pieces=self.pieces[kept],
            covered=self.covered[kept],
            matched=self.matched[kept],
            is_right=self.is_right[kept],
        )

    def scores(self, power: float, dense: float, covered: float, pieces: float) -> Floats:
        said = self.words / max(self.words.max(initial=0.0), 1e-9)
        meant = np.maximum(self.meaning, 0)
        meant = meant / max(meant.max(initial=0.0), 1e-9)
        trust = min(1.0, self.said**power * (1 + self.lead))
        found = (1 - dense) * trust * said + dense * meant + covered * self.covered
        found = np.asarray(found / (1 + covered))
        weight = scoring.pieces_weight(pieces, self.asked_pieces)
        if not weight or not len(found):
            return found
        best = np.argsort(-found, kind="stable")[:PIECES_COMPARED]
        said_by_piece = np.full(len(found), self.pieces[best].min())
        said_by_piece[best] = self.pieces[best]
        most = max(said_by_piece.max(), 1e-9)
        return np.asarray(found + weight * np.maximum(said_by_piece, 0) / most)


class Cached:
    """Embeds each text once, however many stores hold it."""

    def __init__(self) -> None:
        self.inner = MiniLM.load()
        self.name = self.inner.name
        self.known: dict[str, Encoded] = {}

    def encode_pieces(self, texts: Sequence[str]) -> list[Encoded]:
        new = sorted({text for text in texts if text not in self.known}, key=len)
        for start in range(0, len(new), 32):
            some = new[start : start + 32]
            for text, found in zip(some, self.inner.encode_pieces(some), strict=True):
                assert found.pieces is not None
                self.known[text] = found._replace(pieces=found.pieces.astype(np.float16))
        return [self.known[text] for text in texts]

    def encode(self, texts: Sequence[str]) -> Vectors:
        return np.array([one.vector for one in self.encode_pieces(texts)], np.float32)

    def count_pieces(self, text: str) -> int:
        return self.inner.count_pieces(text)


class Pool(NamedTuple):
    """The texts of a store, each with its question."""

    name: str
    rows: Sequence[tuple[str, str]]
    asked_max: int


def pools(pairs: Path, size: int) -> Iterable[Pool]:
    randomness = random.Random(11)
    by: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for line in pairs.open(encoding="utf-8"):
        row = json.loads(line)
        text = row["positive"].strip()[:TEXT_CHARS_MAX]
        if len(text) >= 60 and len(row["query"]) >= 8:
            by[row["kind"]][row["source"]].setdefault(text, row["query"])
    kinds: dict[str, list[tuple[str, str]]] = {}
    for kind, sources in sorted(by.items()):
        names = sorted(sources)
        randomness.shuffle(names)
        rows: list[tuple[str, str]] = []
        for name in names:
            texts = sorted(sources[name].items())
            randomness.shuffle(texts)
            rows += texts[:OF_A_SOURCE]
        kinds[kind] = rows[:size]
        yield Pool(kind, kinds[kind], 200)
    yield Pool("all", [row for rows in kinds.values() for row in rows], 500)
    short = {kind: [(beginning(text), asked) for text, asked in kinds[kind]] for kind in SHORT}
    yield Pool("short", [row for rows in short.values() for row in rows], 500)
    for name, some in (("of", kinds), ("short of", short)):
        for count, times in SMALL.items():
            for number in range(times):
                rows = list(some.values())[number % len(some)]
                start = randomness.randrange(max(1, len(rows) - count))
                chosen = rows[start : start + count]
                yield Pool(f"{name} {count}", chosen, 12 if count < 100 else 40)


def beginning(text: str) -> str:
    """The first sentence or line of some length: most memories are that short."""
    found = re.match(r"(?s).{40,160}?(?:[.!?](?=\s)|\n|$)", text)
    return found.group().strip() if found else text[:160]


def write_texts(memory: Memory, texts: Iterable[str]) -> None:
    """Write each text as a lesson named by its place (`t0`, `t1`, …), and embed all of them."""
    memory.append(
        {
            "id": f"t{number}",
            "kind": "lesson",
            "event_type": "learned",
            "lesson": text,
            "repo": "r",
            "timestamp": "2026-01-01T00:00:00Z",
        }
        for number, text in enumerate(texts)
    )
    memory.engine().catch_up()
    memory.engine().vectors.embed_all()


def ask_all(pool: Pool, folder: Path, embedder: Cached, foreign: list[str]) -> list[Asked]:
    randomness = random.Random(len(pool.rows))
    with Memory.open(folder, background=False) as memory:
        memory.engine().embedding.use(embedder)
        write_texts(memory, [text for text, _question in pool.rows])
        chosen = randomness.sample(range(len(pool.rows)), min(pool.asked_max, len(pool.rows)))
        asked = [ask(memory, pool.rows[number][1], {f"t{number}"}) for number in chosen]
        strange = randomness.sample(foreign, min(len(foreign), 10 if len(pool.rows) < 200 else 60))
        return asked + [ask(memory, question, set()) for question in strange]


def ask_pack(pack: str, folder: Path, embedder: Cached) -> list[Asked]:
    """The questions of a shipped pack, which are in a user's words."""
    asked = tomllib.loads((PACKS / pack / "questions.toml").read_text("utf-8"))["questions"]
    with Memory.open(folder, background=False) as memory:
        memory.engine().embedding.use(embedder)
        shipped.add(memory, pack)
        memory.engine().catch_up()
        memory.engine().vectors.embed_all()
        return [ask(memory, one["ask"], set(one["nodes"])) for one in asked]


def written_stores() -> Iterable[tuple[str, list[Group]]]:
    """The held-out groups that were written: all of a kind together, and each project by itself."""
    by_kind: dict[str, list[Group]] = defaultdict(list)
    for group in read_groups({}):
        if is_held_out(group.name) and (group.kind != "talk" or group.name.endswith(" 0")):
            by_kind[group.kind].append(group)
            if group.kind == "memory":
                yield "written project", [group]
    for kind, groups in by_kind.items():
        yield f"written {kind}", groups


def ask_written(
    name: str, groups: Sequence[Group], folder: Path, embedder: Cached, foreign: list[str]
) -> list[Asked]:
    randomness = random.Random(name)
    texts = list(
        dict.fromkeys(
            text for one in groups for text in (*(text for _ask, text in one.pairs), *one.others)
        )
    )
    answers: dict[str, set[str]] = defaultdict(set)
    for group in groups:
        for question, text in group.pairs:
            answers[question].add(f"t{texts.index(text)}")
    with Memory.open(folder, background=False) as memory:
        memory.engine().embedding.use(embedder)
        write_texts(memory, texts)
        chosen = randomness.sample(sorted(answers), min(200, len(answers)))
        strange = randomness.sample(foreign, min(len(foreign), 10 if len(texts) < 200 else 60))
        return [ask(memory, one, answers.get(one, set())) for one in [*chosen, *strange]]


def lead_of(words: Floats) -> float:
    first, second = [*sorted(words, reverse=True), 0.0, 0.0][:2]
    return float(1 - second / first) if first else 0.0


def ask(memory: Memory, question: str, answers: set[str]) -> Asked:
    engine = memory.engine()
    embedder = engine.embedding.embedder()
    assert isinstance(embedder, Cached)
    (encoded,) = embedder.encode_pieces([question])
    with engine._open_readers(None) as readers:
        search: Search = engine._make_search(
            readers, Query(text=question, limit=100, cutoff=False), lambda: encoded
        )
        found = search.ranked()
        held = search.matching.covered([one.address for one in found])
        covered = np.array([held[one.address] for one in found])
        words, whole = np.array([one.words for one in found]), search.matching.whole_match()
        share = words / whole if whole else words * 0
        pieces = search.matching.pieces([one.address for one in found])
        return Asked(
            words,
            np.array([one.meaning or 0.0 for one in found]),
            np.array([pieces.get(one.address, 0.0) for one in found]),
            covered,
            np.minimum(covered, share),
            np.array([one.card.id in answers for one in found], bool),
            min(1.0, float(share.max(initial=0.0))) if whole else 1.0,
            lead_of(words),
            0 if encoded.pieces is None else len(encoded.pieces),
            search.matching.circumstances()[0],
        )


# --- Ranking --------------------------------------------------------------------------------------


def gain(asked: Asked, scores: Floats) -> float:
    if not asked.is_right.any():
        return 0.0
    # Among equals it comes last: a match of no words is not found by words.
    place = int((scores[~asked.is_right] >= scores[asked.is_right].max()).sum())
    return 1 / math.log2(place + 2) if place < 10 else 0.0


def fit_ranking(stores: dict[str, list[Asked]]) -> Numbers:
    answerable = {
        name: [one for one in asked if one.is_right.any()] for name, asked in stores.items()
    }
    base = {
        name: np.mean([gain(one, one.words) for one in asked]) for name, asked in answerable.items()
    }
    tried: dict[Numbers, float] = {}
    best: tuple[float, Numbers] = (-1.0, (0.0, 0.0, 0.0, 0.0))
    for numbers in product(POWERS, DENSE, COVERED, PIECES):
        gains = [
            np.mean([gain(one, one.scores(*numbers)) for one in asked]) - base[name]
            for name, asked in answerable.items()
        ]
        value = float(np.mean(gains) + LOSS_WEIGHT * np.minimum(gains, 0).sum())
        tried[numbers] = value
        best = max(best, (value, numbers))
    for pieces in PIECES:
        value, numbers = max((value, one) for one, value in tried.items() if one[-1] == pieces)
        print(f"# pieces {pieces}: {value:+.4f} with {numbers}")
    now = (scoring.WORDS_TRUST_POWER, Fusion().dense, scoring.COVERED_WEIGHT, Fusion().pieces)
    for name, asked in answerable.items():
        new, old, dense = (
            float(np.mean([gain(one, scores(one)) for one in asked]))
            for scores in (
                lambda one: one.scores(*best[1]),
                lambda one: one.scores(*now),
                lambda one: one.meaning,
            )
        )
        print(
            f"# {name:12} nDCG@10: BM25 {base[name]:.3f}, cosine {dense:.3f}, "
            f"as it stands {old:.3f}, fitted {new:.3f}"
        )
    return best[1]


# --- Relevance ------------------------------------------------------------------------------------


def rows_of(asked: Asked, numbers: Numbers, *, meaning: bool) -> tuple[Floats, Floats]:
    """The features of the best hits, and which of them answer."""
    power, dense, covered, weight = numbers
    scores = asked.scores(power, dense if meaning else 0.0, covered, weight if meaning else 0.0)
    order = np.argsort(-scores, kind="stable")[:CLOSE]
    one, given = np.ones(len(order)), asked.given
    columns = [
        one,
        np.maximum(asked.meaning[order], 0) * meaning,
        asked.matched[order],
        one * math.log(given.question_terms + 1),
        one * math.log(max(scoring.AVERAGE_TERMS_MIN, given.average_terms)),
        one * math.log10(min(scoring.MEMORIES_MAX, max(scoring.MEMORIES_MIN, given.memories))),
    ]
    return np.column_stack(columns), asked.is_right[order].astype(float)


def fit_relevance(
    stores: dict[str, list[Asked]], numbers: Numbers, *, meaning: bool
) -> scoring.Relevance:
    features, rights, weights = [], [], []

    def add(asked: Asked, share: float) -> None:
        rows, right = rows_of(asked, numbers, meaning=meaning)
        if len(rows):
            wrong = max(1.0, len(right) - right.sum())
            features.append(rows)
            rights.append(right)
            weights.append(np.where(right > 0, 1.0, 1 / wrong) * share)

    for asked in stores.values():
        answerable = [one for one in asked if one.is_right.any()]
        foreign = [one for one in asked if not one.is_right.any()]
        for one in answerable:
            add(one, ANSWERABLE / len(answerable))
            add(one.without_answer(), REMOVED / len(answerable))
        for one in foreign:
            add(one, STRANGE / len(foreign))
    found = logistic(np.concatenate(features), np.concatenate(rights), np.concatenate(weights))
    return scoring.Relevance(*(round(float(value), 2) for value in found))


def logistic(rows: Floats, right: Floats, weights: Floats, ridge: float = 1e-4) -> Floats:
    """Newton's method, with a little ridge."""
    weights = weights / weights.sum()
    found = np.zeros(rows.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-np.clip(rows @ found, -30, 30)))
        slope = rows.T @ (weights * (chance - right)) + ridge * found
        curve = (rows * (weights * chance * (1 - chance))[:, None]).T @ rows
        found = found - np.linalg.solve(curve + ridge * np.eye(len(found)), slope)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--pool", type=int, default=500, help="texts in the store of a kind")
    parser.add_argument("--scratch", type=Path, help="where the stores are made")
    arguments = parser.parse_args()
    foreign = [
        row["text"]
        for row in map(json.loads, FOREIGN.read_text("utf-8").splitlines())
        if row["half"] == "fit"
    ]
    embedder, stores = Cached(), defaultdict[str, list[Asked]](list)
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        for number, pool in enumerate(pools(arguments.pairs, arguments.pool)):
            stores[pool.name] += ask_all(pool, Path(scratch) / str(number), embedder, foreign)
        for number, (name, groups) in enumerate(written_stores()):
            home = Path(scratch) / f"written-{number}"
            stores[name] += ask_written(name, groups, home, embedder, foreign)
        packs = {
            path.parent.name: ask_pack(path.parent.name, Path(scratch) / path.parent.name, embedder)
            for path in sorted(PACKS.glob("*/questions.toml"))
        }
    numbers = fit_ranking({**stores, **packs})
    power, dense, covered, pieces = numbers
    print(f"WORDS_TRUST_POWER = {power}\nCOVERED_WEIGHT = {covered}")
    print(f"# recall.dense: {dense}\n# recall.pieces: {pieces}")
    print(f"WITH_MEANING = {fit_relevance(stores, numbers, meaning=True)}")
    print(f"# by words alone: {fit_relevance(stores, numbers, meaning=False)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
