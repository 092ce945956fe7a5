"""Meaning: vectors are made once, never mixed between models, and never needed for an answer."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import backlog
from commonplace import vectors as question_vectors
from commonplace.backlog import start_worker as really_start_worker
from commonplace.embed.embedder import Embedder, Encoded, load
from commonplace.embed.http import HttpEmbedder
from commonplace.embed.minilm import MiniLM
from commonplace.errors import EmbedderUnavailable, SettingsInvalid, UsageError
from commonplace.files.lock import try_hold
from commonplace.index.embedded import vector_search
from commonplace.index.embedded.index import EmbeddedIndex
from commonplace.index.embedded.reader import Reader
from commonplace.index.embedded.vector_search import VectorSnapshot
from commonplace.memory import Memory
from commonplace.where import homes
from commonplace.where.home import Home
from conftest import SLOW_LAW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from commonplace.engine import Answer


def meaning(answer: Answer) -> float | None:
    why = answer.hits[0].why
    return None if why is None else why.meaning


def logged(memory: Memory, lesson: str) -> str:
    return memory.log(repo="app", event_type="error", lesson=lesson).id


def index_of(memory: Memory) -> EmbeddedIndex:
    """The index of the nearest home, up to date."""
    memory.engine().catch_up()
    index = memory.engine().indexes[0]
    assert isinstance(index, EmbeddedIndex)
    return index


def embedded(memory: Memory, embedder: Embedder | None = None) -> EmbeddedIndex:
    """The index with every vector made by *embedder*."""
    memory.engine().embedding.use(embedder or Letters())
    memory.engine().vectors.embed_all()
    return index_of(memory)


def snapshot(index: EmbeddedIndex) -> VectorSnapshot:
    index.catch_up()
    with index.reading() as reader:
        assert isinstance(reader, Reader)
        return reader.vectors


def put_vectors(index: EmbeddedIndex, rows: list[tuple[int, bytes]]) -> None:
    tables = index._parts().tables
    with tables.writing():
        tables.connection.executemany("INSERT INTO vector (key, v) VALUES (?, ?)", rows)


class Letters:
    """An embedder of our own: which letters a text has. Real vectors, no model."""

    def __init__(self, name: str = "letters") -> None:
        self.name = name

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [
            [1.0 + text.lower().count(chr(97 + place % 26)) for place in range(384)]
            for text in texts
        ]
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

    assert (
        memory.recall("espresso maker limescale maintenance", repo="app", cutoff=False).hits[0].id
        == wanted
    )


def test_an_answer_does_not_wait_for_a_backlog(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.append(
        {"repo": "app", "event_type": "error", "lesson": f"kettle rule {number}"}
        for number in range(40)
    )

    found = memory.recall("kettle rule 7")

    assert found.hits
    assert memory.engine().vectors.missing() == 40
    assert memory.engine().vectors.embed_all() == 40
    assert memory.engine().status()[0].vectors == 40


def test_without_an_embedder_words_answer_and_the_reader_is_told(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_arguments: object, **_more: object) -> None:
        raise EmbedderUnavailable("no embedder: onnxruntime is missing", "install it")

    monkeypatch.setattr("commonplace.embed.embedder.load", absent)
    logged(memory, "the kettle rule")

    found = memory.recall("kettle")

    assert found.hits
    assert found.notes == ["by words only: no embedder: onnxruntime is missing"]
    assert "not available" in str(memory.engine().embedder_state())
    with pytest.raises(EmbedderUnavailable):
        memory.engine().vectors.embed_all()


def test_another_model_means_new_vectors_never_mixed_ones(memory: Memory) -> None:
    for number in range(3):
        logged(memory, f"kettle rule {number}")
    logged(memory, "kettle rule 1")
    index = index_of(memory)
    index.embed(Letters("one"), 10)
    assert index.missing_vectors() == 0

    index.use_model("another")

    assert index.missing_vectors() == 3
    assert snapshot(index).nearest(Letters().encode(["kettle"])[0], 5) == {}
    index.embed(Letters("another"), 10)
    assert len(snapshot(index).nearest(Letters().encode(["kettle"])[0], 5)) == 3


def test_the_newest_memories_get_their_vectors_first_and_replaced_ones_last(
    memory: Memory,
) -> None:
    for number in range(4):
        memory.log(
            repo="app",
            event_type="error",
            id="old" if number < 2 else f"l{number}",
            lesson=f"n{number}",
        )
    index = index_of(memory)

    texts: list[str] = []

    class Recorded(Letters):
        def encode(self, given: Sequence[str]) -> NDArray[np.float32]:
            texts.extend(given)
            return super().encode(given)

    while index.embed(Recorded(), 1):
        pass

    assert texts == ["n3", "n2", "n1", "n0"]


@pytest.mark.parametrize("halves_min", [100, 10_000], ids=["half of the signs first", "all signs"])
def test_the_shortlist_by_signs_finds_what_the_exact_search_finds(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, halves_min: int
) -> None:
    many(memory, 600)
    index = index_of(memory)
    index.use_model("random")
    draw = np.random.default_rng(7)
    connection = index._parts().tables.connection
    keys = [key for (key,) in connection.execute("SELECT key FROM unembedded")]
    rows = [(key, draw.integers(-40, 41, 384, np.int8).tobytes()) for key in keys]
    put_vectors(index, rows)
    wanted = np.frombuffer(rows[123][1], np.int8).astype(np.float32)
    wanted /= np.linalg.norm(wanted)
    exact = snapshot(index).nearest(wanted, 5)

    monkeypatch.setattr(vector_search, "EXACT_MAX", 10)
    monkeypatch.setattr(vector_search, "SHORTLIST", 50)
    monkeypatch.setattr(vector_search, "SCAN_ROWS", 128)
    monkeypatch.setattr(vector_search, "HALVES_MIN", halves_min)
    monkeypatch.setattr(vector_search, "HALVES_CHOSEN", 200)
    index.close()
    scan = snapshot(index_of(memory))
    approximate = scan.nearest(wanted, 5)

    assert 20 <= len(scan._shortlist(wanted, 20)) < 60, "some are chosen, and not all"
    assert next(iter(approximate)) == next(iter(exact)) == keys[123]
    assert approximate == pytest.approx(exact)


def test_many_vectors_are_searched_in_a_thread_that_raises_what_the_model_raises(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(memory, 30)
    embedded(memory)
    index = index_of(memory)
    monkeypatch.setattr(vector_search, "HALVES_MIN", 10)
    threads = list[str]()

    def question() -> Encoded:
        threads.append(threading.current_thread().name)
        return Encoded(wanted)

    def broken() -> Encoded:
        raise EmbedderUnavailable("the model is gone", "install it again")

    with index.reading() as reader:
        wanted = next(iter(reader.first_vectors(list(range(30))).values()))
        assert reader.begin_nearest(question, 5)() == reader.nearest(wanted, 5)
        with pytest.raises(EmbedderUnavailable):
            reader.begin_nearest(broken, 5)()
    assert threads == ["commonplace-nearest"]


def test_a_filter_that_lets_few_through_looks_further_by_meaning_too(memory: Memory) -> None:
    memory.append(
        {"repo": "large", "event_type": "error", "lesson": f"kettle socket of the large one {n}"}
        for n in range(200)
    )
    # The same letters and no word in common: found by meaning alone.
    wanted = memory.log(repo="small", event_type="error", lesson="tettlek tockes").id
    embedded(memory)

    found = memory.recall("kettle socket", repo="small", cutoff=False)

    assert [hit.id for hit in found.hits] == [wanted]


def test_what_has_no_vector_yet_is_not_ranked_lower_for_that(memory: Memory) -> None:
    for number in range(20):
        logged(memory, f"socket number {number}")
    embedded(memory)
    # More than are embedded before an answer, and nobody embeds the rest here.
    fresh = [logged(memory, f"kettle branch cache of stage {number}") for number in range(20)]

    hits = memory.recall("kettle branch socket tile", all_repos=True, cutoff=False).hits

    assert hits[0].why is not None
    assert hits[0].why.meaning is None
    assert hits[0].id in fresh


def test_old_versions_are_compared_by_meaning_when_the_past_is_asked_for(memory: Memory) -> None:
    common = {"repo": "app", "event_type": "error", "id": "rule"}
    memory.log(**common, lesson="tettlek", timestamp="2026-01-01T00:00:00Z")
    memory.log(**common, lesson="zzzzzz", timestamp="2026-05-01T00:00:00Z")
    memory.log(repo="app", event_type="error", lesson="qqqq", timestamp="2026-01-02T00:00:00Z")
    embedded(memory)

    (then, *_rest) = memory.recall("kettle", repo="app", as_of="2026-02-01", cutoff=False).hits
    now = {hit.id: hit for hit in memory.recall("kettle", repo="app", cutoff=False).hits}

    assert then.record.fields["lesson"] == "tettlek"
    assert then.why is not None
    assert then.why.meaning is not None
    assert then.why.meaning > 0.9
    assert now["rule"].record.fields["lesson"] == "zzzzzz"


def test_a_service_that_fails_says_so_and_words_answer(
    memory: Memory, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.settings.override(
        {
            "embedder.kind": "http",
            "embedder.url": service,
            "embedder.key_variable": "KEY",
        }
    )
    logged(memory, "the kettle rule")

    refused = memory.recall("kettle")
    assert refused.hits
    assert "gave no embeddings" in refused.notes[0]

    monkeypatch.setenv("KEY", "sesame")
    memory.close()
    memory.settings.override(
        {
            "embedder.kind": "http",
            "embedder.url": service,
            "embedder.key_variable": "KEY",
        }
    )
    assert meaning(memory.recall("kettle"))


def test_a_repository_cannot_send_texts_to_a_service(tmp_path: Path) -> None:
    from conftest import git

    root = tmp_path / "app"
    root.mkdir()
    git("init", "-q", cwd=root)
    homes.make(homes.at(root / ".commonplace", os.environ))  # It is trusted, and still may not.
    (root / ".commonplace" / "config.toml").write_text(
        '[embedder]\nkind = "http"\nurl = "https://example.org"\n'
    )

    with pytest.raises(SettingsInvalid, match="user's home only"):
        Memory.open(cwd=root)


def test_an_http_embedder_needs_an_address() -> None:
    with pytest.raises(EmbedderUnavailable, match="url"):
        load("http")


def test_the_worker_embeds_all_and_ends(commonplace: Any, memory: Memory) -> None:
    memory.append(
        {"repo": "app", "event_type": "error", "lesson": f"kettle rule {number}"}
        for number in range(12)
    )
    memory.engine().catch_up()

    done = commonplace("index", "embed", "--json")

    assert json.loads(done.stdout) == {"embedded": 12}
    assert json.loads(commonplace("index", "embed", "--json").stdout) == {"embedded": 0}


# --- A service that is not as it should be ------------------------------------------------------------------------


class Service:
    """A real HTTP service that answers as a test wants: `answer` gets the texts and gives the raw response."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.answer: Callable[[list[str]], bytes] = letters
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
                outer.asked.append(texts)
                self.wfile.write(outer.answer(texts))

            def log_message(self, *_arguments: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/embeddings"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


def response(body: object, length: int | None = None) -> bytes:
    content = json.dumps(body).encode()
    return b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (length or len(content), content)


def letters(texts: list[str]) -> bytes:
    rows = Letters().encode(texts).tolist()
    return response(
        {"data": [{"index": place, "embedding": row} for place, row in enumerate(rows)]}
    )


@pytest.fixture
def odd_service() -> Iterator[Service]:
    made = Service()
    yield made
    made.server.shutdown()
    made.server.server_close()


def use_service(memory: Memory, url: str) -> None:
    memory.settings.override({"embedder.kind": "http", "embedder.url": url})


ODD_ANSWERS: dict[str, bytes] = {
    "fewer vectors": response({"data": []}),
    "no numbers": response({"data": [{"embedding": None}]}),
    "empty vectors": response({"data": [{"embedding": []}]}),
    "words": response({"data": [{"embedding": ["a", "b"]}]}),
    "not a number": response({"data": [{"embedding": [float("nan")] * 384}]}),
    "nested": response({"data": [{"embedding": [[1.0], [2.0]]}]}),
    "no objects": response({"data": [1, 2]}),
    "a list": response([1, 2]),
    "a text": response("no"),
    "something else": response({"error": "no"}),
    "half an answer": response({"data": []}, length=4000),
    "no HTTP": b"what?\r\n\r\n",
    "nothing": b"",
}


@pytest.mark.parametrize("kind", ODD_ANSWERS)
def test_whatever_a_service_answers_words_do_and_nothing_of_it_is_kept(
    memory: Memory, odd_service: Service, kind: str
) -> None:
    odd_service.answer = lambda _texts: ODD_ANSWERS[kind]
    use_service(memory, odd_service.url)
    logged(memory, "the kettle rule")

    found = memory.recall("kettle")

    assert found.hits
    assert "gave no embeddings" in found.notes[0]
    assert memory.engine().status()[0].vectors == 0
    with pytest.raises(EmbedderUnavailable):
        memory.engine().vectors.embed_all()


def test_vectors_of_different_lengths_are_no_answer(odd_service: Service) -> None:
    odd_service.answer = lambda _texts: response(
        {"data": [{"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]}
    )

    with pytest.raises(EmbedderUnavailable):
        HttpEmbedder(odd_service.url, "").encode(["one", "two"])


@pytest.mark.parametrize("url", ["localhost:1/v1", "nonsense", "http://[", "http://127.0.0.1:0/"])
def test_an_address_that_is_none_is_said_and_words_answer(memory: Memory, url: str) -> None:
    use_service(memory, url)
    logged(memory, "the kettle rule")

    found = memory.recall("kettle")

    assert found.hits
    assert "gave no embeddings" in found.notes[0]


def test_a_service_that_changes_the_length_of_its_vectors_is_told_of_and_not_mixed_in(
    memory: Memory, odd_service: Service
) -> None:
    use_service(memory, odd_service.url)
    logged(memory, "the kettle rule")
    assert meaning(memory.recall("kettle"))

    odd_service.answer = lambda texts: response(
        {"data": [{"embedding": [1.0, 2.0, 3.0]} for _text in texts]}
    )
    logged(memory, "the teapot rule")
    found = memory.recall("kettle")

    assert found.hits
    assert "vectors of 3 numbers" in found.notes[0]
    assert memory.engine().status()[0].vectors == 1


def test_a_question_is_sent_once(memory: Memory, odd_service: Service) -> None:
    use_service(memory, odd_service.url)
    logged(memory, "the kettle rule")
    memory.recall("kettle")
    odd_service.asked.clear()

    memory.recall("teapot")

    assert odd_service.asked == [["teapot"]]


def test_a_service_that_hangs_is_not_waited_for_and_then_left_alone_for_a_while(
    own_home: Path, odd_service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    woken = threading.Event()

    def hang(texts: list[str]) -> bytes:
        woken.wait(60)
        return letters(texts)

    odd_service.answer = hang
    monkeypatch.setattr(question_vectors, "SERVICE_S_MAX", 0.2)
    with Memory.open(own_home, clock=lambda: now[0]) as memory:
        use_service(memory, odd_service.url)
        logged(memory, "the kettle rule")

        answers = [memory.recall("kettle"), memory.recall("kettle")]
        asked_while_it_hung = len(odd_service.asked)
        woken.set()
        monkeypatch.setattr(question_vectors, "SERVICE_S_MAX", 60)
        now[0] += timedelta(minutes=10)
        later = memory.recall("kettle")

    assert all(answer.hits and "gave no embeddings" in answer.notes[0] for answer in answers)
    assert asked_while_it_hung == 1
    assert meaning(later)


# --- The worker ---------------------------------------------------------------------------------------------------


def many(memory: Memory, count: int = 40) -> None:
    memory.append(
        {"repo": "app", "event_type": "error", "lesson": f"kettle rule {n}"} for n in range(count)
    )


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The workers that answers really started, ended with the test."""
    started: list[subprocess.Popen[bytes]] = []

    class Recorded(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **more: Any) -> None:
            super().__init__(*arguments, **more)
            started.append(self)

    monkeypatch.setattr("subprocess.Popen", Recorded)
    monkeypatch.setattr("commonplace.backlog.start_worker", really_start_worker)
    yield started
    for worker in started:
        worker.kill()
        worker.wait(60)


def test_answers_start_one_worker_between_them_and_not_while_one_is_at_it(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    jobs: list[Any] = []
    monkeypatch.setattr("commonplace.backlog.start_worker", lambda *job: jobs.append(job))

    def ask() -> int:
        for _process in range(2):
            with Memory.open(own_home, clock=lambda: now[0]) as memory:
                for _time in range(3):
                    memory.recall("kettle")
        return len(jobs)

    with Memory.open(own_home) as memory:
        many(memory)
    at_first = ask()
    now[0] += timedelta(hours=1)
    with try_hold(Home(own_home).embed_lock) as held:
        while_one_works = ask()
    later = ask()

    assert held
    assert (at_first, while_one_works, later) == (1, 1, 2)


@pytest.mark.skipif(os.name != "posix", reason="priorities are another thing there")
def test_the_worker_has_the_lowest_priority_from_its_start_and_ends(
    memory: Memory, workers: list[subprocess.Popen[bytes]]
) -> None:
    many(memory)

    memory.recall("kettle")
    (worker,) = workers
    priority = os.getpriority(os.PRIO_PROCESS, worker.pid)

    assert priority == 19
    assert worker.wait(120) == 0
    assert memory.engine().vectors.missing() == 0


def test_the_worker_of_a_repository_uses_the_embedder_of_the_user(
    tmp_path: Path, own_home: Path, odd_service: Service, workers: list[subprocess.Popen[bytes]]
) -> None:
    from conftest import git

    root = tmp_path / "app"
    (root / ".commonplace").mkdir(parents=True)
    git("init", "-q", cwd=root)
    own_home.mkdir()
    (own_home / "config.toml").write_text(f'[embedder]\nkind = "http"\nurl = "{odd_service.url}"\n')
    with Memory.open(cwd=root) as memory:
        many(memory, 12)
        memory.recall("kettle")

        assert workers[-1].wait(120) == 0
        assert meaning(memory.recall("kettle"))
        assert memory.engine().status()[0].vectors == 12
        assert memory.engine().status()[0].model.startswith("http:")


@pytest.mark.skipif(os.name != "posix", reason="open files cannot be removed there")
@pytest.mark.parametrize("gone", ["", ".index"])
def test_the_worker_ends_when_its_home_or_index_is_gone_and_does_not_bring_it_back(
    own_home: Path, odd_service: Service, workers: list[subprocess.Popen[bytes]], gone: str
) -> None:
    def remove(texts: list[str]) -> bytes:
        if len(texts) > 1:
            shutil.rmtree(own_home / gone)
        return letters(texts)

    odd_service.answer = remove
    with Memory.open(own_home) as memory:
        use_service(memory, odd_service.url)
        many(memory, 100)
        memory.recall("kettle")
    (worker,) = workers

    assert worker.wait(120) == 0
    assert [len(texts) for texts in odd_service.asked] == [1, backlog.EMBED_BATCH]
    assert not (own_home / gone).exists()


@pytest.mark.skipif(os.name != "posix", reason="open files cannot be removed there")
def test_the_worker_ends_though_its_service_never_answers_when_its_home_is_gone(
    own_home: Path, odd_service: Service, workers: list[subprocess.Popen[bytes]]
) -> None:
    is_asked, may_answer = threading.Event(), threading.Event()

    def hang(texts: list[str]) -> bytes:
        if len(texts) > 1:
            is_asked.set()
            may_answer.wait(120)
        return letters(texts)

    odd_service.answer = hang
    with Memory.open(own_home) as memory:
        use_service(memory, odd_service.url)
        many(memory, 100)
        memory.recall("kettle")
    (worker,) = workers
    try:
        assert is_asked.wait(60)
        shutil.rmtree(own_home)

        assert worker.wait(60) == 0
    finally:
        may_answer.set()
    assert not own_home.exists()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_worker_whose_home_goes_while_the_model_loads_leaves_no_trace(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, replaced: bool
) -> None:
    many(memory, 10)
    memory.close()

    def load_slowly(*_arguments: object, **_more: object) -> Letters:
        memory.home.path.rename(memory.home.path.with_name("moved"))
        if replaced:
            memory.home.path.mkdir()
        return Letters()

    monkeypatch.setattr("commonplace.embed.embedder.load", load_slowly)
    backlog.run_worker([memory.home], memory.settings)

    assert memory.home.path.exists() == replaced
    assert not replaced or not list(memory.home.path.iterdir())


def test_two_embedders_at_once_do_not_keep_a_worker_busy_for_ever(memory: Memory) -> None:
    many(memory)
    index = index_of(memory)

    class Overtaken(Letters):
        def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
            index.use_model("another")
            return super().encode(texts)

    memory.engine().embedding.use(Overtaken())

    assert memory.engine().vectors.embed_all() == 0


@pytest.mark.parametrize("reason", ["time", "home"])
def test_the_worker_ends_when_its_time_is_over_or_its_home_is_gone(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    many(memory, 10)
    memory.close()
    batches = 0

    class Removing(Letters):
        def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
            nonlocal batches
            batches += 1
            if reason == "home":
                shutil.rmtree(memory.home.path)
            return super().encode(texts)

    monkeypatch.setattr(backlog, "EMBED_BATCH", 2)
    monkeypatch.setattr(backlog, "WORKER_S_MAX", 0.0 if reason == "time" else 600.0)
    monkeypatch.setattr("commonplace.embed.embedder.load", lambda *_a, **_k: Removing())

    backlog.run_worker([memory.home], memory.settings)

    assert batches == (0 if reason == "time" else 1)


def test_a_worker_leaves_a_home_to_the_process_that_embeds_there(memory: Memory) -> None:
    many(memory, 3)
    memory.engine().embedding.use(Letters())
    with try_hold(memory.home.embed_lock) as held:
        assert held
        assert memory.engine().vectors.embed_alone() is None

    assert memory.engine().vectors.embed_alone() == 3


def test_a_state_folder_that_cannot_be_written_costs_no_answer(memory: Memory) -> None:
    many(memory)
    shutil.rmtree(memory.home.state_folder, ignore_errors=True)
    memory.home.state_folder.write_text("not a folder")

    assert memory.recall("kettle rule 7").hits
    assert memory.recall("kettle rule 7").hits


def test_a_worker_imports_nothing_from_the_home(
    memory: Memory, workers: list[subprocess.Popen[bytes]], own_home: Path
) -> None:
    many(memory)
    (own_home / "commonplace").mkdir()
    (own_home / "commonplace" / "__init__.py").write_text("raise SystemExit(7)")

    memory.recall("kettle")
    (worker,) = workers

    assert worker.wait(120) == 0


# --- What is kept open or in memory -------------------------------------------------------------------------------


@pytest.mark.parametrize("unsorted_max", [0, 2, 4096])
def test_the_vectors_of_a_document_are_found_by_its_key_whenever_they_came(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, unsorted_max: int
) -> None:
    monkeypatch.setattr(vector_search, "UNSORTED_MAX", unsorted_max)
    index = index_of(memory)
    index.use_model("random")
    draw = np.random.default_rng(7)
    query = draw.standard_normal(384).astype(np.float32)
    held: dict[int, list[Any]] = {}
    for _turn in range(20):
        for key in draw.integers(1, 12, 3).tolist():
            row = draw.integers(-40, 41, 384, np.int8)
            held.setdefault(key, []).append(row.astype(np.float32) / 127)
            put_vectors(index, [(key, row.tobytes())])
        wanted = range(15)
        now = snapshot(index)

        first = now.first(wanted)
        similar = now.similarity(query, wanted)

        assert {key: row.tolist() for key, row in first.items()} == {
            key: rows[0].tolist() for key, rows in held.items()
        }
        assert similar == pytest.approx(
            {key: max(float(row @ query) for row in rows) for key, rows in held.items()}, abs=1e-4
        )


def test_an_older_snapshot_of_the_vectors_does_not_change(memory: Memory) -> None:
    index = index_of(memory)
    index.use_model("random")
    draw = np.random.default_rng(7)
    query = draw.standard_normal(384).astype(np.float32)
    put_vectors(index, [(1, draw.integers(-40, 41, 384, np.int8).tobytes())])
    before = snapshot(index)
    found = before.nearest(query, 10)

    put_vectors(index, [(2, draw.integers(-40, 41, 384, np.int8).tobytes())])

    assert len(snapshot(index).nearest(query, 10)) == 2
    assert before.nearest(query, 10) == found


def test_what_was_removed_is_not_kept_in_memory(memory: Memory) -> None:
    wanted = Letters().encode(["kettle"])[0]
    for number in range(5):
        memory.notes("a").write("kettle.md", f"# Kettle\n\nkettle rule {number}")
        index = embedded(memory)

        assert len(snapshot(index).nearest(wanted, 10)) == 1
        assert snapshot(index).size == 1

    (memory.home.path / "agents" / "a" / "kettle.md").unlink()
    assert snapshot(index_of(memory)).nearest(wanted, 10) == {}


@pytest.mark.parametrize("kind", ["words", "meaning"])
def test_many_questions_at_once_are_answered_as_one_by_one(memory: Memory, kind: str) -> None:
    many(memory, 60)
    if kind == "meaning":
        embedded(memory)
    else:
        memory.settings.override({"embedder.kind": "none"})
    questions = [f"kettle rule {number}" for number in range(40)]
    alone = [[hit.id for hit in memory.rank(text, limit=5)] for text in questions]

    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda text: memory.rank(text, limit=5), questions))

    assert [[hit.id for hit in hits] for hits in together] == alone


def test_ready_means_that_everything_is_indexed_and_embedded(memory: Memory) -> None:
    memory.engine().embedding.use(Letters())
    many(memory, 100)

    assert not memory.ready(timeout_s=0)
    assert memory.ready()

    status = memory.engine().status()[0]
    assert (status.records, status.vectors, status.vectors_missing) == (100, 100, 0)
    memory.settings.override({"embedder.kind": "none"})
    many(memory, 101)
    assert memory.ready(timeout_s=5)


# --- Erasing ------------------------------------------------------------------------------------------------------


@SLOW_LAW
@given(
    texts=st.lists(st.sampled_from(["kettle", "tea", "spoon", ""]), min_size=2, max_size=6),
    rewritten=st.booleans(),
)
def test_erasing_a_record_keeps_the_vectors_of_all_others(
    texts: list[str], rewritten: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Memory.open(tmp_path_factory.mktemp("home") / "home", background=False) as memory:
        ids = [logged(memory, f"{number} {text}") for number, text in enumerate(texts)]
        if rewritten:  # An old version has a vector too.
            memory.log(id=ids[1], repo="app", event_type="error", lesson="another kettle")
        index = embedded(memory)
        with index.reading() as reader:
            before = {
                ident: vector.tolist()
                for ident, key in reader.keys(ids).items()
                for vector in reader.first_vectors([key]).values()
            }
        memory.close()
        memory.erase(ids[0])

    with Memory.open(memory.home.path, background=False) as memory:
        memory.engine().embedding.use(Letters())
        index = index_of(memory)
        assert index.missing_vectors() == 0
        assert index.status().model == "letters"
        assert index.status().waiting == 0
        with index.reading() as reader:
            after = {
                ident: vector.tolist()
                for ident, key in reader.keys(ids).items()
                for vector in reader.first_vectors([key]).values()
            }
        del before[ids[0]]
        assert after == before
        assert memory.recall("kettle").notes == []
        for path in memory.home.index_folder.rglob("*"):
            assert path.is_dir() or ids[0].encode() not in path.read_bytes()


def test_an_answer_says_when_meaning_was_not_compared(memory: Memory) -> None:
    for number in range(backlog.EMBED_NOW_MAX + 3):
        logged(memory, f"the kettle rule {number}")
    memory.engine().embedding.use(Letters())
    assert "by words only: no memory has vectors yet" in memory.recall("kettle").notes[0]

    index_of(memory).embed(Letters(), 2)
    assert "9 memories have no vectors yet" in memory.recall("kettle").notes[0]

    embedded(memory)
    assert memory.recall("kettle").notes == []


def test_an_answer_says_that_the_model_is_still_loading(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged(memory, "the kettle rule")
    may_load = threading.Event()
    monkeypatch.setattr(
        "commonplace.embed.embedder.load", lambda *_a, **_k: may_load.wait(60) and Letters()
    )
    memory.engine().embedding.load_in_background()
    try:
        assert memory.recall("kettle").notes == ["by words only: the model is still loading"]
    finally:
        may_load.set()


def test_looking_at_a_record_leaves_no_connection_open(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
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
                    asked = [
                        threads.submit(lambda: (together.wait(), memory.engine())[1])  # noqa: B023
                        for _thread in range(8)
                    ]
                    assert len({id(future.result()) for future in asked}) == 1
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("age", ["99999999d", "99999999999y", "9" * 5000 + "d"])
def test_an_age_beyond_the_calendar_is_a_mistake_that_is_told(memory: Memory, age: str) -> None:
    logged(memory, "the kettle rule")

    for narrowing in ({"since": age}, {"as_of": age}):
        with pytest.raises(UsageError, match="before the year 1") as raised:
            memory.recall("kettle", **narrowing)  # type: ignore[arg-type]
        assert len(str(raised.value)) < 200
