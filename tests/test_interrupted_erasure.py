"""An erasure that is killed anywhere is finished by the next run, and leaves no byte of the text."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import erasure
from commonplace.cli import main
from commonplace.erasure import traces
from commonplace.erasure.sections import MARKS
from commonplace.erasure.traces import find, traces_of
from commonplace.errors import FindingsLeft, HomeUnusable, RecordNotFound
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.maintenance import runner
from commonplace.memory import Memory
from commonplace.where.home import Home
from conftest import run_until_killed
from histories import append, feedback, lesson, pattern

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

TEXT = "the xylophonist's Käfer opens the vault at “noon”, and nobody else may know of it"
# A session cuts long texts.
CUT = TEXT[:60]
OLD = "the vicuña opened it at seven in the morning until then"
KEPT = [f"kept-{number}" for number in range(3)]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the child is a fork")


def open_memory(home: Home) -> Memory:
    return Memory.open(home.path, settings={"embedder.kind": "none"}, background=False)


def put(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


@pytest.fixture(scope="module")
def full_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with a copy of the text in every place where there may be one."""
    home = Home(tmp_path_factory.mktemp("full") / "home")
    append(home, "app", *(lesson(ident, f"{ident} is another lesson") for ident in KEPT))
    append(home, "app", lesson("gone-record-1", OLD), lesson("gone-record-1", TEXT))
    append(home, "app", feedback("f", "gone-record-1"))
    append(home, "other", pattern("rests", pattern="x", source_episodes=["gone-record-1"]))
    append(home, "other", lesson("points", links=[{"to": "gone-record-1", "rel": "uses"}]))
    put(home.archive("app"), home.log("app").read_text().splitlines()[3] + "\n")
    put(home.damaged_folder / "app.jsonl", json.dumps({"lesson": TEXT})[:-1] + "\n")
    put(home.spool_folder / "01-1-a.json", json.dumps({"prompt": f"note: {TEXT}"}))
    put(home.sessions_folder / "s.json", json.dumps({"goal": CUT}, ensure_ascii=False))
    put(home.inbox_folder / "cand-a.json", json.dumps({"error": TEXT}))
    line = f"- [gone-record-1] {CUT}\n- [kept-1] stays\n<!-- goal: {TEXT} -->\n"
    start, end = MARKS.start, MARKS.end(["x"])
    put(home.continuity_file, f"# Mine\n{start}\n{line}{end}\n")
    put(home.dispatches_file, json.dumps({"prompt": TEXT}) + '\n{"prompt": "another"}\n')
    with open_memory(home) as memory:
        assert memory.recall("who opens the vault").hits
    put(home.path / ".index.0a.rewriting" / "store", TEXT)
    put(home.log_folder / ".app.jsonl.0a0a0a0a.99999999.rewriting", TEXT)
    put(home.sessions_folder / ".s.json.0a0a0a0a.99999999.rewriting", TEXT)
    return home


@pytest.fixture
def home(full_home: Home, tmp_path: Path) -> Home:
    return copy(full_home, tmp_path / "home")


def copy(home: Home, to: Path) -> Home:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(home.path, to)
    return Home(to)


def erase_until_killed(home: Home, change: int) -> bool:
    """Erase in a child that dies before its n-th change to the disk; return whether it died."""
    return run_until_killed(
        change, lambda: open_memory(home), lambda memory: memory.erase("gone-record")
    )


def forget_again(home: Home) -> None:
    with open_memory(home) as memory:
        try:
            assert memory.erase("gone-record").id == "gone-record-1"
        except RecordNotFound:
            # Killed after its last change but one: there was nothing left to say.
            assert not erasure.pending([home])


def doctor(home: Home) -> None:
    with open_memory(home) as memory:
        memory.mend()
        assert memory.check() == []


def maintain(home: Home) -> None:
    with open_memory(home) as memory:
        steps = runner.run(memory).steps
    assert [name for name, done in steps.items() if "error" in done] == []


WAYS: dict[str, Callable[[Home], None]] = {
    "forget": forget_again,
    "doctor": doctor,
    "maintain": maintain,
}


def everything(home: Home) -> dict[str, bytes]:
    return {
        str(path.relative_to(home.path)): path.read_bytes()
        for path in home.path.rglob("*")
        if path.is_file()
    }


def check_all_gone(home: Home) -> None:
    forms = [
        form.encode()
        for text in (CUT, OLD, "gone-record-1")
        for form in {text, json.dumps(text)[1:-1]}
    ]
    assert [name for name, raw in everything(home).items() if any(f in raw for f in forms)] == []
    assert erasure.pending([home]) == []
    with open_memory(home) as memory:
        assert sorted(record.id for record in memory.records()) == [*KEPT, "points"]
    assert home.continuity_file.read_text() == (
        f"# Mine\n{MARKS.start}\n- [kept-1] stays\n{MARKS.end(['x'])}\n"
    )
    assert home.dispatches_file.read_text() == '{"prompt": "another"}\n'


