"""Meaning: vectors are made once, never mixed between models, and never needed for an answer."""

from __future__ import annotations

import http.server
import json
import sqlite3
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from commonplace.errors import EmbedderUnavailable, SettingsInvalid, UsageError
from commonplace.index import vectors as vectors_module
from commonplace.index.embedder import Embedder, HttpEmbedder, load
from commonplace.index.minilm import MiniLM
from commonplace.index.vectors import Vectors, missing
from commonplace.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray


def logged(memory: Memory, lesson: str) -> str:
    return memory.log(repo="app", event_type="error", lesson=lesson).id


class Letters:
    """An embedder of our own: which letters a text has. Real vectors, no model."""

    def __init__(self, name: str = "letters") -> None:
        self.name = name

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [[1.0 + text.lower().count(chr(97 + place % 26)) for place in range(384)] for text in texts]
        found: NDArray[np.float32] = np.asarray(rows, np.float32)
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found


@pytest.fixture
def service() -> Iterator[str]:
    """A real HTTP service that speaks the OpenAI-compatible protocol."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.headers.get("Authorization") != "Bearer sesame":
                self.send_error(401)
                return
            rows = Letters().encode(asked["input"]).tolist()
            data = [{"index": place, "embedding": row} for place, row in enumerate(rows)]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"data": data[::-1]}).encode())

        def log_message(self, *_arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1/embeddings"
    server.shutdown()
    server.server_close()


@pytest.fixture(params=["minilm", "http", "own"])
def embedder(request: pytest.FixtureRequest, service: str) -> Embedder:
    found: dict[str, Any] = {
        "minilm": MiniLM.load,
        "http": lambda: HttpEmbedder(service, "letters", "sesame"),
        "own": Letters,
    }
    made: Embedder = found[request.param]()
    return made


def test_every_embedder_keeps_the_contract(embedder: Embedder) -> None:
    texts = ["restart the daemon", "zebra crossing", ""]

    found = embedder.encode(texts)

    assert found.shape == (3, 384)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=0.01)
    assert np.allclose(found[:1], embedder.encode(texts[:1]), atol=1e-3)
    assert embedder.name


def test_what_is_meant_is_found_without_a_word_in_common(memory: Memory) -> None:
    wanted = logged(memory, "The coffee machine must be descaled every month")
    logged(memory, "Pin the compiler version in the build file")
    logged(memory, "Rotate the signing certificate in March")

    assert memory.recall("espresso maker limescale maintenance", cutoff=False).hits[0].id == wanted


def test_an_answer_does_not_wait_for_a_backlog(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.append({"repo": "app", "event_type": "error", "lesson": f"kettle rule {number}"} for number in range(40))

    found = memory.recall("kettle rule 7")

    assert found.hits
    assert missing(memory.asking().indexes[0].store) == 40
    assert memory.asking().embed_all() == 40
    assert memory.asking().status()[0].vectors == 40


def test_without_an_embedder_words_answer_and_the_reader_is_told(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_arguments: object, **_more: object) -> None:
        raise EmbedderUnavailable("no embedder: onnxruntime is missing", "install it")

    monkeypatch.setattr("commonplace.index.embedder.load", absent)
    logged(memory, "the kettle rule")

    found = memory.recall("kettle")

    assert found.hits
    assert found.notes == ["by words only: no embedder: onnxruntime is missing"]
    assert "not available" in memory.asking().embedder_state()
    with pytest.raises(EmbedderUnavailable):
        memory.asking().embed_all()


def test_another_model_means_new_vectors_never_mixed_ones(memory: Memory) -> None:
    for number in range(3):
        logged(memory, f"kettle rule {number}")
    (index,) = memory.asking().caught_up()
    index.vectors.embed(Letters("one"), 10)
    assert missing(index.store) == 0

    index.vectors.use("another")

    assert missing(index.store) == 3
    assert index.vectors.nearest(Letters().encode(["kettle"])[0], 5) == {}
    index.vectors.embed(Letters("another"), 10)
    assert len(index.vectors.nearest(Letters().encode(["kettle"])[0], 5)) == 3


def test_the_shortlist_by_signs_finds_what_the_exact_search_finds(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.append({"repo": "app", "event_type": "error", "lesson": f"rule {number}"} for number in range(600))
    (index,) = memory.asking().caught_up()
    index.vectors.use("random")
    draw = np.random.default_rng(7)
    keys = [key for (key,) in index.store.connection.execute("SELECT key FROM unembedded")]
    rows = [(key, draw.integers(-40, 41, 384, np.int8).tobytes()) for key in keys]
    index.store.connection.executemany("INSERT INTO vector (key, v) VALUES (?, ?)", rows)
    wanted = np.frombuffer(rows[123][1], np.int8).astype(np.float32)
    wanted /= np.linalg.norm(wanted)
    exact = index.vectors.nearest(wanted, 5)

    monkeypatch.setattr(vectors_module, "EXACT_MAX", 10)
    approximate = Vectors(index.store).nearest(wanted, 5)

    assert next(iter(approximate)) == next(iter(exact)) == keys[123]
    assert approximate == pytest.approx(exact)


def test_a_service_that_fails_says_so_and_words_answer(
    memory: Memory, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.settings._values |= {"embedder.kind": "http", "embedder.url": service, "embedder.key_variable": "KEY"}
    logged(memory, "the kettle rule")

    refused = memory.recall("kettle")
    assert refused.hits
    assert "gave no embeddings" in refused.notes[0]

    monkeypatch.setenv("KEY", "sesame")
    memory.close()
    memory.settings._values |= {"embedder.kind": "http", "embedder.url": service, "embedder.key_variable": "KEY"}
    assert "meaning" in memory.recall("kettle").hits[0].why


def test_a_repository_cannot_send_texts_to_a_service(tmp_path: Path) -> None:
    from conftest import git

    root = tmp_path / "app"
    (root / ".commonplace").mkdir(parents=True)
    git("init", "-q", cwd=root)
    (root / ".commonplace" / "config.toml").write_text('[embedder]\nkind = "http"\nurl = "https://example.org"\n')

    with pytest.raises(SettingsInvalid, match="user's home only"):
        Memory.open(cwd=root)


def test_an_http_embedder_needs_an_address() -> None:
    with pytest.raises(EmbedderUnavailable, match="url"):
        load("http")


def test_the_worker_embeds_all_and_ends(commonplace: Any, memory: Memory) -> None:
    memory.append({"repo": "app", "event_type": "error", "lesson": f"kettle rule {number}"} for number in range(12))
    memory.asking().caught_up()

    done = commonplace("index", "embed", "--json")

    assert json.loads(done.stdout) == {"embedded": 12}
    assert json.loads(commonplace("index", "embed", "--json").stdout) == {"embedded": 0}


# --- What is kept open or in memory -------------------------------------------------------------------------------


def test_what_was_removed_is_not_kept_in_memory(memory: Memory) -> None:
    wanted = Letters().encode(["kettle"])[0]
    memory.asking()._embedder = Letters()
    for number in range(5):
        memory.notes("a").write("kettle.md", f"# Kettle\n\nkettle rule {number}")
        memory.asking().embed_all()
        (index,) = memory.asking().indexes

        assert len(index.vectors.nearest(wanted, 10)) == 1
        assert len(index.vectors._keys) == 1

    (memory.home.path / "agents" / "a" / "kettle.md").unlink()
    (index,) = memory.asking().caught_up()
    assert index.vectors.nearest(wanted, 10) == {}


def test_looking_at_a_record_leaves_no_connection_open(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def recorded(*arguments: Any, **more: Any) -> sqlite3.Connection:
        opened.append(connect(*arguments, **more))
        return opened[-1]

    ident = logged(memory, "the kettle rule")
    memory.recall("kettle")
    memory.close()
    monkeypatch.setattr("commonplace.usage.sqlite3.connect", recorded)

    described = memory.describe(ident)
    memory.erase(ident)

    assert described["usage_count"] == 1
    assert len(opened) >= 2
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError):
            connection.execute("SELECT 1")


def test_threads_that_ask_first_share_what_answers(own_home: Path) -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            for _attempt in range(20):
                with Memory.open(own_home) as memory:
                    together = threading.Barrier(8)
                    asked = [threads.submit(lambda: (together.wait(), memory.asking())[1]) for _thread in range(8)]  # noqa: B023
                    assert len({id(future.result()) for future in asked}) == 1
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("age", ["99999999d", "99999999999y", "9" * 5000 + "d"])
def test_an_age_beyond_the_calendar_is_a_mistake_that_is_told(memory: Memory, age: str) -> None:
    logged(memory, "the kettle rule")

    for narrowing in ({"since": age}, {"as_of": age}):
        with pytest.raises(UsageError, match="age"):
            memory.recall("kettle", **narrowing)  # type: ignore[arg-type]
