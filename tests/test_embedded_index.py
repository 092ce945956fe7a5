"""The index: catching up equals rebuilding, any damage is mended by building again, any number of processes share it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.files import plain
from commonplace.index import removal
from commonplace.index.embedded import catch_up as catch_up_module
from commonplace.index.embedded import settle
from commonplace.index.embedded import text as text_module
from commonplace.index.embedded.index import EmbeddedIndex
from commonplace.index.embedded.parts import TABLES
from commonplace.index.ports import Filter
from commonplace.maintenance import runner
from commonplace.memory import Memory
from commonplace.recall.search import Search
from commonplace.where.home import Home
from conftest import SLOW_LAW


@pytest.fixture(autouse=True)
def words_only(own_home: Path) -> None:
    own_home.mkdir()
    (own_home / "config.toml").write_text('[embedder]\nkind = "none"\n')
    (own_home / "config.toml").chmod(0o600)


def logged(memory: Memory, lesson: str, **more: Any) -> str:
    return memory.log(**{"repo": "app", "event_type": "error", "lesson": lesson, **more}).id


def committed(memory: Memory) -> None:
    memory.engine().catch_up()
    for index in memory.engine().indexes:
        assert isinstance(index, EmbeddedIndex)
        index.commit()


def ids(memory: Memory, query: str, **more: Any) -> list[str]:
    return [hit.id for hit in memory.recall(query, **more).hits]


def dump(index: EmbeddedIndex) -> set[tuple[Any, ...]]:
    """Everything the index says that does not depend on the order in which it was told."""
    with index.reading() as reader:
        rows = reader.connection.execute(
            "SELECT id, repo, kind, timestamp, of, outcome, archived, raw, standing, until,"
            " stated_worked, stated_tried, worked, failed, wrong, stale"
            " FROM line JOIN body USING (key)"
        ).fetchall()
        edges = reader.connection.execute('SELECT of, rel, "to", w, by FROM edge').fetchall()
        wanted = {"alpha": 1.0, "beta": 1.0, "gamma": 1.0}
        found = reader.match(wanted, reader.statistics(wanted), Filter(), 500)
        matched = {card.id for card in reader.cards([key for key, _score in found]).values()}
    return (
        {("line", *row) for row in rows}
        | {("edge", *edge) for edge in edges}
        | {("match", one) for one in matched}
    )


steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["log", "log", "log", "feedback", "forget", "rotate", "erase", "look", "link"]
        ),
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
@SLOW_LAW
def test_catching_up_equals_rebuilding_for_any_history(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    history: list[tuple[str, str, int]],
) -> None:
    monkeypatch.setattr(text_module, "FRESH_MAX", 2)
    home = tmp_path_factory.mktemp("any") / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        '[embedder]\nkind = "none"\n[rotation]\nlines_max = 4\nmove = 2\n'
    )
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
                memory.engine().catch_up()
            elif step == "rotate":
                runner.run(memory, ["rotation"])
            elif known:
                one = known[which % len(known)]
                act(memory, step, one, known[0])
        memory.engine().catch_up()
        (caught_up,) = memory.engine().indexes
        assert isinstance(caught_up, EmbeddedIndex)
        told = dump(caught_up)
        fresh = EmbeddedIndex(Home(home), in_memory=True)
        fresh.catch_up()
        assert told == dump(fresh)


versions = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(["app", "app", "lib"]), st.sampled_from("aab"), st.integers(1, 6)
        ),
        max_size=4,
    ),
    max_size=8,
)


@given(versions)
def test_a_record_of_many_versions_is_settled_as_if_it_were_read_whole(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    turns: list[list[tuple[str, str, int]]],
) -> None:
    monkeypatch.setattr(settle, "VERSIONS_READ_MAX", 2)
    home = tmp_path_factory.mktemp("many") / "home"
    (home / "log").mkdir(parents=True)
    index = EmbeddedIndex(Home(home), in_memory=True)
    for turn in turns:
        for repo, ident, day in turn:  # Times go back and forth; the same line may come again.
            with (home / "log" / f"{repo}.jsonl").open("a", newline="") as log:
                log.write(line(ident, "alpha rule", day, repo=repo))
        index.catch_up()
    monkeypatch.setattr(settle, "VERSIONS_READ_MAX", 1000)
    fresh = EmbeddedIndex(Home(home), in_memory=True)
    fresh.catch_up()
    index.catch_up()
    assert dump(index) == dump(fresh)


def test_what_another_process_wrote_is_found_by_the_next_question(
    memory: Memory, own_home: Path
) -> None:
    logged(memory, "something else entirely")
    ids(memory, "warm up")
    code = "from commonplace import Memory\nwith Memory.open() as m: m.log(repo='app', event_type='error', lesson='the quokka daemon')"
    subprocess.run([sys.executable, "-c", code], check=True)

    assert len(ids(memory, "quokka")) == 1


def test_the_overlay_and_the_committed_index_answer_alike(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        logged(
            memory,
            f"lesson {number} about {'nginx proxy' if number % 3 else 'redis cache'} number{number}",
        )
    before = ids(memory, "redis cache number9", limit=10)

    committed(memory)

    assert ids(memory, "redis cache number9", limit=10) == before
    assert memory.engine().status()[0].waiting == 0


def test_deleting_the_index_changes_no_answer(memory: Memory, own_home: Path) -> None:
    for number in range(20):
        logged(memory, f"lesson {number} about postgres deadlocks")
    before = memory.recall("postgres deadlock").text

    # Moved, not deleted: a thread of Tantivy may still write a lock file into it.
    (own_home / ".index").rename(own_home / "old-index")

    assert memory.recall("postgres deadlock").text == before


@pytest.mark.parametrize("how", ["garbage", "empty", "truncated"])
def test_a_damaged_index_is_built_again(memory: Memory, own_home: Path, how: str) -> None:
    for number in range(20):
        logged(memory, f"lesson {number} about postgres deadlocks")
    memory.recall("postgres")
    committed(memory)
    before = memory.recall("postgres deadlock").text
    memory.close()
    for path in (own_home / ".index").rglob("*"):
        if path.is_file():
            whole = path.read_bytes()
            path.write_bytes(
                {
                    "garbage": b"\x00garbage" * 50,
                    "empty": b"",
                    "truncated": whole[: len(whole) // 2],
                }[how]
            )

    with Memory.open(own_home) as again:
        assert again.recall("postgres deadlock").text == before


def test_an_index_replaced_while_it_is_open_is_noticed(memory: Memory, own_home: Path) -> None:
    logged(memory, "about postgres deadlocks")
    memory.recall("postgres")
    subprocess.run(
        [sys.executable, "-m", "commonplace", "index", "rebuild", "--no-vectors"],
        check=True,
        capture_output=True,
    )

    logged(memory, "about redis caches")

    assert len(ids(memory, "redis")) == 1


@pytest.mark.parametrize("what", ["file", "fifo"])
def test_something_else_in_the_place_of_an_open_index_is_removed(
    memory: Memory, own_home: Path, tmp_path: Path, what: str
) -> None:
    logged(memory, "about postgres deadlocks")
    memory.recall("postgres")
    folder = own_home / ".index"
    folder.rename(tmp_path / "moved away")
    if what == "file":
        folder.write_text("not an index")
    else:
        os.mkfifo(folder)

    logged(memory, "about redis caches")

    assert len(ids(memory, "redis")) == len(ids(memory, "postgres")) == 1
    assert (folder / TABLES).is_file()


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


@pytest.mark.parametrize("how", [shutil.copytree, shutil.move])
def test_a_home_under_another_path_is_taken_in_once(
    memory: Memory, own_home: Path, tmp_path: Path, how: Any
) -> None:
    ident = logged(memory, "alpha needs beta")
    note = own_home / "agents" / "default" / "plan.md"
    note.parent.mkdir(parents=True)
    note.write_text("gamma first")
    ids(memory, "alpha")
    memory.close()

    how(own_home, tmp_path / "elsewhere")

    with Memory.open(tmp_path / "elsewhere") as moved:
        assert ids(moved, "alpha") == [ident]
        assert ids(moved, "gamma") == ["note:default/plan.md"]
        (index,) = moved.engine().indexes
        assert isinstance(index, EmbeddedIndex)
        parts = index._parts()
        before = parts.tables.changes()
        moved.engine().catch_up()
        assert parts.tables.changes() == before
        assert all(
            Path(path).is_relative_to(tmp_path / "elsewhere")
            for path in parts.catch_up.read_positions()
        )


def test_questions_are_answered_while_another_process_replaces_the_index(
    memory: Memory, own_home: Path
) -> None:
    ident = logged(memory, "alpha needs beta")
    memory.engine().run_in_background()
    stop = threading.Event()

    def ask() -> list[list[str]]:
        answers = [ids(memory, "alpha")]
        while not stop.is_set():
            logged(memory, f"gamma {len(answers)} {threading.get_ident()}")
            answers.append(ids(memory, "alpha needs beta"))
        return answers

    with ThreadPoolExecutor(4) as threads:
        futures = [threads.submit(ask) for _ in range(4)]
        other = EmbeddedIndex(memory.home)
        for _ in range(8):
            other.rebuild()
        other.close()
        stop.set()
        found = [answer for future in futures for answer in future.result()]

    assert len(found) > 4
    assert all(ident in answer for answer in found)


def test_notes_and_skills_are_found_and_a_note_only_by_its_agent(
    memory: Memory, own_home: Path
) -> None:
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


@pytest.mark.slow
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
        subprocess.Popen(
            [sys.executable, "-c", code, str(who), "write" if who < 2 else "read"],
            stderr=subprocess.PIPE,
        )
        for who in range(6)
    ]
    errors = [process.communicate(timeout=120)[1].decode() for process in running]

    assert [process.returncode for process in running] == [0] * 6, errors


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_home_that_may_only_be_read_still_answers(own_home: Path, tmp_path: Path) -> None:
    with Memory.open(own_home) as memory:
        logged(memory, "about postgres deadlocks")
    index = EmbeddedIndex(Home(own_home))
    (own_home / ".index").write_text("a file where the folder should be")

    index.catch_up()

    assert index.status().records == 1


def test_status_says_what_there_is(commonplace: Any, memory: Memory) -> None:
    logged(memory, "about postgres deadlocks")

    told = json.loads(commonplace("index", "status", "--json").stdout)

    assert told["indexes"][0]["records"] == 1
    assert "off" in told["embedder"]


# --- What was once indexed and is no more ---------------------------------------------------------------------------


def line(ident: str, lesson: str, day: int = 1, **more: Any) -> str:
    fields = {
        "id": ident, "kind": "lesson", "timestamp": f"2026-01-{day:02}T00:00:00Z", "agent_id": "a", "repo": "app",
        "event_type": "error", "lesson": lesson,
    }  # fmt: skip
    return json.dumps(fields | more) + "\n"


def write_log(home: Path, *lines: str, repo: str = "app") -> Path:
    path = home / "log" / f"{repo}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines))
    return path


def matched(
    index: EmbeddedIndex, *wanted: str, repos: list[str] | None = None, limit: int = 10
) -> list[str]:
    """The ids the text engine alone proposes, best first."""
    weights = dict.fromkeys(wanted, 1.0)
    filter_ = Filter(repos=frozenset(repos) if repos is not None else None)
    with index.reading() as reader:
        found = reader.match(weights, reader.statistics(weights), filter_, limit)
        cards = reader.cards([key for key, _score in found])
    return [cards[key].id if key in cards else f"ghost {key}" for key, _score in found]


def statistics(index: EmbeddedIndex, *wanted: str) -> Any:
    with index.reading() as reader:
        return reader.statistics(wanted)


def column(index: EmbeddedIndex, query: str) -> list[tuple[Any, ...]]:
    with index.reading() as reader:
        return reader.connection.execute(query).fetchall()


def caught_up(index: EmbeddedIndex, *, committed: bool = True) -> EmbeddedIndex:
    index.catch_up()
    if committed:
        index.commit()
    return index


@pytest.fixture
def index(own_home: Path) -> Iterator[EmbeddedIndex]:
    made = EmbeddedIndex(Home(own_home))
    yield made
    made.close()


def test_what_was_replaced_leaves_the_text_index(index: EmbeddedIndex, own_home: Path) -> None:
    for round_ in range(4):
        write_log(
            own_home,
            *(line(f"l{n}", f"deploy attempt {round_} {n}") for n in range(10)),
            line("gone", "deploy"),
        )
        caught_up(index)
    write_log(own_home, *(line(f"l{n}", f"deploy attempt last {n}") for n in range(10)))
    caught_up(index)
    fresh = caught_up(EmbeddedIndex(Home(own_home), in_memory=True))

    assert sorted(matched(index, "deploy", limit=10)) == [f"l{n}" for n in range(10)]
    told, anew = statistics(index, "deploy"), statistics(fresh, "deploy")
    assert (told.documents, told.average_terms) == (anew.documents, anew.average_terms)


def test_what_is_not_deleted_yet_takes_no_place_in_the_answer(
    index: EmbeddedIndex, own_home: Path
) -> None:
    write_log(
        own_home,
        *(line(f"old{n}", "deploy deploy deploy") for n in range(10)),
        line("kept", "deploy it"),
    )
    caught_up(index)
    write_log(own_home, line("kept", "deploy it"))
    caught_up(index, committed=False)

    assert matched(index, "deploy", limit=1) == ["kept"]
    assert statistics(index, "deploy").documents == 1


@pytest.mark.parametrize("committed", [True, False])
def test_a_line_that_is_current_again_is_found_again(
    index: EmbeddedIndex, own_home: Path, *, committed: bool
) -> None:
    write_log(own_home, line("one", "about quokkas"))
    caught_up(index)
    write_log(own_home, line("one", "about quokkas"), line("one", "about wombats"))
    caught_up(index, committed=committed)
    assert matched(index, "quokka") == []

    write_log(own_home, line("one", "about quokkas"))
    caught_up(index, committed=committed)

    assert matched(index, "quokka") == ["one"]
    assert matched(index, "wombat") == []


def test_a_record_that_comes_back_to_what_it_said_is_found_by_it(
    index: EmbeddedIndex, own_home: Path
) -> None:
    path = write_log(own_home, line("one", "about quokkas"), line("one", "about wombats"))
    caught_up(index)
    with path.open("a") as stream:
        stream.write(line("one", "about quokkas"))
    caught_up(index)

    assert matched(index, "quokka") == ["one"]
    assert matched(index, "wombat") == []


@pytest.mark.parametrize("removed", ["app", "other"])
def test_an_id_in_two_logs_outlives_either(
    index: EmbeddedIndex, own_home: Path, removed: str
) -> None:
    write_log(own_home, line("one", "about quokkas", day=1))
    write_log(own_home, line("one", "about quokkas there", day=2), repo="other")
    caught_up(index)

    (own_home / "log" / f"{removed}.jsonl").unlink()
    caught_up(index)

    assert matched(index, "quokka") == ["one"]


def test_a_line_that_stands_twice_is_one_document_with_one_key(
    index: EmbeddedIndex, own_home: Path
) -> None:
    twice = [
        line("one", "about quokkas", links=[{"to": "two", "rel": "related_to"}]),
        line("two", "about wombats"),
    ]
    path = write_log(own_home, *twice, *twice)
    caught_up(index)
    keys = column(index, "SELECT key FROM line ORDER BY key")
    path.write_text("".join([*twice, *twice, *twice]))
    caught_up(index)

    assert column(index, "SELECT key FROM line ORDER BY key") == keys
    assert column(index, "SELECT key FROM unembedded ORDER BY key") == keys
    assert len(column(index, "SELECT key FROM edge")) == 1


def test_a_commit_that_was_never_noted_is_done_again(index: EmbeddedIndex, own_home: Path) -> None:
    write_log(own_home, line("one", "about quokkas"))
    index.catch_up()
    before = column(index, "SELECT name, value FROM state")
    caught_up(index)
    tables = index._parts().tables
    with tables.writing():  # As if the process had been killed in between.
        tables.connection.execute("DELETE FROM state")
        tables.connection.execute("DELETE FROM term_set")
        for name, value in before:
            tables.set_state(str(name), value)
    index.close()
    caught_up(index)

    assert matched(index, "quokka") == ["one"]
    assert statistics(index, "quokka").documents == 1


# --- What may happen to the files of an index -----------------------------------------------------------------------


@pytest.mark.parametrize("is_open", [True, False])
def test_a_text_folder_that_is_gone_is_made_again(
    index: EmbeddedIndex, own_home: Path, *, is_open: bool
) -> None:
    write_log(own_home, *(line(f"l{n}", "about quokkas") for n in range(10)))
    caught_up(index)
    if not is_open:
        index.close()
    for folder in (own_home / ".index").glob("text-*"):
        folder.rename(own_home / folder.name)  # Not deleted: see above.

    index.catch_up()

    assert len(matched(index, "quokka")) == 10
    assert index.folder is not None


def test_shared_memory_that_was_cut_off_ends_no_process(own_home: Path) -> None:
    write_log(own_home, line("one", "about quokkas"))
    code = f"""
