"""The index: catching up equals rebuilding, any damage is mended by building again, any number of processes share it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commonplace.index import text as text_module
from commonplace.index.index import TABLES, Index
from commonplace.memory import Memory


@pytest.fixture(autouse=True)
def words_only(own_home: Path) -> None:
    own_home.mkdir()
    (own_home / "config.toml").write_text('[embedder]\nkind = "none"\n')
    (own_home / "config.toml").chmod(0o600)


def logged(memory: Memory, lesson: str, **more: Any) -> str:
    return memory.log(**{"repo": "app", "event_type": "error", "lesson": lesson, **more}).id


def ids(memory: Memory, query: str, **more: Any) -> list[str]:
    return [hit.id for hit in memory.recall(query, **more).hits]


def dump(index: Index) -> set[tuple[Any, ...]]:
    """Everything the index says that does not depend on the order in which it was told."""
    store = index.store
    rows = store.connection.execute(
        "SELECT doc.id, repo, kind, timestamp, of, outcome, archived, raw, head.key IS NOT NULL FROM doc"
        " LEFT JOIN head ON head.key = doc.key"
    ).fetchall()
    edges = store.connection.execute('SELECT of, rel, "to" FROM edge').fetchall()
    wanted = {"alpha": 1.0, "beta": 1.0, "gamma": 1.0}
    found = index.text.match(wanted, index.text.statistics(wanted), repos=None, kinds=None, limit=500)
    matched = {index.store.rows([key])[key].id for key, _score in found if key in index.store.rows([key])}
    return {("doc", *row) for row in rows} | {("edge", *edge) for edge in edges} | {("match", one) for one in matched}


steps = st.lists(
    st.tuples(
        st.sampled_from(["log", "log", "log", "feedback", "forget", "rotate", "erase", "look", "link"]),
        st.sampled_from(["alpha", "beta", "gamma"]),
        st.integers(0, 4),
    ),
    max_size=14,
)


def act(memory: Memory, step: str, one: str, other: str) -> None:
    if step == "feedback":
        memory.feedback(one, "worked")
    elif step == "forget":
        memory.forget(one)
    elif step == "erase":
        memory.erase(one)
    else:
        memory.log(kind="link", of=one, to=other, rel="related_to", repo="app")


@given(steps)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_catching_up_equals_rebuilding_for_any_history(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, history: list[tuple[str, str, int]]
) -> None:
    monkeypatch.setattr(text_module, "FRESH_MAX", 2)
    home = tmp_path_factory.mktemp("any") / "home"
    home.mkdir()
    (home / "config.toml").write_text('[embedder]\nkind = "none"\n[rotation]\nlines_max = 4\nmove = 2\n')
    with Memory.open(home) as memory:
        for number, (step, word, which) in enumerate(history):
            known = sorted(record.id for record in memory.records() if record.kind == "lesson")
            if step == "log":
                logged(
                    memory,
                    f"{word} rule {which}",
                    timestamp=f"2026-01-{number + 1:02}T00:00:00Z",
                    success_rate=f"{which}/9",
                )
            elif step == "look":
                memory.asking().caught_up()
            elif step == "rotate":
                memory.maintain()
            elif known:
                one = known[which % len(known)]
                act(memory, step, one, known[0])
        (caught_up,) = memory.asking().caught_up()
        told = dump(caught_up)
        fresh = Index(home, in_memory=True)
        fresh.catch_up()
        assert told == dump(fresh)


def test_what_another_process_wrote_is_found_by_the_next_question(memory: Memory, own_home: Path) -> None:
    logged(memory, "something else entirely")
    ids(memory, "warm up")
    code = "from commonplace import Memory\nwith Memory.open() as m: m.log(repo='app', event_type='error', lesson='the quokka daemon')"
    subprocess.run([sys.executable, "-c", code], check=True)

    assert len(ids(memory, "quokka")) == 1


def test_the_overlay_and_the_committed_index_answer_alike(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        logged(memory, f"lesson {number} about {'nginx proxy' if number % 3 else 'redis cache'} number{number}")
    before = ids(memory, "redis cache number9", limit=10)

    memory.asking().indexes[0].text.commit_if_due(at_once=True)

    assert ids(memory, "redis cache number9", limit=10) == before
    assert memory.asking().status()[0].waiting == 0


def test_deleting_the_index_changes_no_answer(memory: Memory, own_home: Path) -> None:
    for number in range(20):
        logged(memory, f"lesson {number} about postgres deadlocks")
    before = memory.recall("postgres deadlock").text

    shutil.rmtree(own_home / ".index")

    assert memory.recall("postgres deadlock").text == before


@pytest.mark.parametrize("how", ["garbage", "empty", "truncated"])
def test_a_damaged_index_is_built_again(memory: Memory, own_home: Path, how: str) -> None:
    for number in range(20):
        logged(memory, f"lesson {number} about postgres deadlocks")
    memory.recall("postgres")
    memory.asking().indexes[0].text.commit_if_due(at_once=True)
    before = memory.recall("postgres deadlock").text
    memory.close()
    for path in (own_home / ".index").rglob("*"):
        if path.is_file():
            whole = path.read_bytes()
            path.write_bytes({"garbage": b"\x00garbage" * 50, "empty": b"", "truncated": whole[: len(whole) // 2]}[how])

    with Memory.open(own_home) as again:
        assert again.recall("postgres deadlock").text == before


def test_an_index_replaced_while_it_is_open_is_noticed(memory: Memory, own_home: Path) -> None:
    logged(memory, "about postgres deadlocks")
    memory.recall("postgres")
    subprocess.run(
        [sys.executable, "-m", "commonplace", "index", "rebuild", "--no-vectors"], check=True, capture_output=True
    )

    logged(memory, "about redis caches")

    assert len(ids(memory, "redis")) == 1


def test_an_index_of_another_schema_is_thrown_away(memory: Memory, own_home: Path) -> None:
    logged(memory, "about postgres deadlocks")
    memory.recall("postgres")
    memory.close()
    with sqlite3.connect(own_home / ".index" / TABLES) as connection:
        connection.execute("PRAGMA user_version = 1")
    connection.close()

    with Memory.open(own_home) as again:
        assert len(ids(again, "postgres")) == 1


def test_edits_by_hand_are_seen(memory: Memory, own_home: Path) -> None:
    logged(memory, "about postgres deadlocks")
    logged(memory, "about redis caches")
    ids(memory, "redis")
    path = own_home / "log" / "app.jsonl"
    path.write_text(path.read_text().replace("redis caches", "kafka topics"))

    assert ids(memory, "redis") == []
    assert len(ids(memory, "kafka")) == 1


def test_notes_and_skills_are_found_and_a_note_only_by_its_agent(memory: Memory, own_home: Path) -> None:
    skill = own_home / "skills" / "debug-flaky" / "SKILL.md"
    note = own_home / "agents" / "researcher" / "strategy.md"
    for path, text in (
        (skill, "# Debug flaky tests\n\nRun the quokka bisect."),
        (note, "# Plan\n\nAsk the wombat first."),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(text)

    assert ids(memory, "quokka bisect") == ["skill:debug-flaky"]
    assert ids(memory, "wombat") == []
    with Memory.open(own_home, agent_id="researcher") as its_own:
        assert ids(its_own, "wombat") == ["note:researcher/strategy.md"]
    note.unlink()
    with Memory.open(own_home, agent_id="researcher") as its_own:
        assert ids(its_own, "wombat") == []


def test_two_processes_write_while_four_recall_and_each_sees_its_own_write(own_home: Path) -> None:
    code = """
