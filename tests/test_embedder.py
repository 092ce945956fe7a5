"""The shipped embedder: word pieces as BERT cuts them, vectors that mean something and do not vary."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from commonplace.embed import minilm
from commonplace.embed.minilm import FOLDER, PIECES_MAX, MiniLM
from commonplace.embed.wordpiece import SEARCHES_MAX, Vocabulary, WordPiece
from commonplace.errors import EmbedderUnavailable

np = pytest.importorskip("numpy")
pytest.importorskip("onnxruntime")

TEXTS = [
    "how do I rebuild the index after the schema changed",
    "",
    "Ünïcode: naïve café, 数据库 λόγος Σίσυφος 🚀\u200b\x00",
    "def recall(query: Query, index: Index) -> list[Hit]: ...",
    "a word " * 2_000,
    "x" * 10_000,
    "the build fails with exit code 137",
    "[CLS] [SEP] [MASK]",
    "\n\t  \r\n",
    "short",
]

# From the `tokenizers` library with the same vocabulary.
GOLDEN = {
    "": [101, 102],
    "Hello, World!": [101, 7592, 1010, 2088, 999, 102],
    "naïve café — Ünïcode": [101, 15743, 7668, 1517, 27260, 102],
    "getUserById(user_id) -> Optional[User]": [
        101,
        2131,
        20330,
        3762,
        3593,
        1006,
        5310,
        1035,
        8909,
        1007,
        1011,
        1028,
        11887,
        1031,
        5310,
        1033,
        102,
    ],
    "数据库 index": [101, 100, 100, 100, 5950, 102],
    "ΣΊΣΥΦΟΣ": [101, 1173, 18199, 29733, 29735, 29736, 29730, 29733, 102],
    "tabs\tand\nnew\xa0lines\u200b\x00\x1fjoined": [
        101,
        21628,
        2015,
        1998,
        2047,
        3210,
        5558,
        21280,
        102,
    ],
    "y" * 101: [101, 100, 102],
    "🚀 exit code 137": [101, 100, 6164, 3642, 14989, 102],
}


@pytest.fixture(scope="module")
def pieces() -> WordPiece:
    return WordPiece.load(FOLDER / "vocab.txt")


@pytest.fixture(scope="module")
def embedder() -> MiniLM:
    return MiniLM.load()


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "minilm"))


@pytest.mark.parametrize("text", GOLDEN)
def test_word_pieces_are_the_ones_bert_was_trained_on(pieces: WordPiece, text: str) -> None:
    assert pieces.encode(text, 512) == GOLDEN[text]


@given(text=st.text(st.characters(), max_size=40))
@example(text="\ud800 ? \udfff")
def test_pieces_are_searched_for_and_looked_up_alike(text: str) -> None:
    file = (FOLDER / "vocab.txt").read_bytes()
    searched, looked_up = (WordPiece(Vocabulary(file)) for _ in range(2))
    for number in range(SEARCHES_MAX):
        looked_up.encode(f"word{number}", 64)

    assert searched.encode(text, 64) == looked_up.encode(text, 64)


def test_a_word_cut_before_is_cut_the_same_again(pieces: WordPiece) -> None:
    first = pieces.encode("unbelievably idempotent", 64)

    assert pieces.encode("unbelievably idempotent", 64) == first


def test_a_cut_text_keeps_its_start_and_its_end_mark(pieces: WordPiece) -> None:
    whole = pieces.encode("one two three four", 64)

    assert pieces.encode("one two three four", 4) == [*whole[:3], whole[-1]]


def test_similar_sentences_are_nearer_than_different_ones(embedder: MiniLM) -> None:
    crash, killed, recipe = embedder.encode(
        [
            "the process ran out of memory",
            "OOM killer ended the job",
            "stir the soup until it thickens",
        ]
    )

    assert crash @ killed > crash @ recipe + 0.2


def test_vectors_have_length_one(embedder: MiniLM) -> None:
    vectors = embedder.encode(TEXTS)

    assert vectors.shape == (len(TEXTS), embedder.dimensions)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_text_has_the_same_vector_alone_and_in_a_batch(embedder: MiniLM) -> None:
    together = embedder.encode(TEXTS)
    alone = np.concatenate([embedder.encode([text]) for text in TEXTS])

    assert np.abs(together - alone).max() < 1e-3


def test_a_second_load_gives_the_same_vectors(embedder: MiniLM) -> None:
    assert np.array_equal(MiniLM.load().encode(TEXTS), embedder.encode(TEXTS))


def test_a_quick_load_gives_the_same_vectors(embedder: MiniLM) -> None:
    assert (
        np.abs(MiniLM.load(for_one_query=True).encode(TEXTS) - embedder.encode(TEXTS)).max() < 1e-5
    )


def test_a_quick_load_leaves_the_environment_and_every_module_as_they_would_be() -> None:
    code = """