import os
from pathlib import Path
from commonplace.index.embedded.index import EmbeddedIndex
from commonplace.where.home import Home
index = EmbeddedIndex(Home(Path({str(own_home)!r})))
index.catch_up()
os.truncate({str(own_home / ".index" / TABLES)!r} + "-shm", 0)
index.catch_up()
print(index.status().records)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def test_a_search_in_overwritten_segments_is_repaired(index: EmbeddedIndex, own_home: Path) -> None:
    write_log(own_home, *(line(f"l{n}", f"about quokkas {n}") for n in range(50)))
    caught_up(index)
    for path in (own_home / ".index").glob("text-*/*.*"):
        if path.suffix in (".term", ".idx", ".fast", ".fieldnorm"):
            path.write_bytes(b"\xff" * path.stat().st_size)
    index.close()

    index.catch_up()
    try:
        found = matched(index, "quokka", limit=50)
    except BaseException as error:  # noqa: BLE001 (a panic of the engine is none of Exception)
        assert index.repair(error)  # noqa: PT017
        found = matched(index, "quokka", limit=50)

    assert len(found) == 50


def test_an_error_that_is_not_an_engines_is_not_repaired(
    index: EmbeddedIndex, own_home: Path
) -> None:
    index.catch_up()
    made = (own_home / ".index" / TABLES).stat().st_ino

    assert not index.repair(KeyError("ours"))
    assert (own_home / ".index" / TABLES).stat().st_ino == made