@needs_fork
@pytest.mark.parametrize("way", WAYS)
def test_whenever_it_is_killed_each_way_finishes_it(
    full_home: Home, tmp_path: Path, way: str
) -> None:
    change = 1
    while erase_until_killed(home := copy(full_home, tmp_path / "home"), change):
        is_untouched = everything(full_home).items() <= everything(home).items()
        if way == "forget" or erasure.pending([home]):
            WAYS[way](home)
        # Without an intent, it had not begun to remove anything, or had removed everything.
        if way == "forget" or not is_untouched:
            check_all_gone(home)
        change += 1

    check_all_gone(home)
    assert change > 25


def test_the_intent_is_for_its_owner_and_has_nothing_of_the_text(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure, "_Removal", interrupt)
    with open_memory(home) as memory, pytest.raises(KeyboardInterrupt):
        memory.erase("gone-record-1")

    (intent,) = home.erasures_folder.iterdir()
    assert os.name != "posix" or intent.stat().st_mode & 0o777 == 0o600
    words = TEXT.split() + OLD.split()
    assert [word for word in words if len(word) > 3 and word in intent.read_text()] == []


def interrupt(*_given: object) -> None:
    raise KeyboardInterrupt


def interrupt_erasure(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin to erase a record, and stop after the intent is written."""
    with monkeypatch.context() as patch:
        patch.setattr(erasure, "_Removal", interrupt)
        with pytest.raises(KeyboardInterrupt):
            erasure.erase([home], "gone-record-1")


def test_what_cannot_be_removed_is_named_and_the_intent_stays(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unlink = Path.unlink
    session = home.sessions_folder / "s.json"

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path == session:
            raise PermissionError(1, "Operation not permitted", str(path))
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        assert main(["forget", "gone-record-1", "--erase", "--home", str(home.path)]) == 9
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "s.json" in printed.err
    assert "Traceback" not in printed.err
    assert [name for name, raw in everything(home).items() if CUT.encode() in raw] == [
        ".state/sessions/s.json"
    ]

    assert main(["doctor", "--home", str(home.path)]) == 9
    assert "unfinished erasure" in capsys.readouterr().out
    assert main(["forget", "gone-record-1", "--erase", "--home", str(home.path)]) == 0
    assert "Erased: gone-record-1" in capsys.readouterr().out
    check_all_gone(home)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_named(home: Home) -> None:
    home.archive_folder.chmod(0o500)
    with open_memory(home) as memory, pytest.raises(FindingsLeft, match="archive"):
        memory.erase("gone-record-1")

    home.archive_folder.chmod(0o700)
    maintain(home)
    check_all_gone(home)


def test_a_temporary_file_whose_process_number_is_in_use_again_goes_with_its_log(
    home: Home,
) -> None:
    """Under the lock of the log no rewrite of it is in progress."""
    put(home.log_folder / f".app.jsonl.0a0a0a0a.{os.getpid()}.rewriting", TEXT)

    with open_memory(home) as memory:
        memory.erase("gone-record-1")

    check_all_gone(home)


def test_what_another_process_writes_just_now_is_named(home: Home) -> None:
    path = home.notes("ana") / f".plan.md.0a0a0a0a.{os.getpid()}.rewriting"
    put(path, TEXT)
    with open_memory(home) as memory, pytest.raises(FindingsLeft, match="another process"):
        memory.erase("gone-record-1")

    path.unlink()
    doctor(home)
    check_all_gone(home)


def test_an_intent_in_one_home_is_carried_out_in_all(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process was killed after it had written the first of two."""
    far = Home(tmp_path / "far")
    append(far, "app", pattern("rests", source_episodes=["gone-record-1"]), lesson("stays"))
    with monkeypatch.context() as patch:
        patch.setattr(erasure, "_Removal", interrupt)
        with pytest.raises(KeyboardInterrupt):
            erasure.erase([home, far], "gone-record-1")
    shutil.rmtree(far.erasures_folder)

    assert len(erasure.finish([home, far])) == 1

    check_all_gone(home)
    assert '"rests"' not in far.log("app").read_text()
    assert '"stays"' in far.log("app").read_text()
    assert erasure.pending([home, far]) == []


def test_a_record_logged_again_before_the_second_run_goes_with_its_new_text(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_erasure(home, monkeypatch)
    append(home, "app", lesson("gone-record-1", "a newer text of the same record"))
    put(home.inbox_folder / "cand-b.json", '{"error": "a newer text of the same record"}')

    erasure.erase([home], "gone-record-1")

    check_all_gone(home)
    assert not (home.inbox_folder / "cand-b.json").exists()


def test_notes_that_hold_the_text_are_named_whoever_finishes_it(
    full_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    near, far = copy(full_home, tmp_path / "near"), copy(full_home, tmp_path / "far")
    for home in (near, far):
        put(home.notes("ana") / "plan.md", TEXT)
        with monkeypatch.context() as patch:
            patch.setattr(erasure, "_Removal", interrupt)
            with pytest.raises(KeyboardInterrupt):
                erasure.erase([home], "gone-record-1")

    with open_memory(near) as memory:
        (found,) = [finding for finding in memory.mend() if finding.what == "text left"]
    with open_memory(far) as memory:
        done = runner.run(memory, ["erasures"]).steps["erasures"]

    assert found.path == near.notes("ana") / "plan.md"
    assert done == {"finished": 1, "left": f"text left in {Path('agents/ana/plan.md')}"}


def test_one_that_cannot_be_finished_does_not_keep_the_others(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = home.notes("ana") / f".plan.md.0a0a0a0a.{os.getpid()}.rewriting"
    put(blocked, f"{KEPT[0]} is another lesson")
    with monkeypatch.context() as patch:
        patch.setattr(erasure, "_Removal", interrupt)
        for ident in (KEPT[0], "gone-record-1"):
            with pytest.raises(KeyboardInterrupt):
                erasure.erase([home], ident)

    with pytest.raises(FindingsLeft, match=KEPT[0]):
        erasure.finish([home])

    assert [intent.id for intent in erasure.pending([home])] == [KEPT[0]]


def test_a_file_that_is_no_intent_is_named(home: Home) -> None:
    put(home.erasures_folder / "0a.json", "[]")

    with pytest.raises(HomeUnusable, match="does not describe an erasure"):
        erasure.finish([home])


def test_a_dry_run_of_maintenance_counts_and_erases_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_erasure(home, monkeypatch)

    with open_memory(home) as memory:
        report = runner.run(memory, ["erasures"], dry_run=True)
    assert report.steps["erasures"] == {"unfinished": 1}
    assert len(erasure.pending([home])) == 1


def test_an_index_set_aside_by_a_killed_process_is_found_and_removed(home: Home) -> None:
    with open_memory(home) as memory:
        assert ".index.0a.rewriting" in {finding.path.name for finding in memory.check()}
        report = runner.run(memory, ["leftovers"])

    assert report.steps["leftovers"]["files"] == 3
    assert not (home.path / ".index.0a.rewriting").exists()


def test_an_id_that_a_line_writes_in_another_way_is_erased(home: Home) -> None:
    line = json.dumps(lesson("gone-record-1", "x")).replace("gone-", "gone\\u002d")
    with home.log("app").open("a") as stream:
        stream.write(line + "\n")

    with open_memory(home) as memory:
        memory.erase("gone-record-1")

    assert "\\u002d" not in home.log("app").read_text()
    check_all_gone(home)


def test_hooks_write_no_session_while_its_files_are_removed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[Path] = []

    def note_and_hold(path: Path) -> AbstractContextManager[None]:
        held.append(path)
        return hold(path)

    monkeypatch.setattr(erasure, "hold", note_and_hold)
    with open_memory(home) as memory:
        memory.erase("gone-record-1")

    assert held == [home.spool_lock]


def test_temporary_files_are_found_by_the_file_they_are_for(tmp_path: Path) -> None:
    ours = tmp_path / ".a[1].jsonl.0a0a0a0a.1.rewriting"
    for path in (ours, tmp_path / ".a1.jsonl.0a0a0a0a.1.rewriting", tmp_path / "a[1].jsonl"):
        path.touch()

    assert atomic.temporaries_of(tmp_path / "a[1].jsonl") == [ours]


# --- Traces: what is found by digests is what would be found by the texts -------------------------

some_text = st.text(
    st.sampled_from('ab“é"\\\n ') | st.characters(codec="utf-8"), min_size=12, max_size=40
)


@given(st.lists(some_text, max_size=4), st.lists(some_text | st.binary(max_size=30), max_size=8))
def test_a_text_is_found_by_its_trace_exactly_where_it_is(
    texts: list[str], parts: list[str | bytes]
) -> None:
    raw = b"".join(
        part if isinstance(part, bytes) else part.encode() for part in [*parts, *texts[:1]]
    )
    forms = {
        form
        for text in texts
        for form in (
            text.encode(),
            json.dumps(text)[1:-1].encode(),
            json.dumps(text, ensure_ascii=False)[1:-1].encode(),
        )
    }

    found = set(find(raw, traces_of(texts)))

    assert bool(found) == any(form in raw for form in forms)
    assert all(any(raw.startswith(form, place) for form in forms) for place in found)


@given(st.integers(0, 200), st.integers(1, 64))
def test_a_text_is_found_across_the_blocks_of_a_file(at: int, block_bytes: int) -> None:
    raw = b"-" * at + TEXT.encode() + b"-" * (200 - at)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traces, "_BLOCK_BYTES", block_bytes)

        assert set(find(raw, traces_of([TEXT]))) == {at}


@pytest.mark.parametrize(
    ("text", "raw", "found"),
    [
        ("a" * 30_000 + "b" + "a" * 30_000, b"a" * 3_000_000, 0),
        ("a" * 60_000, b"a" * 3_000_000, 50),
    ],
)
def test_texts_made_to_match_almost_everywhere_cost_no_more(
    text: str, raw: bytes, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    digested: list[int] = []
    digest = traces._digest
    wanted = traces_of([text])

    def count_and_digest(part: bytes) -> str:
        digested.append(len(part))
        return digest(part)

    monkeypatch.setattr(traces, "_digest", count_and_digest)

    assert abs(len(list(find(raw, wanted))) - found) <= 1
    assert sum(digested) <= 2 * len(raw)