import os, sys
from commonplace.embed.minilm import MiniLM
before = dict(os.environ)
vector = MiniLM.load(for_one_query=True).encode(["the build fails"])[0]
import numpy.typing, numpy._core._add_newdocs
assert round(float(vector @ vector), 3) == 1, vector
assert numpy._core._add_newdocs.__file__, "the real module"
print({name for name, _value in os.environ.items() ^ before.items()} - {"ORT_DISABLE_TELEMETRY"})
"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"


def test_no_texts_give_no_vectors(embedder: MiniLM) -> None:
    assert embedder.encode([]).shape == (0, embedder.dimensions)
    assert embedder.encode_pieces([]) == []


@given(st.lists(st.integers(2, PIECES_MAX), max_size=60))
def test_every_text_is_in_one_run_and_a_run_is_small(lengths: list[int]) -> None:
    batches = minilm.batches(lengths)

    assert sorted(place for places in batches for place in places) == list(range(len(lengths)))
    for places in batches:
        padded = len(places) * max(lengths[place] for place in places)
        assert padded <= minilm.BATCH_PIECES_MAX or len(places) == 1


def test_a_long_text_is_cut(embedder: MiniLM) -> None:
    [(_vector, rows)] = embedder.encode_pieces(["word " * 2_000])

    assert rows is not None
    assert rows.shape == (PIECES_MAX - 2, embedder.dimensions), "all but the two marks"


def test_each_piece_that_says_something_has_a_vector_of_length_one(embedder: MiniLM) -> None:
    found = embedder.encode_pieces([*TEXTS, "the of and, in to."])

    assert (
        np.abs(np.array([one.vector for one in found[:-1]]) - embedder.encode(TEXTS)).max() < 1e-5
    )
    for one in found:
        assert one.pieces is not None
        assert np.allclose(np.linalg.norm(one.pieces, axis=1), 1, atol=1e-5)
    shapes = {
        text: one.pieces.shape
        for text, one in zip(TEXTS, found, strict=False)
        if one.pieces is not None
    }
    assert shapes["short"] == (1, embedder.dimensions)
    assert shapes["the build fails with exit code 137"][0] == 5
    assert found[-1].pieces is not None
    assert len(found[-1].pieces) == 0, "frequent words and punctuation"


def test_a_word_means_what_it_does_where_it_stands(embedder: MiniLM) -> None:
    river, money, other = (
        one.pieces[1]
        for one in embedder.encode_pieces(["river bank", "savings bank", "credit bank"])
        if one.pieces is not None
    )

    assert money @ other > money @ river


def test_vectors_stay_near_those_of_the_published_model(embedder: MiniLM) -> None:
    [vector] = embedder.encode(["This is an example sentence"])

    # The first values that sentence-transformers gives in fp32; fine-tuning moved them a little.
    assert np.allclose(vector[:3], [0.0677, 0.0635, 0.0487], atol=0.05)


def test_the_shipped_files_match_their_checksums(embedder: MiniLM) -> None:
    embedder.verify()

    assert embedder.name.startswith("all-MiniLM-L6-v2-commonplace-2-int8-")


def test_a_changed_byte_is_found_by_verifying(copied: Path) -> None:
    content = bytearray((copied / "model.data").read_bytes())
    content[1_000_000] ^= 1
    (copied / "model.data").write_bytes(content)

    with pytest.raises(EmbedderUnavailable, match=r"model\.data"):
        MiniLM.load(copied).verify()


@pytest.mark.parametrize("name", ["model.onnx", "model.data", "vocab.txt", "checksums.txt"])
def test_a_missing_file_is_said_by_name(copied: Path, name: str) -> None:
    (copied / name).unlink()

    with pytest.raises(EmbedderUnavailable, match=name):
        MiniLM.load(copied)


def test_a_torn_file_is_said_by_name(copied: Path) -> None:
    (copied / "model.data").write_bytes(b"torn")

    with pytest.raises(EmbedderUnavailable, match=r"model\.data"):
        MiniLM.load(copied)


def test_without_onnxruntime_there_is_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)

    with pytest.raises(EmbedderUnavailable) as caught:
        MiniLM.load()

    assert "onnxruntime" in caught.value.hint


def test_importing_the_module_imports_neither_numpy_nor_onnxruntime() -> None:
    code = (
        "import sys, commonplace.embed.minilm; print({'numpy', 'onnxruntime'} & set(sys.modules))"
    )
    source = str(Path(__file__).parent.parent / "src")

    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": source},
    )

    assert done.stdout.strip() == "set()"


def test_loading_the_model_writes_nothing_into_the_users_folder(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    code = "from commonplace.embed.minilm import MiniLM; MiniLM.load().encode(['text'])"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)

    assert list(tmp_path.iterdir()) == []