def test_a_search_that_finds_the_tables_broken_is_repaired(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ident = logged(memory, "about quokkas")
    tries = []

    def run(search: Search) -> Any:
        tries.append(search)
        if len(tries) == 1:
            raise sqlite3.DatabaseError("database disk image is malformed")
        return really_run(search)

    really_run = Search.run
    monkeypatch.setattr(Search, "run", run)

    assert ids(memory, "quokka", all_repos=True) == [ident]
    assert len(tries) == 2


@pytest.mark.slow
def test_recalls_beside_rebuilding_and_erasing_never_fail(own_home: Path) -> None:
    write_log(own_home, *(line(f"l{n}", f"about quokkas {n}") for n in range(40)))
    code = """
import sys
from pathlib import Path
from commonplace.index.embedded.index import EmbeddedIndex
from commonplace.index import removal
from commonplace.where.home import Home
home, what = Path(sys.argv[1]), sys.argv[2]
index = EmbeddedIndex(Home(home))
for number in range(30):
    if what == "rebuild":
        index.rebuild()
    elif what == "remove":
        removal.remove(Home(home))
    index.catch_up()
    assert index.status().records == 40
    assert index.folder is not None
"""
    roles = ["read", "read", "rebuild", "remove"]
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(own_home), role], stderr=subprocess.PIPE)
        for role in roles
    ]
    errors = [process.communicate(timeout=120)[1].decode() for process in running]

    assert [process.returncode for process in running] == [0] * 4, errors
    assert list(own_home.glob(".index.*")) == []


