"""A question that a forked process embeds: the same vectors, and nothing left of the process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from commonplace import Memory
from commonplace.cli import asking
from commonplace.embed.early import EarlyQuestion
from commonplace.embed.minilm import MiniLM
from commonplace.embed.service import EmbeddingService
from commonplace.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from pathlib import Path

np = pytest.importorskip("numpy")
pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked")

QUESTION = "the build fails with exit code 137"


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the machine had two cores, and the test run no threads."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    monkeypatch.setattr(threading, "active_count", lambda: 1)


def load() -> MiniLM:
    return MiniLM.load(for_one_query=True)


def started() -> EarlyQuestion:
    found = EarlyQuestion.start(QUESTION, load)
    assert found is not None
    return found


def is_gone(pid: int) -> bool:
    """Whether no process has that id, not even one that ended and was not waited for."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_it_has_the_vectors_that_the_model_gives() -> None:
    early = started()
    embedder = early.embedder(load)

    assert embedder is not None
    (wanted,) = load().encode_pieces([QUESTION])
    (found,) = embedder.encode_pieces([QUESTION])
    assert embedder.name == load().name
    assert embedder.dimensions == MiniLM.dimensions
    assert np.allclose(found.vector, wanted.vector, atol=1e-5)
    assert np.allclose(found.pieces, wanted.pieces, atol=1e-5)


def test_it_loads_the_model_for_other_texts() -> None:
    loads = []

    def counted() -> MiniLM:
        loads.append(1)
        return load()

    embedder = started().embedder(counted)

    assert embedder is not None
    assert np.allclose(embedder.encode(["another"]), load().encode(["another"]), atol=1e-5)
    assert len(embedder.encode_pieces([QUESTION, "another"])) == 2
    assert loads == [1]


def test_the_process_is_gone_once_it_has_answered() -> None:
    early = started()
    pid = early._pid

    early.embedder(load)

    assert is_gone(pid)


def test_the_process_is_gone_if_nobody_waits_for_its_answer() -> None:
    early = started()
    pid = early._pid

    early.close()
    early.close()

    assert is_gone(pid)


def test_what_goes_wrong_there_is_left_to_this_process() -> None:
    def fail() -> MiniLM:
        raise EmbedderUnavailable("the model is damaged", "install it again")

    early = EarlyQuestion.start(QUESTION, fail)

    assert early is not None
    assert early.embedder(fail) is None


def test_a_process_that_is_killed_gives_no_answer() -> None:
    early = started()
    os.kill(early._pid, 9)

    assert early.embedder(load) is None


def test_nothing_is_forked_on_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0})

    assert EarlyQuestion.start(QUESTION, load) is None


def test_a_process_with_threads_is_not_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 2)

    assert EarlyQuestion.start(QUESTION, load) is None


def test_a_command_gives_the_answer_that_the_memory_gives(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home", background=False) as memory:
        memory.log(lesson="Exit code 137 of the build: Docker had too little memory.")
        memory.log(lesson="Release notes are written before the tag is set.")
        memory.engine().catch_up()
        memory.engine().vectors.embed_all()
        wanted = memory.recall(QUESTION, all_repos=True).text
    done = subprocess.run(
        [
            sys.executable, "-m", "commonplace", "recall", QUESTION,
            "--all-repos", "--home", str(tmp_path / "home"),
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )  # fmt: skip

    assert done.stdout.strip() == wanted.strip()
    assert "Docker" in wanted
    assert not done.stderr


@pytest.mark.parametrize(
    ("config", "is_started"),
    [(None, True), ("[recall]\ndense = 0.5\n", True), ('[embedder]\nkind = "none"\n', False)],
)
def test_a_command_starts_it_unless_the_home_names_an_embedder(
    tmp_path: Path, config: str | None, is_started: bool
) -> None:
    if config is not None:
        (tmp_path / "config.toml").write_text(config)

    early = asking._start_early(str(tmp_path), QUESTION)

    assert (early is not None) == is_started
    if early is not None:
        early.close()


def test_a_command_without_a_question_starts_nothing(tmp_path: Path) -> None:
    assert asking._start_early(str(tmp_path), "") is None


def test_a_service_of_another_embedder_ends_the_process() -> None:
    early = started()
    pid = early._pid

    service = EmbeddingService({"embedder.kind": "none"}, datetime.now, early=early)

    assert service._early is None
    assert is_gone(pid)