import sys
from commonplace import Memory
who, writes = sys.argv[1], sys.argv[2] == "write"
with Memory.open() as memory:
    for number in range(25):
        if writes:
            memory.log(repo="busy", event_type="success", lesson=f"writer{who} marker{who}x{number} settles the matter")
            assert any(f"marker{who}x{number}" in hit.text for hit in memory.recall(f"marker{who}x{number}").hits), number
        else:
            memory.recall("settles the matter")
"""
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(who), "write" if who < 2 else "read"], stderr=subprocess.PIPE)
        for who in range(6)
    ]
    errors = [process.communicate(timeout=120)[1].decode() for process in running]

    assert [process.returncode for process in running] == [0] * 6, errors


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_home_that_may_only_be_read_still_answers(own_home: Path, tmp_path: Path) -> None:
    with Memory.open(own_home) as memory:
        logged(memory, "about postgres deadlocks")
    index = Index(own_home)
    (own_home / ".index").write_text("a file where the folder should be")

    index.catch_up()

    assert index.status().records == 1


def test_status_says_what_there_is(commonplace: Any, memory: Memory) -> None:
    logged(memory, "about postgres deadlocks")

    told = json.loads(commonplace("index", "status", "--json").stdout)

    assert told["indexes"][0]["records"] == 1
    assert "off" in told["embedder"]
