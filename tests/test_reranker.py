"""The model that reads the best memories together with the question, and when it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from commonplace.embed.minilm import FOLDER, MiniLM
from commonplace.embed.reranker import MODEL, PIECES_MAX, Reranker
from commonplace.errors import EmbedderUnavailable
from commonplace.memory import Memory
from commonplace.recall import search

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytest.importorskip("numpy")
pytest.importorskip("onnxruntime")

ANSWERS = {
    "the layout shifts when an image is loaded": "Set width and height on every img, so that the layout does not shift.",
    "how do I stop the other Postgres": "Another Postgres listens there: stop it with `brew services stop postgresql`.",
    "who may deploy on Fridays": "Deploys on a Friday need the consent of the team on call.",
}


@pytest.fixture(scope="module")
def reranker() -> Reranker:
    return Reranker.load()


def test_what_answers_is_above_what_does_not(reranker: Reranker) -> None:
    texts = list(ANSWERS.values())
    for number, question in enumerate(ANSWERS):
        scores = reranker.scores(question, texts)
        assert max(range(len(texts)), key=lambda place: scores[place]) == number


def test_a_score_does_not_depend_on_the_other_texts(reranker: Reranker) -> None:
    texts = [*ANSWERS.values(), "", "a word " * 2_000, "数据库 λόγος 🚀"]
    together = reranker.scores("who may deploy on Fridays", texts)

    alone = [reranker.scores("who may deploy on Fridays", [text])[0] for text in texts]
    assert together == pytest.approx(alone, abs=1e-3)
    assert reranker.scores("", []) == []
    assert len(reranker.scores("why " * 500, texts)) == len(texts)


def test_a_long_text_is_cut(reranker: Reranker) -> None:
    long = "word " * 2 * PIECES_MAX
    same = reranker.scores("what is it", [long, long + "The answer is behind the end."])
    assert same[0] == pytest.approx(same[1], abs=1e-5)


def test_a_missing_or_torn_model_is_named(tmp_path: Path) -> None:
    for path in FOLDER.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / MODEL).write_bytes(b"torn")
    for load in (Reranker.load, MiniLM.load):
        with pytest.raises(EmbedderUnavailable, match=MODEL):
            load(tmp_path)


def test_a_model_that_cannot_be_opened_is_said_and_asked_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load() -> Reranker:
        raise EmbedderUnavailable("`reranker.onnx` is damaged", "install it again")

    monkeypatch.setattr(Reranker, "load", load)
    with Memory.open(tmp_path / "home", background=False) as memory:
        embedding = memory.engine().embedding
        assert embedding.embedder() is not None
        assert embedding.reranker() is None
        assert "reranker.onnx" in embedding.reranker_reason
        memory.log(repo="r", event_type="learned", lesson="The kettle is blue.")
        notes = memory.recall("which kettle is blue", repo="r").notes
        assert any("reranker.onnx" in note for note in notes)


class Reads:
    """A model that likes one text, and remembers what it was given."""

    def __init__(self, liked: str) -> None:
        self.liked = liked
        self.read: list[list[str]] = []

    def scores(self, _question: str, texts: Sequence[str]) -> list[float]:
        self.read.append(list(texts))
        return [9.0 if self.liked in text else -9.0 for text in texts]


def with_model(home: Path, model: Any, *texts: str) -> Memory:
    memory = Memory.open(home, background=False)
    memory.append(
        {"id": f"t{n}", "kind": "lesson", "event_type": "learned", "lesson": text, "repo": "r",
         "timestamp": "2026-01-01T00:00:00Z"}
        for n, text in enumerate(texts)
    )  # fmt: skip
    engine = memory.engine()
    engine.catch_up()
    engine.vectors.embed_all()
    engine.embedding._reranker = model
    return memory


NEARLY_ALIKE = (
    "The blue kettle boils in four minutes in the morning.",
    "The blue kettle boils in nine minutes in the evening.",
    "Send invoices to the customer as PDF.",
)


def ids(memory: Memory, question: str, **options: Any) -> list[str]:
    return [hit.id for hit in memory.recall(question, repo="r", cutoff=False, **options).hits]


def test_if_the_first_place_is_in_doubt_the_best_are_read(tmp_path: Path) -> None:
    for liked, first in (("four", "t0"), ("nine", "t1")):
        model = Reads(liked)
        with with_model(tmp_path / liked, model, *NEARLY_ALIKE) as memory:
            assert ids(memory, "how long does the blue kettle take")[0] == first
            assert [sorted(one) for one in model.read] == [sorted(NEARLY_ALIKE[:2])]
            (hit, *_rest) = memory.recall("how long does the blue kettle take", repo="r").hits
            assert hit.why is not None
            assert hit.why.parts["by_reading"] > 0


def test_a_sure_first_place_is_not_read_again_nor_is_a_question_of_a_hook(tmp_path: Path) -> None:
    model = Reads("kettle")
    with with_model(tmp_path / "home", model, *NEARLY_ALIKE) as memory:
        ids(memory, "invoices to the customer as PDF")
        ids(memory, "how long does the blue kettle take", automatic=True)
        memory.settings.override({"recall.reading": 0.0})
        ids(memory, "how long does the blue kettle take")
    assert model.read == []


def test_of_a_long_memory_the_passage_most_like_the_question_is_read(tmp_path: Path) -> None:
    padding = "The tank was cleaned, and nothing else was found on that day. " * 20
    long = [
        f"# Notes {name}\n\n## Tank\n\n{padding}\n\n## Kettle\n\nThe blue kettle boils in {time} minutes.\n"
        for name, time in (("one", "four"), ("two", "nine"))
    ]
    model = Reads("nine")
    with with_model(tmp_path / "home", model, *long) as memory:
        assert ids(memory, "how long does the blue kettle take to boil")[0] == "t1"
    (texts,) = model.read
    assert all("blue kettle boils" in text for text in texts)
    assert all(len(text) < len(long[0]) for text in texts)


def test_what_is_read_never_falls_below_what_is_not(tmp_path: Path) -> None:
    texts = [f"The blue kettle number {n} boils in {n} minutes." for n in range(20)]
    with with_model(tmp_path / "home", None, *texts) as memory:
        memory.settings.override({"recall.reading": 0.0})
        before = ids(memory, "how long does the blue kettle take", limit=20)
    model = Reads("nothing of this")
    with with_model(tmp_path / "other", model, *texts) as memory:
        after = ids(memory, "how long does the blue kettle take", limit=20)
    count = len(model.read[0])
    assert count <= search.READ_MAX
    assert sorted(after[:count]) == sorted(before[:count])
    assert after[count:] == before[count:]


def test_texts_of_headings_only_are_read_too(tmp_path: Path) -> None:
    heads = ["\n\n".join(f"# The blue kettle {name} boils {n}" for n in range(60)) for name in "ab"]
    model = Reads("kettle b")
    with with_model(tmp_path / "home", model, *heads, *NEARLY_ALIKE) as memory:
        assert ids(memory, "how does the blue kettle boil")


def test_what_the_priors_say_of_a_memory_does_not_change_what_reading_adds(tmp_path: Path) -> None:
    with with_model(tmp_path / "home", Reads("nine"), *NEARLY_ALIKE) as memory:
        question = "how long does the blue kettle take"
        read = memory.recall(question, repo="r", cutoff=False).hits
        memory.settings.override({"recall.reading": 0.0})
        plain = memory.recall(question, repo="r", cutoff=False).hits
    best = max(hit.score for hit in plain)
    scores = {hit.id: hit.score for hit in plain}
    (added,) = {round(hit.score - scores[hit.id], 4) for hit in read if hit.id == "t1"}
    assert added == pytest.approx(0.03 * best * 18, rel=0.05)


def test_a_process_that_asks_once_does_not_load_it(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home", background=False) as memory:
        embedding = memory.engine(for_one_query=True).embedding
        assert embedding.embedder() is not None
        assert embedding.reranker() is None
    with Memory.open(tmp_path / "home", background=False) as memory:
        embedding = memory.engine().embedding
        assert embedding.embedder() is not None
        assert isinstance(embedding.reranker(), Reranker)
