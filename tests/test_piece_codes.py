"""Codes of word pieces: how much of a question a passage says, piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.embed.embedder import Encoded
from commonplace.index.embedded import piece_codes
from commonplace.index.embedded.index import EmbeddedIndex
from commonplace.index.embedded.piece_codes import similarities, to_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from commonplace.memory import Memory


def draw(count: int, seed: int) -> NDArray[np.float32]:
    """So many vectors of length 1."""
    rows = np.random.default_rng(seed).standard_normal((count, 384)).astype(np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def one_by_one(question: NDArray[np.float32], passage: NDArray[np.float32]) -> float:
    """What `similarities` says of one passage, written plainly."""
    half = question[: piece_codes.QUESTION_PIECES_MAX, :: piece_codes.STEP]
    signs = np.where(passage[: piece_codes.PIECES_MAX, :: piece_codes.STEP] > 0, 1.0, -1.0)
    best = [
        max(float(q @ s) / (np.linalg.norm(q) * np.linalg.norm(s)) for s in signs) for q in half
    ]
    return float(sum(best) / len(best))


@given(
    asked=st.integers(1, 80), said=st.lists(st.integers(0, 150), max_size=4), seed=st.integers(0, 9)
)
def test_each_passage_is_compared_piece_by_piece(asked: int, said: list[int], seed: int) -> None:
    question, passages = draw(asked, seed), [draw(count, seed + 1) for count in said]

    found = similarities(question, [to_codes(one) for one in passages])

    assert found == pytest.approx(
        [one_by_one(question, one) if len(one) else 0.0 for one in passages], abs=1e-4
    )


def test_a_passage_that_says_every_piece_is_more_like_the_question_than_another() -> None:
    question = draw(6, 1)

    same, other = similarities(
        question, [to_codes(np.concatenate([draw(30, 2), question])), to_codes(draw(36, 3))]
    )

    assert same > 0.7
    assert other < 0.3


def test_a_question_without_pieces_is_like_nothing() -> None:
    assert similarities(draw(0, 1), [to_codes(draw(3, 2))]) == [0.0]


class Colours:
    """An embedder with a vector for each word, the same wherever it stands."""

    name = "colours"

    def encode_pieces(self, texts: Sequence[str]) -> list[Encoded]:
        found = []
        for text in texts:
            rows = np.concatenate([draw(1, sum(map(ord, word)) % 997) for word in text.split()])
            mean = rows.mean(axis=0)
            found.append(Encoded(mean / np.linalg.norm(mean), rows))
        return found

    def count_pieces(self, text: str) -> int:
        return len(text.split())

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([one.vector for one in self.encode_pieces(texts)], np.float32)


def index_with_pieces(memory: Memory) -> EmbeddedIndex:
    memory.engine().embedding.use(Colours())
    memory.engine().catch_up()
    memory.engine().vectors.embed_all()
    (index,) = memory.engine().indexes
    assert isinstance(index, EmbeddedIndex)
    return index


def say(index: EmbeddedIndex, question: str) -> dict[str, float]:
    """How well each document says *question*, by its id."""
    (asked,) = Colours().encode_pieces([question])
    with index.reading() as reader:
        cards = reader.cards(reader.nearest(asked.vector, 20))
        found = reader.piece_similarity(asked, list(cards))
        return {cards[key].id: value for key, value in found.items()}


def log(memory: Memory, lesson: str, ident: str = "") -> str:
    extra = {"id": ident} if ident else {}
    return memory.log(repo="app", event_type="learned", lesson=lesson, **extra).id


def codes_in(index: EmbeddedIndex) -> int:
    (count,) = (
        index._parts().tables.connection.execute("SELECT count(*) FROM piece_code").fetchone()
    )
    return int(count)


def test_the_passage_that_is_most_like_the_question_says_it(memory: Memory) -> None:
    long = "Colours\n\n" + "\n\n".join(["red " * 150, "green gate " * 40, "blue " * 150])
    one, other = log(memory, long), log(memory, "red blue yellow")
    index = index_with_pieces(memory)

    found = say(index, "green gate")

    assert found[one] > 0.6 > found[other]


def test_the_codes_of_a_record_follow_it(memory: Memory) -> None:
    first = log(memory, "red green", "les-colours")
    index = index_with_pieces(memory)
    assert say(index, "green red")[first] > 0.7

    log(memory, "blue black", "les-colours")
    index_with_pieces(memory)

    assert say(index, "green red")[first] < 0.5
    assert say(index, "black blue")[first] > 0.7


def test_another_model_has_codes_of_its_own(memory: Memory) -> None:
    log(memory, "red green")
    index = index_with_pieces(memory)
    assert codes_in(index) == 1

    index.use_model("other")

    assert codes_in(index) == 0


def test_an_erasure_keeps_the_codes_of_the_others(memory: Memory) -> None:
    kept, gone = log(memory, "red green"), log(memory, "blue black")
    index_with_pieces(memory).close()

    memory.erase(gone)
    index = index_with_pieces(memory)

    assert codes_in(index) == 1
    assert set(say(index, "green blue")) == {kept}


def test_of_two_memories_with_the_same_words_the_one_that_says_each_piece_leads(
    memory: Memory,
) -> None:
    memory.settings.override({"embedder.kind": "minilm"})
    vague = log(memory, "lime mint teal pink gold grey navy plum rust sand")
    exact = log(memory, "olive umber")
    index_with_pieces(memory)

    hits = memory.recall("olive umber", repo="app", cutoff=False).hits

    assert [hit.id for hit in hits] == [exact, vague]
    assert hits[0].why is not None
    assert hits[0].why.parts["by_pieces"] > hits[1].why.parts["by_pieces"]  # type: ignore[union-attr]
