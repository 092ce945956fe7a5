"""The working set of a home: laws of decay and size, many processes, damaged files."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from commonplace.graph.resonance import (
    Limits,
    Resonance,
    State,
    WorkingSetFile,
    of_memory,
    read,
    seed,
)
from commonplace.graph.scoring import decayed
from commonplace.memory import Memory
from commonplace.records import to_utc
from conftest import SLOW_LAW

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
LIMITS = Limits(0.98, 0.05, 800, timedelta(hours=24))
SCORES = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 1), max_size=8)


def fresh(folder: Path, limits: Limits = LIMITS) -> Resonance:
    number = len(list(folder.iterdir()))
    return Resonance(WorkingSetFile(folder / str(number) / "resonance.sqlite"), limits)


@given(st.lists(SCORES, max_size=6), st.integers(1, 5))
def test_values_decay_and_the_set_is_never_too_large(
    tmp_path: Path, turns: list[dict[str, float]], size_max: int
) -> None:
    state = fresh(tmp_path, LIMITS._replace(size_max=size_max))
    expected: dict[str, float] = {}
    for number, scores in enumerate(turns, 1):
        assert state.light(scores, (), NOW).tick == number
        found = state.read(NOW)
        assert found.tick == number
        expected = {ident: decayed(value, 0.98, 1) for ident, value in expected.items()} | scores
        assert len(found.lit) <= size_max
        assert all(one.value >= 0.05 for one in found.lit.values())
        for ident, one in found.lit.items():
            assert abs(one.value - expected[ident]) < 1e-5


@SLOW_LAW
@given(SCORES)
def test_decay_empties_an_idle_set(tmp_path: Path, scores: dict[str, float]) -> None:
    state = fresh(tmp_path)
    state.light(scores, (), NOW)
    for _turn in range(150):
        state.light({}, (), NOW)
    found = state.read(NOW)
    assert found.lit == {}
    assert found.tick == 151


def test_another_decay_holds_from_the_next_tick_on(tmp_path: Path) -> None:
    slow = fresh(tmp_path)
    for _turn in range(40):
        slow.light({}, (), NOW)
    slow.light({"a": 0.8, "b": 0.4}, (), NOW)
    (file,) = tmp_path.rglob("resonance.sqlite")
    fast = Resonance(WorkingSetFile(file), LIMITS._replace(decay=0.5))
    assert fast.read(NOW).values() == {"a": 0.8, "b": 0.4}
    fast.light({}, (), NOW)
    assert fast.read(NOW).values() == slow.read(NOW).values() == {"a": 0.4, "b": 0.2}
    slow.light({"b": 0.4}, (), NOW)
    assert slow.read(NOW).values() == {"b": 0.4, "a": 0.392}
    Resonance(WorkingSetFile(file), LIMITS._replace(decay=0.0)).light({"c": 0.3}, (), NOW)
    assert set(slow.read(NOW).lit) == {"c"}


def test_a_node_leaves_after_its_time(tmp_path: Path) -> None:
    state = fresh(tmp_path)
    state.light({"a": 0.9}, ["a"], NOW)
    state.light({"b": 0.9}, [], NOW + timedelta(hours=20))
    assert set(state.read(NOW + timedelta(hours=25)).lit) == {"b"}
    assert state.read(NOW).lit["a"].shown_at == "2026-11-16T12:00:00Z"


def test_seeds_of_clients_become_state_and_wrong_ones_are_ignored(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home", clock=lambda: NOW) as memory:
        memory.log(lesson="x", context="y")
        later = "2030-01-01T00:00:00Z"
        seed(
            memory,
            {
                "a": {"value": 0.5, "uses": 12, "last_used_at": "2026-10-14T18:42:00Z"},
                "b": {"value": float("nan"), "uses": "many", "last_used_at": "yesterday"},
                "c": {"value": 7, "last_used_at": later},
            },
        )
        assert read(memory).values() == {"a": 0.5, "c": 1.0}
        seed(memory, {"a": {"uses": 3}})
        assert of_memory(memory).seeded(["a", "b", "c", "d"]) == {
            "a": (12, "2026-10-14T18:42:00Z"),
            "c": (0, "2026-11-16T12:00:00Z"),
        }
        # It is state of this machine: nothing of it is in the log.
        logs = "".join(path.read_text("utf-8") for path in memory.home.path.rglob("*.jsonl"))
        assert "0.5" not in logs


def test_a_seed_neither_lowers_nor_ages_what_the_agents_of_a_home_share(tmp_path: Path) -> None:
    state = fresh(tmp_path)
    state.light({"a": 0.9, "b": 0.1}, (), NOW)
    before = to_utc(NOW - timedelta(hours=3))
    state.seed(
        {
            "a": {"value": 0.06},
            "b": {"value": 0.4, "last_activated_at": before},
            "c": {"value": 0.3, "last_activated_at": before},
        },
        NOW,
    )
    found = state.read(NOW).lit
    assert {ident: one.value for ident, one in found.items()} == {"a": 0.9, "b": 0.4, "c": 0.3}
    assert [found[ident].lit_at for ident in "abc"] == [to_utc(NOW), to_utc(NOW), before]


def test_a_seed_that_was_lit_too_long_ago_is_not_lit(tmp_path: Path) -> None:
    state = fresh(tmp_path)
    state.light({"old": 0.9, "hot": 0.2}, (), NOW - timedelta(hours=25))
    state.seed(
        {
            "old": {"value": 0.3},
            "hot": {"value": 0.9, "last_activated_at": "2020-01-01T00:00:00Z"},
            "new": {"value": 0.9, "last_activated_at": "2020-01-01T00:00:00Z"},
        },
        NOW,
    )
    assert state.read(NOW).values() == {"old": 0.3}


def test_a_damaged_file_begins_again(tmp_path: Path) -> None:
    state = fresh(tmp_path)
    state.light({"a": 0.9}, (), NOW)
    (file,) = tmp_path.rglob("resonance.sqlite")
    for path in tmp_path.rglob("resonance.sqlite-*"):
        path.unlink()
    file.write_bytes(b"no database" * 100)
    assert state.read(NOW) == State(rows=[])
    assert state.light({"b": 0.5}, (), NOW).tick == 1
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE lit")
        connection.execute("CREATE TABLE lit (other TEXT)")
    connection.close()
    assert state.light({"c": 0.5}, (), NOW).problem


def test_processes_share_one_set(tmp_path: Path) -> None:
    path = tmp_path / "state" / "resonance.sqlite"
    program = (
        "import sys\n"
        "from datetime import UTC, datetime, timedelta\n"
        "from pathlib import Path\n"
        "from commonplace.graph.resonance import Limits, Resonance, WorkingSetFile\n"
        "file = WorkingSetFile(Path(sys.argv[1]))\n"
        "state = Resonance(file, Limits(0.98, 0.05, 800, timedelta(hours=24)))\n"
        "now = datetime(2026, 11, 16, 12, tzinfo=UTC)\n"
        "for number in range(20):\n"
        "    assert not state.light({f'{sys.argv[2]}{number}': 0.9}, (), now).problem\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", program, str(path), name]) for name in "abc"
    ]
    assert [child.wait() for child in children] == [0, 0, 0]
    state = Resonance(WorkingSetFile(path), LIMITS).read(NOW)
    assert state.tick == 60
    assert len(state.lit) == 60


def test_an_erased_node_leaves_the_file(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home", settings={"embedder.kind": "none"}) as memory:
        record = memory.log(lesson="use the tall ladder", context="painting")
        seed(memory, {record.id: {"value": 0.9}, "other": {"value": 0.9}})
        assert memory.erase(record.id).left_in == []
        assert record.id not in read(memory).lit


def test_a_working_set_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home", settings={"embedder.kind": "none"}) as memory:
        memory.log(lesson="x", context="y")
        seed(memory, {"a": {"value": 0.9}})
        with closing(sqlite3.connect(memory.home.resonance_file, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            node = {"id": "c.two", "type": "concept", "label": "two", "resonance": {"value": 0.5}}
            done = memory.upsert_nodes([node])
    assert done.created == ["c.two"]
    assert done.seeded == []
    assert "the working set cannot be used" in done.notes[0]