def test_what_a_killed_removal_left_goes_with_the_next(own_home: Path) -> None:
    left = own_home / ".index.0a1b2c3d.rewriting"
    left.mkdir()
    (left / TABLES).write_text("a memory")

    removal.remove(Home(own_home))

    assert not left.exists()


def test_an_index_in_memory_moves_to_the_home_once_there_is_one(tmp_path: Path) -> None:
    index = EmbeddedIndex(Home(tmp_path / "new"))
    index.catch_up()
    assert index.folder is None

    write_log(tmp_path / "new", line("one", "about quokkas"))
    index.catch_up()

    assert index.folder == tmp_path / "new" / ".index"
    assert matched(index, "quokka") == ["one"]
    index.close()


@pytest.mark.skipif(os.name != "posix", reason="limits are POSIX's")
def test_a_full_disk_gives_an_index_in_memory(own_home: Path) -> None:
    write_log(own_home, *(line(f"l{n}", f"about quokkas {n} {'word ' * 200}") for n in range(400)))
    code = f"""
import resource
from pathlib import Path
from commonplace.index.embedded.index import EmbeddedIndex
from commonplace.where.home import Home
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
index = EmbeddedIndex(Home(Path({str(own_home)!r})))
index.catch_up()
print(index.status().records, index.folder)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)

    assert done.stdout == "400 None\n", done.stderr


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="modes are POSIX's, and nothing to root"
)
def test_a_home_that_became_read_only_and_an_unreadable_log_still_answer(
    index: EmbeddedIndex, own_home: Path
) -> None:
    write_log(own_home, line("one", "about quokkas"))
    secret = write_log(own_home, line("two", "about quokkas"), repo="secret")
    secret.chmod(0)
    index.catch_up()
    assert matched(index, "quokka") == ["one"]
    index.close()
    for folder in (own_home / ".index", own_home / ".state", own_home):
        folder.chmod(0o500)

    index.catch_up()
    found = matched(index, "quokka")

    for folder in (own_home, own_home / ".state", own_home / ".index"):
        folder.chmod(0o700)
    assert (found, index.folder) == (["one"], None)
    secret.chmod(0o600)
    index.catch_up()
    assert matched(index, "quokka") == ["one", "two"]
    assert index.folder is not None


# --- What is read, and how far --------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["log", "log/archive"])
def test_a_last_line_without_a_newline_is_found_once(
    index: EmbeddedIndex, own_home: Path, folder: str
) -> None:
    path = write_log(own_home, line("zero", "about quokkas"))
    path = own_home / folder / "app.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text(line("zero", "about quokkas") + line("one", "about wombats").rstrip("\n"))
    assert matched(caught_up(index), "wombat") == ["one"]
    key = column(index, "SELECT key FROM line WHERE id = 'one'")

    with path.open("a") as stream:
        stream.write("\n" + line("two", "about wombats too"))
    caught_up(index)

    assert sorted(matched(index, "wombat")) == ["one", "two"]
    assert column(index, "SELECT key FROM line WHERE id = 'one'") == key


def test_a_last_line_that_goes_on_is_no_record_any_more(
    index: EmbeddedIndex, own_home: Path
) -> None:
    path = write_log(
        own_home, line("zero", "about quokkas"), line("one", "about wombats").rstrip("\n")
    )
    caught_up(index)

    with path.open("a") as stream:
        stream.write(" and more\n")
    caught_up(index)

    assert matched(index, "wombat") == []
    assert matched(index, "quokka") == ["zero"]


@pytest.mark.parametrize("folder", ["log", "log/archive"])
def test_a_torn_line_is_waited_for_without_writing(
    index: EmbeddedIndex, own_home: Path, folder: str
) -> None:
    whole = line("one", "about wombats")
    write_log(own_home, line("zero", "about quokkas"))
    path = own_home / folder / "app.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text(line("zero", "about quokkas") + whole[:40])
    caught_up(index)
    before = index._parts().tables.connection.total_changes

    index.catch_up()
    assert index._parts().tables.connection.total_changes == before

    with path.open("a") as stream:
        stream.write(whole[40:])
    assert matched(caught_up(index), "wombat") == ["one"]


@pytest.mark.parametrize(
    "content", [b"# Plan\n\nquokka \xff\xfe", b"# quokka\n" + "é".encode() * (1 << 19)]
)
def test_a_note_that_is_not_all_text_is_found_and_read_once(
    index: EmbeddedIndex, own_home: Path, content: bytes
) -> None:
    note = own_home / "agents" / "researcher" / "plan.md"
    note.parent.mkdir(parents=True)
    note.write_bytes(content)
    caught_up(index)
    before = index._parts().tables.connection.total_changes

    index.catch_up()

    assert matched(index, "quokka") == ["note:researcher/plan.md"]
    assert index._parts().tables.connection.total_changes == before


@pytest.mark.parametrize("committed", [True, False])
def test_what_belongs_to_no_repository_is_found_from_each(
    index: EmbeddedIndex, own_home: Path, *, committed: bool
) -> None:
    skill = own_home / "skills" / "debug" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("# Debug\n\nRun the quokka bisect.")
    write_log(own_home, line("one", "about quokkas"))
    write_log(own_home, line("two", "about quokkas", repo="other"), repo="other")
    caught_up(index, committed=committed)

    assert sorted(matched(index, "quokka", repos=["app"])) == ["one", "skill:debug"]


@pytest.mark.parametrize("committed", [True, False])
def test_of_very_many_terms_the_most_telling_are_searched(
    index: EmbeddedIndex, own_home: Path, *, committed: bool
) -> None:
    common = [f"common{n}" for n in range(100)]
    write_log(
        own_home, *(line(f"l{n}", " ".join(common)) for n in range(9)), line("rare", "quokka")
    )
    caught_up(index, committed=committed)

    assert "rare" in matched(index, *common, "quokka")


def test_a_large_log_is_taken_in_batches_and_in_its_order(
    index: EmbeddedIndex, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up_module, "BATCH_LINES", 7)
    (own_home / "log" / "archive").mkdir(parents=True)
    archive = own_home / "log" / "archive" / "app.jsonl"
    archive.write_text("".join(line(f"a{n}", "about quokkas") for n in range(20)))
    write_log(own_home, *(line(f"l{n}", "about quokkas") for n in range(21)))
    write_log(own_home, *(line(f"o{n}", "about quokkas") for n in range(5)), repo="other")

    index.catch_up()
    fresh = EmbeddedIndex(Home(own_home), in_memory=True)
    fresh.catch_up()

    assert dump(index) == dump(fresh)
    assert column(index, "SELECT id FROM line WHERE log = 'app' ORDER BY position") == [
        *((f"a{n}",) for n in range(20)),
        *((f"l{n}",) for n in range(21)),
    ]


def test_a_line_that_is_current_again_states_its_links_again(
    index: EmbeddedIndex, own_home: Path
) -> None:
    linked = line("one", "about quokkas", links=[{"to": "two", "rel": "uses"}])
    write_log(own_home, linked)
    caught_up(index)
    write_log(own_home, linked, line("one", "about wombats"))
    caught_up(index)
    write_log(own_home, linked)
    caught_up(index)

    with index.reading() as reader:
        assert [edge[:3] for edge in reader.edges(["one"])] == [("one", "uses", "two")]


@pytest.mark.parametrize("changed", ["last", "first"])
def test_a_log_that_was_edited_and_grew_in_place_is_read_again(
    index: EmbeddedIndex, own_home: Path, changed: str
) -> None:
    """The same file, longer than before: only its content tells that more than its end is new."""
    rows = {"first": line("one", "about quokkas"), "last": line("two", "about quokkas")}
    path = write_log(own_home, *rows.values())
    caught_up(index)
    rows[changed] = rows[changed].replace("quokkas", "wombats")
    whole = "".join([*rows.values(), line("three", "about numbats")])
    if changed == "first":
        whole += line("two", "about quokkas again")  # Its tail has moved as well.
        whole = whole.replace("wombats", "wombats, many of them", 1)
    with path.open("r+") as stream:
        stream.write(whole)
    caught_up(index)

    assert matched(index, "wombat") == ["two" if changed == "last" else "one"]
    assert matched(index, "numbat") == ["three"]


def test_an_index_that_another_process_made_again_is_not_removed(
    index: EmbeddedIndex, own_home: Path
) -> None:
    """Two processes find it broken. The second one finds what the first one has made."""
    write_log(own_home, line("one", "about quokkas"))
    index.catch_up()
    removal.remove(Home(own_home))
    other = EmbeddedIndex(Home(own_home))
    other.catch_up()
    made = (own_home / ".index" / TABLES).stat().st_ino

    assert index.repair(sqlite3.DatabaseError("database disk image is malformed"))

    assert (own_home / ".index" / TABLES).stat().st_ino == made
    assert not other.is_replaced()
    assert matched(index, "quokka") == ["one"]
    other.close()


def test_tables_of_any_size_are_opened_again(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged(memory, "the kettle is descaled with vinegar")
    committed(memory)
    (index,) = memory.engine().indexes
    with index.reading() as reader:
        build = reader.build()
    index.close()
    # The limit is for files that are read whole.
    monkeypatch.setattr(plain, "FILE_BYTES_MAX", 10_000)

    index.catch_up()

    with index.reading() as reader:
        assert reader.build() == build
